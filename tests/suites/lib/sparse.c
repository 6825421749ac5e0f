/* Sparse targets: losses and derivatives beside the definition in long double, of random calls; what is refused; what masked
 * rows hold; threads and shards. */
#include "tests/suites/lib/arrays.h"

#include "lib/kldiv.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 12, MAX_N = 1100, MAX_K = 40 };

/* sample: a call, and what its operands hold. */
struct sample {
    size_t rows, n, k;
    enum kl_dtype dtype;
    enum kl_space spaces[KL_OPERANDS];
    struct kl_sparse sparse;
    struct kl_options options;
    long double input[MAX_ROWS * MAX_N], values[MAX_ROWS * MAX_K], normalizers[MAX_ROWS];
    char arrays[KL_OPERANDS][sizeof(double) * MAX_ROWS * MAX_N];
    double normalizer[MAX_ROWS], weight[MAX_ROWS], upstream[MAX_ROWS];
    unsigned char mask[MAX_ROWS];
    int32_t narrow[MAX_ROWS * MAX_K];
    int64_t wide[MAX_ROWS * MAX_K];
};

static const int last[] = {-1};

static size_t below(unsigned long long *state, size_t n)
{
    return (size_t)(uniform(state) * (double)n);
}

/* A row's k indices, none twice, in no order. */
static void draw_indices(struct sample *s, size_t row, unsigned long long *state)
{
    for (size_t i = 0; i < s->k;) {
        int64_t index = (int64_t)below(state, s->n);
        size_t j = 0;
        while (j < i && s->wide[row * s->k + j] != index)
            j++;
        if (j < i)
            continue;
        s->wide[row * s->k + i] = index;
        s->narrow[row * s->k + i++] = (int32_t)index;
    }
}

/* The values of a row: probabilities of which `mass` is left to others, or their logarithms, or logits. */
static void draw_values(struct sample *s, size_t row, unsigned long long *state)
{
    long double logits[MAX_K] = {0}, sum = 0,
                others = uniform(state) < 0.3 ? 1e-3L : uniform(state) + 1e-3;
    double temperature =
        s->spaces[KL_TARGET] == KL_LOGIT && s->options.temperature ? s->options.temperature : 1;
    for (size_t i = 0; i < s->k; i++) {
        logits[i] = (long double)(float)(5 * uniform(state)) / temperature;
        sum += expl(logits[i]);
    }
    long double log_all = logl(sum + others * sum);
    s->normalizers[row] = log_all;
    for (size_t i = 0; i < s->k; i++)
        s->values[row * s->k + i] = s->spaces[KL_TARGET] == KL_LOGIT  ? logits[i] * temperature
                                    : s->spaces[KL_TARGET] == KL_PROB ? expl(logits[i] - log_all)
                                                                      : logits[i] - log_all;
}

static void store_operands(struct sample *s)
{
    const size_t counts[KL_OPERANDS] = {s->rows * s->n, s->rows * s->k};
    long double *const from[KL_OPERANDS] = {s->input, s->values};
    for (int i = 0; i < KL_OPERANDS; i++)
        for (size_t j = 0; j < counts[i]; j++) {
            kl_store(s->dtype, s->arrays[i], j, (double)from[i][j]);
            from[i][j] = (long double)kl_load(s->dtype, s->arrays[i], j);
        }
    for (size_t row = 0; row < s->rows; row++) {
        s->normalizer[row] = (double)s->normalizers[row];
        s->normalizers[row] = s->normalizer[row];
    }
}

