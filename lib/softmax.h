/* Rows of logits, of a group whose tiles are not loaded yet. */
#ifndef KLDIV_LIB_SOFTMAX_H
#define KLDIV_LIB_SOFTMAX_H

#include "lib/row_block.h"

/* Finds row_max and log_sum_exp of an operand. */
void kl_find_softmax(struct kl_row_block *b, int operand);

/* Finds, in one pass over both operands, the sum of each row's losses and the sum of target's
 * probabilities, with row_max and log_sum_exp. False if an element was not ordinary; then nothing
 * is set. With `keeps`, exponentials are kept for the derivatives if there is room for them. */
bool kl_find_row_sums(struct kl_row_block *b, bool keeps, double *losses, double *sum_p);

/* Loads a tile of an operand's log-probabilities, once row_max and log_sum_exp are set. */
void kl_load_log_softmax(struct kl_row_block *b, const struct kl_tile *tile, int operand);

/* Computes losses anew that nearly cancel, of rows of which kl_find_row_sums knows the sums. */
void kl_sum_close_rows(struct kl_row_block *b, double *losses);

#endif
