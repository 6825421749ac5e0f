#include "lib/tile.h"

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
 * entries of the first axis do not matter, so that a part of a call's has tiles like the whole's. */
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

/* ---- Copies of elements that lie so many elements apart */

/* view_2d: rows of elements, and how far apart rows and elements lie. */
struct view_2d {
    char *at;
    size_t row, element;
};

static inline __attribute__((always_inline)) void
copy_elements(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            memcpy(to.at + (r * to.row + i * to.element) * size,
                   from.at + (r * from.row + i * from.element) * size, size);
}

/* MAX_LOOPED: elements that take less time one by one than by memcpy. */
enum { MAX_LOOPED = 4 };

/* FIRST_FILLED: elements of a filled row from which it is copied, twice as many at a time. */
enum { FIRST_FILLED = 32 };

static inline __attribute__((always_inline)) void
fill_elements(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    char element[sizeof(double)];
    for (size_t r = 0; r < rows; r++) {
        char *at = to.at + r * to.row * size;
        memcpy(element, from.at + r * from.row * size, size);
        for (size_t i = 0; i < kl_min(n, FIRST_FILLED); i++)
            memcpy(at + i * size, element, size);
        for (size_t done = FIRST_FILLED; done < n; done *= 2)
            memcpy(at + done * size, at, kl_min(done, n - done) * size);
    }
}

/* Fills each row with its one element. */
static void fill_rows(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    if (size == 1)
        fill_elements(from, to, rows, n, 1);
    else if (size == 2)
        fill_elements(from, to, rows, n, 2);
    else if (size == 4)
        fill_elements(from, to, rows, n, 4);
    else
        fill_elements(from, to, rows, n, 8);
}

/* Copies `rows` rows of n elements of `size` bytes. */
static void copy_view(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    if (from.element == 1 && to.element == 1 && n > MAX_LOOPED)
        for (size_t r = 0; r < rows; r++)
            memcpy(to.at + r * to.row * size, from.at + r * from.row * size, n * size);
    else if (from.element == 0 && to.element == 1)
        fill_rows(from, to, rows, n, size);
    else if (size == 1)
        copy_elements(from, to, rows, n, 1);
    else if (size == 2)
        copy_elements(from, to, rows, n, 2);
    else if (size == 4)
        copy_elements(from, to, rows, n, 4);
    else
        copy_elements(from, to, rows, n, 8);
}

/* ---- Tiles as 2-D views: `run` copies each, and gets the offsets of its first element in the array and in
 * the block. */

/* strided_copy: a copy between a block and an array whose elements have `size` bytes. Of columns, the rows
 * of a view are a tile's elements, and its elements are rows. */
struct strided_copy {
    enum kl_array array;
    bool columns;
    size_t size, leading_dim; /* elements of a row of the block */
    const struct kl_kernel *kernel;
    char *array_data, *block;
    double *high, *low;
    void (*run)(const struct strided_copy *copy, size_t offset, size_t row_stride, size_t stride,
                size_t block_offset, size_t rows, size_t n);
};

static void copy_run(const struct strided_copy *copy, size_t offset, size_t row_stride,
                     size_t stride, size_t row, size_t element, size_t rows, size_t n)
{
    if (copy->columns)
        copy->run(copy, offset, stride, row_stride, element * copy->leading_dim + row, n, rows);
    else
        copy->run(copy, offset, row_stride, stride, row * copy->leading_dim + element, rows, n);
}

/* Moves an index, and the offset of its entry, on to the next axis where the axes after it are at their end. */
static void carry(const struct kl_axes *axes, enum kl_array array, size_t *index, size_t *offset)
{
    for (size_t i = axes->n - 1; i > 0 && index[i] == axes->axis[i].size; i--) {
        index[i] = 0;
        index[i - 1]++;
        *offset +=
            axes->axis[i - 1].strides[array] - axes->axis[i].size * axes->axis[i].strides[array];
    }
}

/* Copies entries [start, start + n) of rows, in runs along the last of the axes. `row` is the first of them in
 * the block. */
static void copy_rows(const struct strided_copy *copy, const struct kl_axes *axes, size_t base,
                      size_t row_stride, size_t row, size_t rows, size_t start, size_t n)
{
    if (axes->n == 0) {
        copy_run(copy, base, row_stride, 1, row, 0, rows, n);
        return;
    }
    const struct kl_axis *last = &axes->axis[axes->n - 1];
    size_t stride = last->strides[copy->array], index[KL_MAX_DIMS];
    size_t offset = base + kl_offset(axes, copy->array, start);
    for (size_t axis = axes->n, rest = start; axis-- > 0; rest /= axes->axis[axis].size)
        index[axis] = rest % axes->axis[axis].size;
    for (size_t i = 0, run; i < n; i += run) {
        run = kl_min(n - i, last->size - index[axes->n - 1]);
        copy_run(copy, offset, row_stride, stride, row, i, rows, run);
        index[axes->n - 1] += run;
        offset += run * stride;
        carry(axes, copy->array, index, &offset);
    }
}

/* Copies the rows of a tile in runs along the last axis across them. */
static void copy_tile(const struct strided_copy *copy, const struct kl_layout *layout,
                      const struct kl_tile *tile)
{
    const struct kl_axes *outer = &layout->outer;
    size_t size = outer->n > 0 ? outer->axis[outer->n - 1].size : 1;
    size_t stride = outer->n > 0 ? outer->axis[outer->n - 1].strides[copy->array] : 0;
    for (size_t row = 0, run; row < tile->rows; row += run) {
        run = kl_min(tile->rows - row, size - (tile->row + row) % size);
        copy_rows(copy, &layout->inner, kl_offset(outer, copy->array, tile->row + row), stride, row,
                  run, tile->start, tile->length);
    }
}

