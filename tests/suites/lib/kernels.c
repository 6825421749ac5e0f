/* Each instruction set against the reference, and the conversions against kl_store. */
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1100 };

/* Draws probabilities or logarithms, with `special` also special values. */
static double draw(unsigned long long *state, bool logarithm, bool special)
{
    static const double specials[] = {
        0,    -0.0, INFINITY, -INFINITY, NAN,         -0.5, 5e-324, 1e-310, 0x1p-1022, 1e-40,
        1e-5, 6e-8, 1.7e308,  -1.7e308,  1 - 0x1p-53, 1,    700,    -745,   -1e9};
    double u = uniform(state);
    if (special && u < 0.15)
        return specials[(size_t)(u / 0.15 * (double)COUNT(specials))];
    u = uniform(state);
    return logarithm ? log(u) : u;
}

/* True if two losses agree within the dtype's rounding and the arithmetic before it. `cancelled`
 * is the size of the terms of a float64 difference, which are accurate to 60 bits. */
static bool close_enough(enum kl_dtype dtype, double ours, double exact, double cancelled)
{
    static const struct {
        double relative, min;
    } dtypes[KL_DTYPES] = {[KL_FLOAT64] = {0x1p-51, 0x1p-1074},
                           [KL_FLOAT32] = {0x1.05p-24, 0x1p-149},
                           [KL_FLOAT16] = {0x1.05p-11, 0x1p-24},
                           [KL_BFLOAT16] = {0x1.05p-8, 0x1p-133}};
    if (isnan(exact) || isinf(exact) || exact == 0)
        return isnan(exact) ? isnan(ours) : ours == exact;
    double lost = dtype == KL_FLOAT64 ? 0x1p-62 * cancelled : 0;
    return fabs(ours - exact) <= dtypes[dtype].relative * fabs(exact) + dtypes[dtype].min + lost;
}

static void check_map(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule,
                      size_t n, bool special, unsigned long long *state)
{
    size_t size = kl_dtype_size(dtype);
    char *x = before_the_edge(n * size), *t = before_the_edge(n * size);
    char *loss = before_the_edge(n * size);
    bool log_target = kl_rule_is_log(rule);
    for (size_t i = 0; i < n; i++) {
        kl_store(dtype, x, i, draw(state, true, special));
        kl_store(dtype, t, i, draw(state, log_target, special));
    }
    kernel->map[dtype][kl_rule_is_log(rule)](rule, x, t, loss, n);
    for (size_t i = 0; i < n; i++) {
        double a = kl_load(dtype, x, i), b = kl_load(dtype, t, i);
        double exact = kl_term(rule, a, b), ours = kl_load(dtype, loss, i), rounded;
        char cell[8];
        kl_store(dtype, cell, 0, exact);
        rounded = kl_load(dtype, cell, 0);
        if (isinf(rounded) || rounded == 0)
            exact = rounded;
        if (!close_enough(dtype, ours, exact, fabs(a * b)))
            cr_expect(false, "%s %s rule %d n %zu: x=%a t=%a: %a, not %a", kernel->name,
                      kl_dtype_name(dtype), rule, n, a, b, ours, exact);
    }
    unmap(x, n * size);
    unmap(t, n * size);
    unmap(loss, n * size);
}

static void check_sum(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule,
                      size_t n, unsigned long long *state)
{
    size_t size = kl_dtype_size(dtype);
    char *x = before_the_edge(n * size), *t = before_the_edge(n * size);
    long double exact = 0, sizes = 0;
    for (size_t i = 0; i < n; i++) {
        kl_store(dtype, x, i, draw(state, true, false));
        kl_store(dtype, t, i, draw(state, kl_rule_is_log(rule), false));
        double term = kl_term(rule, kl_load(dtype, x, i), kl_load(dtype, t, i));
        exact += term;
        sizes += fabs(term);
    }
    struct kl_sum sum = kernel->sum[dtype][kl_rule_is_log(rule)](
        rule, &(struct kl_elements){.input = x, .target = t}, n);
    double error = fabs((double)((long double)sum.high + sum.low - exact));
    double bound = dtype == KL_FLOAT64 ? 0x1p-50 : 0x1p-40;
    cr_expect(error <= bound * (double)sizes, "%s %s rule %d n %zu: off by %g", kernel->name,
              kl_dtype_name(dtype), rule, n, error / (double)sizes);
    unmap(x, n * size);
    unmap(t, n * size);
}

