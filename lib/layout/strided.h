/* Copies between an array of any strides and a block, in as few loops as the strides allow. */
#pragma once

#include "lib/layout/layout.h"

/* kl_dim: entries, and how many elements apart they lie in the array and in the block. */
struct kl_dim {
    size_t n, array, block;
};

/* kl_strided_copy: a copy between a block and an array whose elements have `size` bytes: kl_run_gather's to the
 * block, kl_run_scatter's to the array, which is not broadcast; or kl_run_add's, of doubles to the sums (high, low)
 * of the elements that they belong to. `run` copies two dimensions, from the elements at these offsets on. */
struct kl_strided_copy {
    enum kl_array array;
    size_t size;
    const struct kl_kernel *kernel;
    char *array_data, *block;
    double *high, *low;
    void (*run)(const struct kl_strided_copy *copy, size_t array, size_t block,
                const struct kl_dim dims[2]);
};

void kl_run_gather(const struct kl_strided_copy *copy, size_t array, size_t block,
                   const struct kl_dim dims[2]);
void kl_run_scatter(const struct kl_strided_copy *copy, size_t array, size_t block,
                    const struct kl_dim dims[2]);
void kl_run_add(const struct kl_strided_copy *copy, size_t array, size_t block,
                const struct kl_dim dims[2]);

/* kl_entries: entries [start, start + n) of axes, `step` elements apart in the block; one if the axes have
 * none. */
struct kl_entries {
    const struct kl_axes *axes;
    size_t start, n, step;
};

/* Copies entries of `outer`, and of each of these entries of `inner`. */
void kl_copy_entries(const struct kl_strided_copy *copy, const struct kl_entries *outer,
                     const struct kl_entries *inner);
