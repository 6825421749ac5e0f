/* Derivatives of a group's losses, stored or summed in its gradients. */
#pragma once

#include "lib/rows/workspace.h"

/* Computes the derivatives of a tile by operands that hold what the formula takes. */
void kl_compute_direct_grads(struct kl_workspace *b, const struct kl_tile *tile);

/* Sums derivatives by log-probabilities along rows of logits. */
void kl_sum_grads(struct kl_workspace *b);

/* Sets the same sums of rows that are known. */
void kl_set_grad_sums(struct kl_workspace *b, const struct kl_summed_rows *rows);

/* Computes the derivatives of a tile of any operands, from log-probabilities; by logits, once their sums
 * are set. */
void kl_compute_grads(struct kl_workspace *b, const struct kl_tile *tile);

/* Computes the derivatives of rows of logits that are known; false if they are to be computed tile by tile. */
bool kl_compute_row_grads(struct kl_workspace *b, const struct kl_summed_rows *rows);

/* Stores derivatives of 0. */
void kl_clear_grads(struct kl_workspace *b, const struct kl_tile *tile);
