/* The tail of the chi-squared distribution is the regularized upper incomplete gamma function Q(df / 2, x / 2).
 * For an integral df it is a finite sum of positive terms (Abramowitz and Stegun 26.4.4 and 26.4.5), which
 * cannot cancel: df / 2 terms, each with two roundings, so the relative error is some df 2^-53 and no series or
 * continued fraction has to be chosen between. The sum is scaled, for its terms and exp(-x / 2) by themselves leave the
 * range of doubles. */
#include "lib/chi_squared.h"

#include <math.h>
#include <stdbool.h>

/* ln 2 in two parts; products of the first and integers below 2^20 are exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

/* Beyond this the tail of any df up to 10^6 is less than the smallest double. */
#define MAX_HALF 7e5

/* scaled: the number times * 2^exponent, which may be out of the range of doubles. */
struct scaled {
    double times;
    int exponent;
};

/* exp(-y) */
static struct scaled exp_minus(double y)
{
    double k = rint(y / M_LN2);
    return (struct scaled){exp(k * LN2_LOW - (y - k * LN2_HIGH)), -(int)k};
}

/* With y = x / 2, even df add y^j / j!, odd df y^(j + 1/2) / gamma(j + 3/2) and erfc(sqrt y) e^y, for
 * j from 0 on, all times e^-y. The last of these terms is twice the density. */
struct kl_chi_squared kl_chi_squared(double x, size_t df)
{
    const double max = 0x1p900, y = x / 2;
    if (y > MAX_HALF)
        return (struct kl_chi_squared){0, 0};
    struct scaled scale = exp_minus(y);
    bool odd = df % 2;
    double rest = odd ? erfc(sqrt(y)) : 0, sum = 0;
    double term = odd ? 2 * sqrt(y / M_PI) : 1;
    if (df == 1)
        return (struct kl_chi_squared){rest, ldexp(scale.times * term / x, scale.exponent) / 2};
    for (size_t j = 1; j <= df / 2; j++) {
        if (j > 1)
            term *= y / ((double)j - (odd ? 0.5 : 1));
        sum += term;
        if (sum > max)
            term /= max, sum /= max, scale.exponent += 900;
    }
    return (struct kl_chi_squared){rest + ldexp(sum * scale.times, scale.exponent),
                                   ldexp(term * scale.times, scale.exponent) / 2};
}

/* Newton's steps on the logarithm of the tail, by z = sqrt x: there it is concave for all df, so that
 * steps come from the right after the first, which may go too far. */
double kl_chi_squared_point(double tail, size_t df)
{
    enum { MAX_STEPS = 200 };
    double low = 0, z = sqrt((double)df);
    if (tail >= 1)
        return 0;
    for (int i = 0; i < MAX_STEPS; i++) {
        struct kl_chi_squared at = kl_chi_squared(z * z, df);
        if (!(at.tail > 0) || !(at.density > 0)) {
            z = (low + z) / 2;
            continue;
        }
        double step = log(at.tail / tail) * at.tail / (2 * z * at.density);
        if (at.tail > tail)
            low = z;
        if (fabs(step) <= 0x1p-52 * z)
            break;
        z += step;
    }
    return z * z;
}