/* Places rare values in a long run: a zero target under an infinite input, a subnormal target,
 * and a stretch that cancels entirely. */
static void check_rare_values(const struct kl_kernel *kernel, enum kl_dtype dtype,
                              enum kl_rule rule)
{
    enum { LONG = 9000 };
    static char x[LONG * 8], t[LONG * 8];
    unsigned long long state = 7;
    long double exact = 0, sizes = 0;
    bool log_target = kl_rule_is_log(rule);
    for (size_t i = 0; i < LONG; i++) {
        double p = uniform(&state), q = i / 700 == 5 ? p : uniform(&state);
        p = i % 2777 == 2000 ? 1e-310 : p;
        bool zero = i % 3333 == 1500 && (rule == KL_PROB_MATH || rule == KL_PROB_ONEFLOW);
        kl_store(dtype, x, i, zero ? -INFINITY : log(q));
        kl_store(dtype, t, i, zero ? 0 : log_target ? log(p) : p);
        double term = kl_term(rule, kl_load(dtype, x, i), kl_load(dtype, t, i));
        exact += term;
        sizes += fabsl(term);
    }
    struct kl_sum sum =
        kernel->sum[dtype][log_target](rule, &(struct kl_elements){.input = x, .target = t}, LONG);
    double error = fabs((double)((long double)sum.high + sum.low - exact));
    cr_expect(error <= (dtype == KL_FLOAT64 ? 0x1p-50 : 0x1p-40) * (double)sizes,
              "%s %s rule %d: off by %g", kernel->name, kl_dtype_name(dtype), rule,
              error / (double)sizes);
}

/* From length 40 on, an emulated machine takes each seventh. */
#ifdef __x86_64__
enum { STEP = 1 };
#else
enum { STEP = 7 };
#endif

/* An emulated machine leaves out the kernel that is the same C on each machine; the suite accuracy runs it there. */
static bool is_left_out(const struct kl_kernel *kernel)
{
    bool is_alone = kernel == kl_kernels[0];
    return !kernel->supported() || (STEP > 1 && !is_alone && strcmp(kernel->name, "generic") == 0);
}

static void for_each_kernel(void (*check)(const struct kl_kernel *kernel, enum kl_dtype dtype,
                                          enum kl_rule rule))
{
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (enum kl_dtype dtype = 0; dtype < KL_DTYPES && !is_left_out(*k); dtype++)
            for (enum kl_rule rule = 0; rule < KL_RULES; rule++)
                check(*k, dtype, rule);
}

static void check_lengths(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule)
{
    unsigned long long state = 1 + dtype * 8u + rule;
    for (size_t n = 0; n <= 300; n += n < 40 ? 1 : STEP) {
        check_map(kernel, dtype, rule, n, false, &state);
        check_sum(kernel, dtype, rule, n, &state);
    }
    check_map(kernel, dtype, rule, LONGEST, false, &state);
    check_sum(kernel, dtype, rule, LONGEST, &state);
}

static void check_specials(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule)
{
    unsigned long long state = 99 + dtype * 8u + rule;
    for (int i = 0; i < SOME_OF(30); i++)
        check_map(kernel, dtype, rule, LONGEST, true, &state);
}

Test(kernels, agree_with_the_reference_at_every_length_up_to_unmapped_memory)
{
    for_each_kernel(check_lengths);
}

Test(kernels, sum_rare_values_among_ordinary_ones) { for_each_kernel(check_rare_values); }

Test(kernels, agree_with_the_reference_on_special_values) { for_each_kernel(check_specials); }

/* The derivatives by one operand, as doubles. */
static void derive(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule, int by,
                   const void *x, const void *t, double *to, size_t n)
{
    struct kl_grads grads = {.is_f64 = {true, true}, .factor = 1};
    grads.by[by] = to;
    kernel->grads[dtype][kl_rule_is_log(rule)](rule, &(struct kl_elements){.input = x, .target = t},
                                               &grads, n);
}

/* Derivatives against the reference, of special values, too, alone, together, masked, times factors, and
 * rounded to the dtype; the end of arrays is the end of mapped memory. */
