/* Losses that are not finite: bounds by which there are none, and the search for one. */
#pragma once

#include "lib/diagnose/row_stats.h"

/* kl_bounds: upper bounds of the sizes of a row's losses, and of their sum, with weights and base.
 * NaN or infinite where none is known. */
struct kl_bounds {
    double each, sum;
};
struct kl_bounds kl_bound_losses(const struct kl_diagnosis_context *context,
                                 const struct kl_row_stats operands[KL_OPERANDS]);

/* True if losses within such bounds are finite in the dtype that holds them: the call's where they
 * are stored, or else double. */
bool kl_fits_losses(const struct kl_plan *plan, struct kl_bounds bounds);

/* The largest finite number of a dtype. */
double kl_largest(enum kl_dtype dtype);

/* kl_reason: the element of input whose loss is not finite, and why. */
struct kl_reason {
    size_t index;
    double x, t; /* what the operands hold there */
    const char *words;
};

/* Finds the first loss of a row that is not finite, negative targets apart, or why their sum is
 * not. */
bool kl_find_not_finite(const struct kl_diagnosis_context *context, size_t row,
                        struct kl_reason *reason);
