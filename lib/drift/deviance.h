/* The deviance of two numbers, what both Kullback-Leibler divergences and tails of the gamma function are made of. */
#pragma once

#include "lib/simd/kernel.h"

#include <math.h>

/* p ln(p / q) - p + q, at least 0, of numbers whose difference p - q is given more exactly than they tell it. With
 * s = (p - q) / (p + q), and so p / q = (1 + s) / (1 - s), for a small s it is
 * (p + q) (s^2 + (1 + s) (s^3 / 3 + s^5 / 5 + ...)), by the series of artanh: p ln(p / q) and q - p cancel to about
 * (p - q)^2 / 2q, of which a logarithm would leave few digits. For |s| <= 1/8 the series is within 2^-53. */
static inline double kl_deviance(double p, double q, double difference)
{
    static const double odds[] = {1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11,
                                  1. / 9,  1. / 7,  1. / 5,  1. / 3};
    double s = difference / (p + q), series = 0;
    if (p == 0)
        return q;
    if (q == 0)
        return (double)INFINITY;
    if (fabs(s) > 0.125) {
        double ratio = p / q;
        bool in_range = ratio > KL_MIN_QUOTIENT && ratio < KL_MAX_QUOTIENT;
        return p * (in_range ? log(ratio) : log(p) - log(q)) - difference;
    }
    for (size_t i = 0; i < sizeof odds / sizeof *odds; i++)
        series = series * (s * s) + odds[i];
    return (p + q) * s * s * (1 + (1 + s) * s * series);
}