static void draw(struct sample *s, enum kl_dtype dtype, bool is_long, unsigned long long *state)
{
    memset(&s->options, 0, sizeof s->options);
    s->dtype = dtype;
    s->rows = 1 + below(state, is_long ? MAX_ROWS : 4);
    s->n = 1 + below(state, is_long ? MAX_N : 9);
    s->k = 1 + below(state, s->n < MAX_K ? s->n : MAX_K);
    for (int i = 0; i < KL_OPERANDS; i++)
        s->spaces[i] = (enum kl_space)(KL_LOG_PROB + below(state, 3));
    bool has_logits = s->spaces[0] == KL_LOGIT || s->spaces[1] == KL_LOGIT;
    s->sparse =
        (struct kl_sparse){.is_int64 = uniform(state) < 0.5, .tail = (enum kl_tail)below(state, 3)};
    if (s->sparse.tail == KL_TAIL_BIN && s->k == s->n)
        s->sparse.tail = KL_TAIL_IGNORE; /* there are no other elements */
    s->sparse.indices = s->sparse.is_int64 ? (const void *)s->wide : s->narrow;
    s->options = (struct kl_options){
        .reduction = (enum kl_reduction)below(state, 4),
        .input_space = s->spaces[0],
        .target_space = s->spaces[1],
        .temperature = has_logits && uniform(state) < 0.5 ? 2.5 : 0,
        .scale = has_logits && uniform(state) < 0.3 ? KL_TEMPERATURE_SQUARED : KL_UNSCALED,
        .dim = last,
        .n_dim = uniform(state) < 0.5,
        .base = uniform(state) < 0.2 ? KL_BITS : KL_NATS,
        .divergence = (enum kl_divergence)below(state, 4),
        .sparse = &s->sparse};
    if (s->sparse.tail == KL_TAIL_DROP && s->options.divergence == KL_REVERSE)
        s->options.divergence = KL_JS; /* infinite otherwise */
    s->options.beta = s->options.divergence == KL_JS ? 0.25 : 0;
    s->options.alpha = s->options.divergence == KL_SKEW ? 0.25 : 0;
    for (size_t row = 0; row < s->rows; row++) {
        draw_indices(s, row, state);
        draw_values(s, row, state);
        s->weight[row] = uniform(state) + 0.1, s->upstream[row] = uniform(state) - 0.3;
        s->mask[row] = uniform(state) < 0.7;
        for (size_t i = 0; i < s->n; i++) {
            double u = uniform(state);
            s->input[row * s->n + i] = s->spaces[0] == KL_PROB
                                           ? (u + 1e-3) / (double)s->n
                                           : 8 * u - (s->spaces[0] == KL_LOG_PROB ? 9 : 0);
        }
    }
    s->mask[below(state, s->rows)] = 1;
    store_operands(s);
}

/* ---- The definition */

static long double term(const struct kl_options *o, long double p, long double q)
{
    long double share = o->divergence == KL_JS ? o->beta : o->alpha,
                m = share * p + (1 - share) * q;
    switch (o->divergence) {
    case KL_REVERSE:
        return q == 0 ? 0 : q * logl(q / p);
    case KL_JS:
        return share * (p == 0 ? 0 : p * logl(p / m)) +
               (1 - share) * (q == 0 ? 0 : q * logl(q / m));
    case KL_SKEW:
        return p == 0 ? 0 : p * logl(p / m);
    default:
        return p == 0 ? 0 : p * logl(p / q);
    }
}

static long double row_loss(const struct sample *s, size_t row)
{
    const long double *x = s->input + row * s->n, *v = s->values + row * s->k;
    long double temperature = s->options.temperature ? (long double)s->options.temperature : 1,
                sum = 0, mass = 0, listed = 0, loss = 0;
    static long double q[MAX_N], p[MAX_K];
    for (size_t i = 0; i < s->n; i++) {
        q[i] = s->spaces[0] == KL_PROB ? x[i]
                                       : expl(s->spaces[0] == KL_LOGIT ? x[i] / temperature : x[i]);
        sum += q[i];
    }
    if (s->spaces[0] == KL_LOGIT) {
        for (size_t i = 0; i < s->n; i++)
            q[i] /= sum;
        sum = 1;
    }
    for (size_t i = 0; i < s->k; i++) {
        p[i] = s->spaces[1] == KL_PROB ? v[i]
               : s->spaces[1] == KL_LOG_PROB
                   ? expl(v[i])
                   : expl(v[i] / temperature -
                          (s->sparse.tail == KL_TAIL_DROP ? 0 : s->normalizers[row]));
        mass += p[i];
    }
    for (size_t i = 0; i < s->k; i++) {
        size_t index = (size_t)s->wide[row * s->k + i];
        loss += term(&s->options, s->sparse.tail == KL_TAIL_DROP ? p[i] / mass : p[i], q[index]);
        listed += q[index];
    }
    if (s->sparse.tail != KL_TAIL_IGNORE)
        loss += term(&s->options, s->sparse.tail == KL_TAIL_DROP ? 0 : fmaxl(0, 1 - mass),
                     fmaxl(0, s->k == s->n ? 0 : sum - listed));
    return loss * (s->options.scale == KL_TEMPERATURE_SQUARED ? temperature * temperature : 1) /
           (s->options.base == KL_BITS ? logl(2) : 1);
}

