/* Rows of logits, of a group whose tiles are not loaded yet. */
#pragma once

#include "lib/rows/workspace.h"

/* True if rows are summed as blocks, and not one by one. */
bool kl_sums_blocks(const struct kl_job *job);

/* Finds row_max and log_sum_exp of the operands that hold logits. */
void kl_find_softmaxes(struct kl_workspace *b);

/* Sums rows in one pass over both operands, and sets row_max and log_sum_exp, which is NaN where there is no
 * softmax; true if all losses are known, and have derivatives.
 * With `caches`, exponentials are cached for the derivatives if there is room for them. */
bool kl_find_row_sums(struct kl_workspace *b, bool caches, struct kl_summed_rows *rows);

/* kl_cached_exps: exponentials of target and input of a row of a tile, of logits less `offsets`, one of each operand; NULL for the
 * row's maxima. */
struct kl_cached_exps {
    double *p, *q, *offsets;
};

/* Gives the exponentials of a row whose sums were found, if b->has_exps: cached, or computed again to the same bits. */
struct kl_cached_exps kl_exps_of(struct kl_workspace *b, const struct kl_tile *tile, size_t row);

/* The bytes of a row_cache for them. */
size_t kl_exps_cache_size(const struct kl_job *job);

/* Loads a tile of both operands in the form of the kernels' rule, once row_max and log_sum_exp of logits are
 * set; masked elements have no loss. */
void kl_load_log_probs(struct kl_workspace *b, const struct kl_tile *tile);

/* Loads a tile of both operands in their spaces, logits as the logarithms of their softmax; masked elements have finite losses. */
void kl_load_spaces(struct kl_workspace *b, const struct kl_tile *tile);

/* ---- near_equal.c: losses of rows whose two softmaxes nearly agree */

/* Computes losses again that are so small that the sums of softmax.c cancel, of rows whose row_max and
 * log_sum_exp are set. */
void kl_sum_near_equal(struct kl_workspace *b, double *losses);
