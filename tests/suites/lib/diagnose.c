/* Findings of diagnose on valid and on faulty data. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    L = 1 << KL_INPUT_NOT_LOG_PROBABILITIES,
    I = 1 << KL_INPUT_NOT_NORMALIZED,
    T = 1 << KL_TARGET_NOT_NORMALIZED,
    N = 1 << KL_TARGET_NEGATIVE,
    G = 1 << KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES,
    S = 1 << KL_ARGUMENTS_LOOK_SWAPPED,
    F = 1 << KL_LOSS_NOT_FINITE
};

#define PROB "[[0.25, 0.75], [0.5, 0.5]]"
#define LOGS                                                                                       \
    "[[-1.3862943611198906, -0.2876820724517809], [-0.6931471805599453, -0.6931471805599453]]"

static const struct {
    const char *query, *input, *target, *more;
    unsigned findings;
} cases[] = {
    {"", LOGS, PROB, "", 0},
    {"&log_target=true", LOGS, LOGS, "", 0},
    {"&input_space=prob", PROB, PROB, "", 0},
    {"&input_space=logit", "[[5, 7], [1e9, 1]]", PROB, "", 0},
    {"&input_space=logit&target_space=logit", "[[5, 7], [1, 1]]", "[[-5, 7], [1, 9]]", "", 0},
    {"", PROB, PROB, "", L | I},
    {"", "[[5, 7], [1, 1]]", PROB, "", L | I},
    {"", "[[-5, -7], [-1, -1]]", PROB, "", I},
    {"", LOGS, "[[1, 3], [2, 2]]", "", T},
    {"&log_target=true", LOGS, PROB, "", T},
    {"", LOGS, "[[-0.5, 1.5], [0.5, 0.5]]", "", N | F},
    {"", LOGS, LOGS, "", T | N | F | G},
    {"", PROB, LOGS, "", L | I | T | N | F | G | S},
    {"&input_space=prob", "[[1, 3], [2, 2]]", PROB, "", I},
    {"", LOGS, "[[0.2503, 0.75], [0.5, 0.4998]]", "", 0},
    {"", LOGS, "[[NaN, 0.75], [0.5, 0.5]]", "", F},
    {"&compat=oneflow", LOGS, "[[NaN, 0.75], [0.5, 0.5]]", "", 0},
    {"&input_space=prob", "[[0, 1], [0.5, 0.5]]", "[[0, 1], [0.5, 0.5]]", "", F},
    {"&input_space=prob&compat=math", "[[0, 1], [0.5, 0.5]]", "[[0, 1], [0.5, 0.5]]", "", 0},
    {"&input_space=prob&compat=math", "[[0, 1], [0.5, 0.5]]", "[[0.5, 0.5], [0, 1]]", "", F},
    {"&input_space=prob", LOGS, PROB, "", I | F},
    {"&input_space=logit", "[[\"-Infinity\", 1], [1, 1]]", "[[0, 1], [1, 0]]", "", F},
    {"&input_space=logit&compat=math", "[[\"-Infinity\", 1], [1, 1]]", "[[0, 1], [1, 0]]", "", 0},
    {"", LOGS, "[[3, 1], [2, 2]]", "", T},
    {"", LOGS, "[[0.25, 0.75], [-9, 0.5]]", ", \"mask\": [[1], [0]]", 0},
    {"", LOGS, "[[0.25, 0.75], [1, -9]]", ", \"mask\": [[1, 1], [1, 0]]", 0},
    {"", LOGS, "[[0.25, 0.75], [1.5, -9]]", ", \"mask\": [[1, 1], [1, 0]]", T},
    {"&dim=1", LOGS, "[[0.25, 0.75], [-9, 0.5]]", ", \"mask\": [1, 0]", 0},
    {"", LOGS, LOGS, ", \"mask\": [[1, 0], [1, 0]]", N | F | G},
    {"", LOGS, "[[0, 1], [0.5, 0.5]]", ", \"mask\": [[1, 0], [1, 0]]", 0},
    {"", LOGS, "[[-2, 3], [-1, -3]]", ", \"mask\": [[1, 1], [1, 0]]", N | F | G},
    {"&target_space=logit", LOGS, "[[\"-Infinity\", \"-Infinity\"], [0, 1]]", "", F},
    {"&target_space=logit&compat=math", LOGS, "[[\"-Infinity\", \"-Infinity\"], [0, 1]]", "", F},
    {"&target_space=logit&compat=math", LOGS, "[[0, \"-Infinity\"], [0, 1]]", "", 0},
    {"&target_space=logit&compat=math", LOGS, "[[0, \"-Infinity\"], [0, 1]]",
     ", \"mask\": [[0, 1], [1, 1]]", F},
    {"&log_target=true", LOGS, "[[800, -1], [-0.6931471805599453, -0.6931471805599453]]", "",
     T | F},
    {"&log_target=true", "[[-1e308, -1], [0, 0]]", "[[2, -0.5], [0, 0]]", "", I | T | F},
    {"", "[[-1e308, -1e308], [-1e308, -1e308]]", "[[0.5, 0.5], [0.5, 0.5]]", "", I | F},
    {"", "[[-1e308, 0], [-0.5, -0.5]]", "[[0.5, 0.5], [0.5, 0.5]]", "", I},
    {"&dim=1", "[[-1e308, -1e308], [0, 0]]", "[[1, 1], [0.5, 0.5]]", "", I | T | F},
    {"&dtype=float16", "[[-65504, 0], [-1, -1]]", "[[1, 0], [0.5, 0.5]]", "", I},
    {"&dtype=float16", "[[-65504, 0], [-65504, 0]]", "[[1, 0], [1, 0]]", "", F},
    {"&dtype=float16&base=2", "[[-65504, 0], [-1, -1]]", "[[1, 0], [0.5, 0.5]]", "", I | F},
    {"&dtype=float16", "[[-65504, 0], [-1, -1]]", "[[1, 0], [0.5, 0.5]]", ", \"weight\": 2", I | F},
    {"&dim=0", LOGS, "[[0.25, 0.75], [0.75, 0.25]]", "", I},
    {"&broadcast=true", LOGS, "[0.25, 0.75]", "", 0},
    {"&broadcast=true", LOGS, "[0.25, 0.5]", "", T},
};

Test(diagnose, finds_what_is_there_and_nothing_else)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[400], query[100];
        unsigned found = 0;
        size_t at;
        json_t *warning;
        snprintf(body, sizeof body, "{\"input\": %s, \"target\": %s%s}", cases[i].input,
                 cases[i].target, cases[i].more);
        snprintf(query, sizeof query, "reduction=sum&diagnose=true%s", cases[i].query);
        struct answer answer = ask_loss(query, body);
        cr_assert_eq(answer.status, 200, "case %zu: %s", i, text_of(answer.json, "detail"));
        json_array_foreach(json_object_get(answer.json, "warnings"), at,
                           warning) for (int f = 0; f < KL_FINDINGS; f++) found |=
            strcmp(text_of(warning, "code"), kl_finding_code((enum kl_finding)f)) == 0 ? 1u << f
                                                                                       : 0;
        cr_expect_eq(found, cases[i].findings, "case %zu: %x, not %x", i, found, cases[i].findings);
        answer_free(&answer);
    }
}

Test(diagnose, says_how_many_where_and_what_to_do)
{
    struct answer answer = ask_loss("reduction=sum&diagnose=true",
                                    "{\"input\": [[-0.5, -0.93275213], [0.3, 0.7], [0.6, 0.4]], "
                                    "\"target\": [[0.5, 0.5], [0.25, 0.75], [1, -0.5]]}");
    static const struct {
        const char *code, *message;
        size_t count, index[2];
    } expected[] = {
        {"input_not_log_probabilities",
         "2 of 3 rows of input have values above 0, up to 0.7, which log-probabilities never are: "
         "did you "
         "pass probabilities? Use input_space=prob",
         2,
         {1, 0}},
        {"input_not_normalized",
         "the row sums of exp(input) are 3.314 to 3.364 in 2 of 3 rows, not 1: did you pass "
         "probabilities? Use input_space=prob",
         2,
         {1, 0}},
        {"target_not_normalized",
         "the row sums of target are 0.5 in 1 of 3 rows, not 1: if target holds logits, use "
         "target_space=logit",
         1,
         {2, 0}},
        {"target_negative",
         "1 of 3 rows of target have negative values, down to -0.5, which probabilities never are: "
         "if "
         "target holds logits, use target_space=logit",
         1,
         {2, 1}},
        {"loss_not_finite", NULL, 1, {2, 1}},
    };
    const json_t *warnings = json_object_get(answer.json, "warnings");
    cr_assert_eq(json_array_size(warnings), COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        const json_t *warning = json_array_get(warnings, i),
                     *index = json_object_get(warning, "index");
        cr_expect_str_eq(text_of(warning, "code"), expected[i].code);
        cr_expect(!expected[i].message ||
                  strcmp(text_of(warning, "message"), expected[i].message) == 0);
        cr_expect_eq(number_of(json_object_get(warning, "count")), expected[i].count);
        for (size_t j = 0; j < 2; j++)
            cr_expect_eq(number_of(json_array_get(index, j)), expected[i].index[j]);
    }
    answer_free(&answer);
}

/* Rows of any length, dense or not, in every dtype, without a finding. */
Test(diagnose, is_silent_about_softmaxes_of_any_size)
{
    static const size_t shapes[][3] = {
        {1, 1, 40000}, {300, 3, 5}, {2, 1000, 70}, {7, 100, 33}, {3, 5, 1}};
    struct kl_pool *pool = kl_pool_new(2);
    unsigned long long state = 4;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int axis = 0; axis < 3; axis++)
            for (enum kl_dtype dtype = KL_FLOAT64; dtype < KL_BFLOAT16; dtype++) {
                const size_t *shape = shapes[i], n = shape[0] * shape[1] * shape[2];
                size_t inner = axis == 2 ? 1 : axis == 1 ? shape[2] : shape[1] * shape[2];
                char *x = malloc(n * 8), *t = malloc(n * 8);
                double *v = malloc(n * sizeof *v);
                for (size_t j = 0; j < n; j++)
                    v[j] = uniform(&state) + 0.1;
                for (size_t j = 0; j < n; j++) {
                    double sum = 0;
                    size_t first = j - j / inner % shape[axis] * inner;
                    for (size_t k = 0; k < shape[axis] && j == first; k++)
                        sum += v[first + k * inner];
                    for (size_t k = 0; k < shape[axis] && j == first; k++) {
                        kl_store(dtype, t, first + k * inner, v[first + k * inner] / sum);
                        kl_store(dtype, x, first + k * inner, log(v[first + k * inner] / sum));
                    }
                }
                struct kl_tensor input = {dtype, 3, shape, x}, target = {dtype, 3, shape, t};
                struct kl_options options = {.dim = &axis, .n_dim = 1};
                struct kl_diagnosis diagnosis;
                struct kl_plan plan;
                cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
                cr_assert(kl_diagnose(&plan, pool, &diagnosis, NULL));
                cr_expect_eq(diagnosis.rows, n / shape[axis]);
                for (int f = 0; f < KL_FINDINGS; f++)
                    cr_expect_eq(diagnosis.findings[f].count, 0, "shape %zu, axis %d, %s: %s", i,
                                 axis, kl_dtype_name(dtype), diagnosis.findings[f].message);
                free(x), free(t), free(v);
            }
    kl_pool_free(pool);
}

