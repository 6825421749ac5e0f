/* Spaces, masks and rows of any length: invariants for ordinary and special values. */
#include "lib/kldiv.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

static double loss_of(const double *x, const double *t, size_t n, size_t rows,
                      const struct kl_options *options)
{
    const size_t shape[] = {rows, n / rows};
    struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    double loss = NAN;
    cr_assert(kl_plan(&plan, &input, &target, options, &problem), "%s", problem.detail);
    cr_assert(kl_run(&plan, NULL, &loss, &problem), "%s", problem.detail);
    return loss;
}

Test(special_values, divergence_of_a_distribution_from_itself_is_nothing)
{
    enum { N = 3000, ROWS = 3 };
    static double v[N];
    unsigned long long state = 12;
    for (enum kl_space space = KL_LOG_PROB; space <= KL_LOGIT; space++)
        for (int round = 0; round < 20; round++) {
            struct kl_options options = {.reduction = KL_SUM,
                                         .input_space = space,
                                         .target_space = space,
                                         .temperature =
                                             space == KL_LOGIT ? 1 + uniform(&state) : 1};
            for (size_t i = 0; i < N; i++)
                v[i] = space == KL_PROB ? uniform(&state) : 20 * uniform(&state) - 20;
            cr_expect_eq(loss_of(v, v, N, ROWS, &options), 0, "space %d", space);
        }
}

Test(special_values, probabilities_that_almost_agree_keep_their_digits)
{
    enum { N = 100 };
    double q[N], p[N];
    unsigned long long state = 3;
    long double exact = 0;
    for (size_t i = 0; i < N; i++) {
        q[i] = uniform(&state) + 1e-3;
        p[i] = q[i] * (1 + 1e-9 * (uniform(&state) - 0.5));
        exact += p[i] * log1pl(((long double)p[i] - q[i]) / q[i]);
    }
    struct kl_options options = {.reduction = KL_SUM, .input_space = KL_PROB};
    double ours = loss_of(q, p, N, 1, &options);
    cr_expect_lt(fabsl(ours - exact), 1e-22L, "%.17g, not %.17Lg", ours, exact);
}

/* Two softmaxes whose logits differ by 3 and by up to 2^-10, or up to 2^-25. */
Test(special_values, softmaxes_that_almost_agree_keep_nine_digits)
{
    static const size_t lengths[] = {5, 40, 700, 3000};
    static double x[3000], t[3000];
    unsigned long long state = 77;
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (int bits = 10; bits <= 25; bits += 5) {
            size_t n = lengths[l];
            long double sums[2] = {0, 0}, exact = 0;
            for (size_t i = 0; i < n; i++) {
                t[i] = 8 * uniform(&state) - 4;
                x[i] = t[i] + ldexp(uniform(&state) - 0.5, -bits) + 3;
                sums[0] += expl((long double)x[i]), sums[1] += expl((long double)t[i]);
            }
            for (size_t i = 0; i < n; i++) {
                long double w = expl((long double)t[i]) / sums[1];
                long double d = ((long double)t[i] - x[i]) - (logl(sums[1]) - logl(sums[0]));
                exact += w * (fabsl(d) < 0x1p-8L ? d * d * (0.5L - d * (1 / 6.0L - d / 24))
                                                 : d + expm1l(-d));
            }
            struct kl_options options = {
                .reduction = KL_SUM, .input_space = KL_LOGIT, .target_space = KL_LOGIT};
            double ours = loss_of(x, t, n, 1, &options);
            cr_expect_lt(fabsl(ours - exact), 1e-9L * exact, "n %zu, 2^-%d: %.12g, not %.12Lg", n,
                         bits, ours, exact);
        }
}

