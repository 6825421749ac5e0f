/* Row functions of each instruction set against libm. */
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { MAX = 70 };

/* Calls `check` with each kernel and with arrays of every length whose end is the end of mapped
 * memory. */
static void for_each(void (*check)(const struct kl_kernel *kernel, double *v, double *other,
                                   size_t n))
{
    unsigned long long state = 1;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t n = 0; (*k)->supported() && n < MAX; n++) {
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
    double top = -INFINITY, high[MAX], low[MAX] = {0}, maxima[MAX];
    long double sum = 0;
    size_t set = 0;
    unsigned char bytes[MAX];
    for (size_t i = 0; i < n; i++) {
        top = v[i] > top ? v[i] : top;
        sum += v[i];
        high[i] = 0x1p60;
        bytes[i] = (unsigned char)(i * 7 % 3);
        set += bytes[i] != 0;
    }
    struct kl_sum total = kernel->total(v, n);
    cr_expect_eq(kernel->row_max[KL_FLOAT64](v, n), top, "%s", kernel->name);
    cr_expect_lt(fabsl((long double)total.high + total.low - sum), 1e-18L, "%s", kernel->name);
    cr_expect_eq(kernel->count(bytes, n), set, "%s", kernel->name);
    kernel->add(v, 1, high, low, n);
    for (size_t i = 0; i < n; i++)
        maxima[i] = i & 1 ? -INFINITY : 3;
    kernel->max(v, 1, maxima, n);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(maxima[i], i & 1 ? v[i] : fmax(v[i], 3), "%s", kernel->name);
        cr_expect_eq((long double)high[i] + low[i], 0x1p60L + v[i], "%s", kernel->name);
    }
    (void)other;
}

Test(rows, maxima_and_sums) { for_each(check_sums); }

/* The sums and maxima of a block as columns. */
static void check_columns(const struct kl_kernel *kernel, const double *v, size_t length, size_t n)
{
    double high[KL_ROWS], low[KL_ROWS] = {0}, maxima[KL_ROWS];
    for (size_t i = 0; i < n; i++)
        high[i] = 100, maxima[i] = i & 1 ? -INFINITY : 0.1;
    kernel->add(v, length, high, low, n);
    kernel->max(v, length, maxima, n);
    for (size_t i = 0; i < n; i++) {
        long double sum = 100, size = 0;
        double top = i & 1 ? -INFINITY : 0.1;
        for (size_t j = 0; j < length; j++) {
            sum += v[j * n + i], size += fabs(v[j * n + i]);
            top = fmax(top, v[j * n + i]);
        }
        cr_expect_leq(fabsl(sum - high[i] - low[i]), 0x1p-60L * size, "%s: column %zu of %zu",
                      kernel->name, i, length);
        cr_expect_eq(maxima[i], top, "%s: column %zu of %zu", kernel->name, i, length);
    }
}

/* Blocks of rows of every length, up to unmapped memory. */
Test(rows, blocks_of_rows)
{
    enum { AREA = 1024 };
    unsigned long long state = 3;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t length = 1; (*k)->supported() && length <= AREA; length += 1 + length / 20) {
            size_t rows = AREA / length < KL_ROWS ? AREA / length : KL_ROWS, n = rows * length;
            double *v = (double *)before_the_edge(n * 8), *to = (double *)before_the_edge(n * 8);
            double high[KL_ROWS], low[KL_ROWS] = {0}, maxima[KL_ROWS];
            for (size_t i = 0; i < n; i++)
                v[i] = uniform(&state) - 0.5;
            check_columns(*k, v, length, rows);
            for (size_t r = 0; r < rows; r++)
                high[r] = 100, maxima[r] = r & 1 ? -INFINITY : 0.1;
            (*k)->row_totals(v, rows, length, high, low);
            (*k)->row_maxima(v, rows, length, maxima);
            (*k)->broadcast(high, rows, length, to);
            for (size_t r = 0; r < rows; r++) {
                long double sum = 100, size = 0;
                double top = r & 1 ? -INFINITY : 0.1;
                for (size_t i = 0; i < length; i++) {
                    sum += v[r * length + i], size += fabs(v[r * length + i]);
                    top = fmax(top, v[r * length + i]);
                    cr_expect_eq(to[r * length + i], high[r]);
                }
                cr_expect_leq(fabsl(sum - high[r] - low[r]), 0x1p-51L * size, "%s: row %zu of %zu",
                              (*k)->name, r, length);
                cr_expect_eq(maxima[r], top, "%s: row %zu of %zu", (*k)->name, r, length);
            }
            unmap((char *)v, n * 8);
            unmap((char *)to, n * 8);
        }
}

