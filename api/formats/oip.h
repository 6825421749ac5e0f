/* Requests and responses of the Open Inference Protocol
 * (https://github.com/kserve/open-inference-protocol), with Triton's binary tensor data
 * extension: JSON of Inference-Header-Content-Length bytes, then the elements in C order. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

#define API_OIP_MODEL "kl_div"
#define API_OIP_VERSION "1"

/* Decodes inputs to tensors, those of the binary part in place; request parameters to options. */
bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

/* Writes the outputs in call->oip, as JSON or binary. */
void api_oip_encode(struct api_call *call, struct api_response *response);
