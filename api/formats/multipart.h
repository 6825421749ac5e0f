/* Requests of /kl_div as multipart/form-data (RFC 7578), as curl -F and browsers send forms. */
#ifndef KLDIV_API_FORMATS_MULTIPART_H
#define KLDIV_API_FORMATS_MULTIPART_H

#include "api/api.h"
#include "api/call.h"

/* Parts named as tensors are (input, target, mask) are tensors, each a .npy file, or a JSON
 * array; all other parts are options in text. The body is changed: a NUL ends each part. */
bool api_multipart_decode(struct api_call *call, const struct api_request *request,
                          struct api_problem *problem);

#endif
