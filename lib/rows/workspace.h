/* kl_workspace: the scratch of one thread that computes a group of rows of any layout, with any option, in
 * tiles whose elements are contiguous. Its size does not depend on the call. */
#pragma once

#include "lib/job/job.h"

#include <math.h>
#include <string.h>

/* kl_group: rows that are computed together, elements [start, end) of each. Losses are summed, or
 * stored where each element has its own; derivatives go to `gradients`. */
struct kl_group {
    size_t row, rows, start, end;
    struct kl_sum *sum;     /* of reduced losses, if kl_sums_rows is false */
    double *high, *low;     /* sums of each row's losses otherwise, 0 at first */
    struct kl_exact *exact; /* of reduced losses of rows of one element */
    const struct kl_gradient *gradients;
};

/* kl_stage: the state of an operand in `v`, of a group that is a single tile. */
enum kl_stage { KL_NOT_LOADED, KL_LOADED, KL_SHIFTED, KL_LOG_PROBS };

/* kl_summed_rows: of each row of logits, the loss and the sum of target's probabilities. `known` is false if an
 * element was special, unless the logits tell that the loss is infinite or NaN; `has_grads` tells if derivatives
 * follow from both numbers. A masked row is known, too: its numbers are masked later. */
struct kl_summed_rows {
    double losses[KL_ROWS], sum_p[KL_ROWS];
    bool known[KL_ROWS], has_grads[KL_ROWS];
};

/* KL_MAX_CACHED: elements of the longest row that has a row_cache. */
enum { KL_MAX_CACHED = 1 << 18 };

/* KL_ALIGNMENT: a cache line, in bytes, so that no vector of a block lies across two. */
enum { KL_ALIGNMENT = 64 };

struct kl_workspace {
    struct kl_job *job;
    const struct kl_group *group;
    bool single;     /* the group is one tile */
    double sentinel; /* a target whose loss or derivative the sums get wrong, or NaN */
    enum kl_stage stage[KL_OPERANDS];
    int in_grads; /* the operand whose derivatives by log-probabilities `grads` holds, of a single tile; or -1 */
    bool has_exps;    /* kl_exps_of has the exponentials */
    bool has_mixture; /* of the tile that begins with mixture_start */
    size_t mixture_start;

    /* Operands gathered in the dtype of the loss, and the tiles they belong to. */
    _Alignas(KL_ALIGNMENT) char gathered[KL_OPERANDS][KL_BLOCK * sizeof(double)];
    struct kl_tile gathered_tile[KL_OPERANDS], mask_tile;
    const unsigned char *unmasked; /* the mask of mask_tile, in place or in `mask`; or NULL */
    unsigned char mask[KL_BLOCK],
        row_mask[KL_ROWS]; /* of elements; of rows, if the job masks_rows */

    /* Operands; in the last stage in the form of the kernels' rule. */
    _Alignas(KL_ALIGNMENT) double v[KL_OPERANDS][KL_BLOCK];
    double divisor[KL_BLOCK];       /* of derivatives by probabilities */
    double row_values[2][KL_BLOCK]; /* a number of each row, at each of its elements */
    double factors[KL_BLOCK], weight[KL_BLOCK], losses[KL_BLOCK], grads[KL_BLOCK];
    double scratch[KL_BLOCK];
    union {
        double mixture_losses[KL_BLOCK];
        double tile_offsets[KL_MAX_CACHED / KL_BLOCK][KL_OPERANDS]; /* of KL_FORWARD's kl_exps_of */
    };
    double mixture_grads[KL_OPERANDS][KL_BLOCK];
    /* Derivatives and probabilities of a mixture, else exponentials, of a row of several tiles; or NULL. */
    double *row_cache;
    double row_max[KL_OPERANDS][KL_ROWS];
    double log_sum_exp[KL_OPERANDS][KL_ROWS]; /* of logits less row_max */
    double high[KL_ROWS], low[KL_ROWS];       /* of sums along rows */
    double grad_sums[KL_OPERANDS][KL_ROWS];
    struct kl_summed_rows fused, plain; /* with what derivatives need; losses alone */
};

