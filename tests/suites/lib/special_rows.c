/* Random special values in rows of any length, in all kernels, against the definition: losses and derivatives are NaN,
 * infinite or finite where it says so, and near it where they are finite. */
#include "lib/job/job.h"
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_LENGTH = 1500, MAX_ROWS = 5, MAX_COUNT = MAX_LENGTH * MAX_ROWS };

/* question: a call over rows of `length`, its operands as the dtype holds them. */
struct question {
    enum kl_dtype dtype;
    size_t rows, length;
    struct kl_options options;
    enum kl_space spaces[KL_OPERANDS];
    bool wants[KL_OPERANDS], wants_loss;
    double v[KL_OPERANDS][MAX_COUNT];
};

/* answer: the losses of elements, or the sum of each row in its first element, and derivatives. */
struct answer {
    double losses[MAX_COUNT], grads[KL_OPERANDS][MAX_COUNT];
};

/* ---- The definition */

/* Log-probabilities of a row, by a softmax that has none where its maximum is not finite. */
static void define_logs(enum kl_space space, double temperature, const double *v, size_t n,
                        double *to)
{
    double max = -(double)INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = isnan(v[i]) || v[i] > max ? v[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp((v[i] - max) / temperature);
    for (size_t i = 0; i < n; i++)
        to[i] = space == KL_LOGIT  ? (v[i] - max) / temperature - log(sum)
                : space == KL_PROB ? log(v[i])
                                   : v[i];
}

/* Derivatives by what the operand holds, of those by its log-probabilities, or by target's probabilities. */
static void define_backward(const struct question *q, int operand, const double *v,
                            const double *logs, const double *by_logs, double *to)
{
    double sum = 0;
    for (size_t i = 0; i < q->length; i++)
        sum += by_logs[i];
    for (size_t i = 0; i < q->length; i++) {
        bool keeps = q->options.compat != KL_PYTORCH && by_logs[i] == 0;
        if (q->spaces[operand] == KL_LOGIT)
            to[i] = (by_logs[i] - exp(logs[i]) * sum) / q->options.temperature;
        else if (q->spaces[operand] == KL_PROB && operand == KL_INPUT && !keeps)
            to[i] = by_logs[i] / v[i];
        else
            to[i] = by_logs[i];
    }
}

static void define_row(const struct question *q, enum kl_rule rule, size_t at, struct answer *to)
{
    static double logs[KL_OPERANDS][MAX_LENGTH], grads[MAX_LENGTH];
    size_t n = q->length;
    double sum = 0;
    for (int k = 0; k < KL_OPERANDS; k++)
        define_logs(k == KL_TARGET && q->spaces[k] == KL_PROB ? KL_LOG_PROB : q->spaces[k],
                    q->options.temperature, q->v[k] + at, n, logs[k]);
    for (size_t i = 0; i < n; i++) {
        to->losses[at + i] = kl_term(rule, logs[KL_INPUT][i], logs[KL_TARGET][i]);
        sum += to->losses[at + i];
    }
    if (q->options.n_dim)
        to->losses[at] = sum;
    for (int k = 0; k < KL_OPERANDS; k++) {
        for (size_t i = 0; i < n; i++)
            grads[i] =
                kl_grad_term(rule, (enum kl_operand)k, logs[KL_INPUT][i], logs[KL_TARGET][i]);
        define_backward(q, k, q->v[k] + at, logs[k], grads, to->grads[k] + at);
    }
}

/* ---- The library */

static void run(const struct question *q, enum kl_rule *rule, struct answer *to)
{
    static char operands[KL_OPERANDS][MAX_COUNT * 8], losses[MAX_COUNT * 8];
    static char grads[KL_OPERANDS][MAX_COUNT * 8];
    const size_t shape[] = {q->rows, q->length}, n = q->rows * q->length;
    struct kl_problem problem = {0};
    struct kl_plan plan;
    for (int k = 0; k < KL_OPERANDS; k++)
        for (size_t i = 0; i < n; i++)
            kl_store(q->dtype, operands[k], i, q->v[k][i]);
    struct kl_tensor input = {q->dtype, 2, shape, operands[KL_INPUT]};
    struct kl_tensor target = {q->dtype, 2, shape, operands[KL_TARGET]};
    struct kl_options options = q->options;
    if (q->spaces[KL_INPUT] != KL_LOGIT && q->spaces[KL_TARGET] != KL_LOGIT)
        options.temperature = 1;
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem), "%s", problem.detail);
    *rule = kl_job_of(&plan, NULL).rule;
    struct kl_results results = {q->wants_loss ? losses : NULL,
                                 {q->wants[KL_INPUT] ? grads[KL_INPUT] : NULL,
                                  q->wants[KL_TARGET] ? grads[KL_TARGET] : NULL},
                                 NULL};
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, &problem), "%s", problem.detail);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < KL_OPERANDS; k++)
            to->grads[k][i] = kl_load(q->dtype, grads[k], i);
    for (size_t i = 0; i < plan.loss_size / kl_dtype_size(q->dtype); i++)
        to->losses[q->options.n_dim ? i * q->length : i] = kl_load(q->dtype, losses, i);
}