static void check_grads(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule)
{
    unsigned long long state = 3 + dtype * 8u + rule;
    size_t size = kl_dtype_size(dtype);
    for (size_t n = 0; n < 150; n += n < 40 ? 1 : 37) {
        char *x = before_the_edge(n * size), *t = before_the_edge(n * size);
        char *rounded = before_the_edge(n * size);
        unsigned char *mask = (unsigned char *)before_the_edge(n);
        double *wide = (double *)before_the_edge(n * 8),
               *factors = (double *)before_the_edge(n * 8);
        double alone[KL_OPERANDS][150];
        for (size_t i = 0; i < n; i++) {
            kl_store(dtype, x, i, draw(&state, true, n > 40));
            kl_store(dtype, t, i, draw(&state, kl_rule_is_log(rule), n > 40));
            mask[i] = uniform(&state) < 0.7, factors[i] = uniform(&state) - 0.5;
        }
        for (int by = 0; by < KL_OPERANDS; by++)
            derive(kernel, dtype, rule, by, x, t, alone[by], n);
        const struct kl_elements e = {x, t, mask, NULL};
        const struct kl_grads grads = {
            .by = {wide, rounded}, .is_f64 = {true, false}, .factors = factors};
        kernel->grads[dtype][kl_rule_is_log(rule)](rule, &e, &grads, n);
        for (size_t i = 0; i < n; i++) {
            double a = kl_load(dtype, x, i), b = kl_load(dtype, t, i);
            for (int by = 0; by < KL_OPERANDS; by++) {
                double exact = kl_grad_term(rule, (enum kl_operand)by, a, b);
                double parts = isfinite(a) ? fmax(fabs(a), 8) : 8;
                double lost = 0x1p-51 * parts * (kl_rule_is_log(rule) ? fabs(exact) : 1);
                cr_expect(isfinite(exact) ? fabs(alone[by][i] - exact) <=
                                                0x1p-44 * fabs(exact) + lost + 0x1p-1000
                          : isnan(exact) ? isnan(alone[by][i])
                                         : alone[by][i] == exact,
                          "%s %s rule %d by %d: x=%a t=%a: %a, not %a", kernel->name,
                          kl_dtype_name(dtype), rule, by, a, b, alone[by][i], exact);
            }
            double by_input = mask[i] ? alone[KL_INPUT][i] * factors[i] : 0;
            double by_target = mask[i] ? alone[KL_TARGET][i] * factors[i] : 0, cell;
            kl_store(dtype, &cell, 0, by_target);
            by_target = kl_load(dtype, &cell, 0);
            double ours = kl_load(dtype, rounded, i);
            cr_expect(isfinite(by_input) ? fabs(wide[i] - by_input) <= 0x1p-44 * fabs(by_input)
                      : isnan(by_input)  ? isnan(wide[i])
                                         : wide[i] == by_input);
            cr_expect(isnan(by_target) ? isnan(ours) : ours == by_target,
                      "%s %s rule %d: %a, not %a", kernel->name, kl_dtype_name(dtype), rule, ours,
                      by_target);
        }
        unmap(x, n * size), unmap(t, n * size), unmap(rounded, n * size);
        unmap((char *)mask, n), unmap((char *)wide, n * 8), unmap((char *)factors, n * 8);
    }
}

Test(kernels, derivatives_agree_with_the_reference) { for_each_kernel(check_grads); }