/* An empty call has no rows, whatever is asked of it. */
Test(diagnose, finds_nothing_in_nothing)
{
    static const size_t shapes[][2] = {{0, 3}, {3, 0}, {0, 0}};
    static const int axes[] = {0, 1};
    for (size_t i = 0; i < COUNT(shapes) * 3; i++) {
        struct kl_tensor tensor = {KL_FLOAT32, 2, shapes[i / 3], ""};
        struct kl_options options = {.reduction = KL_SUM, .dim = axes, .n_dim = i % 3};
        struct kl_diagnosis alone, beside;
        struct kl_plan plan;
        float loss = 1;
        const struct kl_results results = {&loss, {NULL}, &beside};
        cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
        cr_assert(kl_diagnose(&plan, NULL, &alone, NULL));
        cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
        cr_expect(alone.rows == 0 && beside.rows == 0 && loss == 0);
        for (int f = 0; f < KL_FINDINGS; f++)
            cr_expect(alone.findings[f].count == 0 && beside.findings[f].count == 0);
    }
}

/* counts: findings by hand. */
struct counts {
    size_t rows, of[KL_FINDINGS];
};

static void count_row(const double *x, const double *t, const unsigned char *mask, size_t n,
                      bool masked, struct counts *counts)
{
    double exps = 0, sum = 0, max = -INFINITY, min = INFINITY;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        if (!mask[i])
            continue;
        exps += exp(x[i]), sum += t[i];
        max = fmax(max, x[i]), min = fmin(min, t[i]);
        finite &= isfinite(x[i]) && isfinite(t[i]) && t[i] >= 0;
    }
    counts->rows++;
    counts->of[KL_INPUT_NOT_LOG_PROBABILITIES] += max > 0;
    counts->of[KL_TARGET_NEGATIVE] += min < 0;
    counts->of[KL_INPUT_NOT_NORMALIZED] += fabs(exps - 1) > 1e-3 && !(masked && exps < 1);
    counts->of[KL_TARGET_NOT_NORMALIZED] += fabs(sum - 1) > 1e-3 && !(masked && sum < 1);
    counts->of[KL_LOSS_NOT_FINITE] += !finite;
}

