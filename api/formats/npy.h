/* Arrays in numpy's .npy format, versions 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef KLDIV_API_FORMATS_NPY_H
#define KLDIV_API_FORMATS_NPY_H

#include "api/api.h"
#include "api/call.h"

/* Whether bytes begin like a .npy file. */
bool api_npy_is(const char *bytes, size_t size);

/* Reads a file, whole, into a tensor of the call. Elements are read in place where they lie in C
 * order in the machine's byte order. Others are copied into a new buffer of the tensor, so `bytes`
 * may be its old one. Takes float16, float32 and float64, for a mask bool and uint8; refuses objects,
 * structures and all other kinds by name. */
bool api_npy_read(const struct api_call *call, struct api_tensor *tensor, const char *bytes,
                  size_t size, struct api_problem *problem);

/* Appends the header of a file that holds this tensor; its elements follow. */
void api_npy_header(struct api_buffer *out, const struct kl_tensor *tensor);

/* The output of a call as api_call_output has it, in a dtype of numpy, which has no bfloat16: such
 * numbers become float32, which holds them exactly. Sets `failed` of the buffer if memory is out. */
struct api_buffer *api_npy_output(struct api_call *call, size_t output, struct kl_tensor *view);

/* Puts the codes of warnings, for which the format has no room, into a header. */
void api_npy_warnings(const struct api_call *call, struct api_reply *reply);

/* The loss alone. */
void api_npy_encode(struct api_call *call, struct api_reply *reply);

#endif
