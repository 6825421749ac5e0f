/* kl_tile: some rows of a layout, or a part of each, as a block: elements lie side by side, row after
 * row; or, where that is their order in memory or rows are of a few logits, rows lie side by side, element after
 * element. */
#pragma once

#include "lib/layout/layout.h"

/* KL_BLOCK: the maximum of elements of a tile, whose arrays of doubles take 8 KiB each and stay in the
 * second-level cache. */
enum { KL_BLOCK = 1024 };

/* kl_tile: part [start, start + length) of rows [row, row + rows). */
struct kl_tile {
    size_t row, rows, start, length;
    bool columns; /* rows lie side by side */
};

static inline size_t kl_tile_size(const struct kl_tile *tile) { return tile->rows * tile->length; }

static inline void kl_fill(double *to, double value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* The largest tile that suits a layout, of whose rows softmaxes are computed or not. */
struct kl_tile kl_choose_tile(const struct kl_layout *layout, bool softmaxes);

/* True if rows are so long that each has tiles of its own, unless these are of columns. */
bool kl_are_rows_alone(const struct kl_layout *layout);

/* kl_array_view: the elements of an array, of a dtype or bytes. */
struct kl_array_view {
    enum kl_array array;
    enum kl_dtype dtype;
    bool bytes;
    const void *data; /* NULL if there is no such array */
};

/* The address of element `index`. */
const void *kl_at(const struct kl_array_view *view, size_t index);

/* The address of a tile that lies in its array as a block; NULL if it does not. */
const void *kl_tile_in_place(const struct kl_layout *layout, const struct kl_tile *tile,
                             const struct kl_array_view *view);

/* Gathers a tile of numbers as a block of `dtype`, which holds each of them exactly; of bytes as
 * bytes. */
void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_array_view *from, enum kl_dtype dtype,
                  void *to);

/* A tile of numbers as doubles: in place, or loaded into `block`. NULL if there is no such array. */
const double *kl_tile_doubles(const struct kl_kernel *kernel, const struct kl_layout *layout,
                              const struct kl_tile *tile, const struct kl_array_view *view,
                              double *block);

/* Scatters a block of `dtype` to an array of it, which is not broadcast. */
void kl_tile_store(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                   enum kl_dtype dtype, const void *from, void *to);

/* Adds each number of a block to the sum (high, low) of the element that it belongs to. */
void kl_tile_add(const struct kl_kernel *kernel, const struct kl_layout *layout,
                 const struct kl_tile *tile, enum kl_array array, const double *from, double *high,
                 double *low);

/* ---- Arithmetic along the rows of a block of doubles */

/* Adds the sums of a tile's rows to (high, low). */
void kl_add_to_rows(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                    double *high, double *low);

/* Raises `maxima` to the maxima of a tile's rows. */
void kl_row_maxima(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                   double *maxima);

/* Copies each row's value to each of its elements. */
void kl_broadcast(const struct kl_kernel *kernel, const struct kl_tile *tile,
                  const double *row_values, double *to);

/* ---- Entries of axes */

/* Loads entries [start, start + n) of axes, n <= KL_BLOCK, in row-major order, as a block of doubles, or of bytes. Stores
 * a block of `dtype`. */
void kl_gather(const struct kl_kernel *kernel, const struct kl_axes *axes,
               const struct kl_array_view *from, size_t start, size_t n, void *to);
void kl_scatter(const struct kl_axes *axes, enum kl_array array, enum kl_dtype dtype,
                const void *from, size_t start, size_t n, void *to);
