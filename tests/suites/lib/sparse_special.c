/* Sparse targets whose operands hold NaN, infinities and zeros: losses and derivatives are those of a dense call of the same
 * cells, NaN and infinite where these are. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N = 41, K = 3, CELLS = K + 1 };

/* question: a row of a sparse target. Elements 0 to K - 1 are named, the others are the rest. */
struct question {
    enum kl_dtype dtype; /* of sparse operands, which hold what it holds */
    enum kl_space spaces[KL_OPERANDS];
    enum kl_divergence divergence;
    enum kl_tail tail;
    double temperature, normalizer, input[N], values[K];
};

struct answer {
    double loss, by_input[N], by_values[K];
};

static const int last[] = {-1};

static struct kl_options options_of(const struct question *q)
{
    return (struct kl_options){.reduction = KL_SUM,
                               .compat = KL_MATH,
                               .input_space = q->spaces[KL_INPUT],
                               .target_space = q->spaces[KL_TARGET],
                               .dim = last,
                               .n_dim = 1,
                               .divergence = q->divergence,
                               .beta = q->divergence == KL_JS ? 0.25 : 0,
                               .alpha = q->divergence == KL_SKEW ? 0.25 : 0};
}

static bool run(enum kl_dtype dtype, const struct kl_options *options, size_t n,
                const double *input, size_t k, const double *target, double *loss, double *by_input,
                double *by_target, struct kl_problem *problem)
{
    double operands[KL_OPERANDS][N], grads[KL_OPERANDS][N], one; /* room for any dtype */
    const struct kl_tensor x = {dtype, 1, &n, operands[0]}, t = {dtype, 1, &k, operands[1]};
    const struct kl_results results = {&one, {grads[0], grads[1]}, NULL};
    struct kl_plan plan;
    kl_kernel()->narrow[dtype](input, operands[0], n);
    kl_kernel()->narrow[dtype](target, operands[1], k);
    if (!kl_plan(&plan, &x, &t, options, problem) ||
        !kl_run_gradients(&plan, NULL, NULL, &results, problem))
        return false;
    kl_kernel()->widen[dtype](&one, loss, 1);
    kl_kernel()->widen[dtype](grads[0], by_input, n);
    kl_kernel()->widen[dtype](grads[1], by_target, k);
    return true;
}

static bool compute(const struct question *q, struct answer *to, struct kl_problem *problem)
{
    static const int32_t indices[K] = {0, 1, 2};
    const struct kl_tensor normalizer = {KL_FLOAT64, 0, NULL, &q->normalizer};
    const struct kl_sparse sparse = {
        indices, false, q->tail,
        q->spaces[KL_TARGET] == KL_LOGIT && q->tail != KL_TAIL_DROP ? &normalizer : NULL};
    struct kl_options options = options_of(q);
    options.temperature = q->temperature;
    options.sparse = &sparse;
    return run(q->dtype, &options, N, q->input, K, q->values, &to->loss, to->by_input,
               to->by_values, problem);
}

/* ---- The same by a dense call of K elements, and of the rest as one more */

/* Probabilities of input, or their logarithms, as `cells` of a dense call; a logit's logarithm is by the softmax of all. */
static void make_input(const struct question *q, double *logs, double *cells)
{
    double max = -INFINITY, sum = 0, rest = 0;
    bool is_logit = q->spaces[KL_INPUT] == KL_LOGIT, is_prob = q->spaces[KL_INPUT] == KL_PROB;
    for (size_t i = 0; i < N; i++)
        max = isnan(q->input[i]) || q->input[i] > max ? q->input[i] : max;
    for (size_t i = 0; i < N; i++)
        sum += exp((q->input[i] - max) / q->temperature);
    for (size_t i = 0; i < N; i++) {
        logs[i] = is_logit  ? (q->input[i] - max) / q->temperature - log(sum)
                  : is_prob ? log(q->input[i])
                            : q->input[i];
        rest += i < K ? 0 : is_prob ? q->input[i] : exp(logs[i]);
        if (i < K)
            cells[i] = is_prob ? q->input[i] : logs[i];
    }
    cells[K] = is_prob ? rest : log(rest);
}

