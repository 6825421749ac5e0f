/* Requests of /kl_div as multipart/form-data (RFC 7578), as curl -F and browsers send forms. */
#pragma once

#include "api/call.h"
#include "api/exchange.h"

/* Decodes a form. Parts named as tensors (input, target, mask) are tensors: .npy files or JSON
 * arrays. All other parts are options as text. Changes the body: a NUL ends each part. */
bool api_multipart_decode(struct api_call *call, const struct api_request *request,
                          struct api_problem *problem);
