#include "lib/layout/tile.h"
#include "lib/layout/strided.h"

#include <string.h>

const void *kl_at(const struct kl_array_view *view, size_t index)
{
    size_t size = view->bytes ? 1 : kl_dtype_size(view->dtype);
    return (const char *)view->data + index * size;
}

/* ---- The choice of a tile */

/* COLUMNS: rows of a tile that lie side by side: whole cache lines of them. MIN_COLUMNS: where so few do,
 * they are gathered row by row. */
enum { COLUMNS = 64, MIN_COLUMNS = 8 };

/* MAX_COLUMN_LENGTH: softmaxes of rows of so few elements take less time as columns, which fill vectors. */
enum { MAX_COLUMN_LENGTH = 3 };
_Static_assert((int)COLUMNS <= (int)KL_ROWS, "numbers of rows have room for columns");

/* True if neighbouring rows lie side by side in an operand, and a row's elements do not. Rows of other
 * entries of the first axis make no difference: a part of a call's rows has the same tiles as the whole. */
static bool has_adjacent_rows(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *outer = &layout->outer, *inner = &layout->inner;
    return outer->n > 0 && outer->axis[outer->n - 1].strides[array] == 1 &&
           outer->axis[outer->n - 1].size > MIN_COLUMNS && inner->n > 0 &&
           inner->axis[inner->n - 1].strides[array] > 1;
}

bool kl_are_rows_alone(const struct kl_layout *layout)
{
    return layout->inner.volume > KL_BLOCK / 2;
}

struct kl_tile kl_choose_tile(const struct kl_layout *layout, bool softmaxes)
{
    size_t all = layout->outer.volume, length = layout->inner.volume;
    bool columns = (softmaxes && length <= MAX_COLUMN_LENGTH) ||
                   has_adjacent_rows(layout, KL_OF_INPUT) ||
                   has_adjacent_rows(layout, KL_OF_TARGET);
    size_t rows = kl_min(kl_min(KL_BLOCK / kl_min(length, KL_BLOCK), KL_ROWS), all);
    if (columns && rows < COLUMNS)
        rows = kl_min(COLUMNS, all);
    return (struct kl_tile){
        .rows = rows, .length = kl_min(length, KL_BLOCK / rows), .columns = columns};
}

/* ---- Blocks */

/* True if a tile of columns is as wide as the array, along one axis of whole rows. */
static bool are_columns_in_place(const struct kl_layout *layout, const struct kl_tile *tile,
                                 enum kl_array array)
{
    const struct kl_axes *outer = &layout->outer, *inner = &layout->inner;
    return inner->n == 1 && outer->n == 1 && outer->axis[0].strides[array] == 1 &&
           inner->axis[0].strides[array] == tile->rows;
}

const void *kl_tile_in_place(const struct kl_layout *layout, const struct kl_tile *tile,
                             const struct kl_array_view *view)
{
    const struct kl_axes *outer = &layout->outer, *inner = &layout->inner;
    enum kl_array array = view->array;
    bool dense = tile->columns && inner->n > 0 ? are_columns_in_place(layout, tile, array)
                 : tile->rows == 1             ? kl_rows_are_dense(layout, array)
                                   : layout->contiguous[array] && tile->length == inner->volume;
    return dense ? kl_at(view,
                         kl_offset(outer, array, tile->row) + kl_offset(inner, array, tile->start))
                 : NULL;
}

/* Converts n elements to a dtype that holds each of them exactly: a wider one. */
static void convert(const struct kl_kernel *kernel, const struct kl_array_view *from,
                    const void *raw, enum kl_dtype dtype, size_t n, void *to)
{
    double doubles[KL_BLOCK];
    if (dtype == KL_FLOAT64) {
        kernel->widen[from->dtype](raw, to, n);
        return;
    }
    kernel->widen[from->dtype](raw, doubles, n);
    kernel->narrow[dtype](doubles, to, n);
}

static struct kl_strided_copy gather_of(const struct kl_array_view *from, void *to)
{
    return (struct kl_strided_copy){.array = from->array,
                                    .size = from->bytes ? 1 : kl_dtype_size(from->dtype),
                                    .array_data = (char *)from->data,
                                    .block = to,
                                    .run = kl_run_gather};
}

