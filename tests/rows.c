/* Row functions of each instruction set against libm. */
#include "lib/kernel.h"
#include "tests/arrays.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { MOST = 70 };

/* Calls `check` with each kernel and with arrays of every length whose end is the end of mapped
 * memory. */
static void for_each(void (*check)(const struct kl_kernel *kernel, double *v, double *other,
                                   size_t n))
{
    unsigned long long state = 1;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t n = 0; (*k)->supported() && n < MOST; n++) {
            double *v = (double *)before_the_edge(n * 8), *other = (double *)before_the_edge(n * 8);
            for (size_t i = 0; i < n; i++) {
                v[i] = 40 * uniform(&state) - 30;
                other[i] = uniform(&state) + 1e-3;
            }
            check(*k, v, other, n);
            unmap((char *)v, n * 8);
            unmap((char *)other, n * 8);
        }
}

static bool near(double ours, double exact, double units)
{
    return isfinite(exact) ? fabs(ours - exact) <= units * 0x1p-52 * fabs(exact) + 0x1p-1074
           : isnan(exact)  ? isnan(ours)
                           : ours == exact;
}

static void check_sums(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    double top = -INFINITY, maxima[MOST], high[MOST], low[MOST] = {0};
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        top = v[i] > top ? v[i] : top;
        sum += v[i];
        maxima[i] = i & 1 ? -INFINITY : 3;
        high[i] = 0x1p60;
    }
    struct kl_sum total = kernel->total(v, n);
    cr_expect_eq(kernel->row_max(v, n), top, "%s", kernel->name);
    cr_expect_lt(fabsl((long double)total.high + total.low - sum), 1e-18L, "%s", kernel->name);
    kernel->each_max(v, maxima, n);
    kernel->each_add(v, high, low, n);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(maxima[i], i & 1 ? v[i] : fmax(v[i], 3), "%s", kernel->name);
        cr_expect_eq((long double)high[i] + low[i], 0x1p60L + v[i], "%s", kernel->name);
    }
    (void)other;
}

Test(rows, maxima_and_sums) { for_each(check_sums); }

static void check_arithmetic(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    static const double two[KL_BROADCAST_LANES] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    double mine[MOST] = {0};
    memcpy(mine, v, n * sizeof *v);
    kernel->shift(v, other, other, 1, 0.5, n);
    kernel->shift(v, two, two, 0, 2, n);
    kernel->multiply(v, other, n);
    kernel->softmax_backward(v, other, other, 1, 4, n);
    kernel->softmax_backward(v, other, two, 0, 1, n);
    for (size_t i = 0; i < n; i++) {
        double shifted = (((mine[i] - other[i]) * 0.5 - other[i]) - 2) * 2 - 2;
        double product = shifted * other[i];
        double soft = (product - other[i] * other[i]) * 4;
        cr_expect_eq(v[i], soft - other[i] * 2, "%s", kernel->name);
        other[i] = i % 3 == 0 ? 0 : 1;
    }
    memcpy(mine, v, n * sizeof *v);
    kernel->apply_mask(v, other, -7, n);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(v[i], i % 3 == 0 ? -7 : mine[i], "%s", kernel->name);
}

Test(rows, shifts_products_and_masks) { for_each(check_arithmetic); }

static void check_exponentials(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    static const double specials[] = {0,         -0.0, INFINITY, -INFINITY, NAN,        -745,
                                      -1e9,      700,  710,      -708.5,    1e-310,     5e-324,
                                      0x1p-1022, 1,    1e308,    -1,        1 - 0x1p-53};
    for (size_t i = 0; i < n; i += 5)
        v[i] = specials[i / 5 % COUNT(specials)],
        other[i] = specials[(i / 5 + n) % COUNT(specials)];
    double e[MOST], l[MOST];
    kernel->exps(v, e, n);
    kernel->logs(other, l, n);
    for (size_t i = 0; i < n; i++) {
        double exact = (double)expl(v[i]);
        cr_expect(near(e[i], exact, fabs(exact) < 0x1p-1020 ? 1 : 2) ||
                      fabs(e[i] - exact) <= 0x1p-1073,
                  "%s: exp(%g) is not %.17g", kernel->name, v[i], e[i]);
        cr_expect(near(l[i], log(other[i]), 2), "%s: log(%g) is not %.17g", kernel->name, other[i],
                  l[i]);
    }
}

Test(rows, exponentials_and_logarithms) { for_each(check_exponentials); }

