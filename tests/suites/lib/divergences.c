/* Options of divergences, values of mixtures where a probability is 0 or none, and what KL_REVERSE shares with KL_FORWARD. */
#include "tests/suites/lib/arrays.h"

#include "lib/kldiv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, LENGTH = 33, N = ROWS * LENGTH };
static const size_t shape[] = {ROWS, LENGTH};
static const int last[] = {-1};

Test(divergences, options_are_checked)
{
    static const struct {
        struct kl_options options;
        const char *code; /* or NULL */
    } cases[] = {
        {{.divergence = KL_JS, .beta = 0.5}, NULL},
        {{.divergence = KL_JS, .beta = 1}, NULL},
        {{.divergence = KL_JS, .beta = 1.5}, "beta_invalid"},
        {{.divergence = KL_JS, .beta = -0.1}, "beta_invalid"},
        {{.divergence = KL_JS, .beta = NAN}, "beta_invalid"},
        {{.divergence = KL_SKEW, .beta = 0.5}, "beta_unused"},
        {{.beta = 0.5}, "beta_unused"},
        {{.divergence = KL_SKEW, .alpha = 0.5}, NULL},
        {{.divergence = KL_SKEW, .alpha = INFINITY}, "alpha_invalid"},
        {{.divergence = KL_REVERSE, .alpha = 0.5}, "alpha_unused"},
        {{.divergence = (enum kl_divergence)4}, "divergence_invalid"},
        {{.scale = (enum kl_scale)2}, "scale_invalid"},
        {{.scale = KL_TEMPERATURE_SQUARED}, "temperature_unused"},
        {{.scale = KL_TEMPERATURE_SQUARED, .input_space = KL_LOGIT}, NULL},
        {{.scale = KL_TEMPERATURE_SQUARED, .input_space = KL_LOGIT, .temperature = 1e200},
         "temperature_invalid"},
    };
    const double one = 1;
    const struct kl_tensor tensor = {KL_FLOAT64, 0, NULL, &one};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_problem problem = {0};
        struct kl_plan plan;
        bool good = kl_plan(&plan, &tensor, &tensor, &cases[i].options, &problem);
        cr_expect_eq(good, cases[i].code == NULL, "case %zu: %s", i, problem.detail);
        if (!good && cases[i].code)
            cr_expect_str_eq(problem.code, cases[i].code, "case %zu", i);
    }
}

Test(divergences, have_names)
{
    static const char *const names[] = {"forward", "reverse", "js", "skew"};
    struct kl_problem problem = {0};
    enum kl_divergence divergence;
    enum kl_scale scale;
    for (size_t i = 0; i < COUNT(names); i++)
        cr_expect(kl_divergence_parse(names[i], &divergence, NULL) && divergence == i);
    cr_expect_not(kl_divergence_parse("jeffreys", &divergence, &problem));
    cr_expect_str_eq(problem.code, "divergence_invalid");
    cr_expect(kl_scale_parse("none", &scale, NULL) && scale == KL_UNSCALED);
    cr_expect(kl_scale_parse("temperature_squared", &scale, NULL) &&
              scale == KL_TEMPERATURE_SQUARED);
    problem = (struct kl_problem){0};
    cr_expect_not(kl_scale_parse("2", &scale, &problem));
    cr_expect_str_eq(problem.code, "scale_invalid");
}

/* ---- Special values */

static double logarithm(double p) { return p == 0 ? -(double)INFINITY : log(p); }

/* The loss of an element, whose probabilities are given as themselves or, with 1 and 2 in `logs`, as logarithms. */
static double loss_of(enum kl_divergence divergence, double share, double q, double p,
                      unsigned logs, enum kl_compat compat, double grads[KL_OPERANDS])
{
    const double x = logs & 1 ? logarithm(q) : q, t = logs & 2 ? logarithm(p) : p;
    const struct kl_tensor input = {KL_FLOAT64, 0, NULL, &x}, target = {KL_FLOAT64, 0, NULL, &t};
    const struct kl_options options = {.reduction = KL_SUM,
                                       .compat = compat,
                                       .input_space = logs & 1 ? KL_LOG_PROB : KL_PROB,
                                       .target_space = logs & 2 ? KL_LOG_PROB : KL_PROB,
                                       .divergence = divergence,
                                       .beta = divergence == KL_JS ? share : 0,
                                       .alpha = divergence == KL_SKEW ? share : 0};
    double loss = 7;
    const struct kl_results results = {&loss, {&grads[0], &grads[1]}, NULL};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    return kl_run_gradients(&plan, NULL, NULL, &results, NULL) ? loss : -1;
}

