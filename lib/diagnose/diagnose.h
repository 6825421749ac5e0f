/* The diagnosis of a call, alone or while it computes, when threads check rows that they have just read. */
#pragma once

#include "lib/job/job.h"
#include "lib/threads/pool.h"

#include <pthread.h>

/* kl_diagnosis_context: the arrays of a call that is diagnosed. */
struct kl_diagnosis_context {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    struct kl_layout layout;
    struct kl_array_view operands[KL_OPERANDS], mask, weight; /* data NULL if there is none */
    struct kl_tile tile; /* with the maximum of rows and length */
    double factor;       /* the maximum that weight and base multiply a loss by */
    double log_length;   /* the logarithm of a row's elements */
};

/* True if the mask may leave some elements of a row and not others. */
static inline bool kl_masks_elements(const struct kl_diagnosis_context *context)
{
    return context->mask.data && context->layout.elementwise;
}

/* kl_diagnosis_scratch: scratch of one thread: numbers of a tile, and statistics of its rows. */
struct kl_diagnosis_scratch {
    char gathered[KL_BLOCK * sizeof(double)];
    double v[KL_BLOCK], sums[KL_ROWS], low[KL_ROWS];
    unsigned char mask[KL_BLOCK];
    struct kl_rows_stats stats[KL_OPERANDS], exps;

    /* Blocks of rows that may hold a loss that is not finite: operands as the rule takes them, numbers of each row
     * at each of its elements, and of logits the log-sum-exp. */
    double operands[KL_OPERANDS][KL_BLOCK], row_values[2][KL_BLOCK];
    double max[KL_OPERANDS][KL_ROWS], log_sum[KL_OPERANDS][KL_ROWS];
};

/* The tile of n rows, at most those of the context's tile, that begins with element `start` of each; its
 * length is 0 at the end, and where the call is stopped, but for the first one. A row alone has tiles of its own. */
static inline struct kl_tile kl_diagnosed_tile(const struct kl_diagnosis_context *context,
                                               size_t row, size_t n, size_t start)
{
    size_t left = context->layout.inner.volume - start,
           max = n == 1 ? KL_BLOCK : context->tile.length;
    bool stopped = start > 0 && kl_is_stopped_at(context->plan, start, n, n * max);
    return (struct kl_tile){.row = row,
                            .rows = n,
                            .start = start,
                            .length = stopped ? 0 : kl_min(max, left),
                            .columns = context->tile.columns && n > 1};
}

/* Loops over the tiles of n rows. */
#define KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)                                          \
    for (struct kl_tile tile = kl_diagnosed_tile(context, row, n, 0); tile.length > 0;             \
         tile = kl_diagnosed_tile(context, row, n, tile.start + tile.length))

/* ---- row_stats.c: statistics of rows of the operands */

/* Computes the statistics of `n` rows, at most those of a tile, of one operand, with sums of
 * exponentials if `exps`. Masked elements are left out. */
void kl_find_row_stats(const struct kl_diagnosis_context *context, int operand, size_t row,
                       size_t n, bool exps, struct kl_diagnosis_scratch *scratch,
                       struct kl_rows_stats *stats);

/* Finds the extremes of all elements of `n` rows of an operand, and the sum of each row's
 * probabilities, or of its elements if it holds logits. Without a mask. */
void kl_scan_rows(const struct kl_diagnosis_context *context, int operand, size_t row, size_t n,
                  struct kl_diagnosis_scratch *scratch, double *min, double *max, double *sums);

/* ---- not_finite.c: losses that are not finite: bounds by which there are none, and the search for one */

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

/* Finds which of n rows may hold a loss that is not finite, of those that are looked at, and returns an upper bound
 * of the sum of all losses. Rows that are passed over lose their statistics. */
double kl_find_suspects(const struct kl_diagnosis_context *context,
                        struct kl_rows_stats stats[KL_OPERANDS], const bool *looked_at, size_t n,
                        bool *suspects);

/* kl_reason: the element of input whose loss is not finite, and why. */
struct kl_reason {
    size_t index;
    double x, t; /* what the operands hold there */
    const char *words;
};

/* Tells which of `n` rows, at most those of a tile, hold a loss that is not finite, or a sum of losses that is
 * not. */
void kl_find_rows_not_finite(const struct kl_diagnosis_context *context, size_t row, size_t n,
                             struct kl_diagnosis_scratch *scratch, bool *not_finite);

/* Finds the first loss of a row that is not finite, or why their sum is not. */
bool kl_find_not_finite(const struct kl_diagnosis_context *context, size_t row,
                        struct kl_diagnosis_scratch *scratch, struct kl_reason *reason);

/* ---- findings.c: counts of a diagnosis, and its messages */

/* kl_kind: a guess at what a row holds, from its extremes and its sum. */
enum kl_kind { KL_LIKE_PROBABILITIES, KL_LIKE_COUNTS, KL_LIKE_LOGARITHMS, KL_LIKE_LOGITS };
#define KL_KINDS 4

/* kl_finding_count: the rows with one finding, and extremes of the number that is wrong. */
struct kl_finding_count {
    size_t count, first; /* row */
    size_t kinds[KL_KINDS];
    double min, max;
};

struct kl_finding_counts {
    size_t rows;  /* looked at */
    double bound; /* that the sum of all losses does not exceed, or NaN or infinite */
    struct kl_finding_count of[KL_FINDINGS];
};

/* Fills the diagnosis from the counts. */
void kl_report(const struct kl_diagnosis_context *context, const struct kl_finding_counts *counts,
               struct kl_diagnosis_scratch *scratch, struct kl_diagnosis *diagnosis);

/* ---- diagnose.c: the diagnosis */

/* kl_diagnosing: a diagnosis that is being made. */
struct kl_diagnosing {
    struct kl_diagnosis_context context;
    double tolerance[KL_OPERANDS]; /* what a normalized row's sum may differ from 1 */
    pthread_mutex_t lock;          /* of all */
    struct kl_finding_counts all;
    struct kl_diagnosis_scratch scratch; /* of the calling thread */
};

/* A diagnosis that has seen no rows yet, on the heap; NULL if out of memory. */
struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan);

/* Checks rows [row, end), on any thread, in any order. `scratch` has room for a struct
 * kl_diagnosis_scratch. */
void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch);

/* Checks all rows, on the threads of the pool. */
void kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool);

/* True if the diagnosis depends on whether the reduced loss is finite. */
bool kl_diagnosing_needs_loss(const struct kl_diagnosing *d);

/* Reports the findings, if `diagnosis` is not NULL, and frees `d`. `loss` is any finite number if it is not
 * needed. */
void kl_diagnosing_end(struct kl_diagnosing *d, double loss, struct kl_diagnosis *diagnosis);