/* Checks losses of probabilities by quotients: ordinary ones, near 1, and invalid ones. */
static void check_quotients(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    static const double specials[][2] = {
        {0, 0.5},    {0.5, 0},    {0, 0},          {-1, 0.5},     {NAN, 1},    {1, NAN},
        {1e-310, 1}, {1, 1e-310}, {1e-300, 1e300}, {INFINITY, 1}, {0.3, -0.1}, {5e-324, 5e-324}};
    double x[MOST], t[MOST], times[MOST], over[MOST], losses[MOST];
    for (enum kl_rule rule = KL_PROB_PYTORCH; rule <= KL_PROB_MATH; rule++) {
        for (size_t i = 0; i < n; i++) {
            double q = other[i], p = other[i] * (1 + v[i] * pow(10, -(double)(i % 15)) / 40);
            if (i % 4 == 3 && n > 30)
                q = specials[(i + n) % COUNT(specials)][0],
                p = specials[(i + n) % COUNT(specials)][1];
            x[i] = q, t[i] = p;
        }
        kernel->quotients(rule, x, t, times, over, n);
        kernel->map[KL_FLOAT64][false](rule, x, t, losses, n);
        for (size_t i = 0; i < n; i++) {
            double q = other[i], p = other[i] * (1 + v[i] * pow(10, -(double)(i % 15)) / 40);
            bool special = i % 4 == 3 && n > 30;
            if (special)
                q = specials[(i + n) % COUNT(specials)][0],
                p = specials[(i + n) % COUNT(specials)][1];
            bool close = fabs(p / q - 1) < 0.25;
            double exact = special || p <= 0 ? kl_term(rule, log(q), p)
                           : close           ? (double)(p * log1pl(((long double)p - q) / q))
                                             : (double)(p * (logl(p) - logl(q)));
            cr_expect(near(losses[i] * times[i], exact, 4),
                      "%s: q %.17g, p %.17g: %.17g, not %.17g", kernel->name, q, p,
                      losses[i] * times[i], exact);
        }
    }
}

Test(rows, quotients_of_probabilities) { for_each(check_quotients); }

static void check_row_sums(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_shift shift = {10.5, 0.75}, none = {0, 1};
    for (int is_log = 0; is_log < 2; is_log++)
        for (int wide = 0; wide < 2; wide++) {
            long double losses = 0, sum_p = 0, exps = 0, size = 0;
            double t[MOST];
            for (size_t i = 0; i < n; i++) {
                long double x = (v[i] - 10.5L) * 0.75L,
                            p = is_log ? expl(v[n - 1 - i] - 10.5L) : other[i];
                long double loss = p * (logl(p) - x);
                t[i] = is_log ? v[n - 1 - i] - 10.5 : other[i];
                losses += loss, size += fabsl(loss), sum_p += p, exps += expl(x);
            }
            struct kl_row_sums sums =
                kernel->row_sums[is_log](wide, true, (double)NAN, v, t, shift, none, n);
            double slack = wide ? 0x1p-48 : 0x1p-38;
            cr_expect(fabsl(sums.losses - losses) <= slack * size &&
                          fabsl(sums.sum_p - sum_p) <= slack * sum_p &&
                          fabsl(sums.exps - exps) <= slack * exps,
                      "%s, log %d, wide %d, n %zu: %.17g %.17g %.17g, not %.17Lg %.17Lg %.17Lg",
                      kernel->name, is_log, wide, n, sums.losses, sums.sum_p, sums.exps, losses,
                      sum_p, exps);
            if (n == 0)
                continue;
            static const double unusual[] = {NAN, INFINITY, -1};
            for (size_t i = 0; i < COUNT(unusual); i++) {
                double before = t[n / 2], refused = is_log ? -1 : NAN;
                t[n / 2] = unusual[i];
                sums = kernel->row_sums[is_log](wide, true, refused, v, t, shift, none, n);
                cr_expect_not(isfinite(sums.losses), "%s", kernel->name);
                t[n / 2] = before;
            }
        }
}

Test(rows, sums_of_rows) { for_each(check_row_sums); }

static void check_row_stats(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    struct kl_rows_stats rows;
    for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++) {
        size_t size = n * kl_dtype_size(dtype);
        char *array = before_the_edge(size);
        struct kl_row_stats exact = {INFINITY, -INFINITY, 0, 0};
        for (size_t i = 0; i < n; i++) {
            kl_store(dtype, array, i, v[i]);
            double a = kl_load(dtype, array, i);
            exact.least = fmin(exact.least, a), exact.greatest = fmax(exact.greatest, a);
            exact.sum += a, exact.exps += exp(a);
        }
        struct kl_row_stats ours = kernel->row_stats[dtype](array, n, true);
        cr_expect_eq(ours.least, exact.least, "%s", kernel->name);
        cr_expect_eq(ours.greatest, exact.greatest, "%s", kernel->name);
        cr_expect_lt(fabs(ours.sum - exact.sum), 1e-11, "%s", kernel->name);
        cr_expect_leq(fabs(ours.exps - exact.exps), 1e-4 * exact.exps, "%s", kernel->name);
        unmap(array, size);
    }
    for (size_t i = 0; i < n; i++)
        rows.least[i] = 0, rows.greatest[i] = -3, rows.sum[i] = 1, rows.exps[i] = 2;
    kernel->each_row_stats(v, &rows, n, true);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(rows.least[i], fmin(0, v[i]), "%s", kernel->name);
        cr_expect_eq(rows.greatest[i], fmax(-3, v[i]), "%s", kernel->name);
        cr_expect_eq(rows.sum[i], 1 + v[i], "%s", kernel->name);
        cr_expect_leq(fabs(rows.exps[i] - 2 - exp(v[i])), 1e-4 * exp(v[i]) + 1e-15, "%s",
                      kernel->name);
    }
    (void)other;
}

Test(rows, stats) { for_each(check_row_stats); }
