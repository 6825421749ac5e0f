/* Requests and replies of /kl_div as numpy's .npz, a zip archive of .npy files. */
#ifndef KLDIV_API_FORMATS_NPZ_H
#define KLDIV_API_FORMATS_NPZ_H

#include "api/api.h"
#include "api/call.h"

/* Reads entries input.npy, target.npy and those of the other tensors that are there, stored or
 * deflated. */
bool api_npz_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

/* Stored entries loss.npy and, of gradients that were asked for, gradient.input.npy and
 * gradient.target.npy. */
void api_npz_encode(struct api_call *call, struct api_reply *reply);

#endif
