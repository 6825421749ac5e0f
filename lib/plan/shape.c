#include "lib/plan/shape.h"

#include <stdio.h>
#include <string.h>

bool kl_shape_count(size_t ndim, const size_t *shape, size_t size, size_t *count)
{
    size_t n = 1, bytes;
    bool empty = false, overflow = false;
    for (size_t i = 0; i < ndim; i++) {
        empty |= shape[i] == 0;
        overflow |= __builtin_mul_overflow(n, shape[i], &n);
    }
    *count = empty ? 0 : n;
    overflow |= __builtin_mul_overflow(n, size, &bytes);
    return empty || !overflow;
}

bool kl_tensor_count(const struct kl_tensor *tensor, size_t *count)
{
    return kl_shape_count(tensor->ndim, tensor->shape, kl_dtype_size(tensor->dtype), count);
}

void kl_shape_print(size_t ndim, const size_t *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < ndim && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    else
        memcpy(text + size - 5, "...]", 5);
}

bool kl_shape_same(size_t a_ndim, const size_t *a, size_t b_ndim, const size_t *b)
{
    return a_ndim == b_ndim && (a_ndim == 0 || memcmp(a, b, a_ndim * sizeof *a) == 0);
}

bool kl_shape_extends(size_t ndim, const size_t *shape, size_t to_ndim, const size_t *to)
{
    if (ndim > to_ndim)
        return false;
    for (size_t i = 0; i < ndim; i++)
        if (shape[i] != 1 && shape[i] != to[to_ndim - ndim + i])
            return false;
    return true;
}

bool kl_shape_broadcast(size_t a_ndim, const size_t *a, size_t b_ndim, const size_t *b,
                        size_t *joint_ndim, size_t *joint)
{
    size_t ndim = *joint_ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
    for (size_t i = 0; i < ndim; i++) {
        size_t x = i < ndim - a_ndim ? 1 : a[i - (ndim - a_ndim)];
        size_t y = i < ndim - b_ndim ? 1 : b[i - (ndim - b_ndim)];
        joint[i] = x == 1 ? y : x;
    }
    return kl_shape_extends(a_ndim, a, ndim, joint) && kl_shape_extends(b_ndim, b, ndim, joint);
}
