/* Shapes of tensors: counting, printing, broadcasting. */
#pragma once

#include "lib/kldiv.h"

/* The product of the sizes; false if it, or the bytes of so many elements of `size` bytes, overflow size_t. */
bool kl_shape_count(size_t ndim, const size_t *shape, size_t size, size_t *count);

/* "[2, 3]"; cut if `size`, at least 8, is too small. */
void kl_shape_print(size_t ndim, const size_t *shape, char *text, size_t size);

bool kl_shape_same(size_t a_ndim, const size_t *a, size_t b_ndim, const size_t *b);

/* True if `shape` broadcasts to `to`, by NumPy's rules. */
bool kl_shape_extends(size_t ndim, const size_t *shape, size_t to_ndim, const size_t *to);

/* The shape that both broadcast to; false if there is none. `joint` has room for the longer. */
bool kl_shape_broadcast(size_t a_ndim, const size_t *a, size_t b_ndim, const size_t *b,
                        size_t *joint_ndim, size_t *joint);
