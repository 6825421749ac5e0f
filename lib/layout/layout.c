#include "lib/layout/layout.h"

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
static bool is_inner(const struct kl_plan *plan, size_t axis, bool whole_rows)
{
    if (plan->options.n_dim > 0)
        return plan->summed[axis];
    return !whole_rows || axis == plan->joint_ndim - 1;
}

/* Axis `i` of the losses. */
static struct kl_axis loss_axis(const struct kl_plan *plan, size_t i)
{
    size_t ndim = plan->kept_ndim;
    return (struct kl_axis){
        .size = plan->kept_shape[i],
        .strides = {
            [KL_OF_LOSS] = stride_along(ndim, plan->kept_shape, ndim, i),
            [KL_OF_WEIGHT] = stride_along(plan->weight.ndim, plan->weight.shape, ndim, i),
            [KL_OF_MASK] = stride_along(plan->mask.ndim, plan->mask.shape, ndim, i),
        }};
}

static void clear(struct kl_axes *axes)
{
    axes->n = 0;
    axes->volume = 1;
}

/* Leaves the innermost axis along rows. */
static void move_outer(struct kl_axes *outer, struct kl_axes *inner)
{
    struct kl_axes all = *inner;
    clear(outer);
    clear(inner);
    for (size_t i = 0; i < all.n; i++)
        append(i + 1 < all.n ? outer : inner, all.axis[i]);
}

/* True if rows lie side by side in an array, and so do their elements. */
static bool is_contiguous(const struct kl_layout *layout, enum kl_array array)
{
    size_t stride = layout->inner.volume;
    for (size_t i = layout->outer.n; i-- > 0; stride *= layout->outer.axis[i].size)
        if (layout->outer.axis[i].strides[array] != stride)
            return false;
    return kl_rows_are_dense(layout, array);
}

static bool is_broadcast_array(const struct kl_layout *layout, enum kl_array array)
{
    for (size_t i = 0; i < layout->outer.n; i++)
        if (layout->outer.axis[i].strides[array] != 0)
            return false;
    return true;
}

void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan, bool whole_rows)
{
    size_t ndim = plan->joint_ndim, left = 0;
    bool softmaxes = plan->spaces[KL_INPUT] == KL_LOGIT || plan->spaces[KL_TARGET] == KL_LOGIT;
    bool in_rows = whole_rows || softmaxes;
    clear(&layout->outer);
    clear(&layout->inner);
    layout->elementwise = plan->options.n_dim == 0;
    for (size_t i = 0; i < ndim; i++) {
        struct kl_axis axis = {0};
        if (!plan->summed[i])
            axis = loss_axis(plan, left++);
        axis.size = plan->joint_shape[i];
        axis.strides[KL_OF_INPUT] = stride_along(plan->input.ndim, plan->input.shape, ndim, i);
        axis.strides[KL_OF_TARGET] = stride_along(plan->target.ndim, plan->target.shape, ndim, i);
        if (axis.size != 1)
            append(is_inner(plan, i, in_rows) ? &layout->inner : &layout->outer, axis);
    }
    layout->single_rows =
        !whole_rows && layout->inner.volume == 1 && (softmaxes || plan->options.n_dim > 0);
    if (layout->single_rows) {
        layout->elementwise = true;
        layout->inner = layout->outer;
    }
    if (layout->single_rows || (layout->elementwise && !in_rows))
        move_outer(&layout->outer, &layout->inner);
    for (int i = 0; i < KL_ARRAYS; i++) {
        layout->contiguous[i] = is_contiguous(layout, (enum kl_array)i);
        layout->broadcast[i] = is_broadcast_array(layout, (enum kl_array)i);
    }
}

bool kl_is_constant_along_rows(const struct kl_layout *layout, enum kl_array array)
{
    for (size_t i = 0; i < layout->inner.n; i++)
        if (layout->inner.axis[i].strides[array] != 0)
            return false;
    return true;
}

void kl_flat_layout(struct kl_layout *layout, size_t count)
{
    clear(&layout->outer);
    clear(&layout->inner);
    append(&layout->inner, (struct kl_axis){count, {1, 1, 1, 1, 1}});
    layout->elementwise = true;
    layout->single_rows = false;
}

size_t kl_weight_axes(struct kl_axes *axes, const struct kl_plan *plan)
{
    size_t times = 1;
    clear(axes);
    for (size_t i = 0; i < plan->kept_ndim; i++) {
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
    return mask && !mask[kl_offset(&layout->outer, KL_OF_MASK, row) +
                         kl_offset(&layout->inner, KL_OF_MASK, element)];
}

size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index)
{
    size_t offset = 0;
    for (size_t i = axes->n; i-- > 1; index /= axes->axis[i].size)
        offset += index % axes->axis[i].size * axes->axis[i].strides[array];
    return axes->n ? offset + index * axes->axis[0].strides[array] : 0;
}
