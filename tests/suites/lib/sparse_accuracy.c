/* Losses of sparse targets beside 113-bit arithmetic, in units of the bound that kldiv.h tells: rows of up to 2^20 elements, all
 * tails, divergences, spaces and dtypes, in each kernel. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/lib/quad.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_N = 1 << 20, MAX_K = 4096 };

/* row: a call of one row. The named elements are `stride` apart. */
struct row {
    size_t n, k, stride;
    enum kl_dtype dtype, target_dtype;
    enum kl_space spaces[KL_OPERANDS];
    enum kl_divergence divergence;
    enum kl_tail tail;
    double share, temperature, normalizer;
    char input[MAX_N * sizeof(double)], values[MAX_K * sizeof(double)];
    int32_t indices[MAX_K];
};

static quad max_of(quad a, quad b) { return a > b ? a : b; }

static double input_at(const struct row *row, size_t i)
{
    return kl_load(row->dtype, row->input, i);
}

static double temperature_of(const struct row *row, int operand)
{
    return row->spaces[operand] == KL_LOGIT ? row->temperature : 1;
}

/* ---- Rows */

/* Fills in the row: input's logits from 0 to -spread, and values that leave about `left` of their mass; of log-probabilities
 * whose rest is dropped all but e^-200 of it. */
static void fill(struct row *row, double spread, double left, unsigned long long *state)
{
    double sum = 0, T = temperature_of(row, KL_TARGET), offset = 20 * uniform(state), all = 0;
    double logits[MAX_K], less = 0;
    if (row->tail == KL_TAIL_DROP && row->spaces[KL_TARGET] == KL_LOG_PROB)
        less = 200 * uniform(state);
    for (size_t i = 0; i < row->n; i++) {
        double x = -spread * uniform(state);
        kl_store(KL_FLOAT64, row->input, i, x);
        sum += exp(x);
    }
    for (size_t i = 0; i < row->n; i++) {
        double x = kl_load(KL_FLOAT64, row->input, i), log_q = x - log(sum);
        kl_store(row->dtype, row->input, i,
                 row->spaces[KL_INPUT] == KL_LOGIT  ? x * temperature_of(row, KL_INPUT)
                 : row->spaces[KL_INPUT] == KL_PROB ? exp(log_q)
                                                    : log_q);
    }
    for (size_t i = 0; i < row->k; i++) {
        row->indices[i] = (int32_t)(i * row->stride);
        logits[i] = 6 * uniform(state);
        all += exp(logits[i]);
    }
    for (size_t i = 0; i < row->k; i++) {
        double log_p = logits[i] - log(all) + log1p(-left) - less;
        kl_store(row->target_dtype, row->values, i,
                 row->spaces[KL_TARGET] == KL_LOGIT  ? (log_p + offset) * T
                 : row->spaces[KL_TARGET] == KL_PROB ? exp(log_p)
                                                     : log_p);
    }
    row->normalizer = offset;
}

static double loss_of(const struct row *row)
{
    const struct kl_tensor input = {row->dtype, 1, &row->n, row->input},
                           target = {row->target_dtype, 1, &row->k, row->values},
                           normalizer = {KL_FLOAT64, 0, NULL, &row->normalizer};
    const struct kl_sparse sparse = {
        row->indices, false, row->tail,
        row->spaces[KL_TARGET] == KL_LOGIT && row->tail != KL_TAIL_DROP ? &normalizer : NULL};
    const struct kl_options options = {.reduction = KL_SUM,
                                       .input_space = row->spaces[KL_INPUT],
                                       .target_space = row->spaces[KL_TARGET],
                                       .temperature = row->temperature,
                                       .divergence = row->divergence,
                                       .beta = row->divergence == KL_JS ? row->share : 0,
                                       .alpha = row->divergence == KL_SKEW ? row->share : 0,
                                       .sparse = &sparse};
    static struct kl_partial partial;
    struct kl_problem problem = {0};
    struct kl_plan plan;
    double pair[2];
    cr_assert(kl_plan(&plan, &input, &target, &options, &problem), "%s", problem.detail);
    cr_assert(kl_run_partial(&plan, NULL, &partial, &problem), "%s", problem.detail);
    kl_partial_sum(&partial, pair); /* before it is rounded to the dtype */
    return pair[0];
}

