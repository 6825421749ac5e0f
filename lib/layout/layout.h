/* kl_layout: where the elements of a call's arrays lie: operands, losses, weight and mask. */
#pragma once

#include "lib/simd/kernel.h"

/* The smaller of two counts. */
static inline size_t kl_min(size_t a, size_t b) { return a < b ? a : b; }

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

/* kl_layout: the joint shape as rows across other axes. A row is what is softmaxed or summed as a whole. In a call
 * without such rows, a row is the elements that lie side by side in all arrays. */
struct kl_layout {
    struct kl_axes outer, inner;
    /* Every element has a loss of its own. Otherwise every row has one, also where losses of logits
     * are reduced, and weight and mask are broadcast along rows. */
    bool elementwise;
    /* Rows have one element, whose softmax is 1 whatever its logit: they are laid out as elements, and their
     * losses are added as those of rows. */
    bool single_rows;
    bool contiguous[KL_ARRAYS]; /* rows lie side by side, and so do their elements */
    bool broadcast[KL_ARRAYS];  /* all rows are the same */
};

/* Fills a layout. Its rows are along the last axis where dim is absent, if operands hold logits or with
 * `whole_rows`. */
void kl_layout_of(struct kl_layout *layout, const struct kl_plan *plan, bool whole_rows);

/* True if an array is the same along each row. */
bool kl_is_constant_along_rows(const struct kl_layout *layout, enum kl_array array);

/* Fills the layout of `count` losses whose arrays all lie alike: as one row. */
void kl_flat_layout(struct kl_layout *layout, size_t count);

/* Fills the axes of the losses along which weight or mask vary; returns how many losses share each
 * entry. */
size_t kl_weight_axes(struct kl_axes *axes, const struct kl_plan *plan);

/* True if the mask, bytes or NULL, masks an element of a row. */
bool kl_is_masked(const struct kl_layout *layout, const unsigned char *mask, size_t row,
                  size_t element);

/* The offset of entry `index` of axes, in row-major order. */
size_t kl_offset(const struct kl_axes *axes, enum kl_array array, size_t index);

/* True if a row is contiguous in an array. */
static inline bool kl_rows_are_dense(const struct kl_layout *layout, enum kl_array array)
{
    const struct kl_axes *inner = &layout->inner;
    return inner->n == 0 || (inner->n == 1 && inner->axis[0].strides[array] == 1);
}
