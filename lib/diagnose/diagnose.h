/* The diagnosis of a call, alone or while it computes, when threads check rows that they have just read. */
#pragma once

#include "lib/rows/workspace.h"
#include "lib/threads/pool.h"

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

/* kl_diagnosing: a diagnosis that is being made. */
struct kl_diagnosing {
    struct kl_layout layout;
    struct kl_job sound; /* the call in tiles of columns or rows, for rows that are likely sound */
    struct kl_job other; /* in tiles of rows, for rows that are not */
    double factor;       /* the maximum that weight and base multiply a loss by */
    double log_length;   /* the logarithm of a row's elements */
    double tolerance[KL_OPERANDS]; /* what a normalized row's sum may differ from 1 */
    pthread_mutex_t lock;          /* of all */
    struct kl_finding_counts all;
    char scratch[KL_THREAD_SCRATCH]; /* of the calling thread */
};

/* ---- diagnose.c: the diagnosis */

/* A diagnosis that has seen no rows yet, on the heap; NULL if out of memory. */
struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan);

/* Checks rows [row, end), on any thread, in any order. `scratch` has KL_THREAD_SCRATCH bytes. */
void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch);

/* Checks all rows, on the threads of the pool. */
void kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool);

/* True if the diagnosis depends on whether the reduced loss is finite. */
bool kl_diagnosing_needs_loss(const struct kl_diagnosing *d);

/* Reports the findings, if `diagnosis` is not NULL, and frees `d`. `loss` is any finite number if it is not
 * needed. */
void kl_diagnosing_end(struct kl_diagnosing *d, double loss, struct kl_diagnosis *diagnosis);

/* ---- check.c: rows [row, row + n), at most those of a tile */

/* True if rows, as a block, are all sound; else they are to be checked one by one. Those that are sound are so under any
 * mask. */
bool kl_are_sound(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                  struct kl_finding_counts *counts);
void kl_check_rows(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                   struct kl_finding_counts *counts);

/* True if the mask may leave some elements of a row and not others. */
static inline bool kl_masks_elements(const struct kl_job *job)
{
    return job->mask.data && job->layout->elementwise;
}

/* ---- not_finite.c: losses that are not finite: bounds by which there are none, and the search for one */

/* kl_bounds: upper bounds of the sizes of a row's losses, and of their sum, with weights and base.
 * NaN or infinite where none is known. */
struct kl_bounds {
    double each, sum;
};
struct kl_bounds kl_bound_losses(const struct kl_diagnosing *d,
                                 const struct kl_row_stats row[KL_OPERANDS]);

/* True if losses within such bounds are finite in the dtype that holds them: the call's where they
 * are stored, or else double. */
bool kl_fits_losses(const struct kl_plan *plan, struct kl_bounds bounds);

/* The largest finite number of a dtype. */
double kl_largest(enum kl_dtype dtype);

/* Prepares a workspace for rows [row, row + n) of a job, at most those of a tile. */
void kl_start_rows(struct kl_workspace *b, struct kl_job *job, struct kl_group *group, size_t row,
                   size_t n);

/* Tells which of n rows, at most those of a tile, hold a loss that is not finite, or a sum of losses that is not. */
void kl_find_rows_not_finite(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                             bool *not_finite);

/* kl_reason: the element of input whose loss is not finite, and why. */
struct kl_reason {
    size_t index;
    double x, t; /* what the operands hold there */
    const char *words;
};

/* Finds the first loss of a row that is not finite, or why their sum is not. */
bool kl_find_not_finite(struct kl_diagnosing *d, size_t row, struct kl_reason *reason);

/* ---- findings.c: messages */

/* Fills the diagnosis from the counts. */
void kl_report(struct kl_diagnosing *d, struct kl_diagnosis *diagnosis);
