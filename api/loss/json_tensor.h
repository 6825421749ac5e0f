/* Tensors written as nested JSON arrays, read straight from the bytes into a typed buffer. */
#pragma once

#include "api/loss/tensor.h"

/* Reads the value at `at`, in `text`: nested arrays of numbers, of equal length at each depth,
 * or one number, which is 0-dim. "NaN", "Infinity", "-Infinity" and R's "Inf" and "-Inf" are
 * numbers, quoted or bare, and null is NaN in an inference request. The call's mask takes 0, 1, false and true, which become API_BYTE;
 * indices take whole numbers, which become API_INT64, or API_INT32 if `dtype` says so.
 *
 * Fills the tensor's shape and data, each number rounded once to `dtype`. Returns the position
 * after the value, or NULL with a problem that names the element. `text` ends with a NUL and
 * API_PADDING more bytes. */
const char *api_json_tensor_read(struct api_tensor *tensor, const char *text, const char *at,
                                 enum kl_dtype dtype, struct api_problem *problem);

/* Reshapes a tensor that was read from one flat array. Fails with shape_invalid if the number of
 * elements differs or the tensor was nested otherwise. */
bool api_json_tensor_reshape(struct api_tensor *tensor, size_t ndim, const size_t *shape,
                             struct api_problem *problem);

/* api_nonfinite: the form of NaN and infinities, which JSON lacks: the strings "NaN", "Infinity" and
 * "-Infinity", the same as bare words, which many programs accept, or null. */
enum api_nonfinite { API_QUOTED, API_BARE, API_NULL_WORD };

/* Appends the elements as nested arrays, numbers formatted by api_decimal_write, with as many digits as
 * `digits` needs, a dtype that has all values of the tensor's. */
void api_json_tensor_write(struct api_buffer *out, const struct kl_tensor *tensor,
                           enum api_nonfinite nonfinite, enum kl_dtype digits);
