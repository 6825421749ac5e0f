/* What a client would rather have: Accept and Accept-Encoding (RFC 9110, 12.5). */
#ifndef KLDIV_API_ACCEPT_H
#define KLDIV_API_ACCEPT_H

#include <stddef.h>

/* The quality, from 0 to 1, that a header's value gives to a media type or a content coding, by
 * the element that fits it best: itself, then "type/ *", then "*". 0 if none fits. */
double api_accept_quality(const char *value, const char *word);

/* The length of the "type/subtype" or the coding at the start of a header's value or element. */
size_t api_essence_length(const char *value);

#endif
