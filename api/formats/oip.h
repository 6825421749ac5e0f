/* The Open Inference Protocol's requests and replies
 * (https://github.com/kserve/open-inference-protocol), with Triton's binary tensor data extension:
 * JSON of Inference-Header-Content-Length bytes, then the tensors as they lie in memory. */
#ifndef KLDIV_API_FORMATS_OIP_H
#define KLDIV_API_FORMATS_OIP_H

#include "api/api.h"
#include "api/call.h"

#define API_OIP_MODEL "kl_div"
#define API_OIP_VERSION "1"

/* Inputs become tensors, those in the binary part in place; request parameters become options. */
bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem);

/* The outputs that call->oip wants, in the form that it says. */
void api_oip_encode(struct api_call *call, struct api_reply *reply);

/* Writes a problem in the form of the protocol's errors: {"error": "..."} alone. */
void api_oip_write_problem(const struct api_exchange *x, struct api_buffer *out);

/* Fails for a path of the protocol that is not served: another model or version, perhaps. */
bool api_oip_fail_not_found(const char *path, struct api_problem *problem);

#endif