/* The loss, or with KL_NONE the sum of all times upstream. */
static long double loss_of(const struct sample *s)
{
    long double sum = 0, weights = 0, entries = 0;
    for (size_t row = 0; row < s->rows; row++) {
        if (s->options.mask && !s->mask[row])
            continue;
        long double weight = s->options.weight ? (long double)s->weight[row] : 1;
        sum += row_loss(s, row) * weight *
               (s->options.reduction == KL_NONE ? (long double)s->upstream[row] : 1);
        weights += weight, entries++;
    }
    return s->options.reduction == KL_MEAN        ? sum / weights
           : s->options.reduction == KL_BATCHMEAN ? sum / entries
                                                  : sum;
}

/* ---- Calls */

/* outcome: the results of a sample. */
struct outcome {
    struct kl_plan plan;
    size_t shapes[KL_OPERANDS][2];
    double loss[MAX_ROWS];
    char grads[KL_OPERANDS][sizeof(double) * MAX_ROWS * MAX_N];
};

static bool plan_sample(struct sample *s, bool weighs, bool masks, struct outcome *o,
                        struct kl_problem *problem)
{
    static struct kl_tensor normalizer, weight;
    static struct kl_mask mask;
    const size_t n[KL_OPERANDS] = {s->n, s->k};
    struct kl_tensor tensors[KL_OPERANDS];
    for (int i = 0; i < KL_OPERANDS; i++) {
        o->shapes[i][0] = s->rows, o->shapes[i][1] = n[i];
        tensors[i] = (struct kl_tensor){s->dtype, 2, o->shapes[i], s->arrays[i]};
    }
    normalizer = (struct kl_tensor){KL_FLOAT64, 1, o->shapes[0], s->normalizer};
    weight = (struct kl_tensor){KL_FLOAT64, 1, o->shapes[0], s->weight};
    mask = (struct kl_mask){1, o->shapes[0], s->mask};
    s->sparse.log_normalizer = s->spaces[1] == KL_LOGIT ? &normalizer : NULL;
    s->options.weight = weighs ? &weight : NULL;
    s->options.mask = masks ? &mask : NULL;
    return kl_plan(&o->plan, &tensors[0], &tensors[1], &s->options, problem);
}

static void compute(const struct sample *s, struct kl_pool *pool, struct outcome *o)
{
    const struct kl_tensor upstream = {KL_FLOAT64, 1, o->shapes[0], s->upstream};
    const struct kl_results results = {o->loss, {o->grads[0], o->grads[1]}, NULL};
    struct kl_problem problem = {0};
    bool each = s->options.reduction == KL_NONE;
    cr_assert(kl_run_gradients(&o->plan, each ? &upstream : NULL, pool, &results, &problem), "%s",
              problem.detail);
}

static void describe(const struct sample *s, char *to, size_t size)
{
    snprintf(to, size,
             "%s, %zu of %zu in %zu rows, spaces %d %d, tail %d, divergence %d, reduction %d, T "
             "%g, mask %d, weight %d",
             kl_dtype_name(s->dtype), s->k, s->n, s->rows, s->spaces[0], s->spaces[1],
             s->sparse.tail, s->options.divergence, s->options.reduction, s->options.temperature,
             s->options.mask != NULL, s->options.weight != NULL);
}

static bool is_near(double ours, long double exact, double tolerance)
{
    return ours == (double)exact || fabsl(ours - exact) <= tolerance * (1 + fabsl(exact));
}

static void check_losses(const struct sample *s, const struct outcome *o, const char *what)
{
    static const double tolerances[KL_DTYPES] = {1e-13, 1e-6, 2e-3, 1e-2};
    double tolerance = tolerances[s->dtype];
    for (size_t row = 0; s->options.reduction == KL_NONE && row < s->rows; row++) {
        bool kept = !s->options.mask || s->mask[row];
        long double exact =
            kept ? row_loss(s, row) * (s->options.weight ? (long double)s->weight[row] : 1) : 0;
        double ours = kl_load(s->dtype, o->loss, row);
        cr_expect(is_near(ours, exact, tolerance), "%s, row %zu: %.17g, not %.17Lg", what, row,
                  ours, exact);
    }
    if (s->options.reduction != KL_NONE) {
        long double exact = loss_of(s);
        double ours = kl_load(s->dtype, o->loss, 0);
        cr_expect(is_near(ours, exact, tolerance), "%s: %.17g, not %.17Lg", what, ours, exact);
    }
}