static struct view_2d in_array(const struct strided_copy *copy, size_t offset, size_t row_stride,
                               size_t stride)
{
    return (struct view_2d){copy->array_data + offset * copy->size, row_stride, stride};
}

static struct view_2d in_block(const struct strided_copy *copy, size_t offset)
{
    return (struct view_2d){copy->block + offset * copy->size, copy->leading_dim, 1};
}

static void gather(const struct strided_copy *copy, size_t offset, size_t row_stride, size_t stride,
                   size_t block_offset, size_t rows, size_t n)
{
    copy_view(in_array(copy, offset, row_stride, stride), in_block(copy, block_offset), rows, n,
              copy->size);
}

static void scatter(const struct strided_copy *copy, size_t offset, size_t row_stride,
                    size_t stride, size_t block_offset, size_t rows, size_t n)
{
    copy_view(in_block(copy, block_offset), in_array(copy, offset, row_stride, stride), rows, n,
              copy->size);
}

static void add_sum(double *high, double *low, struct kl_sum more)
{
    struct kl_sum sum = {*high, *low};
    kl_sum_add(&sum, more.high);
    *high = sum.high, *low = sum.low + more.low;
}

static void add_to_sums(const struct strided_copy *copy, size_t offset, size_t row_stride,
                        size_t stride, size_t block_offset, size_t rows, size_t n)
{
    const double *v = (const double *)(const void *)copy->block + block_offset;
    for (size_t row = 0; row < rows; row++, v += copy->leading_dim, offset += row_stride) {
        double *high = copy->high + offset, *low = copy->low + offset;
        if (stride == 0)
            add_sum(high, low, copy->kernel->total(v, n));
        else if (stride == 1)
            copy->kernel->add(v, high, low, n);
        else
            for (size_t i = 0; i < n; i++)
                add_sum(high + i * stride, low + i * stride, (struct kl_sum){v[i], 0});
    }
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

static size_t leading_dim_of(const struct kl_tile *tile)
{
    return tile->columns ? tile->rows : tile->length;
}

static struct strided_copy gather_of(const struct kl_array_view *from, size_t leading_dim, void *to)
{
    return (struct strided_copy){.array = from->array,
                                 .size = from->bytes ? 1 : kl_dtype_size(from->dtype),
                                 .leading_dim = leading_dim,
                                 .array_data = (char *)from->data,
                                 .block = to,
                                 .run = gather};
}

void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_array_view *from, enum kl_dtype dtype,
                  void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    const void *in_place = kl_tile_in_place(layout, tile, from);
    bool converts = !from->bytes && from->dtype != dtype;
    struct strided_copy copy = gather_of(from, leading_dim_of(tile), converts ? raw : to);
    copy.columns = tile->columns;
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

static struct strided_copy scatter_of(enum kl_array array, enum kl_dtype dtype, size_t leading_dim,
                                      const void *from, void *to)
{
    return (struct strided_copy){.array = array,
                                 .size = kl_dtype_size(dtype),
                                 .leading_dim = leading_dim,
                                 .array_data = to,
                                 .block = (char *)from,
                                 .run = scatter};
}

void kl_tile_store(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                   enum kl_dtype dtype, const void *from, void *to)
{
    struct strided_copy copy = scatter_of(array, dtype, leading_dim_of(tile), from, to);
    copy.columns = tile->columns;
    copy_tile(&copy, layout, tile);
}

void kl_tile_add(const struct kl_kernel *kernel, const struct kl_layout *layout,
                 const struct kl_tile *tile, enum kl_array array, const double *from, double *high,
                 double *low)
{
    const struct strided_copy copy = {.array = array,
                                      .columns = tile->columns,
                                      .leading_dim = leading_dim_of(tile),
                                      .kernel = kernel,
                                      .block = (char *)from,
                                      .high = high,
                                      .low = low,
                                      .run = add_to_sums};
    copy_tile(&copy, layout, tile);
}

void kl_gather(const struct kl_kernel *kernel, const struct kl_axes *axes,
               const struct kl_array_view *from, size_t start, size_t n, enum kl_dtype dtype,
               void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    bool converts = !from->bytes && from->dtype != dtype;
    struct strided_copy copy = gather_of(from, n, converts ? raw : to);
    copy_rows(&copy, axes, 0, 0, 0, 1, start, n);
    if (converts)
        convert(kernel, from, raw, dtype, n, to);
}

void kl_scatter(const struct kl_axes *axes, enum kl_array array, enum kl_dtype dtype,
                const void *from, size_t start, size_t n, void *to)
{
    struct strided_copy copy = scatter_of(array, dtype, n, from, to);
    copy_rows(&copy, axes, 0, 0, 0, 1, start, n);
}

/* ---- Arithmetic along rows */

void kl_add_to_rows(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                    double *high, double *low)
{
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            kernel->add(v + i * tile->rows, high, low, tile->rows);
    else
        kernel->row_totals(v, tile->rows, tile->length, high, low);
}

void kl_row_maxima(const struct kl_kernel *kernel, const struct kl_tile *tile, const double *v,
                   double *maxima)
{
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            kernel->max(v + i * tile->rows, maxima, tile->rows);
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