static void check_arithmetic(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    double mine[MAX] = {0};
    unsigned char mask[MAX];
    memcpy(mine, v, n * sizeof *v);
    kernel->shift(v, other, other, 0.5, n);
    kernel->multiply(v, other, n);
    kernel->scale(v, 3, n);
    kernel->softmax_backward(v, other, other, 4, n);
    for (size_t i = 0; i < n; i++) {
        double product = ((mine[i] - other[i]) * 0.5 - other[i]) * other[i] * 3;
        cr_expect_eq(v[i], (product - other[i] * other[i]) * 4, "%s", kernel->name);
        mask[i] = i % 3 == 0 ? 0 : (unsigned char)(i | 1);
    }
    memcpy(mine, v, n * sizeof *v);
    kernel->apply_mask(v, mask, -7, n);
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
    double e[MAX], l[MAX];
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

/* Elements of -inf count as 0: none, all, or each with its own chance. */
static void check_exp_sums(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_shift shift = {3, 0.5};
    double some[MAX];
    for (int chance = 0; chance <= 4; chance++) {
        long double exact = 0;
        for (size_t i = 0; i < n; i++) {
            some[i] = other[i] <= 1e-3 + chance / 4.0 ? -(double)INFINITY : v[i];
            exact += expl((some[i] - 3) / 2);
        }
        double ours = kl_sum_value(kernel->exp_sum[KL_FLOAT64](some, shift, n));
        cr_expect(near(ours, (double)exact, 4), "%s: %zu: %.17g, not %.17Lg", kernel->name, n, ours,
                  exact);
    }
}

Test(rows, sums_of_exponentials) { for_each(check_exp_sums); }

/* Several rows at once are as one by one, up to the last element of the arrays; a target of -inf is told by a loss of NaN. */
static void check_short_sums(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    static const size_t lengths[] = {1, 2, 5, 8, 13, 17, 33};
    double maxima[KL_OPERANDS][MAX], losses[MAX], sum_p[MAX], exps[MAX], p[MAX], q[MAX],
        one[2][MAX];
    for (size_t i = 0; i < 3 * COUNT(lengths); i++) {
        size_t length = lengths[i / 3], rows = n / length, skipped = n - rows * length;
        bool has_sentinel = i % 3 == 2, caches = i % 3 == 1;
        const double *x = v + skipped, *t = other + skipped;
        const struct kl_short_sums to = {{maxima[0], maxima[1]}, losses, sum_p, exps,
                                         caches ? p : NULL,      q};
        if (has_sentinel && n > 0)
            other[n / 2] = -INFINITY;
        kernel->short_sums[KL_FLOAT64](x, t, 0.5, has_sentinel ? -INFINITY : NAN, &to, rows,
                                       length);
        for (size_t row = 0; row < rows; row++, x += length, t += length) {
            const double max[] = {kernel->row_max[KL_FLOAT64](x, length),
                                  kernel->row_max[KL_FLOAT64](t, length)};
            const struct kl_shift shifts[] = {{max[0], 0.5}, {max[1], 0.5}};
            struct kl_row_sums sums =
                kernel->logit_sums[KL_FLOAT64](x, t, shifts, one[0], one[1], length);
            bool is_nothing = max[1] == -INFINITY, has_minus = false;
            for (size_t k = 0; k < length; k++)
                has_minus |= t[k] == -INFINITY;
            cr_expect(maxima[0][row] == max[0] && maxima[1][row] == max[1], "%s", kernel->name);
            cr_expect(near(exps[row], sums.exps, 16), "%s: %g, not %g", kernel->name, exps[row],
                      sums.exps);
            if (is_nothing)
                continue;
            cr_expect(near(sum_p[row], sums.sum_p, 16), "%s: %g", kernel->name, sum_p[row]);
            cr_expect(has_sentinel && has_minus
                          ? isnan(losses[row])
                          : fabs(losses[row] - sums.losses) <= 1e-13 * (1 + fabs(sums.losses)),
                      "%s, %zu of %zu: %g, not %g", kernel->name, row, length, losses[row],
                      sums.losses);
            cr_expect(!caches || (memcmp(p + row * length, one[0], length * 8) == 0 &&
                                  memcmp(q + row * length, one[1], length * 8) == 0),
                      "%s", kernel->name);
        }
    }
}

Test(rows, sums_of_several_at_once) { for_each(check_short_sums); }

/* Checks losses of probabilities by quotients: ordinary ones, near 1, and invalid ones. */
static void check_quotients(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    static const double specials[][2] = {
        {0, 0.5},    {0.5, 0},    {0, 0},          {-1, 0.5},     {NAN, 1},    {1, NAN},
        {1e-310, 1}, {1, 1e-310}, {1e-300, 1e300}, {INFINITY, 1}, {0.3, -0.1}, {5e-324, 5e-324}};
    double x[MAX], t[MAX], times[MAX], over[MAX], losses[MAX], direct[MAX], probs[2][MAX];
    for (enum kl_rule rule = KL_PROB_PYTORCH; rule <= KL_PROB_MATH; rule++) {
        for (size_t i = 0; i < n; i++) {
            double q = other[i], p = other[i] * (1 + v[i] * pow(10, -(double)(i % 15)) / 40);
            if (i % 4 == 3 && n > 30)
                q = specials[(i + n) % COUNT(specials)][0],
                p = specials[(i + n) % COUNT(specials)][1];
            x[i] = q, t[i] = p;
        }
        for (size_t i = 0; i < n; i++)
            probs[0][i] = x[i], probs[1][i] = t[i];
        kernel->losses[KL_FLOAT64][KL_FORM_QUOTIENT](rule, probs[0], probs[1], direct, n);
        for (size_t i = 0; i < n; i++)
            times[i] = kl_quotient(rule, x[i], t[i]).times;
        kernel->quotients(rule, x, t, over, n);
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
            cr_expect(near(direct[i], exact, 4), "%s: q %.17g, p %.17g: %.17g, not %.17g",
                      kernel->name, q, p, direct[i], exact);
        }
    }
}

