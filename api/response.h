/* Functions by which endpoints and wire formats build a response. */
#ifndef KLDIV_API_REPLY_H
#define KLDIV_API_REPLY_H

#include "api/exchange.h"

/* Adds a header; both are static or in response->header_text. */
void api_response_header(struct api_response *response, const char *name, const char *value);

/* Takes ownership of a tensor's bytes, which are sent after the response's content so far; small
 * ones are copied. Leaves the buffer empty. Nothing may be appended to the response's body
 * afterwards. */
void api_response_take(struct api_response *response, struct api_buffer *tensor);

/* Size of the content, in bytes. */
size_t api_response_size(const struct api_response *response);

/* Frees the content; the response stays usable. */
void api_response_free(struct api_response *response);

#endif
