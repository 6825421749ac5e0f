#include "lib/tile.h"

#include <string.h>

const void *kl_at(const struct kl_numbers *numbers, size_t index)
{
    size_t size = numbers->bytes ? 1 : kl_dtype_size(numbers->dtype);
    return (const char *)numbers->data + index * size;
}

/* ---- The choice of a tile */

/* COLUMNS: rows of a tile that lie side by side: whole cache lines of them. FEW_COLUMNS: where so few do,
 * they are gathered row by row. */
enum { COLUMNS = 64, FEW_COLUMNS = 8 };
_Static_assert((int)COLUMNS <= (int)KL_ROWS, "numbers of rows have room for columns");

/* True if neighbouring rows lie side by side in an operand, and a row's elements do not. Rows of other
 * entries of the first axis do not matter, so that a part of a call's has tiles like the whole's. */
static bool lies_across(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    return across->n > 0 && across->axis[across->n - 1].strides[array] == 1 &&
           across->axis[across->n - 1].size > FEW_COLUMNS && along->n > 0 &&
           along->axis[along->n - 1].strides[array] > 1;
}

bool kl_are_rows_alone(const struct kl_layout *layout)
{
    return layout->along.volume > KL_BLOCK / 2;
}

struct kl_tile kl_choose_tile(const struct kl_layout *layout)
{
    size_t all = layout->across.volume, length = layout->along.volume;
    bool columns = lies_across(layout, KL_OF_INPUT) || lies_across(layout, KL_OF_TARGET);
    size_t rows = kl_smaller(kl_smaller(KL_BLOCK / kl_smaller(length, KL_BLOCK), KL_ROWS), all);
    if (columns && rows < COLUMNS)
        rows = kl_smaller(COLUMNS, all);
    return (struct kl_tile){
        .rows = rows, .length = kl_smaller(length, KL_BLOCK / rows), .columns = columns};
}

/* ---- Copies of elements that lie so many elements apart */

/* grid: rows of elements, and how far apart rows and elements lie. */
struct grid {
    char *at;
    size_t row, element;
};

static inline __attribute__((always_inline)) void copy_elements(struct grid from, struct grid to,
                                                                size_t rows, size_t n, size_t size)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            memcpy(to.at + (r * to.row + i * to.element) * size,
                   from.at + (r * from.row + i * from.element) * size, size);
}

/* Fills n elements with one, twice as many at a time. */
static void fill(const char *from, char *to, size_t n, size_t size)
{
    memcpy(to, from, size);
    for (size_t done = 1; done < n; done *= 2)
        memcpy(to + done * size, to, kl_smaller(done, n - done) * size);
}

/* Copies `rows` rows of n elements of `size` bytes. */
static void copy_grid(struct grid from, struct grid to, size_t rows, size_t n, size_t size)
{
    if (from.element == 1 && to.element == 1)
        for (size_t r = 0; r < rows; r++)
            memcpy(to.at + r * to.row * size, from.at + r * from.row * size, n * size);
    else if (from.element == 0 && to.element == 1)
        for (size_t r = 0; r < rows; r++)
            fill(from.at + r * from.row * size, to.at + r * to.row * size, n, size);
    else if (size == 1)
        copy_elements(from, to, rows, n, 1);
    else if (size == 2)
        copy_elements(from, to, rows, n, 2);
    else if (size == 4)
        copy_elements(from, to, rows, n, 4);
    else
        copy_elements(from, to, rows, n, 8);
}

/* ---- Tiles as grids: the visit of each is given the offset in the array of its first element, and
 * that in the block. */

/* visit: what is done with grids, of an array whose elements have `size` bytes. Of columns, the rows
 * of a grid are a tile's elements, and its elements are rows. */
struct visit {
    enum kl_array array;
    bool columns;
    size_t size, pitch; /* elements of a row of the block */
    const struct kl_kernel *kernel;
    char *array_data, *block;
    double *high, *low;
    void (*run)(const struct visit *visit, size_t offset, size_t row_stride, size_t stride,
                size_t block_offset, size_t rows, size_t n);
};

