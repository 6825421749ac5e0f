/* Requests and replies of /kl_div as safetensors
 * (https://github.com/huggingface/safetensors#format): eight bytes of header length, a JSON
 * header that says where each tensor lies, the tensors. */
#ifndef KLDIV_API_FORMATS_SAFETENSORS_H
#define KLDIV_API_FORMATS_SAFETENSORS_H

#include "api/api.h"
#include "api/call.h"

/* Reads the tensors of a call in place, and the strings of __metadata__ as options. Holds the
 * body to every rule of the format: the header begins with "{" and has no duplicate keys, shapes
 * agree with offsets, and the tensors cover the rest of the body, without holes or overlaps, to
 * its last byte. */
bool api_safetensors_decode(struct api_call *call, const struct api_request *request,
                            struct api_problem *problem);

/* Tensors loss, and gradient.input and gradient.target if asked for; the reduction, and warnings as
 * the text of a JSON array, in __metadata__. */
void api_safetensors_encode(struct api_call *call, struct api_reply *reply);

#endif
