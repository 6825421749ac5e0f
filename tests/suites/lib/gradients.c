/* Gradients against PyTorch's autograd, against finite differences, and each kernel against the
 * definition. */
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 200 };

/* Flattens nested numbers; returns the count and fills the shape. */
static size_t flatten(const json_t *value, double *to, size_t *shape, size_t *ndim)
{
    size_t n = 0, i;
    const json_t *item;
    if (!json_is_array(value)) {
        to[0] = number_of(value);
        return 1;
    }
    size_t depth = (*ndim)++;
    shape[depth] = json_array_size(value);
    json_array_foreach(value, i, item)
    {
        *ndim = depth + 1;
        n += flatten(item, to + n, shape, ndim);
    }
    return n;
}

struct operands {
    double x[MAX], t[MAX], upstream[MAX];
    size_t shape[8], ndim, n;
    bool has_upstream;
    struct kl_options options;
};

static struct operands operands_of(const json_t *row)
{
    struct operands o = {.options.log_target = json_is_true(json_object_get(row, "log_target"))};
    size_t same[8], ndim = 0;
    o.n = flatten(json_object_get(row, "input"), o.x, o.shape, &o.ndim);
    flatten(json_object_get(row, "target"), o.t, same, &ndim);
    const json_t *upstream = json_object_get(row, "grad_output");
    o.has_upstream = !json_is_null(upstream);
    ndim = 0;
    if (o.has_upstream)
        flatten(upstream, o.upstream, same, &ndim);
    cr_assert(kl_reduction_parse(text_of(row, "reduction"), &o.options.reduction, NULL));
    return o;
}

static bool derive(const struct kl_plan *plan, enum kl_operand by, const struct kl_tensor *upstream,
                   void *gradient, struct kl_problem *problem)
{
    struct kl_results results = {.grad[KL_INPUT] = by == KL_INPUT ? gradient : NULL,
                                 .grad[KL_TARGET] = by == KL_TARGET ? gradient : NULL};
    return kl_run_gradients(plan, upstream, NULL, &results, problem);
}

static void gradient_of(const struct operands *o, enum kl_operand by, double *gradient)
{
    struct kl_tensor input = {KL_FLOAT64, o->ndim, o->shape, o->x};
    struct kl_tensor target = {KL_FLOAT64, o->ndim, o->shape, o->t};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &o->options, NULL));
    struct kl_tensor upstream = {KL_FLOAT64, plan.ndim, plan.shape, o->upstream};
    cr_assert(derive(&plan, by, o->has_upstream ? &upstream : NULL, gradient, NULL));
}

static void check_against(const json_t *expected, const double *ours, const char *what)
{
    double exact[MAX];
    size_t shape[8], ndim = 0, n = flatten(expected, exact, shape, &ndim);
    for (size_t i = 0; i < n; i++) {
        bool same = isnan(exact[i]) ? isnan(ours[i])
                    : isinf(exact[i])
                        ? ours[i] == exact[i] /* of t - x + 1, autograd rounds 1e-310 away */
                        : fabs(ours[i] - exact[i]) <= 1e-12 * fabs(exact[i]) + 1e-300;
        cr_expect(same, "%s, element %zu: %.17g is not %.17g", what, i, ours[i], exact[i]);
    }
}

Test(gradients, are_those_of_autograd)
{
    size_t size, rows = 0;
    char *text = read_file("tests/tools/golden/gradients.jsonl", &size), *rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); rows++) {
        json_t *row = json_loads(line, 0, NULL);
        cr_assert(row);
        struct operands o = operands_of(row);
        const json_t *expected = json_object_get(row, "gradient");
        double gradient[MAX];
        char what[100];
        for (enum kl_operand by = KL_INPUT; by <= KL_TARGET; by++) {
            const char *name = by == KL_INPUT ? "input" : "target";
            snprintf(what, sizeof what, "row %zu, by %s", rows, name);
            gradient_of(&o, by, gradient);
            check_against(json_object_get(expected, name), gradient, what);
        }
        json_decref(row);
    }
    free(text);
    cr_expect_gt(rows, 80);
}

/* Loss in long double, independent of the code under test. */
static long double loss_at(const struct operands *o, size_t changed, enum kl_operand by,
                           long double step)
{
    long double sum = 0;
    for (size_t i = 0; i < o->n; i++) {
        long double x = o->x[i] + (i == changed && by == KL_INPUT ? step : 0);
        long double t = o->t[i] + (i == changed && by == KL_TARGET ? step : 0);
        sum += o->options.log_target ? expl(t) * (t - x) : t * (logl(t) - x);
    }
    return o->options.reduction == KL_MEAN ? sum / (long double)o->n : sum;
}

