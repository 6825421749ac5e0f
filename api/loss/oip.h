/* Requests and responses of the Open Inference Protocol
 * (https://github.com/kserve/open-inference-protocol), with Triton's binary tensor data
 * extension: JSON of Inference-Header-Content-Length bytes, then the elements in C order. */
#pragma once

#include "api/loss/codecs.h"

#define API_OIP_MODEL "kl_div"
#define API_OIP_VERSION "1"

/* The codec of inference requests and responses, of any Content-Type. Decodes inputs to tensors, those of
 * the binary part in place, and request parameters to options; `parsed` is for all of the JSON part. */
extern const struct api_codec api_codec_oip;

/* Bytes of the JSON part: of the whole body without the header Inference-Header-Content-Length, 0 if that
 * is malformed. */
size_t api_oip_json_size(const struct api_request *request);
