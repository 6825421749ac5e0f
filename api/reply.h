/* What endpoints and wire formats put into a reply. */
#ifndef KLDIV_API_REPLY_H
#define KLDIV_API_REPLY_H

#include "api/api.h"

/* Adds a header; both are static or in reply->header_text. */
void api_reply_header(struct api_reply *reply, const char *name, const char *value);

/* Takes a tensor's bytes, which go out after all that is in the reply so far; what is large is
 * not copied. Leaves the buffer empty. Nothing may be appended to the reply's body afterwards. */
void api_reply_take(struct api_reply *reply, struct api_buffer *tensor);

/* Leaves it without content. */
void api_reply_free(struct api_reply *reply);

#endif