/* ---- The comparison */

static double rounded(enum kl_dtype dtype, double value)
{
    char cell[8];
    kl_store(dtype, cell, 0, value);
    return kl_load(dtype, cell, 0);
}

static bool agree(enum kl_dtype dtype, double ours, double defined)
{
    static const double units[KL_DTYPES] = {1e-9, 1e-5, 3e-3, 3e-2};
    double nearest = rounded(dtype, defined);
    if (!isfinite(nearest))
        return isnan(nearest) ? isnan(ours) : ours == nearest;
    return fabs(ours - nearest) <= units[dtype] * (1 + fabs(nearest));
}

static void check(const struct kl_kernel *kernel, const struct question *q,
                  unsigned long long round)
{
    static struct answer ours, defined;
    enum kl_rule rule;
    run(q, &rule, &ours);
    for (size_t row = 0; row < q->rows; row++)
        define_row(q, rule, row * q->length, &defined);
    for (size_t i = 0; i < q->rows * q->length; i++)
        for (int k = 0; k <= KL_OPERANDS; k++) {
            bool is_loss = k == KL_OPERANDS;
            if (is_loss ? !q->wants_loss || (q->options.n_dim && i % q->length) : !q->wants[k])
                continue;
            double a = is_loss ? ours.losses[i] : ours.grads[k][i];
            double b = is_loss ? defined.losses[i] : defined.grads[k][i];
            if (!agree(q->dtype, a, b)) {
                cr_expect(
                    false,
                    "%s, round %llu: %s, %zu rows of %zu, spaces %d %d, compat %d, dim %zu, wants "
                    "%d %d %d: %s of element %zu of row %zu, %g against %g: %g, not %g",
                    kernel->name, round, kl_dtype_name(q->dtype), q->rows, q->length, q->spaces[0],
                    q->spaces[1], q->options.compat, q->options.n_dim, q->wants_loss, q->wants[0],
                    q->wants[1],
                    is_loss ? "loss"
                    : k     ? "derivative by target"
                            : "derivative by input",
                    i % q->length, i / q->length, q->v[0][i], q->v[1][i], a, b);
                return;
            }
        }
}

/* ---- Random calls */

static size_t choose(unsigned long long *state, size_t n)
{
    return (size_t)(uniform(state) * (double)n);
}

static double ordinary(enum kl_space space, size_t length, unsigned long long *state)
{
    double u = uniform(state);
    return space == KL_PROB ? (u + 0.1) / (double)length : space == KL_LOGIT ? 8 * u - 4 : -4 * u;
}

static double special(enum kl_space space, bool is_math, unsigned long long *state)
{
    static const double numbers[] = {NAN, INFINITY, 0, -(double)INFINITY, -1e4};
    size_t n = space == KL_PROB && is_math ? 3 : COUNT(numbers);
    return numbers[choose(state, n)];
}