/* Rows of every length, of which some are not what they should be, counted by hand, beside the loss and
 * alone, with and without a mask of elements. */
Test(diagnose, counts_rows_of_every_length)
{
    enum { ROWS = 300, MAX = 140 };
    static double x[ROWS * MAX], t[ROWS * MAX];
    static unsigned char mask[ROWS * MAX];
    static const enum kl_finding counted[] = {KL_INPUT_NOT_LOG_PROBABILITIES, KL_TARGET_NEGATIVE,
                                              KL_INPUT_NOT_NORMALIZED, KL_TARGET_NOT_NORMALIZED,
                                              KL_LOSS_NOT_FINITE};
    unsigned long long state = 19;
    struct kl_pool *pool = kl_pool_new(2);
    for (size_t n = 2; n <= 2 * MAX; n++) {
        size_t length = n / 2, shape[] = {ROWS, length};
        bool masked = n & 1;
        struct counts counts = {0};
        for (size_t r = 0; r < ROWS; r++) {
            double *xs = x + r * length, *ts = t + r * length, sum = 0;
            for (size_t i = 0; i < length; i++)
                sum += ts[i] = uniform(&state) + 0.1;
            for (size_t i = 0; i < length; i++)
                ts[i] /= sum, xs[i] = log(ts[i]);
            size_t at = (size_t)(uniform(&state) * (double)length);
            double fault = uniform(&state) * 40;
            if (fault < 1)
                xs[at] = 0.5;
            else if (fault < 2)
                ts[at] += 0.01;
            else if (fault < 3)
                xs[at] = -INFINITY;
            else if (fault < 4)
                ts[at] = -0.1;
            for (size_t i = 0; i < length; i++)
                mask[r * length + i] = !masked || uniform(&state) < 0.9;
            count_row(xs, ts, mask + r * length, length, masked, &counts);
        }
        struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
        const struct kl_mask shown = {2, shape, mask};
        struct kl_options options = {.reduction = KL_NONE, .mask = masked ? &shown : NULL};
        static double losses[ROWS * MAX];
        static struct kl_diagnosis alone, beside;
        memset(&alone, 0, sizeof alone), memset(&beside, 0, sizeof beside);
        const struct kl_results results = {losses, {NULL}, &beside};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                  kl_diagnose(&plan, pool, &alone, NULL) &&
                  kl_run_gradients(&plan, NULL, pool, &results, NULL));
        cr_expect_eq(memcmp(&alone, &beside, sizeof alone), 0);
        cr_expect_eq(alone.rows, counts.rows);
        for (size_t i = 0; i < COUNT(counted); i++)
            cr_expect_eq(alone.findings[counted[i]].count, counts.of[counted[i]],
                         "rows of %zu, masked %d, %s: %zu, not %zu", length, masked,
                         kl_finding_code(counted[i]), alone.findings[counted[i]].count,
                         counts.of[counted[i]]);
    }
    kl_pool_free(pool);
}