Test(rows, quotients_of_probabilities) { for_each(check_quotients); }

/* The sums of a row, and the terms that they are sums of, of doubles and of floats. */
static void check_row_sums(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_shift shifts[] = {{10.5, 0.75}, {0, 1}};
    float *xs = (float *)before_the_edge(n * 4), *ts = (float *)before_the_edge(n * 4);
    for (int is_log = 0; is_log < 2; is_log++)
        for (int wide = 0; wide < 2; wide++) {
            long double losses = 0, sum_p = 0, exps = 0, size = 0;
            double t[MAX], z[MAX], terms[3][MAX];
            enum kl_dtype dtype = wide ? KL_FLOAT64 : KL_FLOAT32;
            for (size_t i = 0; i < n; i++) {
                t[i] = is_log ? v[n - 1 - i] - 10.5 : other[i];
                xs[i] = (float)v[i], ts[i] = (float)t[i];
                double from = wide ? v[i] : (double)xs[i];
                t[i] = wide ? t[i] : (double)ts[i];
                long double x = (from - 10.5L) * 0.75L, p = is_log ? expl(t[i]) : t[i];
                long double loss = p * (logl(p) - x);
                z[i] = (double)x;
                losses += loss, size += fabsl(loss), sum_p += p, exps += expl(x);
            }
            const void *input = wide ? (void *)v : (void *)xs,
                       *target = wide ? (void *)t : (void *)ts;
            struct kl_row_sums sums =
                kernel->row_sums[dtype][is_log](true, (double)NAN, input, target, shifts, n);
            double slack = wide ? 0x1p-48 : 0x1p-38;
            cr_expect(fabsl(sums.losses - losses) <= slack * size &&
                          fabsl(sums.sum_p - sum_p) <= slack * sum_p &&
                          fabsl(sums.exps - exps) <= slack * exps,
                      "%s, log %d, wide %d, n %zu: %.17g %.17g %.17g, not %.17Lg %.17Lg %.17Lg",
                      kernel->name, is_log, wide, n, sums.losses, sums.sum_p, sums.exps, losses,
                      sum_p, exps);
            kernel->softmax_terms[is_log](wide, (double)NAN, z, t, terms[0], terms[1], terms[2], n);
            for (size_t i = 0; i < n; i++)
                losses -= terms[0][i], sum_p -= terms[1][i], exps -= terms[2][i];
            cr_expect(fabsl(losses) <= slack * size &&
                          fabsl(sum_p) <= slack * (sums.sum_p + size) &&
                          fabsl(exps) <= slack * sums.exps,
                      "%s", kernel->name);
            static const double unusual[] = {NAN, INFINITY, -1};
            for (size_t i = 0; i < COUNT(unusual) && n > 0 && wide; i++) {
                double before = t[n / 2], refused = is_log ? -1 : NAN;
                t[n / 2] = unusual[i];
                sums = kernel->row_sums[dtype][is_log](true, refused, v, t, shifts, n);
                kernel->softmax_terms[is_log](true, refused, z, t, terms[0], terms[1], terms[2], n);
                cr_expect_not(isfinite(sums.losses), "%s", kernel->name);
                cr_expect_not(isfinite(terms[0][n / 2]), "%s", kernel->name);
                t[n / 2] = before;
            }
        }
    unmap((char *)xs, n * 4);
    unmap((char *)ts, n * 4);
}