/* Makes the cells of target of the dense call. If the tail is dropped, logarithms are logits, which a softmax divides. */
static void make_target(const struct question *q, double *cells, double *mass)
{
    bool is_prob = q->spaces[KL_TARGET] == KL_PROB, drops = q->tail == KL_TAIL_DROP;
    *mass = 0;
    for (size_t i = 0; i < K; i++) {
        cells[i] = q->spaces[KL_TARGET] == KL_LOGIT
                       ? q->values[i] / q->temperature - (drops ? 0 : q->normalizer)
                       : q->values[i];
        *mass += is_prob ? cells[i] : exp(cells[i]);
    }
    for (size_t i = 0; i < K && is_prob && drops; i++)
        cells[i] /= *mass;
    double rest = drops ? 0 / *mass : 1 - *mass < 0 ? 0 : 1 - *mass;
    cells[K] = is_prob ? rest : log(rest);
}

static double times(double a, double b) { return a == 0 ? 0 : a * b; }

static void define(const struct question *q, struct answer *to)
{
    double logs[N], cells[KL_OPERANDS][CELLS], grads[KL_OPERANDS][CELLS], mass, sum = 0, shared = 0;
    bool is_prob = q->spaces[KL_TARGET] == KL_PROB, drops = q->tail == KL_TAIL_DROP;
    bool is_logit = q->spaces[KL_INPUT] == KL_LOGIT, has_rest = q->tail != KL_TAIL_IGNORE;
    struct kl_options options = options_of(q);
    struct kl_problem problem = {0};
    make_input(q, logs, cells[KL_INPUT]);
    make_target(q, cells[KL_TARGET], &mass);
    options.input_space = is_logit ? KL_LOG_PROB : q->spaces[KL_INPUT];
    options.target_space = is_prob ? KL_PROB : drops ? KL_LOGIT : KL_LOG_PROB;
    size_t n = has_rest ? CELLS : K;
    cr_assert(run(KL_FLOAT64, &options, n, cells[KL_INPUT], n, cells[KL_TARGET], &to->loss,
                  grads[KL_INPUT], grads[KL_TARGET], &problem),
              "%s", problem.detail);
    for (size_t i = 0; i < n; i++)
        sum += grads[KL_INPUT][i];
    for (size_t i = 0; i < N; i++) {
        double by = i < K ? grads[KL_INPUT][i] : has_rest ? grads[KL_INPUT][K] : 0;
        if (i >= K && q->spaces[KL_INPUT] != KL_PROB && has_rest)
            by = cells[KL_INPUT][K] == -INFINITY ? 0 : times(by, exp(logs[i] - cells[KL_INPUT][K]));
        to->by_input[i] = is_logit ? (by - exp(logs[i]) * sum) / q->temperature : by;
    }
    if (drops && is_prob)
        for (size_t i = 0; i < K; i++)
            shared += cells[KL_TARGET][i] == 0 ? 0 : grads[KL_TARGET][i] * cells[KL_TARGET][i];
    if (q->tail == KL_TAIL_BIN && cells[KL_TARGET][K] != (is_prob ? 0 : -INFINITY))
        shared = grads[KL_TARGET][K];
    for (size_t i = 0; i < K; i++) {
        double by =
            is_prob ? shared : times(shared, exp(cells[KL_TARGET][i] - cells[KL_TARGET][K]));
        by = (grads[KL_TARGET][i] - (drops && !is_prob ? 0 : by)) / (drops && is_prob ? mass : 1);
        to->by_values[i] = q->spaces[KL_TARGET] == KL_LOGIT ? by / q->temperature : by;
    }
}

/* ---- Random rows with special values */

