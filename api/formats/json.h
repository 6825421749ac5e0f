/* Requests and responses of /kl_div as application/json. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

/* Decodes a body: tensors into the call's buffers, other members as options, in addition to
 * those of the query. */
bool api_json_decode(struct api_call *call, const struct api_request *request,
                     struct api_problem *problem);

/* Appends the answer to a completed call. */
void api_json_encode(struct api_call *call, struct api_response *response);