Test(rows, sums_of_rows) { for_each(check_row_sums); }

/* Derivatives by logits against the formula of kl_softmax_row. */
static void check_row_grads(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_softmax_row row = {{{10.5, 0.75}, {0, 1}}, 0.5, 0.25, 2, 0.125};
    double by_input[MAX] = {0}, by_target[MAX] = {0}, t[MAX];
    for (int is_log = 0; is_log < 2; is_log++)
        for (int both = 0; both <= is_log; both++) {
            const struct kl_grads grads = {.by = {by_input, both ? by_target : NULL}};
            for (size_t i = 0; i < n; i++)
                t[i] = is_log ? (i == 5 ? -INFINITY : log(other[i])) : other[i];
            kernel->row_grads[KL_FLOAT64][is_log](&row, v, t, &grads, n);
            for (size_t i = 0; i < n; i++) {
                double z = (v[i] - 10.5) * 0.75, p = is_log ? exp(t[i]) : t[i];
                double q = 0.5 * exp(z), expected = p == 0 ? 0 : 2 * p * (t[i] - z - 0.125);
                cr_expect_leq(fabs(by_input[i] - (q - 0.25 * p)), 0x1p-50 * (q + p),
                              "%s: %g, not %g", kernel->name, by_input[i], q - 0.25 * p);
                cr_expect(!both || fabs(by_target[i] - expected) <= 0x1p-49 * p * (fabs(z) + 9),
                          "%s: %g, not %g", kernel->name, by_target[i], expected);
            }
        }
}

/* An input that is no logits may be larger than any exponent. */
static void check_no_logits(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_softmax_row row = {{{0, 1}, {0, 1}}, 0, 1, 1, 0};
    double by_input[MAX], by_target[MAX];
    const struct kl_grads grads = {.by = {by_input, by_target}};
    for (size_t i = 0; i < n; i++)
        v[i] = 710, other[i] = log(other[i]);
    kernel->row_grads[KL_FLOAT64][true](&row, v, other, &grads, n);
    for (size_t i = 0; i < n; i++)
        cr_expect_leq(fabs(by_input[i] + exp(other[i])), 0x1p-50 * exp(other[i]), "%s: %g",
                      kernel->name, by_input[i]);
}

