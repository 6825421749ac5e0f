#ifndef KLDIV_LIB_DIVISOR_H
#define KLDIV_LIB_DIVISOR_H

#include "lib/kldiv.h"

/* The divisor of a call's reduction, under weight and mask. */
double kl_divisor_of(const struct kl_plan *plan);

/* Adds the divisor of KL_MEAN, exactly: the losses that count, or their weights. */
void kl_add_places(const struct kl_plan *plan, struct kl_exact *sum);

/* The divisor of KL_BATCHMEAN. */
double kl_entries_of(const struct kl_plan *plan);

#endif
