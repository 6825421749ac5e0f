/* Losses that are divergences from a mixture of both operands, KL_JS and KL_SKEW. */
#pragma once

#include "lib/rows/workspace.h"

/* Computes the losses of a tile to b->mixed_losses, and the derivatives that are wanted to b->mixed_grads, by a softmax's
 * logarithms where an operand holds logits, whose row_max and log_sum_exp are set; operands in b->v become probabilities.
 * Nothing to do if the tile was the last one. */
void kl_compute_mixture(struct kl_workspace *b, const struct kl_tile *tile);
