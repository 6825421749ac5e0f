/* api_tensor: a tensor of a request, its name, and its location in the body. */
#pragma once

#include "api/files/dtypes.h"
#include "api/json/problem.h"
#include "api/regions/slice.h"

#define API_TENSORS KL_NO_OPERAND /* those of enum kl_operand; the operands are required */

/* api_tensor: a tensor of the request. `view` borrows `shape` and, once `present`, the elements:
 * those of the request's body or of shared memory if they can be read in place, else those of
 * `data`. */
struct api_tensor {
    enum kl_operand operand;
    bool present;
    bool flat;     /* true if read from one array, at any shape */
    bool is_input; /* true if read from number `input` of an inference request's inputs */
    size_t input;
    enum kl_dtype dtype;   /* one of the library's, or of api/files/dtypes.h */
    struct kl_tensor view; /* its dtype is KL_FLOAT64 if the library has none */
    size_t shape[KL_MAX_DIMS];
    struct api_buffer data;
    struct api_slice slice; /* the elements, if they are in shared memory */
};

extern const char *const api_tensor_names[API_TENSORS + 1]; /* NULL at the end */

/* Returns the tensor of that name, for reading. NULL, with a problem, if there is none or if it
 * was read before. `input` is the number of the input that names it, NULL for a member of the body. */
struct api_tensor *api_tensor_find(struct api_tensor tensors[API_TENSORS], const char *name,
                                   const size_t *input, struct api_problem *problem);

/* Kind of a tensor's elements, by its name. */
static inline enum api_tensor_kind api_tensor_kind_of(const struct api_tensor *tensor)
{
    return tensor->operand == KL_MASK      ? API_BITS
           : tensor->operand == KL_INDICES ? API_INDICES
                                           : API_NUMBERS;
}

static inline const char *api_tensor_name(const struct api_tensor *tensor)
{
    return api_tensor_names[tensor->operand];
}

/* Sets dtype, dimensions and elements of a tensor whose shape is set already. */
static inline void api_tensor_set(struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim,
                                  const void *data)
{
    tensor->dtype = dtype;
    tensor->view =
        (struct kl_tensor){dtype < API_BYTE ? dtype : KL_FLOAT64, ndim, tensor->shape, data};
    tensor->present = true;
    tensor->flat = false;
}

/* Fails at a tensor, or at its field `field` unless that is NULL. */
bool api_tensor_fail(const struct api_tensor *tensor, const char *field,
                     struct api_problem *problem, const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Finds the type of a tensor's elements by its name in a format, from its field `field` unless that is NULL. Fails with
 * dtype_unsupported if the tensor cannot have it. */
bool api_tensor_type(const struct api_tensor *tensor, enum api_dtype_names format,
                     const char *field, const char *name, struct api_type *type,
                     struct api_problem *problem);

/* Formats the JSON Pointer of a tensor: "#/input", or "#/inputs/0" for an input of an inference
 * request. */
void api_tensor_location(const struct api_tensor *tensor, char *to, size_t size);

/* Formats the JSON Pointer of the value at `n` subscripts in nested arrays: "#/target/2/0", or
 * "#/inputs/0/data/2/0". */
void api_tensor_value_location(const struct api_tensor *tensor, const size_t *subscripts, size_t n,
                               char *to, size_t size);

/* Formats the JSON Pointer of the element of row-major index `index`: "#/target/2/0". */
void api_tensor_element_location(const struct api_tensor *tensor, size_t index, char *to,
                                 size_t size);

/* Refuses bytes of a mask other than 0 and 1, which suggest another array: weights, or an image. */
bool api_mask_check(const struct api_tensor *mask, struct api_problem *problem);
