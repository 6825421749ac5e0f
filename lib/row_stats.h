/* What rows of the operands are like, and what is to be said of each. */
#ifndef KLDIV_LIB_ROW_STATS_H
#define KLDIV_LIB_ROW_STATS_H

#include "lib/job.h"

/* A look at a call's operands. */
struct kl_look {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    struct kl_layout layout;
    struct kl_numbers operands[KL_OPERANDS], mask; /* mask.data NULL if there is none */
    struct kl_tile tile;                           /* the most that one has */
    double factor; /* the most that weight and base make of a loss */
};

/* Scratch of one thread: numbers of a tile, and what its rows are like. */
struct kl_look_scratch {
    double v[KL_BLOCK], mask[KL_BLOCK];
    struct kl_rows_stats input, target, exps;
};

/* Surveys `n` rows, at most those of a tile, of one operand, with the sums of exponentials if those
 * are wanted. Elements that the mask hides count as `masked`. */
void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       double masked, struct kl_look_scratch *scratch,
                       struct kl_rows_stats *surveys);

/* kl_bounds: numbers that the sizes of a row's losses, and of their sum, do not exceed. They count
 * weights and the base, and are NaN or infinite where no such number is known. */
struct kl_bounds {
    double each, sum;
};
struct kl_bounds kl_bound_losses(const struct kl_look *look,
                                 const struct kl_row_stats operands[KL_OPERANDS]);

/* Whether a number within such bounds is finite in the dtype that holds the losses of rows: the
 * call's where they are stored, or else double. */
bool kl_fits_losses(const struct kl_plan *plan, struct kl_bounds bounds);

/* The largest finite number of a dtype. */
double kl_largest(enum kl_dtype dtype);

/* Why a loss is not finite, and of which element of input. */
struct kl_reason {
    size_t index;
    double x, t; /* what the operands hold there */
    const char *words;
};

/* Looks for the first loss of a row that is not finite, but for those of negative targets, or else
 * for why their sum is not. */
bool kl_find_not_finite(const struct kl_look *look, size_t row, struct kl_reason *reason);

#endif
