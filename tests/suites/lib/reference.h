/* The loss by definition in long double, one element at a time, independent of the code under
 * test. */
#pragma once

#include "lib/kldiv.h"

enum { REFERENCE_DIMS = 4 };

/* reference: a call of a joint shape. Operands have equally many axes, of size 1 where they are
 * broadcast; weight and mask have the axes of the losses. */
struct reference {
    size_t ndim, shape[REFERENCE_DIMS], operands[2][REFERENCE_DIMS];
    enum kl_space spaces[2];
    long double temperature;
    bool is_scaled; /* by its square */
    enum kl_divergence divergence;
    long double share; /* beta or alpha */
    bool summed[REFERENCE_DIMS], any_summed;
    enum kl_reduction reduction;
    size_t left_ndim, left[REFERENCE_DIMS];
    size_t weight_shape[REFERENCE_DIMS], mask_shape[REFERENCE_DIMS];
    const double *weight;      /* or NULL */
    const unsigned char *mask; /* or NULL */
};

size_t reference_count(size_t ndim, const size_t *shape);

/* Computes the loss; with KL_NONE, the sum of all losses times `upstream`, which may be NULL for
 * 1. Fills `losses` unless it is NULL. */
long double reference_loss(const struct reference *r, const long double *x, const long double *t,
                           const double *upstream, long double *losses);
