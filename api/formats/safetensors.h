/* Requests and responses of /kl_div as safetensors
 * (https://github.com/huggingface/safetensors#format): eight bytes with the header's length, a
 * JSON header with the offsets of each tensor, the tensors. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

/* Decodes the tensors of a call in place, and the strings of __metadata__ as options. Enforces
 * every rule of the format: the header starts with "{" and has no duplicate keys; shapes agree
 * with offsets; the tensors cover the rest of the body without holes or overlaps. */
bool api_safetensors_decode(struct api_call *call, const struct api_request *request,
                            struct api_problem *problem);

/* Writes the tensors loss and, if requested, gradient.input and gradient.target; __metadata__
 * has the reduction, and warnings as the text of a JSON array. */
void api_safetensors_encode(struct api_call *call, struct api_response *response);