Test(special_values, bits_are_nats_over_ln_2_and_a_mean_of_rows_is_their_sum_over_their_number)
{
    enum { N = 1200, ROWS = 12 };
    static double x[N], t[N];
    static const int dim[] = {-1};
    unsigned long long state = 8;
    for (size_t i = 0; i < N; i++)
        x[i] = 9 * uniform(&state), t[i] = 9 * uniform(&state);
    struct kl_options options = {.reduction = KL_SUM,
                                 .input_space = KL_LOGIT,
                                 .target_space = KL_LOGIT,
                                 .dim = dim,
                                 .n_dim = 1};
    double sum = loss_of(x, t, N, ROWS, &options);
    options.reduction = KL_MEAN;
    cr_expect_lt(fabs(loss_of(x, t, N, ROWS, &options) - sum / ROWS), 1e-15 * sum);
    options.base = KL_BITS;
    cr_expect_lt(fabs(loss_of(x, t, N, ROWS, &options) - sum / ROWS / M_LN2), 1e-15 * sum);
}

Test(special_values, what_a_mask_hides_may_be_anything)
{
    enum { N = 60, ROWS = 4 };
    static const double junk[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e308};
    double x[N], t[N], losses[2];
    unsigned char mask[N];
    const size_t shape[] = {ROWS, N / ROWS};
    const struct kl_mask hidden = {2, shape, mask};
    unsigned long long state = 41;
    for (int round = 0; round < 300; round++) {
        struct kl_options options = {.reduction = (enum kl_reduction)(round % 3),
                                     .compat = (enum kl_compat)(round / 3 % 3),
                                     .input_space = (enum kl_space)(1 + round / 9 % 3),
                                     .target_space = (enum kl_space)(1 + round / 27 % 3),
                                     .mask = &hidden};
        for (size_t i = 0; i < N; i++) {
            x[i] = uniform(&state), t[i] = uniform(&state);
            mask[i] = uniform(&state) < 0.6;
        }
        for (int side = 0; side < 2; side++) {
            losses[side] = loss_of(x, t, N, ROWS, &options);
            for (size_t i = 0; i < N; i++)
                if (!mask[i]) {
                    x[i] = junk[(size_t)(uniform(&state) * (double)COUNT(junk))];
                    t[i] = junk[(size_t)(uniform(&state) * (double)COUNT(junk))];
                }
        }
        cr_expect(isfinite(losses[0]), "round %d", round);
        cr_expect_eq(losses[0], losses[1], "round %d: %.17g, %.17g", round, losses[0], losses[1]);
    }
}

