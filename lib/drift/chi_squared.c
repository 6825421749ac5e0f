/* The tail of the chi-squared distribution is the regularized upper incomplete gamma function Q(df / 2, x / 2).
 * For an integral df up to MAX_SUM it is a finite sum of positive terms (Abramowitz and Stegun 26.4.4 and 26.4.5), which
 * cannot cancel: df / 2 terms, each with two roundings, so the relative error is some df 2^-53 and no series or
 * continued fraction has to be chosen between. The sum is scaled, for its terms and exp(-x / 2) by themselves leave the
 * range of doubles. Beyond, where so many terms take time and round, it goes by Temme's uniform expansion ("The asymptotic
 * expansion of the incomplete gamma functions", 1979; DLMF 8.12), of whose terms few are left by so large a df. */
#include "lib/drift/chi_squared.h"
#include "lib/drift/deviance.h"

#include <math.h>
#include <stdbool.h>

/* MAX_SUM: the maximum df of the sum. */
#define MAX_SUM 100000

/* ln 2 in two parts; products of the first and integers below 2^20 are exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

/* Beyond this the tail of any df up to MAX_SUM is less than the smallest double. */
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
static struct kl_chi_squared by_sum(double x, size_t df)
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

static double polynomial(const double *coefficients, size_t n, double x)
{
    double value = 0;
    while (n-- > 0)
        value = value * x + coefficients[n];
    return value;
}

/* With a = df / 2, y = x / 2 and a e^2 / 2 = a ln(a / y) - a + y, where e has the sign of y - a,
 * erfc(e sqrt(a / 2)) / 2 + exp(-a e^2 / 2) / sqrt(2 pi a) (c0(e) + c1(e) / a + c2(e) / a^2 + ...). The series of c0, c1
 * and c2 in e are those of DiDonato and Morris ("Computation of the incomplete gamma function ratios", 1986); e is 0.18 at
 * most where the tail is neither 0 nor 1. */
static struct kl_chi_squared by_expansion(double x, size_t df)
{
    static const double c0[] = {-1. / 3,
                                1. / 12,
                                -2. / 135,
                                1. / 864,
                                1. / 2835,
                                -139. / 777600,
                                1. / 25515,
                                -571. / 261273600,
                                -281. / 151559100,
                                8.296711340953086e-7,
                                -1.7665952736826079e-7};
    static const double c1[] = {-1. / 540, -1. / 288, 1. / 378, -77. / 77760, 1. / 4860};
    static const double c2[] = {25. / 6048, -139. / 51840};
    const double a = (double)df / 2, y = x / 2, max = 745;
    double deviance = kl_deviance(a, y, a - y), e = copysign(sqrt(2 * deviance / a), y - a);
    if (!(deviance < max))
        return (struct kl_chi_squared){y < a ? 1 : 0, 0};
    double c = polynomial(c0, sizeof c0 / sizeof *c0, e) +
               (polynomial(c1, sizeof c1 / sizeof *c1, e) +
                polynomial(c2, sizeof c2 / sizeof *c2, e) / a) /
                   a;
    double height = exp(-deviance) / sqrt(2 * M_PI * a);
    return (struct kl_chi_squared){erfc(copysign(sqrt(deviance), e)) / 2 + height * c,
                                   height * a / y / (1 + 1 / (12 * a)) / 2};
}

struct kl_chi_squared kl_chi_squared(double x, size_t df)
{
    return df > MAX_SUM ? by_expansion(x, df) : by_sum(x, df);
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
