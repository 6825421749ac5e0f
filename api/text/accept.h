/* Negotiation by quality: Accept and Accept-Encoding (RFC 9110, 12.5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Quality, from 0 to 1, that a header's value gives to a media type or a content coding. The
 * most specific matching element decides: the exact word, then "type/ *", then "*". 0 if none
 * matches. */
double api_accept_quality(const char *value, const char *word);

/* True if a Content-Type, its parameters aside, is one of the types, of which the last is followed by NULL. */
bool api_is_media_type(const char *content_type, const char *const *types);
