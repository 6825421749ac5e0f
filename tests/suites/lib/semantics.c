/* Rules for special values, and planning before data is read. */
#include "lib/simd/kernel.h"
#include "lib/threads/pool.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INF ((double)INFINITY)
#define NaN ((double)NAN)
#define REFUSED 12345.0 /* stands for target_negative */

static const struct rule {
    bool log_target;
    double t, x;
    double expected[3]; /* by enum kl_compat */
} rules[] = {
    {false, 0.5, -INF, {INF, INF, INF}},
    {false, 0.5, INF, {-INF, -INF, -INF}},
    {false, 0.5, NaN, {NaN, NaN, NaN}},
    {false, 1, 0, {0, 0, 0}},
    {false, 1, -3, {3, 3, 3}},
    {false, 0, -3, {0, 0, 0}},
    {false, -0.0, 3, {0, 0, 0}},
    {false, 0, INF, {NaN, 0, 0}},
    {false, 0, -INF, {NaN, 0, 0}},
    {false, 0, NaN, {NaN, 0, NaN}},
    {false, -1, -3, {NaN, 0, REFUSED}},
    {false, -1, NaN, {NaN, 0, REFUSED}},
    {false, -INF, -3, {NaN, 0, REFUSED}},
    {false, NaN, -3, {NaN, 0, NaN}},
    {false, INF, -3, {INF, INF, INF}},
    {false, INF, -INF, {INF, INF, INF}},
    {false, INF, 0, {NaN, INF, INF}},
    {false, INF, 3, {NaN, INF, INF}},
    {false, INF, INF, {NaN, NaN, NaN}},
    {false, INF, NaN, {NaN, NaN, NaN}},
    {false, 1e308, 1e308, {-INF, -INF, -INF}},
    {false, 1e308, -1e308, {INF, INF, INF}},
    {true, -INF, -3, {NaN, NaN, 0}},
    {true, -INF, INF, {NaN, NaN, 0}},
    {true, -INF, -INF, {NaN, NaN, 0}},
    {true, -INF, NaN, {NaN, NaN, NaN}},
    {true, -3, -INF, {INF, INF, INF}},
    {true, -2000, -INF, {INF, INF, INF}},
    {true, -1e9, -3, {0, 0, 0}},
    {true, -3, INF, {-INF, -INF, -INF}},
    {true, -3, NaN, {NaN, NaN, NaN}},
    {true, NaN, -3, {NaN, NaN, NaN}},
    {true, INF, -3, {INF, INF, INF}},
    {true, INF, INF, {NaN, NaN, NaN}},
    {true, 800, 800, {0, 0, 0}},
    {true, 800, -1, {INF, INF, INF}},
};

static bool same(double a, double b) { return isnan(b) ? isnan(a) : a == b; }

static void check_rule(const struct rule *rule, enum kl_compat compat, enum kl_reduction reduction,
                       const char *simd)
{
    size_t shape[] = {1};
    struct kl_tensor input = {KL_FLOAT64, 1, shape, &rule->x};
    struct kl_tensor target = {KL_FLOAT64, 1, shape, &rule->t};
    struct kl_options options = {
        .reduction = reduction, .log_target = rule->log_target, .compat = compat};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    double loss = -7, expected = rule->expected[compat];
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem));
    bool done = kl_run(&plan, NULL, &loss, &problem);
    if (expected == REFUSED)
        cr_expect(!done && strcmp(problem.code, "target_negative") == 0);
    else
        cr_expect(done && same(loss, expected), "%s compat=%d log=%d t=%g x=%g: %g, not %g", simd,
                  compat, rule->log_target, rule->t, rule->x, loss, expected);
}

Test(semantics, special_values_follow_the_table_in_every_kernel)
{
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!(*k)->supported())
            continue;
        cr_assert(kl_simd_select((*k)->name, NULL));
        for (size_t i = 0; i < COUNT(rules); i++)
            for (enum kl_compat compat = KL_PYTORCH; compat <= KL_MATH; compat++) {
                check_rule(&rules[i], compat, KL_SUM, (*k)->name);
                check_rule(&rules[i], compat, KL_NONE, (*k)->name);
            }
    }
}

