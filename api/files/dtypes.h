/* The types of elements in wire formats: one table of their names. */
#pragma once

#include "lib/kldiv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Dtypes of elements that are no numbers of the loss. API_BYTE: of a mask, one byte of 0 or 1, which formats call bool or
 * uint8. API_INT32, API_INT64: of indices. */
#define API_BYTE ((enum kl_dtype)KL_DTYPES)
#define API_INT32 ((enum kl_dtype)(KL_DTYPES + 1))
#define API_INT64 ((enum kl_dtype)(KL_DTYPES + 2))

static inline size_t api_dtype_size(enum kl_dtype dtype)
{
    static const size_t sizes[] = {1, sizeof(int32_t), sizeof(int64_t)};
    return dtype < API_BYTE ? kl_dtype_size(dtype) : sizes[dtype - API_BYTE];
}

/* api_tensor_kind: what the elements of a tensor are, and so which types it may have. */
enum api_tensor_kind { API_NUMBERS, API_BITS, API_INDICES };

enum api_dtype_names { API_SAFETENSORS, API_NUMPY, API_INFERENCE };
#define API_DTYPE_NAMES 3

/* API_CHARACTERS: text in UTF-32, API_CHARACTER bytes each. */
enum api_element { API_FLOAT, API_SIGNED, API_UNSIGNED, API_BOOL, API_CHARACTERS };
enum { API_CHARACTER = 4 };

/* api_type: the type of elements of `size` bytes each. */
struct api_type {
    enum api_element element;
    enum kl_dtype dtype; /* of tensors of the loss, or KL_FLOAT64 if none has it */
    size_t size;
    bool swapped; /* true if bytes, or those of each character, are in the other order */
};

/* Finds a type by its name, of numpy by its code: "F64", "<f8", ">U5", "FP64". False if it is unknown. */
bool api_type_find(enum api_dtype_names format, const char *name, struct api_type *type);

/* As api_type_find, but if a tensor of this kind cannot have the type, `refusal` becomes the reason:
 * "dtype I8 is not one of F64, F32, F16, BF16", with PyTorch's words for integers and complex numbers. */
enum { API_REFUSAL = 200 };
bool api_type_of_tensor(enum api_dtype_names format, const char *name, enum api_tensor_kind kind,
                        struct api_type *type, char refusal[API_REFUSAL]);

/* Name of a dtype of the library; "" for bfloat16 in numpy's names. */
const char *api_dtype_name(enum api_dtype_names format, enum kl_dtype dtype);