/* Sums under a mask, of weights, and of both against those of the elements. */
static void check_masks_and_weights(const struct kl_kernel *kernel, enum kl_dtype dtype,
                                    enum kl_rule rule)
{
    unsigned long long state = 5 + dtype * 8u + rule;
    size_t size = kl_dtype_size(dtype);
    for (size_t n = 1; n < SOME_OF(5000); n = n * 3 / 2 + 1) {
        char *x = before_the_edge(n * size), *t = before_the_edge(n * size);
        unsigned char *mask = (unsigned char *)before_the_edge(n);
        double *weight = (double *)before_the_edge(n * 8);
        for (size_t i = 0; i < n; i++) {
            bool hidden = uniform(&state) < 0.3;
            kl_store(dtype, x, i, draw(&state, true, hidden));
            kl_store(dtype, t, i, draw(&state, kl_rule_is_log(rule), hidden));
            mask[i] = !hidden, weight[i] = hidden ? NAN : uniform(&state) - 0.2;
        }
        for (int weighted = 0; weighted < 2; weighted++) {
            struct kl_elements e = {x, t, mask, weighted ? weight : NULL};
            struct kl_sum sum = kernel->sum[dtype][kl_rule_is_log(rule)](rule, &e, n);
            long double exact = 0, sizes = 0;
            for (size_t i = 0; i < n; i++) {
                double term =
                    mask[i] ? kl_term(rule, kl_load(dtype, x, i), kl_load(dtype, t, i)) : 0;
                term *= weighted && mask[i] ? weight[i] : 1;
                exact += term, sizes += fabs(term);
            }
            double error = fabs((double)((long double)sum.high + sum.low - exact));
            cr_expect(error <= (dtype == KL_FLOAT64 ? 0x1p-49 : 0x1p-40) * (double)sizes,
                      "%s %s rule %d n %zu weighted %d: off by %g", kernel->name,
                      kl_dtype_name(dtype), rule, n, weighted, error / (double)sizes);
        }
        unmap(x, n * size), unmap(t, n * size), unmap((char *)mask, n);
        unmap((char *)weight, n * 8);
    }
}

Test(kernels, sums_under_masks_and_weights) { for_each_kernel(check_masks_and_weights); }

/* Weighted sums of losses that nearly vanish, in any dtype of at most 24 bits. */
Test(kernels, weighted_sums_keep_their_digits_where_target_and_input_almost_agree)
{
    enum { N = 3000 };
    static char x[N * 4], t[N * 4];
    static double weight[N];
    unsigned long long state = 8;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (enum kl_dtype dtype = KL_FLOAT32; (*k)->supported() && dtype < KL_DTYPES; dtype++) {
            long double exact = 0, sizes = 0;
            for (size_t i = 0; i < N; i++) {
                double p = uniform(&state);
                weight[i] = i % 5 ? uniform(&state) : -1;
                kl_store(dtype, t, i, p);
                kl_store(dtype, x, i, log(kl_load(dtype, t, i)));
                double term = kl_term(KL_PROB_PYTORCH, kl_load(dtype, x, i), kl_load(dtype, t, i));
                exact += term * weight[i], sizes += fabs(term * weight[i]);
            }
            const struct kl_elements e = {x, t, NULL, weight};
            struct kl_sum sum = (*k)->sum[dtype][false](KL_PROB_PYTORCH, &e, N);
            double error = fabs((double)((long double)sum.high + sum.low - exact));
            cr_expect(error <= 0x1p-40 * (double)sizes, "%s %s: off by %g", (*k)->name,
                      kl_dtype_name(dtype), error / (double)sizes);
        }
}

/* Compares losses and derivatives of special values between the best kernel and the others.
 * Skips the sign of a loss that underflows, which depends on its neighbours. */
static void check_signs(const struct kl_kernel *kernel, enum kl_dtype dtype, enum kl_rule rule)
{
    static double x[LONGEST], t[LONGEST], ours[LONGEST], best[LONGEST];
    const struct kl_kernel *first = kl_kernel();
    bool is_log = kl_rule_is_log(rule);
    unsigned long long state = 31 + rule;
    char xs[LONGEST * 8], ts[LONGEST * 8], losses[2][LONGEST * 8];
    for (size_t i = 0; i < LONGEST; i++) {
        kl_store(dtype, xs, i, draw(&state, true, true));
        kl_store(dtype, ts, i, draw(&state, is_log, true));
    }
    kernel->widen[dtype](xs, x, LONGEST);
    kernel->widen[dtype](ts, t, LONGEST);
    kernel->map[dtype][is_log](rule, xs, ts, losses[0], LONGEST);
    first->map[dtype][is_log](rule, xs, ts, losses[1], LONGEST);
    for (int what = -1; what < KL_OPERANDS; what++) {
        for (size_t i = 0; what < 0 && i < LONGEST; i++)
            ours[i] = kl_load(dtype, losses[0], i), best[i] = kl_load(dtype, losses[1], i);
        if (what >= 0) {
            derive(kernel, KL_FLOAT64, rule, what, x, t, ours, LONGEST);
            derive(first, KL_FLOAT64, rule, what, x, t, best, LONGEST);
        }
        for (size_t i = 0; i < LONGEST; i++)
            cr_expect((what < 0 && is_log && isfinite(t[i]) && t[i] != x[i]) || ours[i] != 0 ||
                          best[i] != 0 || !signbit(ours[i]) == !signbit(best[i]),
                      "%s %s rule %d, %d: x=%a t=%a: %a, not %a", kernel->name,
                      kl_dtype_name(dtype), rule, what, x[i], t[i], ours[i], best[i]);
    }
}

