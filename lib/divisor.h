#ifndef KLDIV_LIB_DIVISOR_H
#define KLDIV_LIB_DIVISOR_H

#include "lib/kldiv.h"

/* The divisor of a call's reduction, under weight and mask. */
double kl_divisor_of(const struct kl_plan *plan);

#endif