/* A logit of -inf is a probability of 0 and follows its rules. */
Test(special_values, logits_of_minus_infinity_follow_the_rules_of_zero)
{
    static const struct {
        double x[2], t[2];
        double losses[3]; /* under KL_PYTORCH, KL_ONEFLOW, KL_MATH */
    } cases[] = {
        {{0, 0}, {0, -INFINITY}, {M_LN2, M_LN2, M_LN2}},
        {{0, -INFINITY}, {0, -INFINITY}, {NAN, 0, 0}},
        {{0, -INFINITY}, {0, 0}, {INFINITY, INFINITY, INFINITY}},
        {{0, NAN}, {0, 0}, {NAN, NAN, NAN}},
        {{0, 0}, {0, NAN}, {NAN, 0, NAN}},
        {{-1e9, 0}, {-1e9, 0}, {0, 0, 0}},
        {{-INFINITY, -INFINITY}, {0, 0}, {NAN, NAN, NAN}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (enum kl_compat compat = KL_PYTORCH; compat <= KL_MATH; compat++) {
            struct kl_options options = {.reduction = KL_SUM,
                                         .compat = compat,
                                         .input_space = KL_LOGIT,
                                         .target_space = KL_LOGIT};
            double ours = loss_of(cases[i].x, cases[i].t, 2, 1, &options);
            double expected = cases[i].losses[compat];
            cr_expect(isnan(expected) ? isnan(ours)
                                      : ours == expected || fabs(ours - expected) < 1e-15,
                      "case %zu, compat %d: %g, not %g", i, compat, ours, expected);
        }
}

/* Probabilities of input whose logarithms are not finite. */
Test(special_values, input_of_zero_probability_follows_the_rules_of_its_logarithm)
{
    static const struct {
        double q, t, losses[3];
    } cases[] = {
        {0, 0.5, {INFINITY, INFINITY, INFINITY}},
        {0, 0, {NAN, 0, 0}},
        {-1, 0.5, {NAN, NAN}},
        {-1, 0, {NAN, 0}},
        {NAN, 0.5, {NAN, NAN, NAN}},
        {INFINITY, 0.5, {-INFINITY, -INFINITY, -INFINITY}},
        {0.5, 0, {0, 0, 0}},
        {1e-310, 1e-310, {0, 0, 0}},
        {0x1p-1070, 1, {1070 * M_LN2, 1070 * M_LN2, 1070 * M_LN2}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (enum kl_compat compat = KL_PYTORCH; compat <= KL_MATH; compat++) {
            if (compat == KL_MATH && cases[i].q < 0) /* refused as input_negative */
                continue;
            struct kl_options options = {
                .reduction = KL_SUM, .compat = compat, .input_space = KL_PROB};
            double ours = loss_of(&cases[i].q, &cases[i].t, 1, 1, &options);
            double expected = cases[i].losses[compat];
            cr_expect(isnan(expected) ? isnan(ours)
                                      : ours == expected || fabs(ours - expected) < 1e-12,
                      "case %zu, compat %d: %g, not %g", i, compat, ours, expected);
        }
}

/* Rows of several tiles that begin with -inf have the loss of their rest. */
Test(special_values, logits_may_be_minus_infinity_for_long)
{
    enum { N = 2000, NOTHING = 1300 };
    static double x[N], t[N];
    unsigned long long state = 6;
    for (size_t i = 0; i < N; i++) {
        x[i] = i < NOTHING ? -INFINITY : 9 * uniform(&state);
        t[i] = i < NOTHING ? -INFINITY : 9 * uniform(&state);
    }
    for (enum kl_space space = KL_PROB; space <= KL_LOGIT; space++) {
        struct kl_options options = {
            .reduction = KL_SUM, .compat = KL_MATH, .input_space = KL_LOGIT, .target_space = space};
        for (size_t i = 0; space == KL_PROB && i < N; i++)
            t[i] = i < NOTHING ? 0 : uniform(&state);
        double whole = loss_of(x, t, N, 1, &options);
        double rest = loss_of(x + NOTHING, t + NOTHING, N - NOTHING, 1, &options);
        cr_expect_lt(fabs(whole - rest), 1e-13 * fabs(rest), "%g, not %g", whole, rest);
        for (size_t i = 0; space == KL_PROB && i < N; i++)
            t[i] = i < NOTHING ? -INFINITY : 9 * uniform(&state);
    }
}

/* Masks that use the smallest finite number, float64's included, instead of -inf. */
Test(special_values, logits_may_be_as_small_as_numbers_are)
{
    static const struct {
        enum kl_space spaces[2];
        double x[3], t[3], loss;
    } cases[] = {
        {{KL_LOGIT, KL_LOGIT}, {0, -DBL_MAX, 1}, {0, -DBL_MAX, 1}, 0},
        {{KL_LOGIT, KL_LOGIT}, {0, -DBL_MAX, 0}, {0, -INFINITY, 0}, 0},
        {{KL_LOG_PROB, KL_LOGIT}, {-M_LN2, -DBL_MAX, -M_LN2}, {0, -INFINITY, 0}, 0},
        {{KL_LOGIT, KL_LOG_PROB}, {0, -DBL_MAX, 0}, {-M_LN2, -1000, -M_LN2}, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_options options = {.reduction = KL_SUM,
                                     .input_space = cases[i].spaces[0],
                                     .target_space = cases[i].spaces[1]};
        double ours = loss_of(cases[i].x, cases[i].t, 3, 1, &options);
        cr_expect_lt(fabs(ours - cases[i].loss), 1e-15, "case %zu: %g", i, ours);
    }
}

/* ---- Special values give the same result for any row length and algorithm */

struct special {
    double losses[2][3],
        gradients[2][3]; /* with respect to input and target, for the first elements of two rows */
    double sum;
};

/* Computes two rows of n ordinary numbers with one special element in the first row. */
static struct special special_of(size_t n, enum kl_reduction reduction, enum kl_compat compat,
                                 enum kl_space x_space, enum kl_space t_space, double x0, double t1)
{
    static double x[2 * 700], t[2 * 700], gradients[2][2 * 700], losses[2 * 700];
    const size_t shape[] = {2, n};
    struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
    struct kl_options options = {
        .reduction = reduction, .compat = compat, .input_space = x_space, .target_space = t_space};
    struct kl_plan plan;
    struct special special = {.sum = 0};
    for (size_t i = 0; i < 2 * n; i++) {
        x[i] = x_space == KL_PROB ? 0.5 : -1;
        t[i] = t_space == KL_PROB ? 0.5 : -1;
    }
    x[0] = x0;
    t[1] = t1;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    struct kl_results results = {losses, {gradients[0], gradients[1]}, NULL};
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            special.losses[k][i] = reduction == KL_NONE ? losses[k * n + i] : 0;
            special.gradients[k][i] = gradients[k][i];
        }
    for (size_t i = 0; i < 2 * n && reduction == KL_NONE; i++)
        special.sum += losses[i];
    if (reduction == KL_SUM)
        special.sum = losses[0];
    return special;
}

/* True if both are finite or both the same special value. */
static bool same_class(double a, double b)
{
    return isnan(a) ? isnan(b) : isinf(a) ? a == b : isfinite(b);
}

Test(special_values, special_values_mean_the_same_in_rows_of_any_length)
{
    static const double specials[] = {0, -INFINITY, INFINITY, NAN, -DBL_MAX};
    static const size_t lengths[] = {5, 40, 100, 700};
    for (int way = 0; way < 27; way++)
        for (size_t i = 0; i < COUNT(specials); i++)
            for (size_t j = 0; j < COUNT(specials); j++)
                for (size_t l = 0; l < COUNT(lengths); l++)
                    for (enum kl_reduction r = KL_SUM; r <= KL_NONE; r++) {
                        enum kl_compat compat = (enum kl_compat)(way % 3);
                        enum kl_space xs = (enum kl_space)(1 + way / 3 % 3);
                        enum kl_space ts = (enum kl_space)(1 + way / 9);
                        bool negative = (xs == KL_PROB && specials[i] < 0) ||
                                        (ts == KL_PROB && specials[j] < 0);
                        if (compat == KL_MATH && negative)
                            continue;
                        struct special a =
                            special_of(5, KL_NONE, compat, xs, ts, specials[i], specials[j]);
                        struct special b =
                            special_of(lengths[l], r, compat, xs, ts, specials[i], specials[j]);
                        char what[100];
                        snprintf(what, sizeof what,
                                 "spaces %d %d, compat %d, %g %g, %zu, reduction %d", xs, ts,
                                 compat, specials[i], specials[j], lengths[l], r);
                        for (size_t k = 0; k < 2; k++)
                            for (size_t e = 0; e < 3; e++) {
                                cr_expect(r == KL_SUM || same_class(a.losses[k][e], b.losses[k][e]),
                                          "%s: %g, %g", what, a.losses[k][e], b.losses[k][e]);
                                cr_expect(same_class(a.gradients[k][e], b.gradients[k][e]),
                                          "%s, by %zu at %zu: %g, %g", what, k, e,
                                          a.gradients[k][e], b.gradients[k][e]);
                            }
                        cr_expect(same_class(a.sum, b.sum), "%s: %g, %g", what, a.sum, b.sum);
                    }
}

Test(special_values, derivatives_by_the_smallest_probabilities_are_quotients)
{
    static const struct {
        double q, t, slope;
    } cases[] = {{1e-310, 1e-310, -1}, {5e-324, 1e-300, -2.0240225330731058e23}, {1e-310, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_tensor input = {KL_FLOAT64, 0, NULL, &cases[i].q};
        struct kl_tensor target = {KL_FLOAT64, 0, NULL, &cases[i].t};
        struct kl_options options = {.reduction = KL_SUM, .input_space = KL_PROB};
        struct kl_plan plan;
        double slope = NAN;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        cr_assert(kl_run_gradients(&plan, NULL, NULL,
                                   &(struct kl_results){.grad[KL_INPUT] = &slope}, NULL));
        cr_expect(fabs(slope - cases[i].slope) <= 1e-15 * fabs(cases[i].slope), "%g", slope);
    }
}

/* A mask that hides nothing changes nothing. */
Test(special_values, masks_of_nothing_change_nothing)
{
    const size_t shape[] = {3, 0}, one[] = {3, 1};
    const unsigned char kept[] = {1, 0, 1};
    const struct kl_mask masks[] = {{2, shape, kept}, {2, one, kept}, {0, NULL, kept}};
    for (size_t i = 0; i < COUNT(masks); i++)
        for (enum kl_reduction r = KL_MEAN; r <= KL_SUM; r++) {
            struct kl_tensor empty = {KL_FLOAT64, 2, shape, ""};
            struct kl_options options = {.reduction = r, .mask = &masks[i]};
            struct kl_plan plan;
            double loss = 7;
            cr_assert(kl_plan(&plan, &empty, &empty, &options, NULL));
            cr_assert(kl_run(&plan, NULL, &loss, NULL));
            cr_expect(r == KL_MEAN ? isnan(loss) : loss == 0, "mask %zu, reduction %d: %g", i, r,
                      loss);
        }
}

/* Derivatives by logits far below their row's maximum are as small as they are. */
Test(special_values, derivatives_by_small_logits)
{
    enum { N = 100 };
    double x[N] = {0}, t[N] = {0}, grads[N], loss;
    const double small[] = {-705, -1000, -(double)INFINITY};
    const size_t shape[] = {N};
    const struct kl_tensor input = {KL_FLOAT64, 1, shape, x}, target = {KL_FLOAT64, 1, shape, t};
    const struct kl_options options = {
        .reduction = KL_SUM, .compat = KL_MATH, .input_space = KL_LOGIT, .target_space = KL_LOGIT};
    const struct kl_results results = {&loss, {grads, NULL}, NULL};
    struct kl_plan plan;
    for (size_t i = 0; i < COUNT(small); i++)
        x[i + 1] = small[i], t[i + 1] = -(double)INFINITY;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
              kl_run_gradients(&plan, NULL, NULL, &results, NULL));
    for (size_t i = 0; i < COUNT(small); i++) {
        double exact = exp(small[i]) / (N - 3);
        cr_expect(fabs(grads[i + 1] - exact) <= 0x1p-44 * exact, "%g: %g, not %g", small[i],
                  grads[i + 1], exact);
    }
}

/* A divergence that is small because input's mass is, where target has none: log1p of that mass. */
Test(special_values, of_small_masses_where_target_has_none)
{
    static const double logits[] = {-10, -15, -21, -30};
    static const enum kl_dtype dtypes[] = {KL_FLOAT64, KL_FLOAT32};
    const size_t shape[] = {2};
    for (size_t i = 0; i < COUNT(logits) * COUNT(dtypes); i++) {
        enum kl_dtype dtype = dtypes[i / COUNT(logits)];
        double small = logits[i % COUNT(logits)], exact = log1p(exp(small)), loss;
        for (int none = 0; none < 2; none++) {
            char x[16], t[16];
            kl_store(dtype, x, 0, 0), kl_store(dtype, x, 1, small);
            kl_store(dtype, t, 0, 0), kl_store(dtype, t, 1, none ? -(double)INFINITY : -800);
            const struct kl_tensor input = {dtype, 1, shape, x}, target = {dtype, 1, shape, t};
            const struct kl_options options = {
                .reduction = KL_SUM, .input_space = KL_LOGIT, .target_space = KL_LOGIT};
            struct kl_plan plan;
            cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                      kl_run(&plan, NULL, &loss, NULL));
            double ours = kl_load(dtype, &loss, 0), unit = dtype == KL_FLOAT64 ? 1e-12 : 1e-7;
            cr_expect(fabs(ours - exact) <= unit * exact, "%g: %.17g, not %.17g", small, ours,
                      exact);
        }
    }
}

/* Softmaxes that nearly agree, far from 0. */
Test(special_values, logits_that_nearly_agree_may_be_large)
{
    enum { N = 300 };
    double x[N], t[N], near, far;
    const size_t shape[] = {N};
    const struct kl_tensor input = {KL_FLOAT64, 1, shape, x}, target = {KL_FLOAT64, 1, shape, t};
    const struct kl_options options = {
        .reduction = KL_SUM, .input_space = KL_LOGIT, .target_space = KL_LOGIT};
    unsigned long long state = 4;
    struct kl_plan plan;
    for (size_t i = 0; i < N; i++) { /* of few bits, which a sum with 2^20 keeps */
        t[i] = floor(uniform(&state) * 0x1p13) * 0x1p-12;
        x[i] = t[i] + floor(uniform(&state) * 8) * 0x1p-30;
    }
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL) && kl_run(&plan, NULL, &near, NULL));
    for (size_t i = 0; i < N; i++)
        x[i] += 0x1p20;
    cr_assert(kl_run(&plan, NULL, &far, NULL));
    cr_expect(fabs(far - near) <= 1e-6 * near, "%.17g, not %.17g", far, near);
}

/* An element that a mask hides has no part in the bits of what it shows. */
Test(special_values, what_a_mask_hides_changes_no_derivative)
{
    enum { N = 64 };
    static const double junk[] = {NAN, INFINITY, -(double)INFINITY, -1, 0, 1e308, 1e-310};
    double operands[KL_OPERANDS][N], grads[2][KL_OPERANDS][N];
    unsigned char mask[N];
    const size_t shape[] = {N};
    unsigned long long state = 12;
    for (int round = 0; round < 200; round++) {
        const struct kl_mask shown = {1, shape, mask};
        const struct kl_tensor input = {KL_FLOAT64, 1, shape, operands[KL_INPUT]};
        const struct kl_tensor target = {KL_FLOAT64, 1, shape, operands[KL_TARGET]};
        const struct kl_options options = {.reduction = KL_SUM,
                                           .input_space = round & 1 ? KL_PROB : KL_LOG_PROB,
                                           .target_space = round & 2 ? KL_PROB : KL_LOG_PROB,
                                           .mask = &shown};
        struct kl_plan plan;
        for (size_t i = 0; i < N; i++) {
            operands[KL_INPUT][i] = uniform(&state), operands[KL_TARGET][i] = uniform(&state);
            mask[i] = uniform(&state) < 0.7;
        }
        for (int side = 0; side < 2; side++) {
            const struct kl_results results = {
                NULL, {grads[side][KL_INPUT], grads[side][KL_TARGET]}, NULL};
            cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                      kl_run_gradients(&plan, NULL, NULL, &results, NULL));
            for (size_t i = 0; i < N; i++)
                for (int k = 0; k < KL_OPERANDS && !mask[i]; k++)
                    operands[k][i] = junk[(size_t)(uniform(&state) * (double)COUNT(junk))];
        }
        cr_expect_arr_eq(grads[0], grads[1], sizeof grads[0], "round %d", round);
    }
}
