/* Derivatives of a group's losses, stored or summed in its gradients. */
#pragma once

#include "lib/workspace.h"

/* Computes the derivatives of a tile by operands that hold what the formula takes. */
void kl_compute_direct_grads(struct kl_workspace *b, const struct kl_tile *tile);

/* Sums derivatives by log-probabilities along rows of logits. */
void kl_sum_grads(struct kl_workspace *b);

/* Computes the derivatives of a tile of any operands, from log-probabilities; by logits, once
 * kl_sum_grads or kl_compute_row_grads has set the sums. */
void kl_compute_grads(struct kl_workspace *b, const struct kl_tile *tile);

/* Computes the derivatives of rows of logits whose sums kl_find_row_sums found; false if they are to be computed
 * tile by tile. */
bool kl_compute_row_grads(struct kl_workspace *b, const double *losses, const double *sum_p);

/* Stores derivatives of 0. */
void kl_clear_grads(struct kl_workspace *b, const struct kl_tile *tile);