static void run_grid(const struct visit *visit, size_t offset, size_t row_stride, size_t stride,
                     size_t row, size_t element, size_t rows, size_t n)
{
    if (visit->columns)
        visit->run(visit, offset, stride, row_stride, element * visit->pitch + row, n, rows);
    else
        visit->run(visit, offset, row_stride, stride, row * visit->pitch + element, rows, n);
}

/* Visits entries [start, start + n) of rows, some axes along which are like an odometer whose last
 * wheel is taken in runs. `row` is the first of them in the block. */
static void visit_rows(const struct visit *visit, const struct kl_axes *axes, size_t base,
                       size_t row_stride, size_t row, size_t rows, size_t start, size_t n)
{
    if (axes->n == 0) {
        run_grid(visit, base, row_stride, 1, row, 0, rows, n);
        return;
    }
    const struct kl_axis *last = &axes->axis[axes->n - 1];
    size_t stride = last->strides[visit->array];
    for (size_t i = 0, run; i < n; i += run) {
        run = kl_smaller(n - i, last->size - (start + i) % last->size);
        run_grid(visit, base + kl_offset(axes, visit->array, start + i), row_stride, stride, row, i,
                 rows, run);
    }
}

/* Visits the rows of a tile in runs along the last axis across them. */
static void visit_tile(const struct visit *visit, const struct kl_layout *layout,
                       const struct kl_tile *tile)
{
    const struct kl_axes *across = &layout->across;
    size_t size = across->n > 0 ? across->axis[across->n - 1].size : 1;
    size_t stride = across->n > 0 ? across->axis[across->n - 1].strides[visit->array] : 0;
    for (size_t row = 0, run; row < tile->rows; row += run) {
        run = kl_smaller(tile->rows - row, size - (tile->row + row) % size);
        visit_rows(visit, &layout->along, kl_offset(across, visit->array, tile->row + row), stride,
                   row, run, tile->start, tile->length);
    }
}

static struct grid in_array(const struct visit *visit, size_t offset, size_t row_stride,
                            size_t stride)
{
    return (struct grid){visit->array_data + offset * visit->size, row_stride, stride};
}

static struct grid in_block(const struct visit *visit, size_t offset)
{
    return (struct grid){visit->block + offset * visit->size, visit->pitch, 1};
}

static void gather(const struct visit *visit, size_t offset, size_t row_stride, size_t stride,
                   size_t block_offset, size_t rows, size_t n)
{
    copy_grid(in_array(visit, offset, row_stride, stride), in_block(visit, block_offset), rows, n,
              visit->size);
}

static void scatter(const struct visit *visit, size_t offset, size_t row_stride, size_t stride,
                    size_t block_offset, size_t rows, size_t n)
{
    copy_grid(in_block(visit, block_offset), in_array(visit, offset, row_stride, stride), rows, n,
              visit->size);
}

static void add_sum(double *high, double *low, struct kl_sum more)
{
    struct kl_sum sum = {*high, *low};
    kl_sum_add(&sum, more.high);
    *high = sum.high, *low = sum.low + more.low;
}

