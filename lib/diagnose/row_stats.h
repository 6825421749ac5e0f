/* Statistics of rows of the operands, and bounds of losses made of them. */
#ifndef KLDIV_LIB_ROW_STATS_H
#define KLDIV_LIB_ROW_STATS_H

#include "lib/job.h"

/* kl_look: the arrays of a call that is diagnosed. */
struct kl_look {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    struct kl_layout layout;
    struct kl_numbers operands[KL_OPERANDS], mask; /* mask.data NULL if there is none */
    struct kl_tile tile;                           /* the most that one has */
    double factor; /* the most that weight and base make of a loss */
};

/* kl_look_scratch: scratch of one thread: numbers of a tile, and statistics of its rows. */
struct kl_look_scratch {
    char gathered[KL_BLOCK * sizeof(double)];
    double v[KL_BLOCK], sums[KL_ROWS], low[KL_ROWS];
    unsigned char mask[KL_BLOCK];
    struct kl_rows_stats input, target, exps;
};

/* Computes the statistics of `n` rows, at most those of a tile, of one operand, with sums of
 * exponentials if `exps`. Masked elements are left out. */
void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       struct kl_look_scratch *scratch, struct kl_rows_stats *stats);

/* Finds the extremes of all elements of `n` rows of an operand, and the sum of each row's
 * probabilities, or of its elements if it holds logits. Without a mask. */
void kl_scan_rows(const struct kl_look *look, int operand, size_t row, size_t n,
                  struct kl_look_scratch *scratch, double *least, double *greatest, double *sums);

/* kl_bounds: upper bounds of the sizes of a row's losses, and of their sum, with weights and base.
 * NaN or infinite where none is known. */
struct kl_bounds {
    double each, sum;
};
struct kl_bounds kl_bound_losses(const struct kl_look *look,
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
bool kl_find_not_finite(const struct kl_look *look, size_t row, struct kl_reason *reason);

#endif