/* Checks a negative input beside targets of every space, with and without gradients. Of two
 * negative elements the mask, if any, hides the first. */
static void check_negative_input(enum kl_space target_space, bool masked, bool with_gradients)
{
    enum { ROWS = 3, LENGTH = 500 };
    static float x[ROWS * LENGTH], t[ROWS * LENGTH], grad[ROWS * LENGTH];
    static unsigned char kept[ROWS * LENGTH];
    size_t shape[] = {ROWS, LENGTH};
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = i == 20 || i == 1007 ? -0.25f : 0.5f, t[i] = 0.5f, kept[i] = i != 20;
    struct kl_tensor input = {KL_FLOAT32, 2, shape, x}, target = {KL_FLOAT32, 2, shape, t};
    struct kl_mask mask = {2, shape, kept};
    struct kl_options options = {.compat = KL_MATH,
                                 .input_space = KL_PROB,
                                 .target_space = target_space,
                                 .mask = masked ? &mask : NULL};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    float loss;
    const struct kl_results results = {&loss, {with_gradients ? grad : NULL, NULL}, NULL};
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem));
    cr_assert_not(kl_run_gradients(&plan, NULL, NULL, &results, &problem));
    cr_expect_str_eq(problem.code, "input_negative");
    cr_expect_eq(problem.operand, KL_INPUT);
    cr_expect(problem.has_index && problem.index == (masked ? 1007 : 20), "%zu", problem.index);
    kept[1007] = 0;
    if (masked)
        cr_expect(kl_run_gradients(&plan, NULL, NULL, &results, NULL), "both are hidden");
}

Test(semantics, math_names_the_first_negative_input)
{
    for (enum kl_space space = KL_LOG_PROB; space <= KL_LOGIT; space++)
        for (int masked = 0; masked < 2; masked++)
            for (int gradients = 0; gradients < 2; gradients++)
                check_negative_input(space, masked, gradients);
}

Test(semantics, a_temperature_needs_logits)
{
    const double value = 0.5;
    struct kl_tensor scalar = {KL_FLOAT64, 0, NULL, &value};
    struct kl_plan plan;
    for (int i = 0; i < 9; i++) {
        struct kl_options options = {.input_space = (enum kl_space)(KL_LOG_PROB + i % 3),
                                     .target_space = (enum kl_space)(KL_LOG_PROB + i / 3)};
        bool logits = options.input_space == KL_LOGIT || options.target_space == KL_LOGIT;
        struct kl_problem problem = {0};
        options.temperature = 1;
        cr_expect(kl_plan(&plan, &scalar, &scalar, &options, &problem));
        options.temperature = 2;
        cr_expect_eq(kl_plan(&plan, &scalar, &scalar, &options, &problem), logits);
        if (!logits)
            cr_expect_str_eq(problem.code, "temperature_unused");
    }
}

Test(semantics, math_names_the_first_negative_target)
{
    float x[40000] = {0}, t[40000];
    for (size_t i = 0; i < COUNT(t); i++)
        t[i] = i == 39998 || i == 39123 ? -0.25f : 0.5f;
    size_t shape[] = {200, 200};
    struct kl_tensor input = {KL_FLOAT32, 2, shape, x}, target = {KL_FLOAT32, 2, shape, t};
    struct kl_options options = {.compat = KL_MATH};
    static const enum kl_reduction reductions[] = {KL_MEAN, KL_NONE};
    for (size_t i = 0; i < COUNT(reductions); i++) {
        struct kl_problem problem = {0};
        struct kl_plan plan;
        options.reduction = reductions[i];
        cr_assert(kl_plan(&plan, &input, &target, &options, &problem));
        float *loss = malloc(plan.loss_size);
        cr_expect(!kl_run(&plan, NULL, loss, &problem));
        cr_expect_str_eq(problem.code, "target_negative");
        cr_expect_eq(problem.index, 39123);
        cr_expect_eq(problem.operand, KL_TARGET);
        free(loss);
    }
}

