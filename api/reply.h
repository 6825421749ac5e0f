/* Functions by which endpoints and wire formats build a reply. */
#ifndef KLDIV_API_REPLY_H
#define KLDIV_API_REPLY_H

#include "api/api.h"

/* Adds a header; both are static or in reply->header_text. */
void api_reply_header(struct api_reply *reply, const char *name, const char *value);

/* Takes ownership of a tensor's bytes, which are sent after the reply's content so far; small
 * ones are copied. Leaves the buffer empty. Nothing may be appended to the reply's body
 * afterwards. */
void api_reply_take(struct api_reply *reply, struct api_buffer *tensor);

/* Frees the content; the reply stays usable. */
void api_reply_free(struct api_reply *reply);

#endif
