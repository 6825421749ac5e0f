/* Chi-squared distribution of an integral number of degrees of freedom. */
#pragma once

#include <stddef.h>

/* kl_chi_squared: probability of more than x, and density at x. */
struct kl_chi_squared {
    double tail, density;
};

/* The distribution with df degrees of freedom, at least 1, at x > 0. The tail is within a relative 1e-12 down to
 * 1e-300. */
struct kl_chi_squared kl_chi_squared(double x, size_t df);

/* The x whose tail is `tail`, in (0, 1]; 0 of a tail of 1. */
double kl_chi_squared_point(double tail, size_t df);
