/* Losses of rows of logits whose two softmaxes nearly agree. */
#pragma once

#include "lib/workspace.h"

/* Computes losses again that are so small that the sums of softmax.c cancel, of rows whose row_max and
 * log_sum_exp are set. */
void kl_sum_near_equal(struct kl_workspace *b, double *losses);
