/* The loss of any call, in long double, element by element, apart from the code under test. */
#ifndef KLDIV_TESTS_REFERENCE_H
#define KLDIV_TESTS_REFERENCE_H

#include "lib/kldiv.h"

enum { REFERENCE_DIMS = 4 };

/* A call of a joint shape. Shapes of operands have the same number of axes, some of size 1 where
 * they are broadcast; those of weight and mask have the axes that are left. */
struct reference {
    size_t ndim, shape[REFERENCE_DIMS], operands[2][REFERENCE_DIMS];
    enum kl_space spaces[2];
    long double temperature;
    bool summed[REFERENCE_DIMS], any_summed;
    enum kl_reduction reduction;
    size_t left_ndim, left[REFERENCE_DIMS];
    size_t weight_shape[REFERENCE_DIMS], mask_shape[REFERENCE_DIMS];
    const double *weight;      /* NULL for none */
    const unsigned char *mask; /* likewise */
};

size_t reference_count(size_t ndim, const size_t *shape);

/* The loss; under KL_NONE the sum of all, each times its element of `upstream` unless that is NULL.
 * The losses go to `losses`, too, unless that is NULL. */
long double reference_loss(const struct reference *r, const long double *x, const long double *t,
                           const double *upstream, long double *losses);

#endif