Test(rows, derivatives_by_log_probabilities) { for_each(check_no_logits); }

Test(rows, derivatives_by_logits) { for_each(check_row_grads); }

/* NaN shows, in either operand and with either sign. */
static void check_nan(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    const struct kl_shift shifts[] = {{10, 1}, {0, 1}};
    const double nans[] = {NAN, -(double)NAN};
    float x[MAX], t[MAX];
    double losses[MAX], sum, min, max, low = 0;
    for (size_t i = 0; i < 4 && n > 0; i++) {
        for (size_t j = 0; j < n; j++)
            x[j] = (float)(v[j] - 10), t[j] = (float)-other[j];
        (i & 1 ? x : t)[n / 2] = (float)nans[i / 2];
        struct kl_row_sums sums = kernel->logit_sums[KL_FLOAT32](x, t, shifts, NULL, NULL, n);
        cr_expect_not(isfinite(sums.losses + sums.sum_p + sums.exps), "%s", kernel->name);
        for (int exps = 0; exps < 2; exps++) {
            kernel->scan[KL_FLOAT32](i & 1 ? x : t, exps, losses, n, &min, &max);
            sum = low = 0;
            kernel->row_totals(losses, 1, n, &sum, &low);
            cr_expect(isnan(sum), "%s, exps %d: %g", kernel->name, exps, sum);
        }
        for (size_t j = 0; j < n; j++)
            x[j] = (float)other[j], t[j] = j % 3 ? (float)other[n - 1 - j] : 0;
        (i & 1 ? x : t)[n / 2] = (float)nans[i / 2];
        kernel->losses[KL_FLOAT32][KL_FORM_QUOTIENT](KL_PROB_PYTORCH, x, t, losses, n);
        for (size_t j = 0; j < n; j++)
            cr_expect_eq(isnan(losses[j]), j == n / 2, "%s: q %g, p %g: %g", kernel->name,
                         (double)x[j], (double)t[j], losses[j]);
    }
}

Test(rows, numbers_that_are_none_show) { for_each(check_nan); }

static void check_row_stats(const struct kl_kernel *kernel, double *v, double *other, size_t n)
{
    for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++) {
        size_t size = n * kl_dtype_size(dtype);
        char *array = before_the_edge(size);
        struct kl_row_stats exact = {INFINITY, -INFINITY, 0, 0};
        for (size_t i = 0; i < n; i++) {
            kl_store(dtype, array, i, v[i]);
            double a = kl_load(dtype, array, i);
            exact.min = fmin(exact.min, a), exact.max = fmax(exact.max, a);
            exact.sum += a, exact.exps += exp(a);
        }
        cr_expect_eq(kernel->row_max[dtype](array, n), exact.max, "%s %s", kernel->name,
                     kl_dtype_name(dtype));
        struct kl_row_stats ours = kernel->row_stats[dtype](array, n, true);
        cr_expect_eq(ours.min, exact.min, "%s", kernel->name);
        cr_expect_eq(ours.max, exact.max, "%s", kernel->name);
        cr_expect_lt(fabs(ours.sum - exact.sum), 1e-11, "%s", kernel->name);
        cr_expect_leq(fabs(ours.exps - exact.exps), 1e-4 * exact.exps, "%s", kernel->name);
        double doubles[MAX], min, max;
        for (int exps = 0; exps < 2; exps++) {
            kernel->scan[dtype](array, exps, doubles, n, &min, &max);
            cr_expect(min == exact.min && max == exact.max, "%s", kernel->name);
            for (size_t i = 0; i < n; i++) {
                double a = kl_load(dtype, array, i);
                cr_expect(exps ? fabs(doubles[i] - exp(a)) <= 1e-4 * exp(a) : doubles[i] == a, "%s",
                          kernel->name);
            }
        }
        unmap(array, size);
    }
    (void)other;
}

Test(rows, stats) { for_each(check_row_stats); }