/* KL_MIN_ROWWISE_LENGTH: rows of so many elements take less time one by one than as a block. */
enum { KL_MIN_ROWWISE_LENGTH = 64 };

/* The workspace in a thread's scratch of KL_THREAD_SCRATCH bytes. */
struct kl_workspace *kl_workspace_of(void *scratch);

/* Forgets what the workspace gathered for another job. Called before the groups of a chunk, which share
 * what they gather. */
void kl_start_chunk(struct kl_job *job, void *scratch);

void kl_start_group(struct kl_workspace *b, const struct kl_group *group);

/* The tile of the group that begins with element `start` of its rows; its length is 0 at the end, and where the call is
 * stopped, but for the first one. Inline: a tile returned in memory takes some 10 ns more. */
static inline struct kl_tile kl_tile_at(const struct kl_workspace *b, size_t start)
{
    const struct kl_group *group = b->group;
    size_t max = b->job->tile.length;
    bool stopped = start > group->start &&
                   kl_is_stopped_at(b->job->plan, start, group->rows, group->rows * max);
    return (struct kl_tile){.row = group->row,
                            .rows = group->rows,
                            .start = start,
                            .length = stopped ? 0 : kl_min(group->end - start, max),
                            .columns = b->job->tile.columns};
}

/* Loops over the tiles of the group. */
#define KL_FOR_EACH_TILE(b, tile)                                                                  \
    for (struct kl_tile tile = kl_tile_at(b, (b)->group->start); tile.length > 0;                  \
         tile = kl_tile_at(b, tile.start + tile.length))

/* ---- Loading */

/* An operand of a tile as a block of the dtype of the loss: in place, or gathered. */
const void *kl_operand(struct kl_workspace *b, const struct kl_tile *tile, int operand);

/* The mask of a tile as a block; NULL if there is none. */
const unsigned char *kl_unmasked(struct kl_workspace *b, const struct kl_tile *tile);

/* True if the derivatives by a row's losses are all equal, and of the losses only the sum is wanted. */
static inline bool kl_are_losses_alike(const struct kl_job *job)
{
    return !job->layout->elementwise ||
           (!job->weight.data && !job->mask.data && !job->grad_output.data && !job->losses);
}

/* True if a row is masked as a whole. */
static inline bool kl_is_row_masked(const struct kl_workspace *b, size_t row)
{
    return b->job->masks_rows && !b->row_mask[row];
}

/* Loads an operand as doubles; logits that are masked, but not by row, are -inf. */
void kl_load_operand(struct kl_workspace *b, const struct kl_tile *tile, int operand);

/* ---- Arithmetic along rows */

/* Sets masked elements of v to `value`. */
void kl_apply_mask(struct kl_workspace *b, const struct kl_tile *tile, double *v, double value);

/* v = (v - offset) scale - minus, with a number of each row, or NULL for 0. */
void kl_shift_rows(struct kl_workspace *b, const struct kl_tile *tile, double *v,
                   const double *offset, const double *minus, double scale);

/* Makes the log-ratios of a tile of logits, which are loaded, and of which row i has row_max[operand][i] and
 * log_sum_exp[operand][i]. Fills `shift`, with a number of each element, and row_values. */
struct kl_log_ratios kl_log_ratios_of(struct kl_workspace *b, const struct kl_tile *tile,
                                      double (*row_max)[KL_ROWS], double (*log_sum_exp)[KL_ROWS],
                                      double *shift);

/* ---- group.c: groups of rows, computed by one thread */

/* Computes a group, in `scratch`, which kl_start_chunk has prepared. */
void kl_run_group(const struct kl_group *group, void *scratch);

/* Computes the losses of a tile to b->losses, from the operands as they are where the kernel has a formula for that;
 * where it has none, once row_max and log_sum_exp are set. */
void kl_compute_losses(struct kl_workspace *b, const struct kl_tile *tile);
