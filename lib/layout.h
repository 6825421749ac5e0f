/* kl_layout: the strides of a call's arrays: operands, losses, weight and mask. */
#ifndef KLDIV_LIB_LAYOUT_H
#define KLDIV_LIB_LAYOUT_H

#include "lib/kernel.h"

#include <stdint.h>

/* KL_BLOCK: elements of a tile, whose arrays of 8 KiB stay in the second-level cache. With half as
 * many, rows of 33 to 64 elements take 1.2 to 1.8 times as long, for they no longer lie across
 * vectors. */
enum { KL_BLOCK = 1024 };
_Static_assert(KL_BLOCK % KL_BROADCAST_LANES == 0,
               "a tile of several rows is whole broadcast vectors");
_Static_assert(KL_BLOCK - 1 <= UINT16_MAX, "kl_pattern counts a tile's numbers in 16 bits");

enum kl_array { KL_OF_INPUT, KL_OF_TARGET, KL_OF_LOSS, KL_OF_WEIGHT, KL_OF_MASK };
#define KL_ARRAYS 5

/* kl_axis: an axis, and its stride in each array, in elements; 0 where the array is broadcast along
 * it or lacks it. */
struct kl_axis {
    size_t size, strides[KL_ARRAYS];
};

/* kl_axes: axes of more than one entry, outermost first; axes that are contiguous in all arrays are
 * merged. */
struct kl_axes {
    struct kl_axis axis[KL_MAX_DIMS];
    size_t n, volume;
};

/* kl_run: contiguous numbers. */
struct kl_run {
    uint32_t offset, n;
};

/* kl_pattern: a tile as runs in memory order. Runs are counted from the tile's first number; the
 * k-th number of all runs is number to[k] of the tile. */
enum { KL_PATTERN_DIGITS = 16 };
struct kl_pattern {
    size_t rows, length;           /* of such tiles; `rows` is 0 if there are none */
    size_t last_row, last_element; /* where these lie, by which a tile of the pattern is known */
    size_t n_runs;
    struct kl_run runs[KL_BLOCK];
    uint16_t to[KL_BLOCK];
};

/* kl_patterns: the patterns of input, target and loss. */
struct kl_patterns {
    struct kl_pattern of[KL_OF_LOSS + 1];
};

/* kl_layout: the joint shape as rows, which are softmaxed or summed as a whole, across other axes.
 * All elements are one row if nothing is. */
struct kl_layout {
    struct kl_axes across, along;
    bool each; /* every element has a loss of its own; otherwise every row */
    const struct kl_patterns *patterns; /* NULL if none were looked for */
};

void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan);

/* Fills a layout whose rows are along the last axis where dim is absent. */
void kl_layout_of_rows(struct kl_layout *layout, const struct kl_plan *plan);

/* kl_tile: some rows and a part of each. One row is contiguous once loaded; of several rows, those
 * of one element are, `pitch` apart from one element to the next. */
struct kl_tile {
    size_t row, rows, pitch; /* pitch is 1 if rows is */
    size_t start, length;    /* elements of each row */
};

/* The largest tile that suits a layout, and its pitch. */
void kl_choose_tile(const struct kl_layout *layout, struct kl_tile *tile);

/* Finds the patterns of such tiles, which the layout uses from then on. */
void kl_find_patterns(struct kl_patterns *patterns, struct kl_layout *layout,
                      const struct kl_tile *tile);

/* kl_numbers: the elements of an array, of a dtype or bytes. */
struct kl_numbers {
    enum kl_array array;
    enum kl_dtype dtype;
    bool bytes;
    const void *data;
    double padding; /* of tiles that have more room than rows */
};

/* Loads a tile as doubles: rows * length of them, or pitch * length where those past `rows` are
 * padding. An array without an axis along rows has one number for all elements. */
void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_numbers *from, double *to);

/* Stores a tile, each number rounded to `dtype`. The array is not broadcast. */
void kl_tile_store(const struct kl_kernel *kernel, const struct kl_layout *layout,
                   const struct kl_tile *tile, enum kl_array array, enum kl_dtype dtype, void *to,
                   const double *from);

/* Adds each number of a tile to the element that it belongs to. */
void kl_tile_add(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                 struct kl_sum *to, const double *from);

/* Loads or stores entries [start, start + n) of axes, in row-major order. */
void kl_line_load(const struct kl_kernel *kernel, const struct kl_axes *axes,
                  const struct kl_numbers *from, size_t start, size_t n, double *to);
void kl_line_store(const struct kl_kernel *kernel, const struct kl_axes *axes, enum kl_array array,
                   enum kl_dtype dtype, void *to, size_t start, size_t n, const double *from);

/* Fills the axes of the losses along which weight or mask vary; returns how many losses share each
 * entry. */
size_t kl_weight_axes(struct kl_axes *axes, const struct kl_plan *plan);

/* True if the mask, bytes or NULL, hides an element of a row. */
bool kl_is_masked(const struct kl_layout *layout, const unsigned char *mask, size_t row,
                  size_t element);

/* The offset of entry `index` of axes, in row-major order. */
size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index);

/* True if a row is contiguous in an array. */
static inline bool kl_rows_are_dense(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *along = &layout->along;
    return along->n == 0 || (along->n == 1 && along->axis[0].strides[array] == 1);
}

#endif
