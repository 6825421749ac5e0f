/* Losses of rows of logits whose two softmaxes nearly agree. */
#ifndef KLDIV_LIB_NEAR_EQUAL_H
#define KLDIV_LIB_NEAR_EQUAL_H

#include "lib/workspace.h"

/* Computes losses again that are so small that the sums of softmax.c cancel, of rows whose row_max and
 * log_sum_exp are set. */
void kl_sum_near_equal(struct kl_workspace *b, double *losses);

#endif
