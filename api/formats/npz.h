/* Requests and responses of /kl_div as numpy's .npz, a zip archive of .npy files. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

/* Decodes the entries input.npy, target.npy and those of optional tensors, stored or deflated. */
bool api_npz_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

/* Writes stored entries loss.npy and, if requested, gradient.input.npy and gradient.target.npy. */
void api_npz_encode(struct api_call *call, struct api_response *response);
