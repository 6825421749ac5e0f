/* The names of dtypes in wire formats: one table for all of them. */
#pragma once

#include "lib/kldiv.h"

#include <stdbool.h>
#include <stddef.h>

/* API_BYTE: dtype of a mask, one byte of 0 or 1, which formats call bool or uint8. No other
 * tensor has it. */
#define API_BYTE ((enum kl_dtype)KL_DTYPES)

static inline size_t api_dtype_size(enum kl_dtype dtype)
{
    return dtype == API_BYTE ? 1 : kl_dtype_size(dtype);
}

enum api_dtype_names { API_SAFETENSORS, API_NUMPY, API_INFERENCE };
#define API_DTYPE_NAMES 3

/* Finds the dtype by a name of `size` bytes: API_BYTE for a mask, any other dtype for other
 * tensors. Returns false if the name is unknown. */
bool api_dtype_find(enum api_dtype_names format, const char *name, size_t size, bool is_mask,
                    enum kl_dtype *dtype);

/* Name of a dtype of the library; NULL for bfloat16 in numpy's names. */
const char *api_dtype_name(enum api_dtype_names format, enum kl_dtype dtype);

/* Formats the names that a mask, or another tensor, may have: "F64, F32, F16, BF16". */
void api_dtype_list(enum api_dtype_names format, bool is_mask, char *to, size_t size);

/* PyTorch's words for a name that no tensor but a mask may have, with ": " before them: that integers, of
 * which bool is one, and complex numbers are not supported. "" for other names, and for a mask. */
const char *api_dtype_unsupported_reason(enum api_dtype_names format, const char *name,
                                         bool is_mask);
