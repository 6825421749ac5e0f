/* Negotiation by quality: Accept and Accept-Encoding (RFC 9110, 12.5). */
#pragma once

#include <stddef.h>
#include <string.h>

/* Quality, from 0 to 1, that a header's value gives to a media type or a content coding. The
 * most specific matching element decides: the exact word, then "type/ *", then "*". 0 if none
 * matches. */
double api_accept_quality(const char *value, const char *word);

/* Length, in bytes, of the "type/subtype" or the coding at the start of a header's value or
 * element. */
static inline size_t api_essence_length(const char *value) { return strcspn(value, "; \t,"); }