Test(kernels, agree_on_the_signs_of_zeros) { for_each_kernel(check_signs); }

/* Nearly equal distributions, as drift monitors see. */
Test(kernels, keep_their_digits_where_target_and_input_almost_agree)
{
    enum { N = 4096 };
    static float x[N], t[N], loss[N];
    unsigned long long state = 5;
    for (size_t i = 0; i < N; i++) {
        t[i] = (float)uniform(&state);
        x[i] = (float)(log((double)t[i]) + 1e-6 * (uniform(&state) - 0.5));
    }
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!(*k)->supported())
            continue;
        (*k)->map[KL_FLOAT32][false](KL_PROB_PYTORCH, x, t, loss, N);
        for (size_t i = 0; i < N; i++) {
            double exact = kl_term(KL_PROB_PYTORCH, (double)x[i], (double)t[i]);
            cr_expect(fabs((double)loss[i] - exact) <= 1e-6 * fabs(exact), "%s: %g, not %g",
                      (*k)->name, (double)loss[i], exact);
        }
    }
}

/* Misaligned arrays: a server reads tensors in place in a message. */
Test(kernels, do_not_care_how_arrays_are_aligned)
{
    enum { N = 100 };
    static char xs[N * 8 + 64], ts[N * 8 + 64], losses[N * 8 + 64], first[N * 8];
    unsigned long long state = 17;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!(*k)->supported())
            continue;
        for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++)
            for (size_t offset = 0; offset < 64; offset++) {
                char x[N * 8], t[N * 8];
                size_t size = N * kl_dtype_size(dtype);
                state = 17;
                for (size_t i = 0; i < N; i++) {
                    kl_store(dtype, x, i, log(uniform(&state)));
                    kl_store(dtype, t, i, uniform(&state));
                }
                memcpy(xs + offset, x, size);
                memcpy(ts + (offset * 7) % 64, t, size);
                (*k)->map[dtype][false](KL_PROB_PYTORCH, xs + offset, ts + (offset * 7) % 64,
                                        losses + (offset * 11) % 64, N);
                if (offset == 0)
                    memcpy(first, losses, size);
                cr_expect_arr_eq(losses + (offset * 11) % 64, first, size, "%s %s offset %zu",
                                 (*k)->name, kl_dtype_name(dtype), offset);
            }
    }
}

Test(kernels, narrow_every_float16_and_bfloat16_tie_as_kl_store_does)
{
    for (enum kl_dtype dtype = KL_FLOAT16; dtype <= KL_BFLOAT16; dtype++) {
        for (unsigned bits = 0; bits < 65536; bits++) {
            unsigned short half = (unsigned short)bits, next = (unsigned short)(bits + 1);
            double a = kl_load(dtype, &half, 0), b = kl_load(dtype, &next, 0);
            double middle = isfinite(a) && isfinite(b) ? a / 2 + b / 2 : a;
            double values[] = {
                a, middle, nextafter(middle, a), nextafter(middle, b), middle * 0x1p-3, a * 0x1p20};
            unsigned short expected[COUNT(values)], ours[COUNT(values)];
            for (size_t i = 0; i < COUNT(values); i++)
                kl_store(dtype, expected, i, values[i]);
            if (!isnan(a))
                cr_assert_eq(expected[0], half);
            for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
                if (!(*k)->supported())
                    continue;
                (*k)->narrow[dtype](values, ours, COUNT(values));
                for (size_t i = 0; i < COUNT(values); i++)
                    cr_assert(isnan(values[i]) ? isnan(kl_load(dtype, ours, i))
                                               : ours[i] == expected[i],
                              "%s %s %a: %04x, not %04x", (*k)->name, kl_dtype_name(dtype),
                              values[i], ours[i], expected[i]);
            }
        }
    }
}
