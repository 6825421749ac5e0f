/* Rows of logits, of a group whose tiles are not loaded yet. */
#pragma once

#include "lib/workspace.h"

/* True if rows are summed as blocks, and not one by one. */
bool kl_sums_blocks(const struct kl_job *job);

/* True if rows have one element, whose softmax is 1 whatever the logit. */
static inline bool kl_are_singles(const struct kl_job *job)
{
    return job->layout->inner.volume == 1;
}

/* True if the softmaxes of both operands are 1: losses and derivatives of what is finite are 0. */
static inline bool kl_are_ones(const struct kl_job *job)
{
    return kl_are_singles(job) && kl_is_logit(job, KL_INPUT) && kl_is_logit(job, KL_TARGET);
}

/* Finds row_max and log_sum_exp of an operand. */
void kl_find_softmax(struct kl_workspace *b, int operand);

/* Sums rows in one pass over both operands, and sets row_max and log_sum_exp; true if all sums are known.
 * With `caches`, exponentials are cached for the derivatives if there is room for them. */
bool kl_find_row_sums(struct kl_workspace *b, bool caches, struct kl_summed_rows *rows);

/* Loads a tile of both operands in the form of the kernels' rule, once row_max and log_sum_exp of logits are
 * set; masked elements have no loss. */
void kl_load_log_probs(struct kl_workspace *b, const struct kl_tile *tile);

/* ---- near_equal.c: losses of rows whose two softmaxes nearly agree */

/* Computes losses again that are so small that the sums of softmax.c cancel, of rows whose row_max and
 * log_sum_exp are set. */
void kl_sum_near_equal(struct kl_workspace *b, double *losses);
