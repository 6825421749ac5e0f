/* Statistics of rows of the operands. */
#pragma once

#include "lib/job.h"

/* kl_diagnosis_context: the arrays of a call that is diagnosed. */
struct kl_diagnosis_context {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    struct kl_layout layout;
    struct kl_array_view operands[KL_OPERANDS], mask; /* mask.data NULL if there is none */
    struct kl_tile tile;                              /* the most that one has */
    double factor; /* the most that weight and base make of a loss */
};

/* kl_diagnosis_scratch: scratch of one thread: numbers of a tile, and statistics of its rows. */
struct kl_diagnosis_scratch {
    char gathered[KL_BLOCK * sizeof(double)];
    double v[KL_BLOCK], sums[KL_ROWS], low[KL_ROWS];
    unsigned char mask[KL_BLOCK];
    struct kl_rows_stats input, target, exps;
};

/* Computes the statistics of `n` rows, at most those of a tile, of one operand, with sums of
 * exponentials if `exps`. Masked elements are left out. */
void kl_find_row_stats(const struct kl_diagnosis_context *context, int operand, size_t row,
                       size_t n, bool exps, struct kl_diagnosis_scratch *scratch,
                       struct kl_rows_stats *stats);

/* Finds the extremes of all elements of `n` rows of an operand, and the sum of each row's
 * probabilities, or of its elements if it holds logits. Without a mask. */
void kl_scan_rows(const struct kl_diagnosis_context *context, int operand, size_t row, size_t n,
                  struct kl_diagnosis_scratch *scratch, double *min, double *max, double *sums);
