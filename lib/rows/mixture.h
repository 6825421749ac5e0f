/* Losses that are divergences from a mixture of both operands, KL_JS and KL_SKEW. */
#pragma once

#include "lib/rows/workspace.h"

/* Computes the losses of a tile to b->mixture_losses, and the derivatives that are wanted to b->mixture_grads, by a softmax's
 * logarithms where an operand holds logits, whose row_max and log_sum_exp are set; operands in b->v become probabilities.
 * Nothing to do if the tile was the last one. */
void kl_compute_mixture(struct kl_workspace *b, const struct kl_tile *tile);

/* True if rows of logits are computed one by one, from where they are; kl_compute_mixture is not called then. */
bool kl_sums_mixture_rows(const struct kl_job *job);

/* Finds the losses of the group's rows, and the sums of their derivatives by logarithms, to b->grad_sums. False if b->plain.known
 * differs between rows: their bits would depend on those beside them. */
bool kl_sum_mixture_rows(struct kl_workspace *b);

/* kl_mixture_terms: of a row of a tile, the derivatives by an operand's logarithms, and its probabilities. */
struct kl_mixture_terms {
    double *grads, *probs;
};

/* Finds the terms of a row whose sums are known. */
void kl_find_mixture_terms(struct kl_workspace *b, const struct kl_tile *tile, size_t row,
                           struct kl_mixture_terms terms[KL_OPERANDS]);

/* The bytes of a row_cache. */
size_t kl_mixture_cache_size(const struct kl_job *job);
