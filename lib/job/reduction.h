/* The reduction of losses: divisors, under weight and mask, and partial results. kl_run and kl_partial_loss
 * share it, so that both give the same bits. */
#pragma once

#include "lib/kldiv.h"

/* The divisor of a call's reduction. */
double kl_divisor_of(const struct kl_plan *plan);

/* A sum divided as the reduction says; the mean of nothing is 0 with `zero_if_empty`. */
double kl_reduced(double sum, double divisor, enum kl_reduction reduction, bool zero_if_empty);

/* Fills a partial result of a call with the sum of its losses. */
void kl_fill_partial(const struct kl_plan *plan, const struct kl_exact *sum,
                     struct kl_partial *partial);