Test(semantics, oneflow_example_of_its_documentation)
{
    static const float x[] = {-0.9021705f, 0.08798598f, 1.04686249f};
    static const float t[] = {1.22386942f, -0.89729659f, 0.01615712f};
    static const struct {
        struct kl_options options;
        double expected[3];
    } cases[] = {
        {{.reduction = KL_NONE, .compat = KL_ONEFLOW}, {1.3514, 0, -0.0836}},
        {{.reduction = KL_MEAN, .compat = KL_ONEFLOW}, {0.4226}},
        {{.reduction = KL_SUM, .compat = KL_ONEFLOW, .log_target = true}, {5.7801}},
        {{.reduction = KL_NONE}, {1.3514, NAN, -0.0836}},
        {{.reduction = KL_MEAN}, {NAN}},
    };
    size_t shape[] = {3};
    struct kl_tensor input = {KL_FLOAT32, 1, shape, x}, target = {KL_FLOAT32, 1, shape, t};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_plan plan;
        float loss[3];
        cr_assert(kl_plan(&plan, &input, &target, &cases[i].options, NULL));
        cr_assert(kl_run(&plan, NULL, loss, NULL));
        for (size_t j = 0; j < plan.loss_size / sizeof *loss; j++)
            cr_expect(isnan(cases[i].expected[j]) ? isnan(loss[j])
                                                  : fabs(loss[j] - cases[i].expected[j]) < 5e-5,
                      "case %zu: %g", i, (double)loss[j]);
    }
}

Test(semantics, oneflow_has_its_own_empty_mean_and_no_scalar_batchmean)
{
    size_t none[] = {0};
    double value = 0.5, loss;
    struct kl_tensor empty = {KL_FLOAT64, 1, none, NULL}, scalar = {KL_FLOAT64, 0, NULL, &value};
    struct kl_options options = {.compat = KL_ONEFLOW};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &empty, &empty, &options, &problem));
    cr_assert(kl_run(&plan, NULL, &loss, &problem));
    cr_expect_eq(loss, 0);
    options.reduction = KL_BATCHMEAN;
    cr_expect(!kl_plan(&plan, &scalar, &scalar, &options, &problem));
    cr_expect_str_eq(problem.code, "batchmean_scalar");
}

Test(semantics, half_batchmean_does_not_overflow_on_the_way)
{
    enum { N = 1024, C = 512 };
    static unsigned short x[N * C], t[N * C], loss;
    for (size_t i = 0; i < N * C; i++) {
        kl_store(KL_FLOAT16, x, i, -10);
        kl_store(KL_FLOAT16, t, i, 1);
    }
    size_t shape[] = {N, C};
    struct kl_tensor input = {KL_FLOAT16, 2, shape, x}, target = {KL_FLOAT16, 2, shape, t};
    struct kl_options options = {.reduction = KL_BATCHMEAN};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, NULL, &loss, NULL));
    cr_expect_eq(kl_load(KL_FLOAT16, &loss, 0), 5120);
}

Test(semantics, legacy_flags_follow_the_truth_table)
{
    static const enum kl_reduction expected[3][3] = {
        /* reduce:       absent   true     false */
        [KL_ABSENT] = {KL_BATCHMEAN, KL_MEAN, KL_NONE},
        [KL_TRUE] = {KL_MEAN, KL_MEAN, KL_NONE},
        [KL_FALSE] = {KL_SUM, KL_SUM, KL_NONE},
    };
    double value = 1;
    struct kl_tensor scalar = {KL_FLOAT64, 0, NULL, &value};
    for (enum kl_flag size_average = KL_ABSENT; size_average <= KL_FALSE; size_average++)
        for (enum kl_flag reduce = KL_ABSENT; reduce <= KL_FALSE; reduce++) {
            struct kl_options options = {
                .reduction = KL_BATCHMEAN, .size_average = size_average, .reduce = reduce};
            struct kl_plan plan;
            cr_assert(kl_plan(&plan, &scalar, &scalar, &options, NULL));
            cr_expect_eq(plan.reduction, expected[size_average][reduce]);
            bool legacy = size_average != KL_ABSENT || reduce != KL_ABSENT;
            cr_expect_eq(plan.warnings, legacy ? 1u << KL_SIZE_AVERAGE_REDUCE_DEPRECATED : 0);
        }
}