static bool is_near(double a, double b, double tolerance)
{
    return isnan(b) ? isnan(a) != 0 : a == b || fabs(a - b) <= tolerance;
}

Test(divergences, of_mixtures_have_limits_where_a_probability_is_0)
{
    static const struct {
        double q, p;
        double js, skew; /* with a share of 1/4 */
    } cases[] = {{0, 0, 0, 0},
                 {0.5, 0, 0.375 * 0.28768207245178092744, 0},
                 {0, 0.5, 0.125 * 1.38629436111989061883, 0.5 * 1.38629436111989061883},
                 {0.5, 0.5, 0, 0},
                 {NAN, 0, NAN, NAN},
                 {0, NAN, NAN, NAN},
                 {INFINITY, 0, NAN, NAN},
                 {0, INFINITY, NAN, NAN},
                 {INFINITY, INFINITY, NAN, NAN},
                 {0x1p-1030, 0.5, 0.125 * 1.38629436111989061883, 0.5 * 1.38629436111989061883},
                 {0.5, 0x1p-1030, 0.375 * 0.28768207245178092744, 0},
                 {0x1p-1030, 0, 0.75 * 0x1p-1030 * 0.28768207245178092744, 0},
                 {0x1p-1030, 0x1p-1030, 0, 0}};
    double grads[KL_OPERANDS];
    for (size_t i = 0; i < COUNT(cases); i++)
        for (unsigned logs = 0; logs < 4; logs++)
            for (enum kl_compat compat = KL_PYTORCH; compat <= KL_MATH; compat++) {
                double js = loss_of(KL_JS, 0.25, cases[i].q, cases[i].p, logs, compat, grads);
                double skew = loss_of(KL_SKEW, 0.25, cases[i].q, cases[i].p, logs, compat, grads);
                /* Errors of the logarithms, and the last place of a subnormal. */
                double tolerance = 4e-16 * (cases[i].q + cases[i].p) + 0x1p-1074;
                cr_expect(is_near(js, cases[i].js, tolerance), "case %zu, %u: %a, not %a", i, logs,
                          js, cases[i].js);
                cr_expect(is_near(skew, cases[i].skew, tolerance), "case %zu, %u: %a, not %a", i,
                          logs, skew, cases[i].skew);
            }
}

Test(divergences, of_mixtures_refuse_or_spread_negative_probabilities)
{
    double grads[KL_OPERANDS];
    for (enum kl_divergence d = KL_JS; d <= KL_SKEW; d++)
        for (int target = 0; target < 2; target++) {
            double q = target ? 0.5 : -0.5, p = target ? -0.5 : 0.5;
            cr_expect(isnan(loss_of(d, 0.25, q, p, 0, KL_PYTORCH, grads)));
            cr_expect(isnan(grads[0]) && isnan(grads[1]));
            cr_expect_eq(loss_of(d, 0.25, q, p, 0, KL_MATH, grads), -1);
        }
}

