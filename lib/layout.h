/* Where the elements of a call's arrays lie: the operands, which may be broadcast, and what has
 * the loss's shape or broadcasts to it. */
#ifndef KLDIV_LIB_LAYOUT_H
#define KLDIV_LIB_LAYOUT_H

#include "lib/kernel.h"

#include <stdint.h>

/* Elements in a tile, whose arrays of 8 KiB stay in the second-level cache. With half as many, rows
 * of 33 to 64 elements take 1.2 to 1.8 times as long, for then they do not lie across vectors. */
enum { KL_BLOCK = 1024 };
_Static_assert(KL_BLOCK % KL_BROADCAST_LANES == 0,
               "a tile of several rows is whole broadcast vectors");
_Static_assert(KL_BLOCK - 1 <= UINT16_MAX, "kl_pattern counts a tile's numbers in 16 bits");

enum kl_array { KL_OF_INPUT, KL_OF_TARGET, KL_OF_LOSS, KL_OF_WEIGHT, KL_OF_MASK };
#define KL_ARRAYS 5

/* An axis, and how far apart its entries are in each array, in elements; 0 where the array is
 * broadcast along it, or does not have it. */
struct kl_axis {
    size_t size, strides[KL_ARRAYS];
};

/* Axes of more than one entry, outermost first, those that lie one in the other in all arrays as
 * one. */
struct kl_axes {
    struct kl_axis axis[KL_MAX_DIMS];
    size_t n, volume;
};

/* Numbers side by side, from `offset` on. */
struct kl_run {
    uint32_t offset, n;
};

/* How the numbers of a tile lie in memory: in runs, counted from its first, whose k-th number is
 * number to[k] of the tile. */
enum { KL_PATTERN_DIGITS = 16 };
struct kl_pattern {
    size_t rows, length;           /* of such tiles; `rows` is 0 if there are none */
    size_t last_row, last_element; /* where these lie, by which a tile of the pattern is known */
    size_t n_runs;
    struct kl_run runs[KL_BLOCK];
    uint16_t to[KL_BLOCK];
};

/* Those of input, target and loss. */
struct kl_patterns {
    struct kl_pattern of[KL_OF_LOSS + 1];
};

/* The joint shape as rows, which are softmaxed or summed whole, and what tells rows apart. Where
 * neither happens, all is one row. */
struct kl_layout {
    struct kl_axes across, along;
    bool each; /* every element has a loss of its own; otherwise every row */
    const struct kl_patterns *patterns; /* NULL if none were looked for */
};

void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan);

/* The same, but that rows are along the last axis where no other is named. */
void kl_layout_of_rows(struct kl_layout *layout, const struct kl_plan *plan);

/* Some rows and a part of each. One row, whose elements lie side by side in what is loaded; or
 * several, and then rows lie side by side, `pitch` apart from one element to the next. */
struct kl_tile {
    size_t row, rows, pitch; /* pitch is 1 if rows is */
    size_t start, length;    /* elements of each row */
};

/* The most rows and elements of tiles that suit a layout, and their pitch. */
void kl_choose_tile(const struct kl_layout *layout, struct kl_tile *tile);

/* Looks for the patterns of such tiles, which the layout uses from now on. */
void kl_find_patterns(struct kl_patterns *patterns, struct kl_layout *layout,
                      const struct kl_tile *tile);

/* Numbers of an array: of a dtype, or bytes. */
struct kl_numbers {
    enum kl_array array;
    enum kl_dtype dtype;
    bool bytes;
    const void *data;
    double padding; /* of tiles that have more room than rows */
};

/* The numbers of a tile as doubles, rows * length of them, or pitch * length of which those past
 * `rows` are padding. An array without an axis along rows has the same number at each element. */
void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_numbers *from, double *to);

/* The inverse: each number rounded to `dtype`. The array is not broadcast. */
void kl_tile_store(const struct kl_kernel *kernel, const struct kl_layout *layout,
                   const struct kl_tile *tile, enum kl_array array, enum kl_dtype dtype, void *to,
                   const double *from);

/* Adds each number where it belongs. */
void kl_tile_add(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                 struct kl_sum *to, const double *from);

/* Numbers of an array along axes: entries [start, start + n), counted in row-major order. */
void kl_line_load(const struct kl_kernel *kernel, const struct kl_axes *axes,
                  const struct kl_numbers *from, size_t start, size_t n, double *to);
void kl_line_store(const struct kl_kernel *kernel, const struct kl_axes *axes, enum kl_array array,
                   enum kl_dtype dtype, void *to, size_t start, size_t n, const double *from);

/* The axes of the losses along which weight or mask differ; gives how many losses stand for each
 * entry of them. */
size_t kl_weight_axes(struct kl_axes *axes, const struct kl_plan *plan);

/* Whether the mask, bytes or NULL, hides element `element` of a row. */
bool kl_is_masked(const struct kl_layout *layout, const unsigned char *mask, size_t row,
                  size_t element);

/* Where element `index` of axes, counted in row-major order, lies. */
size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index);

/* Whether a row's elements lie side by side in an array. */
static inline bool kl_rows_are_dense(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *along = &layout->along;
    return along->n == 0 || (along->n == 1 && along->axis[0].strides[array] == 1);
}

#endif
