/* The names of dtypes in wire formats: one table for all of them. */
#ifndef KLDIV_API_FORMATS_DTYPES_H
#define KLDIV_API_FORMATS_DTYPES_H

#include "api/call.h"

enum api_naming { API_SAFETENSORS, API_NUMPY, API_INFERENCE };
#define API_NAMINGS 3

/* The dtype of a name of `size` bytes; for a mask API_BYTE and nothing else, for other tensors
 * anything else. False if there is none. */
bool api_dtype_find(enum api_naming naming, const char *name, size_t size, bool is_mask,
                    enum kl_dtype *dtype);

/* The name of a dtype of the library; numpy has none for bfloat16. */
const char *api_dtype_name(enum api_naming naming, enum kl_dtype dtype);

/* "F64, F32, F16, BF16": the names that a mask, or another tensor, may have. */
void api_dtype_list(enum api_naming naming, bool is_mask, char *to, size_t size);

#endif
