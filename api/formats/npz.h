/* Requests of /kl_div as numpy's .npz, a zip archive of .npy files. */
#ifndef KLDIV_API_FORMATS_NPZ_H
#define KLDIV_API_FORMATS_NPZ_H

#include "api/api.h"
#include "api/call.h"

/* Reads entries input.npy, target.npy and those of the other tensors that are there, stored or
 * deflated. */
bool api_npz_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

#endif
