/* Where the elements of a call's arrays lie: the operands, which may be broadcast, and what has
 * the loss's shape or broadcasts to it. */
#ifndef KLDIV_LIB_LAYOUT_H
#define KLDIV_LIB_LAYOUT_H

#include "lib/kernel.h"

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

/* The joint shape as rows, which are softmaxed or summed whole, and what tells rows apart. Where
 * neither happens, all is one row. */
struct kl_layout {
    struct kl_axes across, along;
    bool each; /* every element has a loss of its own; otherwise every row */
};

void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan);

/* The same, but that rows are along the last axis where no other is named. */
void kl_layout_of_rows(struct kl_layout *layout, const struct kl_plan *plan);

/* Rows in a tile that suits a layout: 1, or the pitch of several. */
size_t kl_tile_rows(const struct kl_layout *layout);

/* Some rows and a part of each. One row, whose elements lie side by side in what is loaded; or
 * several, and then rows lie side by side, `pitch` apart from one element to the next. */
struct kl_tile {
    size_t row, rows, pitch; /* pitch is 1 if rows is */
    size_t start, length;    /* elements of each row */
};

/* Numbers of an array: of a dtype, or bytes. */
struct kl_numbers {
    enum kl_array array;
    enum kl_dtype dtype;
    bool bytes;
    const void *data;
};

/* The numbers of a tile as doubles, rows * length of them, or pitch * length of which those past
 * `rows` are 0. An array without an axis along rows has the same number at each element. */
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

/* The axes of the losses, whether or not they are those of the operands. */
void kl_loss_axes(struct kl_axes *axes, const struct kl_plan *plan);

/* Where element `index` of axes, counted in row-major order, lies. */
size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index);

/* Whether a row's elements lie side by side in an array. */
static inline bool kl_rows_are_dense(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *along = &layout->along;
    return along->n == 0 || (along->n == 1 && along->axis[0].strides[array] == 1);
}

#endif
