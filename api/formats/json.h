/* Requests and replies of /kl_div as application/json. */
#ifndef KLDIV_API_FORMATS_JSON_H
#define KLDIV_API_FORMATS_JSON_H

#include "api/api.h"
#include "api/call.h"

/* Reads a body into the call: tensors into its buffers, other members as options beside those
 * that the query gave. */
bool api_json_decode(struct api_call *call, const struct api_request *request,
                     struct api_problem *problem);

/* Appends the answer to a call that was run. */
void api_json_encode(struct api_call *call, struct api_reply *reply);

#endif