/* Derivatives by a probability of 0 are infinite, but one: by both at once there is none. */
Test(divergences, of_mixtures_have_derivatives_where_a_probability_is_0)
{
    static const struct {
        enum kl_divergence divergence;
        unsigned logs; /* and 1 << 4: alpha is 1 */
        double q, p;
        double by[KL_OPERANDS];
    } cases[] = {{KL_JS, 0, 0, 0.5, {-INFINITY, 0.25 * 1.38629436111989061883}},
                 {KL_JS, 0, 0.5, 0, {0.75 * 0.28768207245178092744, -INFINITY}},
                 {KL_JS, 3, 0, 0.5, {0, 0.125 * 1.38629436111989061883}},
                 {KL_JS, 3, 0, 0, {0, 0}},
                 {KL_JS, 0, 0, 0, {NAN, NAN}},
                 {KL_SKEW, 0, 0, 0.5, {-3, 1.38629436111989061883}},
                 {KL_SKEW, 0, 0.5, 0, {0, -INFINITY}},
                 {KL_SKEW, 3, 0.5, 0, {0, 0}},
                 {KL_SKEW, 3, 0, 0, {0, 0}},
                 {KL_SKEW, 1u << 4, 0.5, 0, {0, 0}},
                 {KL_SKEW, 1u << 4 | 3, 0.5, 0, {0, 0}},
                 {KL_SKEW, 1u << 4, 0.5, 0.25, {0, 0}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        double by[KL_OPERANDS];
        double share = cases[i].logs >> 4 ? 1 : 0.25;
        loss_of(cases[i].divergence, share, cases[i].q, cases[i].p, cases[i].logs & 3, KL_PYTORCH,
                by);
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            cr_expect(is_near(by[operand], cases[i].by[operand], 1e-15), "case %zu by %d: %g", i,
                      operand, by[operand]);
    }
}

/* ---- What divergences have in common */

static void draw(enum kl_space space, double *v, unsigned long long *state)
{
    for (size_t i = 0; i < N; i++)
        v[i] = space == KL_PROB    ? uniform(state)
               : space == KL_LOGIT ? 9 * uniform(state)
                                   : -9 * uniform(state);
}

/* outcome: the results of a call of two arrays. */
struct outcome {
    double loss[ROWS], grads[KL_OPERANDS][N], partial;
    struct kl_diagnosis diagnosis;
};

static void compute(const struct kl_options *options, const double *x, const double *t,
                    struct outcome *o)
{
    const struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
    const struct kl_results results = {o->loss, {o->grads[0], o->grads[1]}, &o->diagnosis};
    struct kl_partial partial = {0};
    struct kl_plan plan;
    memset(o, 0, sizeof *o);
    cr_assert(kl_plan(&plan, &input, &target, options, NULL));
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
    if (plan.reduction != KL_NONE) {
        cr_assert(kl_run_partial(&plan, NULL, &partial, NULL));
        o->partial = kl_partial_loss(&partial, plan.reduction, plan.dtype);
        cr_expect(o->partial == o->loss[0] || (isnan(o->partial) && isnan(o->loss[0])));
    }
}

Test(divergences, reverse_is_forward_of_exchanged_operands)
{
    static double x[N], t[N];
    static struct outcome reverse, forward;
    unsigned long long state = 3;
    for (int round = 0; round < 200; round++) {
        enum kl_space spaces[KL_OPERANDS];
        for (int i = 0; i < KL_OPERANDS; i++)
            spaces[i] = (enum kl_space)(KL_LOG_PROB + uniform(&state) * 3);
        draw(spaces[KL_INPUT], x, &state);
        draw(spaces[KL_TARGET], t, &state);
        struct kl_options options = {.reduction = (enum kl_reduction)(uniform(&state) * 4),
                                     .input_space = spaces[0],
                                     .target_space = spaces[1],
                                     .compat = (enum kl_compat)(round % 3),
                                     .base = round % 2 ? KL_BITS : KL_NATS,
                                     .dim = last,
                                     .n_dim = 1,
                                     .divergence = round % 5 ? KL_REVERSE : KL_JS,
                                     .beta = round % 5 ? 0 : 1};
        compute(&options, x, t, &reverse);
        options.divergence = KL_FORWARD, options.beta = 0;
        options.input_space = spaces[1], options.target_space = spaces[0];
        compute(&options, t, x, &forward);
        cr_expect_arr_eq(reverse.loss, forward.loss, sizeof forward.loss, "round %d", round);
        cr_expect_arr_eq(reverse.grads[0], forward.grads[1], sizeof *forward.grads, "round %d",
                         round);
        cr_expect_arr_eq(reverse.grads[1], forward.grads[0], sizeof *forward.grads, "round %d",
                         round);
    }
}

Test(divergences, reverse_names_the_operand_that_is_negative)
{
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        double v[KL_OPERANDS][3] = {{0.2, 0.3, 0.5}, {0.2, 0.3, 0.5}}, loss;
        const size_t three = 3;
        v[operand][1 + operand] = -1;
        const struct kl_tensor input = {KL_FLOAT64, 1, &three, v[0]},
                               target = {KL_FLOAT64, 1, &three, v[1]};
        const struct kl_options options = {.reduction = KL_SUM,
                                           .compat = KL_MATH,
                                           .input_space = KL_PROB,
                                           .divergence = KL_REVERSE};
        struct kl_problem problem = {0};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        cr_expect_not(kl_run(&plan, NULL, &loss, &problem));
        cr_expect_str_eq(problem.code, operand ? "target_negative" : "input_negative");
        cr_expect_eq(problem.operand, operand);
        cr_expect_eq(problem.index, 1 + operand);
    }
}