static void copy_tile(const struct kl_strided_copy *copy, const struct kl_layout *layout,
                      const struct kl_tile *tile)
{
    bool columns = tile->columns;
    const struct kl_entries rows = {&layout->outer, tile->row, tile->rows,
                                    columns ? 1 : tile->length};
    const struct kl_entries elements = {&layout->inner, tile->start, tile->length,
                                        columns ? tile->rows : 1};
    kl_copy_entries(copy, columns ? &elements : &rows, columns ? &rows : &elements);
}

static void copy_entries(const struct kl_strided_copy *copy, const struct kl_axes *axes,
                         size_t start, size_t n)
{
    static const struct kl_axes none;
    const struct kl_entries one = {&none, 0, 1, 0}, entries = {axes, start, n, 1};
    kl_copy_entries(copy, &one, &entries);
}

void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_array_view *from, enum kl_dtype dtype,
                  void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    const void *in_place = kl_tile_in_place(layout, tile, from);
    bool converts = !from->bytes && from->dtype != dtype;
    const struct kl_strided_copy copy = gather_of(from, converts ? raw : to);
    if (!converts || !in_place)
        copy_tile(&copy, layout, tile);
    if (converts)
        convert(kernel, from, in_place ? in_place : raw, dtype, kl_tile_size(tile), to);
}

const double *kl_tile_doubles(const struct kl_kernel *kernel, const struct kl_layout *layout,
                              const struct kl_tile *tile, const struct kl_array_view *view,
                              double *block)
{
    const double *in_place = NULL;
    if (!view->data)
        return NULL;
    if (view->dtype == KL_FLOAT64)
        in_place = kl_tile_in_place(layout, tile, view);
    if (!in_place)
        kl_tile_load(kernel, layout, tile, view, KL_FLOAT64, block);
    return in_place ? in_place : block;
}

static struct kl_strided_copy scatter_of(enum kl_array array, enum kl_dtype dtype, const void *from,
                                         void *to)
{
    return (struct kl_strided_copy){.array = array,
                                    .size = kl_dtype_size(dtype),
                                    .array_data = to,
                                    .block = (char *)from,
                                    .run = kl_run_scatter};
}

void kl_tile_store(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                   enum kl_dtype dtype, const void *from, void *to)
{
    const struct kl_strided_copy copy = scatter_of(array, dtype, from, to);
    copy_tile(&copy, layout, tile);
}

void kl_tile_add(const struct kl_kernel *kernel, const struct kl_layout *layout,
                 const struct kl_tile *tile, enum kl_array array, const double *from, double *high,
                 double *low)
{
    const struct kl_strided_copy copy = {.array = array,
                                         .kernel = kernel,
                                         .block = (char *)from,
                                         .high = high,
                                         .low = low,
                                         .run = kl_run_add};
    copy_tile(&copy, layout, tile);
}

void kl_gather(const struct kl_kernel *kernel, const struct kl_axes *axes,
               const struct kl_array_view *from, size_t start, size_t n, void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    bool widens = !from->bytes && from->dtype != KL_FLOAT64;
    const struct kl_strided_copy copy = gather_of(from, widens ? raw : to);
    copy_entries(&copy, axes, start, n);
    if (widens)
        kernel->widen[from->dtype](raw, to, n);
}

void kl_scatter(const struct kl_axes *axes, enum kl_array array, enum kl_dtype dtype,
                const void *from, size_t start, size_t n, void *to)
{
    const struct kl_strided_copy copy = scatter_of(array, dtype, from, to);
    copy_entries(&copy, axes, start, n);
}

/* ---- Arithmetic along rows */

void kl_add_to_rows(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                    double *high, double *low)
{
    if (tile->columns)
        kernel->add(v, tile->length, high, low, tile->rows);
    else
        kernel->row_totals(v, tile->rows, tile->length, high, low);
}

void kl_row_maxima(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                   double *maxima)
{
    if (tile->columns)
        kernel->max(v, tile->length, maxima, tile->rows);
    else
        kernel->row_maxima(v, tile->rows, tile->length, maxima);
}

void kl_broadcast(const struct kl_kernel *kernel, const struct kl_tile *tile,
                  const double *row_values, double *to)
{
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            memcpy(to + i * tile->rows, row_values, tile->rows * sizeof *row_values);
    else
        kernel->broadcast(row_values, tile->rows, tile->length, to);
}