Test(semantics, shapes_must_be_the_same)
{
    size_t a[] = {3, 5}, b[] = {5, 3}, c[] = {3}, huge[] = {(size_t)1 << 40, (size_t)1 << 40};
    double value = 1;
    struct kl_tensor tensors[] = {{KL_FLOAT64, 2, a, &value},
                                  {KL_FLOAT64, 2, b, &value},
                                  {KL_FLOAT64, 1, c, &value},
                                  {KL_FLOAT64, 0, NULL, &value}};
    struct kl_tensor too_large = {KL_FLOAT64, 2, huge, &value};
    struct kl_options options = {0};
    struct kl_plan plan;
    for (size_t i = 0; i < COUNT(tensors); i++)
        for (size_t j = 0; j < COUNT(tensors); j++) {
            struct kl_problem problem = {0};
            cr_expect_eq(kl_plan(&plan, &tensors[i], &tensors[j], &options, &problem), i == j);
            cr_expect(i == j || strcmp(problem.code, "shape_mismatch") == 0);
        }
    struct kl_problem problem = {0};
    cr_expect(!kl_plan(&plan, &tensors[0], &tensors[1], &options, &problem));
    cr_expect_str_eq(problem.detail, "input has shape [3, 5] but target has shape [5, 3]");
    cr_expect(!kl_plan(&plan, &too_large, &too_large, &options, NULL));
}

Test(semantics, numbers_that_are_no_enum_are_refused)
{
    double value = 1;
    struct kl_tensor good = {KL_FLOAT64, 0, NULL, &value},
                     bad = {(enum kl_dtype)77, 0, NULL, &value};
    struct kl_options options = {0},
                      odd[] = {{.reduction = (enum kl_reduction)99}, {.compat = (enum kl_compat)9}};
    struct kl_plan plan;
    cr_expect(!kl_plan(&plan, &bad, &good, &options, NULL));
    cr_expect(!kl_plan(&plan, &good, &bad, &options, NULL));
    for (size_t i = 0; i < COUNT(odd); i++)
        cr_expect(!kl_plan(&plan, &good, &good, &odd[i], NULL));
}

Test(semantics, dtypes_are_promoted_as_pytorch_does)
{
    static const enum kl_dtype expected[KL_DTYPES][KL_DTYPES] = {
        [KL_FLOAT64] = {KL_FLOAT64, KL_FLOAT64, KL_FLOAT64, KL_FLOAT64},
        [KL_FLOAT32] = {KL_FLOAT64, KL_FLOAT32, KL_FLOAT32, KL_FLOAT32},
        [KL_FLOAT16] = {KL_FLOAT64, KL_FLOAT32, KL_FLOAT16, KL_FLOAT32},
        [KL_BFLOAT16] = {KL_FLOAT64, KL_FLOAT32, KL_FLOAT32, KL_BFLOAT16},
    };
    for (enum kl_dtype a = 0; a < KL_DTYPES; a++)
        for (enum kl_dtype b = 0; b < KL_DTYPES; b++)
            cr_expect_eq(kl_dtype_promote(a, b), expected[a][b]);
}

Test(semantics, names_that_are_refused_say_why)
{
    static const struct {
        const char *name, *code, *detail;
    } dtypes[] = {
        {"complex64", "dtype_unsupported", "kl_div: Complex inputs not supported."},
        {"int64", "dtype_unsupported", "kl_div: Integral inputs not supported."},
        {"bool", "dtype_unsupported", "kl_div: Integral inputs not supported."},
        {"float8", "dtype_invalid", "float8 is not a dtype"},
    };
    enum kl_reduction reduction;
    enum kl_compat compat;
    enum kl_dtype dtype;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        struct kl_problem problem = {0};
        cr_expect(!kl_dtype_parse(dtypes[i].name, &dtype, &problem));
        cr_expect_str_eq(problem.code, dtypes[i].code);
        cr_expect_str_eq(problem.detail, dtypes[i].detail);
    }
    struct kl_problem problem = {0};
    cr_expect(!kl_reduction_parse("bogus", &reduction, &problem));
    cr_expect_str_eq(problem.detail, "bogus is not a valid value for reduction");
    cr_expect(!kl_reduction_parse("Mean", &reduction, NULL));
    cr_expect(!kl_compat_parse("torch", &compat, NULL));
    cr_expect(!kl_simd_select("sse", NULL));
    cr_expect(kl_simd_select("auto", NULL));
}
