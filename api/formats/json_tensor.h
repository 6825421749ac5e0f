/* Tensors written as nested JSON arrays, read straight from the bytes into a typed buffer. */
#ifndef KLDIV_API_FORMATS_JSON_TENSOR_H
#define KLDIV_API_FORMATS_JSON_TENSOR_H

#include "api/call.h"

/* Reads the value at `at`, in `text`: nested arrays of numbers, all alike in length at each depth,
 * or one number, which is 0-dim. "NaN", "Infinity" and "-Infinity" count as numbers, quoted or
 * bare, and so do R's "Inf" and "-Inf". The call's mask takes 0, 1, false and true, which become
 * API_BYTE. Fills the tensor's shape and data, each number rounded once to `dtype`, and gives the place
 * after it, or NULL with a problem that names the element. `text` ends with a NUL and API_PADDING more
 * bytes. */
const char *api_json_tensor_read(const struct api_call *call, struct api_tensor *tensor,
                                 const char *text, const char *at, enum kl_dtype dtype,
                                 struct api_problem *problem);

/* Gives a tensor that was read from one flat array another shape. Fails with shape_invalid where
 * it has another number of elements, or came nested in another way. */
bool api_json_tensor_reshape(const struct api_call *call, struct api_tensor *tensor, size_t ndim,
                             const size_t *shape, struct api_problem *problem);

/* How NaN and infinities are written, for which JSON has no numbers: as strings; or, in inference
 * answers, as the bare words that many programs write and read all the same. There numbers of bfloat16
 * are written with the digits of float32, in which clients hold them. */
enum api_nonfinite { API_QUOTED, API_BARE };

/* Appends n-dimensional data as nested arrays, numbers as api_decimal_write has them. */
void api_json_tensor_write(struct api_buffer *out, const struct kl_tensor *tensor,
                           enum api_nonfinite nonfinite);

#endif