/* Sound rows under a mask of rows or elements: all are, and none of those masked as a whole count. */
Test(diagnose, counts_the_rows_that_a_mask_leaves)
{
    enum { ROWS = 300, MAX = 80 };
    static const enum kl_space inputs[] = {KL_LOG_PROB, KL_LOGIT, KL_PROB};
    static double x[ROWS * MAX], t[ROWS * MAX];
    static unsigned char mask[ROWS * MAX];
    unsigned long long state = 23;
    for (size_t n = 0; n < 6 * MAX; n++) {
        size_t length = n / 6 + 1, shape[] = {ROWS, length}, left = 0, findings = 0;
        bool of_rows = n & 1;
        for (size_t i = 0; i < ROWS * length; i++) {
            t[i] = 1 / (double)length;
            x[i] = inputs[n / 2 % 3] == KL_PROB ? t[i] : log(t[i]);
            mask[i] = uniform(&state) < 0.7;
            left += i < ROWS && (!of_rows || mask[i]);
        }
        struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
        const struct kl_mask shown = {of_rows ? 1 : 2, shape, mask};
        struct kl_options options = {.input_space = inputs[n / 2 % 3], .target_space = KL_PROB};
        options.dim = (const int[]){-1}, options.n_dim = of_rows, options.mask = &shown;
        struct kl_diagnosis diagnosis;
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                  kl_diagnose(&plan, NULL, &diagnosis, NULL));
        for (int i = 0; i < KL_FINDINGS; i++)
            findings += diagnosis.findings[i].count;
        cr_expect(diagnosis.rows == left && findings == 0, "rows of %zu: %zu, not %zu; %zu found",
                  length, diagnosis.rows, left, findings);
    }
}

