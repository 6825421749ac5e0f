/* Arrays in numpy's .npy format, versions 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#pragma once

#include "api/loss/call.h"
#include "api/request/exchange.h"

/* Reads a complete file into a tensor of the call. Elements in C order and in the machine's byte
 * order stay in place; others are copied into a new buffer of the tensor, so `bytes` may be its
 * old one. Accepts float16, float32, float64, and for a mask bool and uint8; the problem for
 * other types names the type. */
bool api_npy_read(struct api_tensor *tensor, const char *bytes, size_t size,
                  struct api_problem *problem);

/* Appends the header of a file with this tensor; the caller appends the elements. */
void api_npy_header(struct api_buffer *out, const struct kl_tensor *tensor);

/* Returns an output as api_call_output does, in a dtype of numpy: bfloat16, which numpy lacks,
 * becomes float32 without loss. Sets `failed` of the buffer if memory is exhausted. */
struct api_buffer *api_npy_output(struct api_call *call, size_t output, struct kl_tensor *view);

/* Adds a header with the codes of warnings, which the format cannot hold. */
void api_npy_warnings(const struct api_call *call, struct api_response *response);
