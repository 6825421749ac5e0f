/* kl_scratch: the arrays of a thread that computes a group of rows. */
#ifndef KLDIV_LIB_SCRATCH_H
#define KLDIV_LIB_SCRATCH_H

#include "lib/job.h"
#include "lib/pool.h"

#include <stdint.h>

/* kl_stage: the state of an operand in `v`, of a group that is a single tile. */
enum kl_stage { KL_NOT_LOADED, KL_LOADED, KL_SHIFTED, KL_LOG_PROBS };

/* kl_scratch: numbers of rows (row_max and others) are KL_BROADCAST_LANES copies where a tile has
 * one row. */
struct kl_scratch {
    struct kl_job *job;
    const struct kl_group *group;
    bool single;       /* tile */
    size_t mask_start; /* where the tile starts that `mask` is of, or SIZE_MAX */
    size_t rows;       /* numbers there are of rows: of a tile's, or KL_BROADCAST_LANES */
    double refused; /* the target whose loss, or derivative, is not what sums make of it, or NaN */
    enum kl_stage stage[KL_OPERANDS];
    double v[KL_OPERANDS][KL_BLOCK]; /* the operands, at last as the kernels' rule takes them */
    double times[KL_BLOCK], over[KL_BLOCK]; /* of losses, of derivatives by probabilities */
    double mask[KL_BLOCK], g[KL_BLOCK], losses[KL_BLOCK], grads[KL_BLOCK], spare[KL_BLOCK];
    double row_max[KL_OPERANDS][KL_ROWS];
    double log_sum_exp[KL_OPERANDS][KL_ROWS]; /* of logits less row_max */
    double high[KL_ROWS], low[KL_ROWS];       /* of sums along rows */
    double grad_sums[KL_OPERANDS][KL_ROWS];
};

/* KL_SCRATCH_ALIGNMENT: a cache line, in bytes, at which vectors do not lie across two. */
enum { KL_SCRATCH_ALIGNMENT = 64 };

static inline void *kl_aligned(void *scratch)
{
    return (char *)scratch + -(uintptr_t)scratch % KL_SCRATCH_ALIGNMENT;
}

extern const double kl_zeros[KL_ROWS];

struct kl_tile kl_tile_at(const struct kl_scratch *s, size_t start);

/* Loops over the tiles of the group. */
#define KL_FOR_EACH_TILE(s, tile)                                                                  \
    for (struct kl_tile tile = kl_tile_at(s, (s)->group->start); tile.length > 0;                  \
         tile = kl_tile_at(s, tile.start + tile.length))

static inline size_t kl_tile_size(const struct kl_tile *tile) { return tile->pitch * tile->length; }

/* kl_lines: a tile as vectors that kernels combine with numbers of rows: one line of a single row,
 * or one line for each element of several rows. */
struct kl_lines {
    size_t n, length, step;
};

static inline struct kl_lines kl_lines_of(const struct kl_tile *tile)
{
    return tile->pitch == 1 ? (struct kl_lines){1, tile->length, 0}
                            : (struct kl_lines){tile->length, tile->pitch, 1};
}

static inline void kl_fill(double *to, double value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* Copies a single row's number to all broadcast lanes, after it was set. */
static inline void kl_broadcast(const struct kl_scratch *s, double *of_rows)
{
    if (s->job->tile.pitch == 1)
        kl_fill(of_rows, of_rows[0], KL_BROADCAST_LANES);
}

/* True if losses are of quotients of probabilities. */
static inline bool kl_has_quotients(const struct kl_job *job)
{
    return job->plan->spaces[KL_INPUT] == KL_PROB && job->plan->spaces[KL_TARGET] == KL_PROB;
}

/* Loads a tile of an array. */
static inline void kl_load_numbers(const struct kl_scratch *s, const struct kl_tile *tile,
                                   const struct kl_numbers *numbers, double *to)
{
    kl_tile_load(s->job->kernel, s->job->layout, tile, numbers, to);
}

/* Loads the mask, then an operand; masked logits are -inf. */
void kl_load_operand(struct kl_scratch *s, const struct kl_tile *tile, int operand);

/* Sets v to `value` where the mask hides an element. */
void kl_apply_mask(const struct kl_scratch *s, const struct kl_tile *tile, double *v, double value);

/* Adds a tile's numbers to the sums of their rows. */
void kl_add_to_rows(const struct kl_scratch *s, const struct kl_tile *tile, const double *v,
                    double *high, double *low);

/* v = (v - by) scale - minus, with numbers of rows. */
void kl_shift_rows(const struct kl_scratch *s, const struct kl_tile *tile, double *v,
                   const double *by, const double *minus, double scale);

/* Sets sums along rows to 0. */
void kl_clear_sums(struct kl_scratch *s);

/* Finds row_max and log_sum_exp of rows of logits, in a pass over them. */
void kl_find_softmax(struct kl_scratch *s, int operand);

/* Finds, in one pass over both operands, the sum of each row's losses and the sum of target's
 * probabilities, with row_max and log_sum_exp. False if an element was not ordinary; then nothing
 * is set. */
bool kl_find_row_sums(struct kl_scratch *s, double *losses, double *sum_p);

/* Computes losses anew that nearly cancel, of rows of which kl_find_row_sums knows the sums. */
void kl_sum_close_rows(struct kl_scratch *s, double *losses);

/* Loads a tile of an operand's log-probabilities, once row_max and log_sum_exp are set. */
void kl_load_log_softmax(struct kl_scratch *s, const struct kl_tile *tile, int operand);

/* Loads a tile of both operands as the kernels' rule takes them; masked elements have no loss. */
void kl_load_log_probs(struct kl_scratch *s, const struct kl_tile *tile);

/* Loads the factors of the tile's derivatives: s->g holds job->factor from the start, and here a
 * number for each element where grad_output or weight vary. */
void kl_load_factors(struct kl_scratch *s, const struct kl_tile *tile);

/* Sums derivatives by log-probabilities along rows of logits, for softmax_backward. */
void kl_sum_grads(struct kl_scratch *s);

/* Computes and stores the derivatives of a loaded tile by each operand that wants them. */
void kl_compute_grads(struct kl_scratch *s, const struct kl_tile *tile);

/* Stores derivatives (s->grads) in an operand's sink. */
void kl_store_grads(struct kl_scratch *s, const struct kl_tile *tile, int operand);

#endif