static void check_slopes(struct sample *s, const struct outcome *o, const char *what)
{
    const size_t counts[KL_OPERANDS] = {s->rows * s->n, s->rows * s->k};
    long double *const values[KL_OPERANDS] = {s->input, s->values};
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        for (size_t i = 0; i < counts[operand]; i++) {
            long double value = values[operand][i], step = 1e-7L * fmaxl(fabsl(value), 1e-3L),
                        ends[2];
            for (int side = 0; side < 2; side++) {
                values[operand][i] = value + (side ? step : -step);
                ends[side] = loss_of(s);
            }
            values[operand][i] = value;
            long double slope = (ends[1] - ends[0]) / (2 * step);
            double ours = kl_load(s->dtype, o->grads[operand], i);
            cr_expect(fabsl(ours - slope) <= 2e-7L * (1 + fabsl(slope)),
                      "%s, by %d at %zu: %.12g, not %.12Lg", what, operand, i, ours, slope);
        }
}

static struct sample sample;
static struct outcome alone, together;

Test(sparse, losses_and_gradients_are_those_of_the_definition)
{
    unsigned long long state = 41;
    char what[300];
    for (int round = 0; round < SOME_OF(1500); round++) {
        draw(&sample, KL_FLOAT64, false, &state);
        struct kl_problem problem = {0};
        cr_assert(
            plan_sample(&sample, uniform(&state) < 0.4, uniform(&state) < 0.4, &alone, &problem),
            "%s", problem.detail);
        describe(&sample, what, sizeof what);
        compute(&sample, NULL, &alone);
        check_losses(&sample, &alone, what);
        check_slopes(&sample, &alone, what);
    }
}

/* A sparse target that names all elements is the dense one, under KL_MATH, also where probabilities are 0. */
Test(sparse, of_all_elements_are_those_of_a_dense_target)
{
    enum { ROWS = 3, N = 6 };
    static const size_t shape[] = {ROWS, N};
    static const unsigned char none[ROWS] = {1, 1, 1};
    const struct kl_mask mask = {1, shape, none};
    double operands[KL_OPERANDS][ROWS * N], losses[2][ROWS], grads[2][KL_OPERANDS][ROWS * N];
    int32_t indices[ROWS * N];
    unsigned long long state = 47;
    for (int round = 0; round < SOME_OF(2000); round++) {
        const struct kl_sparse sparse = {.indices = indices, .tail = KL_TAIL_IGNORE};
        struct kl_options options = {.reduction = KL_NONE,
                                     .compat = KL_MATH,
                                     .input_space = (enum kl_space)(KL_LOG_PROB + below(&state, 3)),
                                     .target_space =
                                         (enum kl_space)(KL_LOG_PROB + below(&state, 2)),
                                     .dim = last,
                                     .n_dim = 1,
                                     .mask = below(&state, 2) ? &mask : NULL,
                                     .divergence = (enum kl_divergence)below(&state, 4)};
        const enum kl_space spaces[] = {options.input_space, options.target_space};
        options.beta = options.divergence == KL_JS ? 0.25 : 0;
        options.alpha = options.divergence == KL_SKEW ? 0.25 : 0;
        for (int i = 0; i < KL_OPERANDS; i++)
            for (size_t j = 0; j < ROWS * N; j++) {
                double p = below(&state, 3) ? uniform(&state) / N : 0;
                operands[i][j] = spaces[i] == KL_PROB ? p : log(p);
                indices[j] = (int32_t)(j % N);
            }
        for (size_t row = 0; spaces[KL_INPUT] == KL_LOGIT && row < ROWS; row++)
            operands[KL_INPUT][row * N] = 0.5; /* a softmax needs one that is not 0 */
        for (int is_sparse = 0; is_sparse < 2; is_sparse++) {
            const struct kl_tensor x = {KL_FLOAT64, 2, shape, operands[KL_INPUT]},
                                   t = {KL_FLOAT64, 2, shape, operands[KL_TARGET]};
            const struct kl_results results = {
                losses[is_sparse], {grads[is_sparse][0], grads[is_sparse][1]}, NULL};
            struct kl_problem problem = {0};
            struct kl_plan plan;
            options.sparse = is_sparse ? &sparse : NULL;
            cr_assert(kl_plan(&plan, &x, &t, &options, &problem), "%s", problem.detail);
            cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, &problem), "%s",
                      problem.detail);
        }
        for (int i = 0; i < KL_OPERANDS; i++)
            for (size_t j = 0; j < ROWS * N; j++) {
                double a = grads[1][i][j], b = grads[0][i][j];
                cr_expect((isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-13 * (1 + fabs(b)),
                          "divergence %d, spaces %d %d, operand %d of %g and %g: %g, not %g",
                          options.divergence, spaces[0], spaces[1], i, operands[0][j],
                          operands[1][j], a, b);
            }
    }
}