/* ---- The definition */

/* exact: the loss, and what its error is measured by. */
struct exact {
    quad loss, size;
};

static quad times_log(quad a, quad log) { return a == 0 ? 0 : a * log; }

/* Adds an element of which target has p and input q, whose error counts as if p were `weight`, if that is more. */
static void add(const struct row *row, struct exact *to, quad p, quad q, quad weight)
{
    quad share = (quad)row->share, w = share * p + (1 - share) * q;
    quad log_p = logq(p), log_q = logq(q), size = 1, a = p;
    size = max_of(size, p >= (quad)0x1p-53 || weight == 0 ? p > 0 ? fabsq(log_p) : 0 : 37);
    size = max_of(size, q > 0 ? fabsq(log_q) : 0);
    switch (row->divergence) {
    case KL_FORWARD:
        to->loss += times_log(p, log_p - log_q);
        break;
    case KL_REVERSE:
        to->loss += times_log(q, log_q - log_p);
        a = q * (row->spaces[KL_INPUT] == KL_LOGIT ? max_of(1, -log_q) : 1);
        weight *= 1 + q / p;
        break;
    case KL_JS:
        to->loss +=
            share * times_log(p, log_p - logq(w)) + (1 - share) * times_log(q, log_q - logq(w));
        a = w, size = max_of(size, max_of(-logq(share), -logq(1 - share)));
        break;
    default:
        to->loss += times_log(p, log_p - logq(w));
        a = max_of(p, w);
    }
    to->size += max_of(a, weight) * size;
}

static struct exact define(const struct row *row)
{
    static quad p[MAX_K], q[MAX_K];
    struct exact to = {0, 0};
    quad sum = 0, rest = 0, mass = 0, log_size = 1, max = 0;
    bool drops = row->tail == KL_TAIL_DROP, is_logit = row->spaces[KL_INPUT] == KL_LOGIT;
    for (size_t i = 0, at = 0; i < row->n; i++) {
        long double x = (long double)input_at(row, i) / (long double)temperature_of(row, KL_INPUT);
        quad e =
            row->spaces[KL_INPUT] == KL_PROB ? (quad)x : (quad)expl(x); /* 64 bits are enough */
        bool is_named = i % row->stride == 0 && i / row->stride < row->k;
        sum += e;
        rest += is_named ? 0 : e;
        if (is_named)
            q[at++] = e;
    }
    for (size_t i = 0; i < row->k; i++) {
        quad v =
            (quad)kl_load(row->target_dtype, row->values, i) / (quad)temperature_of(row, KL_TARGET);
        if (row->spaces[KL_TARGET] == KL_LOGIT && !drops)
            v -= (quad)row->normalizer;
        p[i] = row->spaces[KL_TARGET] == KL_PROB ? v : expq(v);
        mass += p[i];
        if (row->spaces[KL_TARGET] == KL_LOGIT)
            max = max_of(max, fabsq(v) + (drops ? 0 : (quad)row->normalizer));
    }
    log_size = max_of(log_size, max);
    for (size_t i = 0; i < row->k; i++)
        add(row, &to, drops ? p[i] / mass : p[i], is_logit ? q[i] / sum : q[i], 0);
    if (row->tail != KL_TAIL_IGNORE)
        add(row, &to, drops ? 0 : max_of(0, 1 - mass), is_logit ? rest / sum : rest, drops ? 0 : 1);
    to.size *= log_size;
    return to;
}

/* ---- Measuring */

static struct row row;

