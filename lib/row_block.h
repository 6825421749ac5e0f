/* kl_row_block: the general engine: some rows of any layout, with any option, computed as blocks whose
 * elements lie side by side. It is the scratch of one thread, whose size does not depend on the
 * call. */
#ifndef KLDIV_LIB_ROW_BLOCK_H
#define KLDIV_LIB_ROW_BLOCK_H

#include "lib/job.h"
#include "lib/pool.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* kl_group: rows that are computed together, split [start, end) of each. Losses are summed, or
 * stored where each element has its own; derivatives go to the sinks. */
struct kl_group {
    size_t row, rows, start, end;
    struct kl_sum
        *sum; /* of reduced losses, where elements have their own and rows are no softmaxes */
    double *high, *low; /* sums of each row's losses otherwise, 0 at first */
    const struct kl_sink *sinks;
};

/* kl_stage: the state of an operand in `v`, of a group that is a single tile. */
enum kl_stage { KL_NOT_LOADED, KL_LOADED, KL_SHIFTED, KL_LOG_PROBS };

struct kl_row_block {
    struct kl_job *job;
    const struct kl_group *group;
    bool single;    /* the group is one tile */
    double refused; /* the target whose loss, or derivative, is not what sums make of it, or NaN */
    enum kl_stage stage[KL_OPERANDS];
    bool has_exps; /* v holds the exponentials that kl_find_row_sums found */

    /* Operands gathered in the dtype of the loss, and the tiles that they are of. */
    char gathered[KL_OPERANDS][KL_BLOCK * sizeof(double)];
    struct kl_tile gathered_tile[KL_OPERANDS], mask_tile;
    const unsigned char *shown; /* the mask of mask_tile, where it is or in `mask`; or NULL */
    unsigned char mask[KL_BLOCK];

    double v[KL_OPERANDS][KL_BLOCK]; /* the operands, at last as the kernels' rule takes them */
    double over[KL_BLOCK];           /* of derivatives by probabilities */
    double of_rows[2][KL_BLOCK];     /* numbers of rows, at each element */
    double factors[KL_BLOCK], weight[KL_BLOCK], losses[KL_BLOCK], grads[KL_BLOCK], spare[KL_BLOCK];
    double row_max[KL_OPERANDS][KL_ROWS];
    double log_sum_exp[KL_OPERANDS][KL_ROWS]; /* of logits less row_max */
    double high[KL_ROWS], low[KL_ROWS];       /* of sums along rows */
    double grad_sums[KL_OPERANDS][KL_ROWS];
};

/* KL_ROW_ALONE: rows of so many logits take less time one by one than as a block. */
enum { KL_ROW_ALONE = 64 };

/* KL_SCRATCH_ALIGNMENT: a cache line, in bytes, at which vectors do not lie across two. */
enum { KL_SCRATCH_ALIGNMENT = 64 };

static inline void *kl_aligned(void *scratch)
{
    return (char *)scratch + -(uintptr_t)scratch % KL_SCRATCH_ALIGNMENT;
}

static inline void kl_fill(double *to, double value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* The tile of the group that begins with element `start` of its rows; its length is 0 at the end. */
struct kl_tile kl_tile_at(const struct kl_row_block *b, size_t start);

/* Loops over the tiles of the group. */
#define KL_FOR_EACH_TILE(b, tile)                                                                  \
    for (struct kl_tile tile = kl_tile_at(b, (b)->group->start); tile.length > 0;                  \
         tile = kl_tile_at(b, tile.start + tile.length))

/* An operand of a tile as a block of the dtype of the loss: where it is, or gathered. */
const void *kl_operand(struct kl_row_block *b, const struct kl_tile *tile, int operand);

/* The mask of a tile as a block; NULL if there is none. */
const unsigned char *kl_shown(struct kl_row_block *b, const struct kl_tile *tile);

/* True if the mask hides a row as a whole. */
bool kl_is_hidden(const struct kl_row_block *b, size_t row);

/* Loads an operand as doubles; masked logits are -inf. */
void kl_load_operand(struct kl_row_block *b, const struct kl_tile *tile, int operand);

/* Sets v to `value` where the mask hides an element. */
void kl_apply_mask(struct kl_row_block *b, const struct kl_tile *tile, double *v, double value);

/* Adds the sums of a tile's rows of numbers to (high, low). */
void kl_add_to_rows(const struct kl_row_block *b, const struct kl_tile *tile, const double *v,
                    double *high, double *low);

/* Raises the maxima of rows to those of a tile's; copies numbers of rows to each of their elements. */
void kl_find_maxima(const struct kl_row_block *b, const struct kl_tile *tile, const double *v,
                    double *maxima);
void kl_spread(const struct kl_row_block *b, const struct kl_tile *tile, const double *of_rows,
               double *to);

/* v = (v - by) scale - minus, with numbers of rows, of which `minus` may be NULL. */
void kl_shift_rows(struct kl_row_block *b, const struct kl_tile *tile, double *v, const double *by,
                   const double *minus, double scale);

/* Loads a tile of both operands as the kernels' rule takes them; masked elements have no loss. */
void kl_load_log_probs(struct kl_row_block *b, const struct kl_tile *tile);

/* Forgets what the scratch gathered for another job. Called before the groups of a chunk, which share
 * what they gather. `scratch` has KL_THREAD_SCRATCH bytes. */
void kl_start_chunk(struct kl_job *job, void *scratch);

/* Computes a group. */
void kl_run_group(const struct kl_group *group, void *scratch);

#endif