Test(sparse, of_any_size_and_dtype)
{
    struct kl_pool *pool = kl_pool_new(3);
    unsigned long long state = 43;
    char what[300];
    for (int round = 0; round < SOME_OF(300); round++) {
        draw(&sample, (enum kl_dtype)(round % KL_DTYPES), true, &state);
        bool weighs = uniform(&state) < 0.4, masks = uniform(&state) < 0.4;
        struct kl_problem problem = {0};
        cr_assert(plan_sample(&sample, weighs, masks, &alone, &problem), "%s", problem.detail);
        cr_assert(plan_sample(&sample, weighs, masks, &together, &problem));
        describe(&sample, what, sizeof what);
        compute(&sample, NULL, &alone);
        compute(&sample, pool, &together);
        check_losses(&sample, &alone, what);
        cr_expect_arr_eq(alone.loss, together.loss, alone.plan.loss_size, "%s", what);
        for (int i = 0; i < KL_OPERANDS; i++)
            cr_expect_arr_eq(alone.grads[i], together.grads[i],
                             alone.plan.counts[i] * kl_dtype_size(sample.dtype), "%s", what);
        if (sample.options.reduction == KL_NONE)
            continue;
        struct kl_partial partial = {0};
        cr_assert(kl_run_partial(&alone.plan, pool, &partial, NULL));
        cr_expect_eq(kl_partial_loss(&partial, alone.plan.reduction, alone.plan.dtype),
                     kl_load(sample.dtype, alone.loss, 0), "%s", what);
    }
    kl_pool_free(pool);
}

/* Copies a sample with `more` values a row that are of no element: padding, whose value is NaN, and elements that are named again,
 * behind their first place. `places` tells where each value of the sample went. */
static void pad(const struct sample *s, size_t more, struct sample *padded, size_t *places,
                unsigned long long *state)
{
    *padded = *s;
    padded->k = s->k + more;
    padded->sparse.indices =
        s->sparse.is_int64 ? (const void *)padded->wide : (const void *)padded->narrow;
    padded->options.sparse = &padded->sparse;
    size_t size = kl_dtype_size(s->dtype);
    for (size_t row = 0; row < s->rows; row++)
        for (size_t at = row * padded->k, end = at + padded->k, i = 0; at < end; at++) {
            size_t own = s->k - i, from = row * s->k + i;
            bool is_own = below(state, end - at) < own;
            bool is_again = (i > 0) & below(state, 2);
            from = is_own ? from : is_again ? row * s->k + below(state, i) : 0;
            padded->wide[at] = is_own || is_again ? s->wide[from] : -1;
            padded->narrow[at] = (int32_t)padded->wide[at];
            if (is_own || is_again)
                memcpy(padded->arrays[KL_TARGET] + at * size, s->arrays[KL_TARGET] + from * size,
                       size);
            else
                kl_store(s->dtype, padded->arrays[KL_TARGET], at, (double)NAN);
            if (is_own)
                places[row * s->k + i++] = at;
        }
}

/* Expects the same numbers, of which those of `ours` are at `places`, if there are any. */
static void expect_near(const struct sample *s, const void *ours, const size_t *places,
                        const void *others, size_t n, const char *what)
{
    static const double tolerances[KL_DTYPES] = {1e-13, 1e-6, 2e-3, 1e-2};
    for (size_t i = 0; i < n; i++) {
        double a = kl_load(s->dtype, ours, places ? places[i] : i),
               b = kl_load(s->dtype, others, i);
        cr_expect((isnan(a) && isnan(b)) || is_near(a, b, tolerances[s->dtype]),
                  "%s, number %zu of %zu: %g, not %g", what, i, n, a, b);
    }
}