static void measure(double *worst, char *where, size_t size)
{
    struct exact exact = define(&row);
    double ours = loss_of(&row);
    double unit = row.dtype == KL_FLOAT64 ? 0x1p-50 : 0x1p-46;
    double over = (double)(fabsq((quad)ours - exact.loss) / exact.size) / unit;
    if (!(over <= *worst)) {
        *worst = over;
        snprintf(where, size,
                 "k %zu of %zu, %s, %s, spaces %d %d, divergence %d, tail %d, T %g: %.17g, not "
                 "%.17g",
                 row.k, row.n, kl_dtype_name(row.dtype), kl_dtype_name(row.target_dtype),
                 row.spaces[0], row.spaces[1], row.divergence, row.tail, row.temperature, ours,
                 (double)exact.loss);
    }
}

/* Draws all of a call but its size. */
static void draw(unsigned long long *state)
{
    row.dtype = (enum kl_dtype)(3 * uniform(state));
    row.target_dtype = (enum kl_dtype)(3 * uniform(state));
    for (int i = 0; i < KL_OPERANDS; i++)
        row.spaces[i] = (enum kl_space)(KL_LOG_PROB + (int)(3 * uniform(state)));
    row.divergence = (enum kl_divergence)(4 * uniform(state));
    row.tail = (enum kl_tail)(3 * uniform(state));
    if (row.tail == KL_TAIL_DROP && row.divergence == KL_REVERSE)
        row.divergence = KL_FORWARD; /* infinite otherwise */
    row.share = row.divergence >= KL_JS ? 0.25 : 0;
    bool has_logits = row.spaces[KL_INPUT] == KL_LOGIT || row.spaces[KL_TARGET] == KL_LOGIT;
    row.temperature = has_logits && uniform(state) < 0.5 ? 2.5 : 1;
}

static void measure_rows(unsigned long long *state, double *worst, char *where, size_t size)
{
    for (int i = 0; i < SOME_OF(500); i++) {
        row.n = (size_t)pow(2, 1 + 12 * uniform(state));
        row.k = (size_t)pow((double)row.n, uniform(state));
        row.k = row.k < MAX_K ? row.k : MAX_K;
        row.stride = row.n / row.k;
        draw(state);
        /* float16 rounds values to a sum of more than 1 if they leave little. */
        double left = row.target_dtype == KL_FLOAT16 ? 0.3 : pow(10, -4 * uniform(state)) / 2;
        if (row.divergence != KL_REVERSE && uniform(state) < 0.1)
            left = 0; /* but for rounding */
        fill(&row, uniform(state) < 0.5 ? 12 : 80 * uniform(state), left, state);
        measure(worst, where, size);
    }
}

/* Rows whose other elements are many and alike, so that roundings of their sum are, of each space of input. */
static void measure_long_rows(unsigned long long *state, double *worst, char *where, size_t size)
{
    for (int space = KL_LOG_PROB; space <= KL_LOGIT; space++) {
        draw(state);
        row.n = 1000000, row.k = 64, row.stride = 1000;
        row.dtype = row.target_dtype = KL_FLOAT64;
        row.spaces[KL_INPUT] = (enum kl_space)space, row.spaces[KL_TARGET] = KL_PROB;
        row.tail = KL_TAIL_BIN, row.divergence = KL_FORWARD, row.temperature = 1;
        fill(&row, 0, 0.5, state);
        measure(worst, where, size);
    }
}

Test(sparse_accuracy, losses_err_by_no_more_than_the_bound)
{
    unsigned long long state = 59;
    for (size_t i = 0; kl_kernels[i]; i++) {
        double worst = 0;
        char where[300] = "";
        if (!kl_kernels[i]->supported())
            continue;
        cr_assert(kl_simd_select(kl_kernels[i]->name, NULL));
        measure_rows(&state, &worst, where, sizeof where);
        measure_long_rows(&state, &worst, where, sizeof where);
        cr_log_info("%s: %.2f of the bound: %s", kl_kernels[i]->name, worst, where);
        cr_expect(worst <= 1, "%s: %g: %s", kl_kernels[i]->name, worst, where);
    }
}
