#include "lib/layout.h"

#include "lib/run.h"

#include <string.h>

/* ---- The axes of a call */

/* The strides of a dense array of `shape` along axis `joint` of the shape it broadcasts to. */
static size_t stride_along(size_t ndim, const size_t *shape, size_t joint_ndim, size_t joint)
{
    size_t missing = joint_ndim - ndim, stride = 1;
    if (joint < missing || shape[joint - missing] == 1)
        return 0;
    for (size_t i = joint - missing + 1; i < ndim; i++)
        stride *= shape[i];
    return stride;
}

static bool continues(const struct kl_axis *outer, const struct kl_axis *inner)
{
    for (int i = 0; i < KL_ARRAYS; i++)
        if (outer->strides[i] != inner->strides[i] * inner->size)
            return false;
    return true;
}

static void append(struct kl_axes *axes, struct kl_axis axis)
{
    axes->volume *= axis.size;
    if (axes->n > 0 && continues(&axes->axis[axes->n - 1], &axis)) {
        axis.size *= axes->axis[axes->n - 1].size;
        axes->n--;
    }
    axes->axis[axes->n++] = axis;
}

/* Whether an axis belongs to rows that are taken as a whole. */
static bool is_along(const struct kl_plan *plan, size_t axis, bool whole_rows)
{
    if (plan->options.n_dim > 0)
        return plan->summed[axis];
    return !whole_rows || axis == plan->joint_ndim - 1;
}

/* Axis `i` of the losses. */
static struct kl_axis loss_axis(const struct kl_plan *plan, size_t i)
{
    size_t ndim = plan->left_ndim;
    return (struct kl_axis){
        .size = plan->left_shape[i],
        .strides = {
            [KL_OF_LOSS] = stride_along(ndim, plan->left_shape, ndim, i),
            [KL_OF_WEIGHT] = stride_along(plan->weight.ndim, plan->weight.shape, ndim, i),
            [KL_OF_MASK] = stride_along(plan->mask.ndim, plan->mask.shape, ndim, i),
        }};
}

static void clear(struct kl_axes *axes)
{
    axes->n = 0;
    axes->volume = 1;
}

static void settle(struct kl_layout *layout, const struct kl_plan *plan, bool whole_rows)
{
    size_t ndim = plan->joint_ndim, left = 0;
    clear(&layout->across);
    clear(&layout->along);
    layout->each = plan->options.n_dim == 0;
    for (size_t i = 0; i < ndim; i++) {
        struct kl_axis axis = {0};
        if (!plan->summed[i])
            axis = loss_axis(plan, left++);
        axis.size = plan->joint_shape[i];
        axis.strides[KL_OF_INPUT] = stride_along(plan->input.ndim, plan->input.shape, ndim, i);
        axis.strides[KL_OF_TARGET] = stride_along(plan->target.ndim, plan->target.shape, ndim, i);
        if (axis.size != 1)
            append(is_along(plan, i, whole_rows) ? &layout->along : &layout->across, axis);
    }
}

void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan)
{
    settle(layout, plan, plan->spaces[0] == KL_LOGIT || plan->spaces[1] == KL_LOGIT);
}

void kl_layout_of_rows(struct kl_layout *layout, const struct kl_plan *plan)
{
    settle(layout, plan, true);
}

void kl_loss_axes(struct kl_axes *axes, const struct kl_plan *plan)
{
    clear(axes);
    for (size_t i = 0; i < plan->left_ndim; i++)
        if (plan->left_shape[i] != 1)
            append(axes, loss_axis(plan, i));
}

size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index)
{
    size_t offset = 0;
    for (size_t i = axes->n; i-- > 1; index /= axes->axis[i].size)
        offset += index % axes->axis[i].size * axes->axis[i].strides[array];
    return axes->n ? offset + index * axes->axis[0].strides[array] : 0;
}

/* ---- Tiles */

