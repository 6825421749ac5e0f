#ifndef KLDIV_LIB_NEGATIVE_H
#define KLDIV_LIB_NEGATIVE_H

#include "lib/kldiv.h"

/* Fails with input_negative or target_negative, as KL_MATH asks, at the first negative one. */
bool kl_check_negative(const struct kl_plan *plan, struct kl_problem *problem);

#endif