/* Rows with a loss that is not finite are those that are found; a mixture's losses are finite where probabilities are 0. */
Test(divergences, are_diagnosed)
{
    static const struct {
        struct kl_options options;
        double input, target; /* at one element of one row */
        size_t count;
    } cases[] = {{{.divergence = KL_REVERSE}, -9, 0, 1},
                 {{.divergence = KL_REVERSE}, -INFINITY, 0, 1},
                 {{.divergence = KL_REVERSE, .compat = KL_MATH}, -INFINITY, 0, 0},
                 {{.divergence = KL_FORWARD}, -INFINITY, 0.1, 1},
                 {{.divergence = KL_JS, .beta = 0.3}, -INFINITY, 0.1, 0},
                 {{.divergence = KL_JS, .beta = 0.3}, -INFINITY, 0, 0},
                 {{.divergence = KL_JS, .beta = 0.3}, -9, NAN, 1},
                 {{.divergence = KL_SKEW, .alpha = 1}, -INFINITY, 0.1, 0},
                 {{.divergence = KL_SKEW, .alpha = 0.3}, -1, -1, 1},
                 {{.divergence = KL_JS, .beta = 0.5, .compat = KL_ONEFLOW}, -1, -1, 1}};
    static double x[N], t[N];
    static struct outcome o;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t j = 0; j < N; j++)
            x[j] = -log(LENGTH), t[j] = 1.0 / LENGTH;
        x[40] = cases[i].input, t[40] = cases[i].target;
        for (int dim = 0; dim < 2; dim++) {
            struct kl_options options = cases[i].options;
            options.reduction = KL_SUM;
            options.dim = last, options.n_dim = (size_t)dim;
            compute(&options, x, t, &o);
            cr_expect_eq(o.diagnosis.findings[KL_LOSS_NOT_FINITE].count, cases[i].count,
                         "case %zu: %zu, %s", i, o.diagnosis.findings[KL_LOSS_NOT_FINITE].count,
                         o.diagnosis.findings[KL_LOSS_NOT_FINITE].message);
            cr_expect_eq(isfinite(o.loss[0]), cases[i].count == 0, "case %zu: %g", i, o.loss[0]);
        }
    }
}

/* An element has the same bits whatever is beside it: numbers that are computed by the definition, too. */
Test(divergences, of_mixtures_have_bits_that_do_not_depend_on_neighbours)
{
    enum { WIDTH = 16 };
    static const double odd[] = {NAN, 1e-310, INFINITY, -1, 0};
    unsigned long long state = 7;
    for (int round = 0; round < 400; round++) {
        double x[WIDTH], t[WIDTH], losses[WIDTH], again[WIDTH], by[4][WIDTH];
        const size_t n = WIDTH, apart = (size_t)(uniform(&state) * WIDTH);
        const struct kl_tensor input = {KL_FLOAT64, 1, &n, x}, target = {KL_FLOAT64, 1, &n, t};
        const struct kl_options options = {.reduction = KL_NONE,
                                           .input_space = round % 2 ? KL_PROB : KL_LOG_PROB,
                                           .divergence = round % 4 < 2 ? KL_JS : KL_SKEW,
                                           .beta = round % 4 < 2 ? 0.3 : 0,
                                           .alpha = round % 4 < 2 ? 0 : 0.3};
        const struct kl_results first = {losses, {by[0], by[1]}, NULL},
                                second = {again, {by[2], by[3]}, NULL};
        struct kl_plan plan;
        for (size_t i = 0; i < WIDTH; i++) {
            t[i] = uniform(&state);
            double q = t[i] * (1 + 1e-9 * uniform(&state));
            x[i] = round % 2 ? q : log(q);
        }
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                  kl_run_gradients(&plan, NULL, NULL, &first, NULL));
        t[apart] = odd[round % COUNT(odd)];
        cr_assert(kl_run_gradients(&plan, NULL, NULL, &second, NULL));
        for (size_t i = 0; i < WIDTH; i++)
            cr_expect(i == apart ||
                          (losses[i] == again[i] && by[0][i] == by[2][i] && by[1][i] == by[3][i]),
                      "round %d, %zu beside %zu: %.17g, not %.17g", round, i, apart, again[i],
                      losses[i]);
    }
}

/* Shares that 1 less them does not show. */
Test(divergences, of_mixtures_with_little_of_one_operand)
{
    double grads[KL_OPERANDS];
    for (unsigned logs = 0; logs < 4; logs++)
        for (int i = 3; i < 300; i++) {
            double beta = pow(10, -i), p = 0.25, q = 0.75,
                   exact = beta * (p * log(p / q) + q - p); /* but for beta^2 */
            double js = loss_of(KL_JS, beta, q, p, logs, KL_PYTORCH, grads);
            cr_expect(fabs(js - exact) <= (beta * 2 + 1e-14) * exact,
                      "beta %g, %u: %.17g, not %.17g", beta, logs, js, exact);
            cr_expect(isfinite(loss_of(KL_JS, beta, 0, p, logs, KL_PYTORCH, grads)) &&
                      isfinite(loss_of(KL_JS, beta, q, 0, logs, KL_PYTORCH, grads)));
        }
    cr_expect(
        fabs(loss_of(KL_JS, 0.1, exp(-3.8), 1e308, 0, KL_PYTORCH, grads) / 2.302585092994046e307 -
             1) < 1e-14);
}