/* Rows of logarithms where probabilities are wanted, each with a NaN: what is found does not depend on their length. */
Test(diagnose, finds_the_same_in_rows_of_every_length)
{
    enum { ROWS = 5, MAX = 3000 };
    static const size_t lengths[] = {2, 3, 15, 16, 17, 100, 512, 513, 1025, MAX};
    static double x[ROWS * MAX], t[ROWS * MAX];
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t n = lengths[i], shape[] = {ROWS, n};
        for (size_t j = 0; j < ROWS * n; j++)
            x[j] = t[j] = j % n == n / 2 ? (double)NAN : -log((double)(n - 1));
        struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
        struct kl_options options = {.reduction = KL_SUM};
        struct kl_diagnosis diagnosis;
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                  kl_diagnose(&plan, NULL, &diagnosis, NULL));
        for (enum kl_finding f = KL_ARGUMENTS_LOOK_SWAPPED; f < KL_FINDINGS; f++) {
            bool expected = f == KL_LOSS_NOT_FINITE || (f == KL_TARGET_NEGATIVE && n > 2);
            cr_expect_eq(diagnosis.findings[f].count, expected ? ROWS : 0, "rows of %zu: %zu %s", n,
                         diagnosis.findings[f].count, kl_finding_code(f));
        }
    }
}

/* ---- Losses that are not finite are those that the call stores */