Test(gradients, are_those_of_finite_differences)
{
    const long double step = 1e-6L;
    unsigned long long state = 5;
    for (int log_target = 0; log_target < 2; log_target++)
        for (enum kl_operand by = KL_INPUT; by <= KL_TARGET; by++) {
            struct operands o = {.shape = {37}, .ndim = 1, .n = 37};
            double gradient[MAX];
            o.options.log_target = log_target;
            for (size_t i = 0; i < o.n; i++) {
                o.x[i] = log(uniform(&state) + 1e-3);
                o.t[i] = uniform(&state) + 0.1;
            }
            gradient_of(&o, by, gradient);
            for (size_t i = 0; i < o.n; i++) {
                long double slope =
                    (loss_at(&o, i, by, step) - loss_at(&o, i, by, -step)) / (2 * step);
                cr_expect_lt(fabsl(slope - gradient[i]), 1e-9L, "%zu: %Lg, %g", i, slope,
                             gradient[i]);
            }
        }
}

static double draw(unsigned long long *state)
{
    static const double specials[] = {0,         -0.0, 1,      -1,     INFINITY,
                                      -INFINITY, NAN,  5e-324, 1e-310, 1.7e308,
                                      -1.7e308,  700,  -745,   -1e9,   710};
    double u = uniform(state);
    return u < 0.3 ? specials[(size_t)(u / 0.3 * (double)COUNT(specials))] : log(u);
}

static bool alike(double ours, double exact)
{
    if (isnan(exact) || isinf(exact))
        return isnan(exact) ? isnan(ours) : ours == exact;
    return fabs(ours - exact) <= 0x1p-49 * fabs(exact) + 0x1p-1073;
}

Test(gradients, of_each_kernel_are_those_of_the_definition)
{
    enum { N = 77, ROUNDS = 300 };
    unsigned long long state = 9;
    double x[N], t[N], g[N], ours[N];
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (int round = 0; (*k)->supported() && round < ROUNDS; round++) {
            size_t n = (size_t)(uniform(&state) * N);
            enum kl_rule rule = (enum kl_rule)(round % KL_RULES);
            enum kl_operand by = round & 1 ? KL_INPUT : KL_TARGET;
            for (size_t i = 0; i < n; i++) {
                x[i] = draw(&state);
                t[i] = kl_rule_is_log(rule) ? draw(&state) : fabs(draw(&state));
                g[i] = uniform(&state) - 0.5;
                if (!kl_rule_is_log(rule) && uniform(&state) < 0.05)
                    t[i] = -t[i];
            }
            struct kl_grads grads = {.factors = g};
            grads.by[by] = ours;
            (*k)->grads[KL_FLOAT64][kl_rule_is_log(rule)](
                rule, &(struct kl_elements){.input = x, .target = t}, &grads, n);
            for (size_t i = 0; i < n; i++) {
                double slope = kl_grad_term(rule, by, x[i], t[i]), exact = slope * g[i];
                /* Add 1 for cancellation: log t - x + 1 is accurate to the last bit of its
                 * parts, t - x + 1 to that of long double. */
                bool is_log = kl_rule_is_log(rule);
                double parts = 1 + fabs(x[i]) + (is_log ? fabs(t[i]) : 0);
                double lost = is_log ? 0x1p-62 * parts * exp(t[i]) : 0x1p-52 * parts;
                cr_expect(alike(ours[i], exact) ||
                              (isfinite(lost) && fabs(ours[i] - exact) <= lost * fabs(g[i])),
                          "%s, rule %d, by %d: x %g, t %g: %.17g is not %.17g", (*k)->name, rule,
                          by, x[i], t[i], ours[i], exact);
            }
        }
}