static void add_to_sums(const struct visit *visit, size_t offset, size_t row_stride, size_t stride,
                        size_t block_offset, size_t rows, size_t n)
{
    const double *v = (const double *)(const void *)visit->block + block_offset;
    for (size_t row = 0; row < rows; row++, v += visit->pitch, offset += row_stride) {
        double *high = visit->high + offset, *low = visit->low + offset;
        if (stride == 0)
            add_sum(high, low, visit->kernel->total(v, n));
        else if (stride == 1)
            visit->kernel->add(v, high, low, n);
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
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    return along->n == 1 && across->n == 1 && across->axis[0].strides[array] == 1 &&
           along->axis[0].strides[array] == tile->rows;
}

const void *kl_tile_in_place(const struct kl_layout *layout, const struct kl_tile *tile,
                             const struct kl_numbers *numbers)
{
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    enum kl_array array = numbers->array;
    bool dense = tile->columns     ? are_columns_in_place(layout, tile, array)
                 : tile->rows == 1 ? kl_rows_are_dense(layout, array)
                                   : layout->packed[array] && tile->length == along->volume;
    return dense ? kl_at(numbers,
                         kl_offset(across, array, tile->row) + kl_offset(along, array, tile->start))
                 : NULL;
}

/* Converts n elements to a dtype that holds each of them exactly: a wider one. */
static void convert(const struct kl_kernel *kernel, const struct kl_numbers *from, const void *raw,
                    enum kl_dtype dtype, size_t n, void *to)
{
    double doubles[KL_BLOCK];
    if (dtype == KL_FLOAT64) {
        kernel->widen[from->dtype](raw, to, n);
        return;
    }
    kernel->widen[from->dtype](raw, doubles, n);
    kernel->narrow[dtype](doubles, to, n);
}

static size_t pitch_of(const struct kl_tile *tile)
{
    return tile->columns ? tile->rows : tile->length;
}

static struct visit gather_of(const struct kl_numbers *from, size_t pitch, void *to)
{
    return (struct visit){.array = from->array,
                          .size = from->bytes ? 1 : kl_dtype_size(from->dtype),
                          .pitch = pitch,
                          .array_data = (char *)from->data,
                          .block = to,
                          .run = gather};
}

void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_numbers *from, enum kl_dtype dtype,
                  void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    const void *in_place = kl_tile_in_place(layout, tile, from);
    bool converts = !from->bytes && from->dtype != dtype;
    struct visit visit = gather_of(from, pitch_of(tile), converts ? raw : to);
    visit.columns = tile->columns;
    if (!converts || !in_place)
        visit_tile(&visit, layout, tile);
    if (converts)
        convert(kernel, from, in_place ? in_place : raw, dtype, kl_tile_size(tile), to);
}

void kl_tile_store(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                   enum kl_dtype dtype, const void *from, void *to)
{
    const struct visit visit = {.array = array,
                                .columns = tile->columns,
                                .size = kl_dtype_size(dtype),
                                .pitch = pitch_of(tile),
                                .array_data = to,
                                .block = (char *)from,
                                .run = scatter};
    visit_tile(&visit, layout, tile);
}

void kl_tile_add(const struct kl_kernel *kernel, const struct kl_layout *layout,
                 const struct kl_tile *tile, enum kl_array array, const double *from, double *high,
                 double *low)
{
    const struct visit visit = {.array = array,
                                .columns = tile->columns,
                                .pitch = pitch_of(tile),
                                .kernel = kernel,
                                .block = (char *)from,
                                .high = high,
                                .low = low,
                                .run = add_to_sums};
    visit_tile(&visit, layout, tile);
}

void kl_line_load(const struct kl_kernel *kernel, const struct kl_axes *axes,
                  const struct kl_numbers *from, size_t start, size_t n, enum kl_dtype dtype,
                  void *to)
{
    char raw[KL_BLOCK * sizeof(float)];
    bool converts = !from->bytes && from->dtype != dtype;
    struct visit visit = gather_of(from, n, converts ? raw : to);
    visit_rows(&visit, axes, 0, 0, 0, 1, start, n);
    if (converts)
        convert(kernel, from, raw, dtype, n, to);
}

void kl_line_store(const struct kl_axes *axes, enum kl_array array, enum kl_dtype dtype,
                   const void *from, size_t start, size_t n, void *to)
{
    const struct visit visit = {.array = array,
                                .size = kl_dtype_size(dtype),
                                .pitch = n,
                                .array_data = to,
                                .block = (char *)from,
                                .run = scatter};
    visit_rows(&visit, axes, 0, 0, 0, 1, start, n);
}
