#include "lib/layout.h"

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

/* True if an axis lies along rows. */
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

static void set_layout(struct kl_layout *layout, const struct kl_plan *plan, bool whole_rows)
{
    size_t ndim = plan->joint_ndim, left = 0;
    clear(&layout->across);
    clear(&layout->along);
    layout->each = plan->options.n_dim == 0;
    layout->patterns = NULL;
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
    set_layout(layout, plan,
               plan->spaces[KL_INPUT] == KL_LOGIT || plan->spaces[KL_TARGET] == KL_LOGIT);
}

void kl_layout_of_rows(struct kl_layout *layout, const struct kl_plan *plan)
{
    set_layout(layout, plan, true);
}

size_t kl_weight_axes(struct kl_axes *axes, const struct kl_plan *plan)
{
    size_t times = 1;
    clear(axes);
    for (size_t i = 0; i < plan->left_ndim; i++) {
        struct kl_axis axis = loss_axis(plan, i);
        axis.strides[KL_OF_LOSS] = 0;
        if (axis.strides[KL_OF_WEIGHT] == 0 && axis.strides[KL_OF_MASK] == 0)
            times *= axis.size;
        else
            append(axes, axis);
    }
    return times;
}

bool kl_is_masked(const struct kl_layout *layout, const unsigned char *mask, size_t row,
                  size_t element)
{
    return mask && !mask[kl_offset(&layout->across, KL_OF_MASK, row) +
                         kl_offset(&layout->along, KL_OF_MASK, element)];
}

size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index)
{
    size_t offset = 0;
    for (size_t i = axes->n; i-- > 1; index /= axes->axis[i].size)
        offset += index % axes->axis[i].size * axes->axis[i].strides[array];
    return axes->n ? offset + index * axes->axis[0].strides[array] : 0;
}

/* ---- Tiles */

/* SHORT_ROW: rows of at most so many elements lie across vectors. */
enum { SHORT_ROW = 64 };

/* COLUMNS: rows of a tile whose neighbours lie side by side in memory, and whose own elements do
 * not. FEW_COLUMNS: so few neighbours leave vectors empty and are loaded one by one. */
enum { COLUMNS = 64, FEW_COLUMNS = 16 };
_Static_assert(COLUMNS % KL_BROADCAST_LANES == 0 && KL_ROWS % COLUMNS == 0 &&
                   KL_BLOCK % COLUMNS == 0,
               "columns fill vectors, numbers of rows have room for them, and tiles are whole");
_Static_assert(KL_BLOCK / SHORT_ROW % KL_BROADCAST_LANES == 0, "short rows fill a vector");

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* True if neighbouring rows lie side by side in an operand, and a row's elements do not. */
static bool lies_across(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *across = &layout->across, *along = &layout->along;
    return across->n > 0 && across->axis[across->n - 1].strides[array] == 1 && along->n > 0 &&
           along->axis[along->n - 1].strides[array] > 1;
}

/* The most entries, up to `most`, that make up whole inner axes some times over. */
static size_t aligned(const struct kl_axes *axes, size_t most)
{
    size_t whole = 1;
    for (size_t i = axes->n; i-- > 0 && axes->axis[i].size <= most / whole;)
        whole *= axes->axis[i].size;
    return whole == axes->volume ? whole : most / whole * whole;
}

void kl_choose_tile(const struct kl_layout *layout, struct kl_tile *tile)
{
    size_t all = layout->across.volume, length = layout->along.volume, most = 1;
    *tile = (struct kl_tile){.rows = 1, .pitch = 1, .length = KL_BLOCK};
    if (all > 1 && length <= SHORT_ROW)
        most = least(KL_BLOCK / length, KL_ROWS) / KL_BROADCAST_LANES * KL_BROADCAST_LANES;
    if (all > FEW_COLUMNS && most < COLUMNS &&
        (lies_across(layout, KL_OF_INPUT) || lies_across(layout, KL_OF_TARGET)))
        most = COLUMNS;
    if (most > 1) {
        size_t tiles = (all + most - 1) / most;
        tile->rows = aligned(&layout->across, (all + tiles - 1) / tiles);
        tile->pitch = round_up(tile->rows, KL_BROADCAST_LANES);
        tile->length = aligned(&layout->along, KL_BLOCK / tile->pitch);
    }
}