Test(gradients, rules_differ_where_the_table_says)
{
    static const struct {
        enum kl_compat compat;
        bool log_target;
        double t, by_input, by_target;
    } cases[] = {{KL_PYTORCH, false, 0, 0, NAN},        {KL_ONEFLOW, false, 0, 0, -INFINITY},
                 {KL_MATH, false, 0, 0, -INFINITY},     {KL_PYTORCH, false, -2, 2, NAN},
                 {KL_ONEFLOW, false, -2, 0, NAN},       {KL_PYTORCH, true, -INFINITY, 0, NAN},
                 {KL_ONEFLOW, true, -INFINITY, 0, NAN}, {KL_MATH, true, -INFINITY, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct operands o = {.x = {-1}, .t = {cases[i].t}, .n = 1};
        o.options = (struct kl_options){
            .reduction = KL_SUM, .log_target = cases[i].log_target, .compat = cases[i].compat};
        double by_input, by_target;
        gradient_of(&o, KL_INPUT, &by_input);
        gradient_of(&o, KL_TARGET, &by_target);
        cr_expect(by_input == cases[i].by_input, "case %zu: %g", i, by_input);
        cr_expect(alike(by_target, cases[i].by_target), "case %zu: %g", i, by_target);
    }
}

/* Losses and gradients in bits are larger by 1 / ln 2, before rounding. */
Test(gradients, and_losses_have_their_unit)
{
    enum { N = 1000 };
    unsigned long long state = 31;
    float x[N], t[N], bits[N];
    const size_t shape[] = {N};
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)log(uniform(&state) + 1e-6);
        t[i] = (float)uniform(&state);
    }
    struct kl_tensor input = {KL_FLOAT32, 1, shape, x}, target = {KL_FLOAT32, 1, shape, t};
    struct kl_options options = {.reduction = KL_NONE, .base = KL_BITS};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, NULL, bits, NULL));
    long double sum = 0;
    for (size_t i = 0; i < N; i++) {
        long double exact = t[i] * (logl(t[i]) - x[i]) / M_LN2l;
        cr_expect_eq(bits[i], (float)exact, "%zu", i);
        sum += exact;
    }
    cr_assert(derive(&plan, KL_INPUT, NULL, bits, NULL));
    for (size_t i = 0; i < N; i++)
        cr_expect_eq(bits[i], (float)(-t[i] / M_LN2l), "%zu", i);

    float loss;
    options.reduction = KL_SUM;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, NULL, &loss, NULL));
    cr_expect_eq(loss, (float)sum);
}

Test(gradients, refuse_what_does_not_fit)
{
    const size_t shape[] = {2, 2}, other[] = {4};
    const double x[4] = {-1, -1, -1, -1}, t[4] = {0.1, 0.2, -0.3, 0.4};
    struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
    struct kl_options options = {.reduction = KL_NONE};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    double gradient[4];
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem));
    struct kl_tensor upstream = {KL_FLOAT64, 1, other, x};
    cr_expect_not(derive(&plan, KL_INPUT, &upstream, gradient, &problem));
    cr_expect_str_eq(problem.code, "shape_mismatch");
    cr_expect_eq(problem.operand, KL_GRAD_OUTPUT);

    problem = (struct kl_problem){0};
    options.compat = KL_MATH;
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem));
    cr_expect_not(derive(&plan, KL_TARGET, NULL, gradient, &problem));
    cr_expect_str_eq(problem.code, "target_negative");
    cr_expect_eq(problem.index, 2);
}

/* Rows of several tiles: derivatives by input alone, which take exponentials that were kept, are those that come with target's, but
 * for the last bit: where maxima rise from tile to tile, or fall, and where the first tile is -inf alone. */
Test(gradients, of_long_rows_by_input_alone)
{
    enum { MAX_LENGTH = 5000 };
    static const size_t lengths[] = {1025, 2048, 3000, 5000};
    static float x[MAX_LENGTH], t[MAX_LENGTH], alone[MAX_LENGTH], together[MAX_LENGTH],
        by_t[MAX_LENGTH];
    unsigned long long state = 3;
    for (size_t i = 0; i < 6 * COUNT(lengths); i++) {
        size_t n = lengths[i / 6];
        double rise = (double)(i % 3) - 1;
        for (size_t k = 0; k < n; k++) {
            x[k] = (float)(rise * (double)(k / 512) + 6 * uniform(&state));
            t[k] = (float)(40 * rise * (double)(k / 1024) + 6 * uniform(&state));
        }
        for (size_t k = 0; i % 6 >= 3 && k < 1100 && k < n - 1; k++)
            x[k] = -INFINITY, t[k] = k % 2 ? -INFINITY : t[k];
        const struct kl_tensor input = {KL_FLOAT32, 1, &n, x}, target = {KL_FLOAT32, 1, &n, t};
        const struct kl_options options = {.reduction = KL_SUM,
                                           .input_space = KL_LOGIT,
                                           .target_space = KL_LOGIT,
                                           .temperature = 1.5,
                                           .compat = KL_MATH};
        struct kl_plan plan;
        float losses[2];
        const struct kl_results first = {&losses[0], {alone, NULL}, NULL},
                                second = {&losses[1], {together, by_t}, NULL};
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        cr_assert(kl_run_gradients(&plan, NULL, NULL, &first, NULL));
        cr_assert(kl_run_gradients(&plan, NULL, NULL, &second, NULL));
        cr_expect_eq(memcmp(&losses[0], &losses[1], sizeof *losses), 0, "%g, not %g", losses[0],
                     losses[1]);
        for (size_t k = 0; k < n; k++) {
            double error = fabs((double)alone[k] - (double)together[k]);
            cr_expect((isnan(alone[k]) && isnan(together[k])) ||
                          error <= 0x1p-23 * fabs((double)together[k]) + 1e-44,
                      "case %zu, %zu: %g, not %g", i, k, (double)alone[k], (double)together[k]);
        }
    }
}