Test(sparse, padding_and_elements_that_are_named_again_change_nothing)
{
    static struct sample padded;
    static size_t places[MAX_ROWS * MAX_K];
    unsigned long long state = 53;
    char what[300];
    for (int round = 0; round < SOME_OF(1500); round++) {
        draw(&sample, (enum kl_dtype)(round % KL_DTYPES), round % 3 == 0, &state);
        size_t room = (sample.n < MAX_K ? sample.n : MAX_K) - sample.k;
        bool weighs = uniform(&state) < 0.4, masks = uniform(&state) < 0.4;
        struct kl_problem problem = {0};
        describe(&sample, what, sizeof what);
        pad(&sample, below(&state, room + 1), &padded, places, &state);
        cr_assert(plan_sample(&sample, weighs, masks, &alone, &problem), "%s", problem.detail);
        compute(&sample, NULL, &alone);
        cr_assert(plan_sample(&padded, weighs, masks, &together, &problem), "%s", problem.detail);
        compute(&padded, NULL, &together);
        expect_near(&sample, together.loss, NULL, alone.loss,
                    alone.plan.loss_size / kl_dtype_size(alone.plan.dtype), what);
        expect_near(&sample, together.grads[0], NULL, alone.grads[0], alone.plan.counts[0], what);
        expect_near(&sample, together.grads[1], places, alone.grads[1], alone.plan.counts[1], what);
        for (size_t i = 0; i < alone.plan.counts[1]; i++)
            kl_store(sample.dtype, together.grads[1], places[i], 0);
        for (size_t i = 0; i < together.plan.counts[1]; i++)
            cr_expect_eq(kl_load(sample.dtype, together.grads[1], i), 0, "%s, by padding", what);
    }
}

/* A row of padding alone leaves all mass to the rest. */
Test(sparse, rows_of_padding_alone)
{
    const size_t n = 3, k = 2;
    const double input[] = {0, 0, 0}, values[] = {NAN, INFINITY};
    const int64_t indices[] = {-1, -1};
    for (int tail = KL_TAIL_BIN; tail <= KL_TAIL_IGNORE; tail++) {
        const struct kl_sparse sparse = {
            .indices = indices, .is_int64 = true, .tail = (enum kl_tail)tail};
        const struct kl_options options = {
            .reduction = KL_SUM, .input_space = KL_LOGIT, .sparse = &sparse};
        const struct kl_tensor x = {KL_FLOAT64, 1, &n, input}, t = {KL_FLOAT64, 1, &k, values};
        double loss, grad[3];
        const struct kl_results results = {&loss, {grad, NULL}, NULL};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &x, &t, &options, NULL) &&
                  kl_run_gradients(&plan, NULL, NULL, &results, NULL));
        cr_expect(tail == KL_TAIL_DROP ? isnan(loss) : fabs(loss) < 1e-15, "tail %d: %g", tail,
                  loss);
        for (size_t i = 0; tail != KL_TAIL_DROP && i < n; i++)
            cr_expect(fabs(grad[i]) < 1e-15, "tail %d: %g", tail, grad[i]);
    }
}

/* A row far below the others: its logits are finite, and so is the loss; logits of -inf have no mass. */
Test(sparse, of_a_rest_that_has_almost_no_mass)
{
    const size_t n = 5, k = 2;
    const double values[] = {0.5, 0.25};
    const int32_t indices[] = {3, 0};
    const struct kl_sparse sparse = {.indices = indices};
    const struct kl_options options = {
        .reduction = KL_SUM, .input_space = KL_LOGIT, .sparse = &sparse};
    static const double lows[] = {-100, -800, -5000};
    for (size_t i = 0; i < COUNT(lows); i++) {
        const double input[] = {0, lows[i], lows[i] - 1, 0, -INFINITY};
        const struct kl_tensor x = {KL_FLOAT64, 1, &n, input}, t = {KL_FLOAT64, 1, &k, values};
        double loss, grad[5];
        const struct kl_results results = {&loss, {grad, NULL}, NULL};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &x, &t, &options, NULL));
        cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
        double log_rest = lows[i] + log1p(exp(-1)) - log(2);
        double exact =
            0.5 * log(0.5 / 0.5) + 0.25 * log(0.25 / 0.5) + 0.25 * (log(0.25) - log_rest);
        cr_expect(fabs(loss - exact) <= 1e-13 * exact, "%g: %.17g, not %.17g", lows[i], loss,
                  exact);
        double part = 1 / (1 + exp(-1));
        cr_expect(fabs(grad[1] + 0.25 * part) < 1e-13 && fabs(grad[2] + 0.25 * (1 - part)) < 1e-13,
                  "%g: %g %g", lows[i], grad[1], grad[2]);
        cr_expect(fabs(grad[3]) < 1e-13 && fabs(grad[0] - 0.25) < 1e-13 && fabs(grad[4]) < 1e-300,
                  "%g: %g %g %g", lows[i], grad[3], grad[0], grad[4]);
    }
}

