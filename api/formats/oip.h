/* The Open Inference Protocol's requests and replies
 * (https://github.com/kserve/open-inference-protocol), with Triton's binary tensor data extension:
 * JSON of Inference-Header-Content-Length bytes, then the tensors as they lie in memory. */
#ifndef KLDIV_API_FORMATS_OIP_H
#define KLDIV_API_FORMATS_OIP_H

#include "api/api.h"
#include "api/call.h"

#define API_OIP_MODEL "kl_div"
#define API_OIP_VERSION "1"

/* "FP64", ... */
extern const char *const api_oip_datatypes[KL_DTYPES];

/* Inputs become tensors, those in the binary part in place; request parameters become options. */
bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

/* The outputs that call->oip wants, in the form that it says. */
void api_oip_encode(struct api_call *call, struct api_reply *reply);

/* Whether a path belongs to the protocol, whose errors have a form of their own:
 * {"error": "..."} alone. */
bool api_oip_owns(const char *path);
void api_oip_write_problem(const struct api_problem *problem, struct api_buffer *out);

#endif