static double draw_value(enum kl_space space, bool is_special, double max,
                         unsigned long long *state)
{
    static const double specials[][3] = {[KL_LOG_PROB] = {NAN, INFINITY, -INFINITY},
                                         [KL_PROB] = {NAN, INFINITY, 0},
                                         [KL_LOGIT] = {NAN, INFINITY, -INFINITY}};
    double u = uniform(state);
    if (is_special)
        return specials[space][(size_t)(3 * u)];
    return space == KL_PROB ? u * max : space == KL_LOG_PROB ? log(u * max) : 3 * u;
}

static struct question draw(unsigned long long *state)
{
    struct question q = {.dtype = uniform(state) < 0.5 ? KL_FLOAT64 : KL_FLOAT32,
                         .divergence = (enum kl_divergence)(4 * uniform(state)),
                         .tail = (enum kl_tail)(3 * uniform(state)),
                         .normalizer = 6 + uniform(state),
                         .temperature = 1};
    for (int i = 0; i < KL_OPERANDS; i++)
        q.spaces[i] = (enum kl_space)(KL_LOG_PROB + (int)(3 * uniform(state)));
    if ((q.spaces[0] == KL_LOGIT || q.spaces[1] == KL_LOGIT) && uniform(state) < 0.5)
        q.temperature = 2;
    double share[KL_OPERANDS] = {uniform(state), uniform(state)};
    for (size_t i = 0; i < N; i++)
        q.input[i] =
            draw_value(q.spaces[KL_INPUT], uniform(state) < 0.3 * pow(share[0], 4), 1.0 / N, state);
    for (size_t i = 0; i < K; i++)
        q.values[i] =
            draw_value(q.spaces[KL_TARGET], uniform(state) < 0.5 * share[1], 1.0 / K, state);
    for (size_t i = 0; i < N && q.dtype == KL_FLOAT32; i++) {
        q.input[i] = (double)(float)q.input[i];
        q.values[i % K] = (double)(float)q.values[i % K];
    }
    if (uniform(state) < 0.1)
        q.normalizer = uniform(state) < 0.5   ? (double)NAN
                       : uniform(state) < 0.5 ? INFINITY
                                              : -INFINITY;
    return q;
}

static bool is_same(enum kl_dtype dtype, double a, double b)
{
    double tolerance = dtype == KL_FLOAT64 ? 1e-12 : 1e-6;
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance * (1 + fabs(b));
}

static void compare(const struct question *q, const double *ours, const double *dense, size_t n,
                    const char *what)
{
    for (size_t i = 0; i < n; i++)
        cr_expect(is_same(q->dtype, ours[i], dense[i]),
                  "%s %zu: %g, not %g: spaces %d %d, divergence %d, tail %d, normalizer %g, "
                  "temperature %g, input %g %g %g, %g, values %g %g %g",
                  what, i, ours[i], dense[i], q->spaces[0], q->spaces[1], q->divergence, q->tail,
                  q->normalizer, q->temperature, q->input[0], q->input[1], q->input[2], q->input[i],
                  q->values[0], q->values[1], q->values[2]);
}

Test(sparse_special, values_give_what_a_dense_call_of_the_same_cells_gives)
{
    unsigned long long state = 53;
    size_t compared = 0;
    for (int round = 0; round < SOME_OF(40000); round++) {
        kl_simd_select(round % 2 ? "generic" : "auto", NULL);
        struct question q = draw(&state);
        struct answer ours, dense;
        struct kl_problem problem = {0};
        if (!compute(&q, &ours, &problem)) { /* an infinite mass */
            cr_expect_str_eq(problem.code, "mass_invalid");
            continue;
        }
        compared++;
        define(&q, &dense);
        compare(&q, &ours.loss, &dense.loss, 1, "loss");
        compare(&q, ours.by_input, dense.by_input, N, "by input");
        compare(&q, ours.by_values, dense.by_values, K, "by value");
    }
    cr_expect(compared > SOME_OF(20000), "%zu", compared);
}