/* Fills a row: one special value alone, at the start, here and there, or none. */
static void fill_row(struct question *q, int k, double *row, unsigned long long *state)
{
    enum kl_space space = q->spaces[k];
    double one = special(space, q->options.compat == KL_MATH, state);
    size_t way = choose(state, 6), until = choose(state, q->length + 1);
    for (size_t i = 0; i < q->length; i++) {
        bool rare = uniform(state) < 2 / (double)q->length;
        row[i] = way == 0 || (way == 1 && i < until) || (way == 2 && rare) ? one
                 : way == 3 && rare ? special(space, q->options.compat == KL_MATH, state)
                                    : ordinary(space, q->length, state);
        row[i] = rounded(q->dtype, row[i]);
    }
}

static void draw(struct question *q, unsigned long long *state)
{
    static const size_t lengths[] = {1, 1, 2, 3, 5, 17, 63, 64, 65, 100, 200, 1024, MAX_LENGTH};
    static const int last[] = {-1};
    q->dtype = (enum kl_dtype)choose(state, KL_DTYPES);
    q->rows = 1 + choose(state, MAX_ROWS);
    q->length = lengths[choose(state, COUNT(lengths))];
    for (int k = 0; k < KL_OPERANDS; k++)
        q->spaces[k] = (enum kl_space)(KL_LOG_PROB + choose(state, 3));
    q->options = (struct kl_options){.reduction = KL_NONE,
                                     .compat = (enum kl_compat)choose(state, 3),
                                     .input_space = q->spaces[KL_INPUT],
                                     .target_space = q->spaces[KL_TARGET],
                                     .temperature = choose(state, 2) ? 1 : 0.5 + uniform(state),
                                     .dim = last,
                                     .n_dim = choose(state, 2)};
    q->wants_loss = choose(state, 4) > 0;
    for (int k = 0; k < KL_OPERANDS; k++)
        q->wants[k] = choose(state, 2);
    for (int k = 0; k < KL_OPERANDS; k++)
        for (size_t row = 0; row < q->rows; row++)
            fill_row(q, k, q->v[k] + row * q->length, state);
}

Test(special_rows, random_special_values_are_as_defined)
{
    enum { ROUNDS = 6000 };
    static struct question q;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        unsigned long long state = 5;
        for (unsigned long long round = 0; (*k)->supported() && round < ROUNDS; round++) {
            cr_assert(kl_simd_select((*k)->name, NULL));
            draw(&q, &state);
            check(*k, &q, round);
        }
    }
    cr_assert(kl_simd_select("auto", NULL));
}

/* Rows that have no softmax: of -inf alone, and of one logit that is not finite. */
Test(special_rows, rows_without_a_softmax_are_nan)
{
    static const double logits[] = {-(double)INFINITY, (double)INFINITY, NAN};
    static const size_t lengths[] = {1, 64, 3000};
    enum { LONGEST = 3000 };
    static char input[LONGEST * 8], target[LONGEST * 8], grads[LONGEST * 8];
    for (size_t c = 0; c < KL_DTYPES * COUNT(logits) * COUNT(lengths); c++) {
        enum kl_dtype dtype = (enum kl_dtype)(c % KL_DTYPES);
        double logit = logits[c / KL_DTYPES % COUNT(logits)], loss;
        size_t n = lengths[c / KL_DTYPES / COUNT(logits)];
        struct kl_tensor x = {dtype, 1, &n, input}, t = {dtype, 1, &n, target};
        struct kl_options options = {.reduction = KL_SUM, .input_space = KL_LOGIT};
        struct kl_plan plan;
        for (size_t i = 0; i < n; i++) {
            kl_store(dtype, input, i, logit);
            kl_store(dtype, target, i, 1 / (double)n);
        }
        cr_assert(kl_plan(&plan, &x, &t, &options, NULL));
        for (int beside = 0; beside < 2; beside++) {
            struct kl_results results = {beside ? &loss : NULL, {grads, NULL}, NULL};
            cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
            cr_expect(!beside || isnan(kl_load(dtype, &loss, 0)));
            cr_expect(isnan(kl_load(dtype, grads, n - 1)), "%s, %zu of %g", kl_dtype_name(dtype), n,
                      logit);
        }
    }
}