/* Rows this short lie across vectors. */
enum { SHORT_ROW = 32 };

/* Rows of a tile where elements of one row lie apart, and those of neighbours side by side. */
enum { COLUMNS = 64 };

/* Whether neighbouring rows lie side by side in an operand, and a row's elements do not. */
static bool lies_across(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    return across->n > 0 && across->axis[across->n - 1].strides[array] == 1 && along->n > 0 &&
           along->axis[along->n - 1].strides[array] > 1;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t kl_tile_rows(const struct kl_layout *layout)
{
    size_t all = layout->across.volume, length = layout->along.volume, rows = 1;
    if (all > 1 && length <= SHORT_ROW)
        rows = least(KL_BLOCK / length, KL_ROWS) / KL_STEADY * KL_STEADY;
    else if (lies_across(layout, KL_OF_INPUT) || lies_across(layout, KL_OF_TARGET))
        rows = COLUMNS;
    return rows > 1 ? least(rows, (all + KL_STEADY - 1) / KL_STEADY * KL_STEADY) : 1;
}

/* ---- Numbers along axes. A visit is to n of them, `stride` apart from `offset` on. */

struct visit {
    const struct kl_kernel *kernel;
    enum kl_array array;
    enum kl_dtype dtype;
    const void *from;
    void *to;
    void (*run)(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v);
};

static void load_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    size_t size = kl_dtype_size(visit->dtype);
    if (stride == 1) {
        visit->kernel->widen[visit->dtype]((const char *)visit->from + offset * size, v, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i] =
            stride == 0 && i > 0 ? v[0] : kl_load(visit->dtype, visit->from, offset + i * stride);
}

static void load_bytes(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    const unsigned char *from = (const unsigned char *)visit->from + offset;
    if (stride == 1) {
        visit->kernel->widen_bytes(from, v, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = from[i * stride] != 0;
}

static void store_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    size_t size = kl_dtype_size(visit->dtype);
    if (stride == 1)
        visit->kernel->narrow[visit->dtype](v, (char *)visit->to + offset * size, n);
    else
        for (size_t i = 0; i < n; i++)
            kl_store(visit->dtype, visit->to, offset + i * stride, v[i]);
}

static void add_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    struct kl_sum *to = (struct kl_sum *)visit->to + offset;
    for (size_t i = 0; i < n; i++)
        kl_sum_add(&to[i * stride], v[i]);
}

/* Entries [start, start + n) of axes, counted in row-major order. */
static void walk_line(const struct visit *visit, const struct kl_axes *axes, size_t base,
                      size_t start, size_t n, double *v)
{
    if (axes->n == 0) {
        visit->run(visit, base, 0, n, v);
        return;
    }
    const struct kl_axis *inner = &axes->axis[axes->n - 1];
    while (n > 0) {
        size_t left = inner->size - (axes->n == 1 ? start : start % inner->size);
        size_t run = n < left ? n : left;
        visit->run(visit, base + kl_offset(axes, visit->array, start), inner->strides[visit->array],
                   run, v);
        start += run;
        v += run;
        n -= run;
    }
}

static void walk(const struct visit *visit, const struct kl_layout *layout,
                 const struct kl_tile *tile, double *v)
{
    if (tile->rows == 1 && tile->pitch == 1) {
        size_t base = kl_offset(&layout->across, visit->array, tile->row);
        walk_line(visit, &layout->along, base, tile->start, tile->length, v);
        return;
    }
    for (size_t i = 0; i < tile->length; i++)
        walk_line(visit, &layout->across, kl_offset(&layout->along, visit->array, tile->start + i),
                  tile->row, tile->rows, v + i * tile->pitch);
}

/* ---- Rows that lie one behind the other, or side by side, and nothing between them, are taken at
 * once, and transposed or spread. */

/* Every row, element after element. */
static bool is_band(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array)
{
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    return tile->pitch > 1 && tile->rows == across->volume && across->n == 1 && along->n == 1 &&
           across->axis[0].strides[array] == 1 && along->axis[0].strides[array] == tile->rows;
}

/* Several rows, each whole. */
static bool is_block(const struct kl_layout *layout, const struct kl_tile *tile,
                     enum kl_array array)
{
    const struct kl_axes *across = &layout->across;
    return tile->pitch > 1 && tile->length == layout->along.volume &&
           tile->rows * tile->length <= KL_BLOCK && kl_rows_are_dense(layout, array) &&
           across->n <= 1 &&
           (across->n == 0 || across->axis[0].strides[array] == layout->along.volume);
}

static void transpose(const double *from, size_t from_pitch, double *to, size_t to_pitch,
                      size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            to[j * to_pitch + i] = from[i * from_pitch + j];
}

static void spread(const double *from, size_t from_pitch, double *to, size_t to_pitch, size_t n)
{
    size_t both = from_pitch < to_pitch ? from_pitch : to_pitch;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < both; j++)
            to[i * to_pitch + j] = from[i * from_pitch + j];
}