enum { SOME_ROWS = 150, MAX_LENGTH = 70 };

/* Logits and others that now and then are infinite, NaN or too large. */
static double strange(enum kl_space space, unsigned long long *state)
{
    static const double odd[] = {INFINITY, -(double)INFINITY, NAN, 0, -3, 60000};
    double v = uniform(state) * 8 - 4;
    if (uniform(state) < 0.02)
        return odd[(size_t)(uniform(state) * COUNT(odd))];
    return space == KL_PROB ? exp(v) : space == KL_LOG_PROB ? v - 4 : v;
}

/* Rows with a loss that is not finite, of `length` losses each. */
static size_t count_not_finite(enum kl_dtype dtype, const void *losses, size_t rows, size_t length)
{
    size_t count = 0;
    for (size_t r = 0; r < rows; r++) {
        bool finite = true;
        for (size_t i = 0; i < length; i++)
            finite &= isfinite(kl_load(dtype, losses, r * length + i)) != 0;
        count += !finite;
    }
    return count;
}

/* Rows along either axis, of elements' losses or of rows', with and without masks and weights. */
static void compare_with_losses(enum kl_dtype dtype, size_t length, unsigned bits,
                                unsigned long long *state)
{
    static double operands[KL_OPERANDS][SOME_ROWS * MAX_LENGTH], losses[SOME_ROWS * MAX_LENGTH];
    static float weights[SOME_ROWS * MAX_LENGTH];
    static unsigned char masks[SOME_ROWS * MAX_LENGTH];
    static const enum kl_space spaces[] = {KL_LOG_PROB, KL_LOGIT, KL_PROB};
    const int axes[] = {0, 1};
    bool across = bits & 1, of_rows = across || bits & 2;
    size_t shape[] = {across ? length : SOME_ROWS, across ? SOME_ROWS : length};
    size_t ndim = of_rows ? 1 : 2, left[] = {SOME_ROWS, length};
    struct kl_options options = {.reduction = KL_NONE,
                                 .compat = (enum kl_compat)(bits / 16 % 3),
                                 .dim = across ? axes : axes + 1,
                                 .n_dim = of_rows,
                                 .input_space = spaces[bits % 3],
                                 .target_space = spaces[bits / 3 % 3]};
    struct kl_tensor input = {dtype, 2, shape, operands[0]},
                     target = {dtype, 2, shape, operands[1]};
    struct kl_tensor weight = {KL_FLOAT32, ndim, left, weights};
    struct kl_mask mask = {ndim, left, masks};
    struct kl_diagnosis diagnosis;
    struct kl_plan plan;
    for (size_t i = 0; i < SOME_ROWS * length; i++) {
        kl_store(dtype, operands[0], i, strange(options.input_space, state));
        kl_store(dtype, operands[1], i, strange(options.target_space, state));
        weights[i] = (float)uniform(state) * 40;
        masks[i] = uniform(state) < 0.8;
    }
    options.weight = bits & 4 ? &weight : NULL;
    options.mask = bits & 8 ? &mask : NULL;
    const struct kl_results results = {losses, {NULL}, &diagnosis};
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    if (!kl_run_gradients(&plan, NULL, NULL, &results, NULL)) /* math refuses what is negative */
        return;
    size_t expected = count_not_finite(dtype, losses, SOME_ROWS, of_rows ? 1 : length);
    cr_expect_eq(diagnosis.findings[KL_LOSS_NOT_FINITE].count, expected,
                 "%s, rows of %zu, bits %x: %zu, not %zu", kl_dtype_name(dtype), length, bits,
                 diagnosis.findings[KL_LOSS_NOT_FINITE].count, expected);
}

Test(diagnose, finds_the_losses_that_are_not_finite)
{
    static const size_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 33, 70};
    unsigned long long state = 5;
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (unsigned bits = 0; bits < 144; bits++)
            compare_with_losses((enum kl_dtype)(bits / 9 % KL_DTYPES), lengths[i], bits, &state);
}