/* A rest of target that rounding made is nothing if input has no rest; a larger one is an infinite loss. */
Test(sparse, without_a_rest)
{
    static const struct {
        double values[2], loss;
    } cases[] = {
        {{0.5, 0.5}, 0}, {{0.5, 0.5 - 1e-12}, 0}, {{0.5, 0.5 + 1e-12}, 0}, {{0.5, 0.25}, INFINITY}};
    for (size_t n = 2; n < 4; n++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            const double input[] = {1, 1, -INFINITY};
            const size_t k = 2;
            const int64_t indices[] = {1, 0};
            const struct kl_sparse sparse = {.indices = indices, .is_int64 = true};
            const struct kl_options options = {
                .reduction = KL_SUM, .input_space = KL_LOGIT, .sparse = &sparse};
            const struct kl_tensor x = {KL_FLOAT64, 1, &n, input},
                                   t = {KL_FLOAT64, 1, &k, cases[i].values};
            struct kl_plan plan;
            double loss;
            cr_assert(kl_plan(&plan, &x, &t, &options, NULL) && kl_run(&plan, NULL, &loss, NULL));
            cr_expect(loss == cases[i].loss || fabs(loss - cases[i].loss) < 1e-11, "%zu of %zu: %g",
                      i, n, loss);
        }
}

/* ---- What is refused */

static const size_t two = 2;
static const double zeros[2];
static const struct kl_tensor row_normalizer = {KL_FLOAT64, 1, &two, zeros};
static const int first_axis = 0, second_axis = 1;

