/* Requests and replies of /kl_div as application/json. */
#ifndef KLDIV_API_JSON_H
#define KLDIV_API_JSON_H

#include "api/call.h"

/* Reads a body into the call: tensors into its buffers, other members as options beside those
 * that the query gave. `body` ends with a NUL and API_PADDING more bytes. */
bool api_json_decode(struct api_call *call, const char *body, size_t size,
                     struct api_problem *problem);

/* Appends the answer to a call that was run. */
void api_json_encode(const struct api_call *call, struct api_buffer *out);

/* Appends `"warnings":[...]`, for a plan's warnings. */
void api_json_warnings(const struct kl_plan *plan, struct api_buffer *out);

#endif