/* ---- Sums along rows of target's logits, of any size */

/* defined_sum: the sum of a row, what it may err by, and the greatest difference of a logit from its row's maximum. */
struct defined_sum {
    long double sum, bound, spread;
};

static struct defined_sum define_sum(const double *x, const double *t, size_t n, bool is_logit)
{
    long double max[KL_OPERANDS] = {-(long double)INFINITY, -(long double)INFINITY},
                sums[KL_OPERANDS] = {0};
    struct defined_sum to = {0, 0, 0};
    const double *const rows[] = {x, t};
    for (int k = 0; k < KL_OPERANDS; k++) {
        for (size_t i = 0; i < n; i++)
            max[k] = fmaxl(max[k], rows[k][i]);
        for (size_t i = 0; i < n; i++) {
            sums[k] += expl(rows[k][i] - max[k]);
            to.spread = fmaxl(to.spread, k == KL_INPUT && !is_logit ? 0 : max[k] - rows[k][i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        long double log_p = t[i] - max[KL_TARGET] - logl(sums[KL_TARGET]);
        long double log_q = is_logit ? x[i] - max[KL_INPUT] - logl(sums[KL_INPUT]) : x[i];
        long double p = expl(log_p), size = p * fmaxl(1, fmaxl(fabsl(log_p), fabsl(log_q)));
        to.sum += p > 0 ? p * (log_p - log_q) : 0;
        to.bound += p > 0 ? size * (log_p > -690 ? 0x1p-43L : 1) : 0;
    }
    return to;
}

Test(special_rows, sums_of_logits_of_any_size_keep_their_bound)
{
    enum { ROUNDS = 20000, LONGEST = 100 };
    unsigned long long state = 13;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (int round = 0; (*k)->supported() && round < ROUNDS; round++) {
            double x[LONGEST], t[LONGEST], loss, sizes[KL_OPERANDS];
            size_t n = 1 + choose(&state, round % 10 ? 8 : LONGEST);
            bool is_logit = round % 2;
            for (int j = 0; j < KL_OPERANDS; j++)
                sizes[j] = choose(&state, 3) ? ldexp(1, (int)(1023 * uniform(&state))) : 1;
            for (size_t i = 0; i < n; i++) {
                x[i] = (2 * uniform(&state) - 1) * (choose(&state, 2) ? sizes[KL_INPUT] : 1);
                x[i] = is_logit ? x[i] : -fabs(x[i]);
                t[i] = (2 * uniform(&state) - 1) * (choose(&state, 2) ? sizes[KL_TARGET] : 1);
            }
            struct kl_tensor input = {KL_FLOAT64, 1, &n, x}, target = {KL_FLOAT64, 1, &n, t};
            struct kl_options options = {.reduction = KL_SUM,
                                         .input_space = is_logit ? KL_LOGIT : KL_LOG_PROB,
                                         .target_space = KL_LOGIT};
            struct kl_plan plan;
            const struct defined_sum exact = define_sum(x, t, n, is_logit);
            cr_assert(kl_simd_select((*k)->name, NULL) &&
                      kl_plan(&plan, &input, &target, &options, NULL) &&
                      kl_run(&plan, NULL, &loss, NULL));
            if (exact.spread < DBL_MAX && fabsl(exact.sum) < DBL_MAX)
                cr_expect(fabsl(loss - exact.sum) <= exact.bound, "%s, round %d: %.17g, not %.17Lg",
                          (*k)->name, round, loss, exact.sum);
        }
    cr_assert(kl_simd_select("auto", NULL));
}