Test(sparse, shapes_and_options_are_checked)
{
    static const struct {
        size_t ndim, shape[3];
        struct kl_options options;
        enum kl_tail tail;
        bool normalizer;
        const char *code; /* or NULL */
    } cases[] = {
        {2, {2, 3}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, NULL},
        {2, {2, 5}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, NULL},
        {2, {2, 6}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {2, {2, 0}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {2, {3, 3}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {1, {3}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {3, {1, 2, 3}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {0, {0}, {.reduction = KL_SUM}, KL_TAIL_BIN, false, "shape_mismatch"},
        {2, {2, 3}, {.broadcast = true}, KL_TAIL_BIN, false, "sparse_unsupported"},
        {2, {2, 3}, {.dim = &first_axis, .n_dim = 1}, KL_TAIL_BIN, false, "sparse_unsupported"},
        {2, {2, 3}, {.dim = &second_axis, .n_dim = 1}, KL_TAIL_BIN, false, NULL},
        {2, {2, 3}, {.target_space = KL_LOGIT}, KL_TAIL_BIN, false, "normalizer_missing"},
        {2, {2, 3}, {.target_space = KL_LOGIT}, KL_TAIL_DROP, false, NULL},
        {2, {2, 3}, {.target_space = KL_LOGIT}, KL_TAIL_BIN, true, NULL},
        {2, {2, 3}, {.reduction = KL_SUM}, KL_TAIL_DROP, true, "normalizer_unused"},
        {2, {2, 3}, {.reduction = KL_SUM}, (enum kl_tail)3, false, "tail_invalid"},
    };
    static const double values[12];
    static const int32_t indices[12];
    const size_t shape[] = {2, 5};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct kl_sparse sparse = {indices, false, cases[i].tail,
                                         cases[i].normalizer ? &row_normalizer : NULL};
        const struct kl_tensor x = {KL_FLOAT64, 2, shape, values},
                               t = {KL_FLOAT64, cases[i].ndim, cases[i].shape, values};
        struct kl_options options = cases[i].options;
        struct kl_problem problem = {0};
        struct kl_plan plan;
        options.sparse = &sparse;
        bool good = kl_plan(&plan, &x, &t, &options, &problem);
        cr_expect_eq(good, cases[i].code == NULL, "case %zu: %s", i, problem.detail);
        if (!good && cases[i].code)
            cr_expect_str_eq(problem.code, cases[i].code, "case %zu", i);
    }
    const struct kl_sparse none = {.indices = NULL};
    const struct kl_options options = {.reduction = KL_SUM, .sparse = &none};
    const struct kl_tensor x = {KL_FLOAT64, 2, shape, values}, t = {KL_FLOAT64, 2, shape, values};
    struct kl_problem problem = {0};
    struct kl_plan plan;
    cr_expect(!kl_plan(&plan, &x, &t, &options, &problem));
    cr_expect_str_eq(problem.code, "indices_missing");
}

/* Masked rows may hold anything. */
Test(sparse, data_are_checked)
{
    static const struct {
        int64_t indices[4];
        double values[4];
        const char *code;
        enum kl_operand operand;
        size_t index;
        const char *detail; /* begins with it; or NULL */
    } cases[] = {
        {{0, 1, 2, 3}, {0.5, 0.5, 0.1, 0.2}, NULL, KL_NO_OPERAND, 0, NULL},
        {{0, 1, 2, 5}, {0.5, 0.5, 0.1, 0.2}, "indices_invalid", KL_INDICES, 3, NULL},
        {{0, 1, -1, 2}, {0.5, 0.5, NAN, 0.2}, NULL, KL_NO_OPERAND, 0, NULL},
        {{0, 1, -2, 2},
         {0.5, 0.5, 0.1, 0.2},
         "indices_invalid",
         KL_INDICES,
         2,
         "the index -2 is outside"},
        {{0, 1, 3, 3}, {0.5, 0.5, 0.7, 0.7}, NULL, KL_NO_OPERAND, 0, NULL},
        {{3, 3, 1, 1},
         {0.5, 0.5, 0.1, 0.2},
         "indices_invalid",
         KL_INDICES,
         3,
         "the index 1 is twice"},
        {{3, 3, 1, 9},
         {0.5, 0.4, 0.1, 0.2},
         "indices_invalid",
         KL_INDICES,
         1,
         "the index 3 is twice"},
        {{3, 3, 1, 1}, {NAN, NAN, 0.1, 0.1}, NULL, KL_NO_OPERAND, 0, NULL},
        {{3, 3, 1, 1},
         {NAN, 0.1, 0.1, 0.1},
         "indices_invalid",
         KL_INDICES,
         1,
         "the index 3 is twice"},
        {{0, 1, 2, 3}, {0.5, 0.5, 0.1, -0.2}, "target_negative", KL_TARGET, 3, NULL},
        {{0, 1, 2, 3}, {0.5, 0.5 + 1e-6, 0.1, 0.2}, "mass_invalid", KL_TARGET, 0, NULL},
        {{0, 1, 2, INT64_MIN},
         {0.5, 0.5, 9, 9},
         "indices_invalid",
         KL_INDICES,
         3,
         "the index -9223372036854775808 is"},
        {{0, 1, 2, INT64_MAX},
         {0.5, 0.5, 9, 9},
         "indices_invalid",
         KL_INDICES,
         3,
         "the index 9223372036854775807 is"},
        {{0, (INT64_C(1) << 53) + 1, 2, 3},
         {0.5, 0.5, 9, 9},
         "indices_invalid",
         KL_INDICES,
         1,
         "the index 9007199254740993 is"},
    };
    static const double input[10];
    static const unsigned char none[2];
    const size_t shape[] = {2, 5}, short_shape[] = {2, 2};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int masked = 0; masked < 2; masked++) {
            struct kl_mask mask = {1, shape, none};
            const struct kl_sparse sparse = {.indices = cases[i].indices, .is_int64 = true};
            const struct kl_options options = {.reduction = KL_SUM,
                                               .input_space = KL_LOGIT,
                                               .mask = masked ? &mask : NULL,
                                               .sparse = &sparse};
            const struct kl_tensor x = {KL_FLOAT64, 2, shape, input},
                                   t = {KL_FLOAT64, 2, short_shape, cases[i].values};
            struct kl_problem problem = {0};
            struct kl_plan plan;
            double loss;
            cr_assert(kl_plan(&plan, &x, &t, &options, &problem));
            mask = (struct kl_mask){0}; /* its shape and data alone are borrowed */
            bool good = kl_run(&plan, NULL, &loss, &problem);
            cr_expect_eq(good, masked || !cases[i].code, "case %zu: %s", i, problem.detail);
            if (good || masked)
                continue;
            cr_expect_str_eq(problem.code, cases[i].code, "case %zu", i);
            const char *detail = cases[i].detail ? cases[i].detail : "";
            cr_expect_eq(strncmp(problem.detail, detail, strlen(detail)), 0, "%s", problem.detail);
            cr_expect(problem.operand == cases[i].operand && problem.has_index &&
                          problem.index == cases[i].index,
                      "case %zu: %zu", i, problem.index);
        }
}