void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_numbers *from, double *to)
{
    const struct visit visit = {.kernel = kernel,
                                .array = from->array,
                                .dtype = from->dtype,
                                .from = from->data,
                                .run = from->bytes ? load_bytes : load_run};
    if (tile->pitch > tile->rows)
        memset(to, 0, tile->pitch * tile->length * sizeof *to);
    double block[KL_BLOCK];
    if (is_band(layout, tile, from->array)) {
        visit.run(&visit, tile->start * tile->rows, 1, tile->length * tile->rows, block);
        spread(block, tile->rows, to, tile->pitch, tile->length);
        return;
    }
    if (!is_block(layout, tile, from->array)) {
        walk(&visit, layout, tile, to);
        return;
    }
    visit.run(&visit, tile->row * tile->length, 1, tile->rows * tile->length, block);
    transpose(block, tile->length, to, tile->pitch, tile->rows, tile->length);
}

void kl_tile_store(const struct kl_kernel *kernel, const struct kl_layout *layout,
                   const struct kl_tile *tile, enum kl_array array, enum kl_dtype dtype, void *to,
                   const double *from)
{
    const struct visit visit = {
        .kernel = kernel, .array = array, .dtype = dtype, .to = to, .run = store_run};
    double block[KL_BLOCK];
    if (is_band(layout, tile, array)) {
        spread(from, tile->pitch, block, tile->rows, tile->length);
        visit.run(&visit, tile->start * tile->rows, 1, tile->length * tile->rows, block);
        return;
    }
    if (!is_block(layout, tile, array)) {
        walk(&visit, layout, tile, (double *)from);
        return;
    }
    transpose(from, tile->pitch, block, tile->length, tile->length, tile->rows);
    visit.run(&visit, tile->row * tile->length, 1, tile->rows * tile->length, block);
}

void kl_tile_add(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                 struct kl_sum *to, const double *from)
{
    const struct visit visit = {.array = array, .to = to, .run = add_run};
    walk(&visit, layout, tile, (double *)from);
}

void kl_line_load(const struct kl_kernel *kernel, const struct kl_axes *axes,
                  const struct kl_numbers *from, size_t start, size_t n, double *to)
{
    const struct visit visit = {.kernel = kernel,
                                .array = from->array,
                                .dtype = from->dtype,
                                .from = from->data,
                                .run = from->bytes ? load_bytes : load_run};
    walk_line(&visit, axes, 0, start, n, to);
}

void kl_line_store(const struct kl_kernel *kernel, const struct kl_axes *axes, enum kl_array array,
                   enum kl_dtype dtype, void *to, size_t start, size_t n, const double *from)
{
    const struct visit visit = {
        .kernel = kernel, .array = array, .dtype = dtype, .to = to, .run = store_run};
    walk_line(&visit, axes, 0, start, n, (double *)from);
}
