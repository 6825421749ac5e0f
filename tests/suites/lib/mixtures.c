/* Divergences from a mixture: errors of elements, rows and derivatives beside the bounds of kldiv.h, for each kernel, measured
 * with 113-bit arithmetic; special values; the ends of beta and alpha; KL_REVERSE. */
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/lib/quad.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 1025, KERNELS = 8 };

/* data: how far logits of input and target are apart; SHIFTED: those of target are greater by the same number, too. */
enum data { RANDOM, WIDE, CLOSE, VERY_CLOSE, MIXED, SHIFTED, DATA };
static const char *const data_names[DATA] = {"random",     "wide",  "close",
                                             "very close", "mixed", "shifted"};

/* call: rows of n elements, and the logarithms of what operands stand for, exactly. */
struct call {
    enum kl_dtype dtype;
    enum data data;
    size_t rows, n;
    enum kl_space spaces[KL_OPERANDS];
    enum kl_divergence divergence;
    double share, temperature;
    double operands[KL_OPERANDS][MAX]; /* room for any dtype */
    quad logs[KL_OPERANDS][MAX];
};

static double apart(const struct call *call, unsigned long long *state)
{
    double u = uniform(state) - 0.5;
    switch (call->data) {
    case RANDOM:
        return 8 * u;
    case WIDE:
        return 100 * u;
    case CLOSE:
    case SHIFTED:
        return 0.3 * u;
    case VERY_CLOSE:
        return 1e-5 * u;
    default:
        return u * pow(10, 6 * uniform(state) - 5);
    }
}

/* Makes the logits of a row, in logs, what the operand holds; logs then are of what it holds, exactly. */
static void store_row(struct call *call, int operand, size_t row)
{
    quad *logs = call->logs[operand] + row * call->n, max = -INFINITY, sum = 0;
    bool is_logit = call->spaces[operand] == KL_LOGIT, is_prob = call->spaces[operand] == KL_PROB;
    for (int pass = 0; pass < 2; pass++) {
        max = -INFINITY, sum = 0;
        for (size_t i = 0; i < call->n && (pass == 0 || is_logit); i++) {
            if (pass == 0 && is_logit) {
                kl_store(call->dtype, call->operands[operand], row * call->n + i, (double)logs[i]);
                logs[i] = (quad)kl_load(call->dtype, call->operands[operand], row * call->n + i);
                logs[i] /= (quad)call->temperature;
            }
            max = logs[i] > max ? logs[i] : max;
        }
        for (size_t i = 0; i < call->n; i++)
            sum += expq(logs[i] - max);
        for (size_t i = 0; i < call->n && pass == 0; i++)
            logs[i] -= max + logq(sum);
    }
    for (size_t i = 0; i < call->n && !is_logit; i++) {
        size_t at = row * call->n + i;
        kl_store(call->dtype, call->operands[operand], at,
                 (double)(is_prob ? expq(logs[i]) : logs[i]));
        quad stored = (quad)kl_load(call->dtype, call->operands[operand], at);
        logs[i] = is_prob ? logq(stored) : stored;
    }
}

static void fill(struct call *call, unsigned long long *state)
{
    static const double shifts[KL_DTYPES] = {1e9, 1e4, 100, 100};
    bool is_shifted = call->data == SHIFTED && call->spaces[KL_TARGET] == KL_LOGIT;
    quad by = is_shifted ? (quad)shifts[call->dtype] : 0;
    for (size_t row = 0; row < call->rows; row++) {
        for (size_t i = row * call->n; i < (row + 1) * call->n; i++) {
            call->logs[KL_INPUT][i] =
                (quad)(call->data == WIDE ? 60 * uniform(state) : 8 * uniform(state));
            call->logs[KL_TARGET][i] = call->logs[KL_INPUT][i] + (quad)apart(call, state) + by;
        }
        store_row(call, KL_INPUT, row);
        store_row(call, KL_TARGET, row);
    }
}

/* exact: an element's probabilities and loss; the derivatives by their logarithms; `log` is max(|log p|, |log q|, 1), and
 * `size` what errors are measured by. */
struct exact {
    quad probs[KL_OPERANDS], loss, grads[KL_OPERANDS], log, size, close_size;
};

static quad greater(quad a, quad b) { return a > b ? a : b; }

static double unit_of(const struct call *call)
{
    return call->dtype == KL_FLOAT64 ? 0x1p-49 : 0x1p-44;
}

static bool are_logits(const struct call *call)
{
    return call->spaces[KL_INPUT] == KL_LOGIT && call->spaces[KL_TARGET] == KL_LOGIT;
}

/* u - log1p(u) and the like cancel less in quads than doubles show. */
static struct exact exact_at(const struct call *call, size_t at)
{
    quad x = call->logs[KL_INPUT][at], t = call->logs[KL_TARGET][at], q = expq(x), p = expq(t);
    quad share = (quad)call->share, rest = 1 - share, d = t - x;
    quad p_log = p > q ? -log1pq(rest * expm1q(-d)) : d - log1pq(share * expm1q(d));
    quad q_log = p_log - d, m = share * p + rest * q;
    quad of_shares = call->divergence == KL_JS ? greater(-logq(share), -logq(rest)) : -logq(share);
    struct exact e = {.probs = {q, p}, .log = greater(greater(fabsq(x), fabsq(t)), 1)};
    e.log = greater(e.log, of_shares);
    quad close = greater(fabsq(d) < 1 ? fabsq(d) : 1, (quad)unit_of(call) * e.log);
    if (call->divergence == KL_JS) {
        e.loss = share * p * p_log + rest * q * q_log;
        e.size = m * close * e.log;
        e.grads[KL_INPUT] = rest * q * q_log;
        e.grads[KL_TARGET] = share * p * p_log;
    } else {
        e.loss = p * p_log;
        e.size = greater(p, m) * e.log;
        e.grads[KL_INPUT] = -rest * p * q / m;
        e.grads[KL_TARGET] = p * p_log + rest * p * q / m;
    }
    e.close_size = greater(p, m) * close * e.log;
    return e;
}

/* figures: the worst errors, in units of their bounds. */
enum figure { OF_ELEMENTS, OF_SUMS, UNROUNDED, BY_INPUT, BY_TARGET, FIGURES };
static const char *const figure_names[FIGURES] = {
    "elements", "sums", "sums before they are rounded", "by input", "by target"};
struct figures {
    double worst[FIGURES];
    char where[FIGURES][200];
};

static void note(struct figures *figures, enum figure figure, const struct call *call, double ours,
                 quad exact, quad bound)
{
    static const double rounding[KL_DTYPES] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8};
    static const double lowest[KL_DTYPES] = {0x1p-1074, 0x1p-150, 0x1p-25, 0x1p-134};
    enum kl_dtype dtype = figure == UNROUNDED ? KL_FLOAT64 : call->dtype;
    quad rounded = greater((quad)rounding[dtype] * fabsq(exact), (quad)lowest[dtype]);
    quad error = fabsq((quad)ours - exact) - rounded;
    double over = error > 0 ? (double)(error / bound) : 0;
    if (!(over <= figures->worst[figure])) {
        figures->worst[figure] = over;
        snprintf(figures->where[figure], sizeof figures->where[figure],
                 "%s, rows of %zu, spaces %d %d, divergence %d, share %g: %.17g, not %.17g",
                 data_names[call->data], call->n, call->spaces[0], call->spaces[1],
                 call->divergence, call->share, ours, (double)exact);
    }
}

/* Runs a call; the sum of its losses as a double goes to `sum`, if that is not NULL. */
static void run(const struct call *call, bool summed, double *losses,
                double *const grads[KL_OPERANDS], double *sum)
{
    static const int last[] = {-1};
    const size_t shape[] = {call->rows, call->n};
    const struct kl_tensor input = {call->dtype, 2, shape, call->operands[KL_INPUT]},
                           target = {call->dtype, 2, shape, call->operands[KL_TARGET]};
    const struct kl_options options = {.reduction = KL_NONE,
                                       .input_space = call->spaces[KL_INPUT],
                                       .target_space = call->spaces[KL_TARGET],
                                       .temperature = call->temperature,
                                       .dim = last,
                                       .n_dim = summed,
                                       .divergence = call->divergence,
                                       .beta = call->divergence == KL_JS ? call->share : 0,
                                       .alpha = call->divergence == KL_SKEW ? call->share : 0};
    struct kl_results results = {.loss = losses};
    struct kl_plan plan;
    for (int i = 0; i < KL_OPERANDS && grads; i++)
        results.grad[i] = grads[i];
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
    if (sum) {
        static struct kl_partial partial;
        double pair[2];
        plan.reduction = KL_SUM;
        cr_assert(kl_run_partial(&plan, NULL, &partial, NULL));
        kl_partial_sum(&partial, pair);
        *sum = pair[0];
    }
}

/* The size that a derivative's error is measured by, before the softmax's part. */
static quad grad_size(const struct call *call, const struct exact *e, int operand)
{
    quad share = operand == KL_TARGET ? (quad)call->share : 1 - (quad)call->share;
    quad by = call->divergence == KL_JS ? share * e->probs[operand]
              : operand == KL_TARGET    ? e->probs[KL_TARGET]
                                        : 0;
    return (fabsq(e->grads[operand]) + by) * e->log;
}

/* The size that the error of a row's sum is measured by; adds the sum to *sum. */
static quad add_losses(const struct call *call, const struct exact *row, quad *sum)
{
    quad size = 0;
    for (size_t i = 0; i < call->n; i++) {
        *sum += row[i].loss;
        size += are_logits(call) ? row[i].close_size : row[i].size;
    }
    return size;
}

static void check_row(const struct call *call, const struct exact *row, size_t first,
                      const double *losses, double *const grads[KL_OPERANDS],
                      struct figures *figures)
{
    quad unit = (quad)unit_of(call), sum = 0, size = add_losses(call, row, &sum);
    note(figures, OF_SUMS, call, kl_load(call->dtype, losses, first / call->n), sum, unit * size);
    for (int operand = 0; operand < KL_OPERANDS && grads; operand++) {
        quad of_row = 0, of_sizes = 0;
        for (size_t i = 0; i < call->n; i++)
            of_row += row[i].grads[operand], of_sizes += grad_size(call, &row[i], operand);
        for (size_t i = 0; i < call->n && call->spaces[operand] == KL_LOGIT; i++) {
            const struct exact *e = &row[i];
            quad by = (e->grads[operand] - e->probs[operand] * of_row) / (quad)call->temperature;
            note(figures, operand == KL_INPUT ? BY_INPUT : BY_TARGET, call,
                 kl_load(call->dtype, grads[operand], first + i), by,
                 unit * (grad_size(call, e, operand) + e->probs[operand] * of_sizes * e->log) /
                     (quad)call->temperature);
        }
    }
}

static void check_call(const struct call *call, const struct exact *exact, struct figures *figures)
{
    static double losses[MAX], by[KL_OPERANDS][MAX], *const grads[KL_OPERANDS] = {by[0], by[1]};
    size_t n = call->rows * call->n;
    quad of_all = 0, size = 0;
    double sum;
    run(call, false, losses, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        note(figures, OF_ELEMENTS, call, kl_load(call->dtype, losses, i), exact[i].loss,
             (quad)unit_of(call) * exact[i].size);
    for (int with_grads = 0; with_grads < 2; with_grads++) {
        run(call, true, losses, with_grads ? grads : NULL, &sum);
        for (size_t i = 0; i < n; i += call->n)
            check_row(call, exact + i, i, losses, with_grads ? grads : NULL, figures);
    }
    for (size_t i = 0; i < n; i += call->n)
        size += add_losses(call, exact + i, &of_all);
    note(figures, UNROUNDED, call, sum, of_all, (quad)unit_of(call) * size);
}

static void report(const struct figures *figures, const char *kernel, enum kl_dtype dtype)
{
    for (enum figure f = 0; f < FIGURES; f++) {
        cr_log_info("%s %s %s: %g of the bound (%s)", kernel, kl_dtype_name(dtype), figure_names[f],
                    figures->worst[f], figures->where[f]);
        cr_expect(figures->worst[f] <= 1, "%s %s %s: %g times the bound (%s)", kernel,
                  kl_dtype_name(dtype), figure_names[f], figures->worst[f], figures->where[f]);
    }
}

static void draw(struct call *call, size_t round, unsigned long long *state)
{
    static const size_t lengths[] = {2, 5, 17, 64, 100, 1025};
    static const double shares[] = {0.5, 0.1, 0.9, 1e-3, 0.999, 1e-7, 1 - 0x1p-30, 1e-17};
    call->data = (enum data)(round / 5 % DATA);
    call->n = lengths[round % COUNT(lengths)];
    call->rows = call->n < 100 ? 5 : 1;
    call->share = shares[round / 3 % COUNT(shares)];
    call->divergence = round / 2 % 2 ? KL_JS : KL_SKEW;
    for (int i = 0; i < KL_OPERANDS; i++)
        call->spaces[i] =
            round % 3 == 0 ? KL_LOGIT : (enum kl_space)(KL_LOG_PROB + uniform(state) * 3);
    bool has_logits = call->spaces[0] == KL_LOGIT || call->spaces[1] == KL_LOGIT;
    call->temperature = has_logits && round % 4 == 0 ? 1.7 : 1;
    fill(call, state);
}

static void check_dtype(enum kl_dtype dtype)
{
    static struct call call;
    static struct exact exact[MAX];
    static struct figures figures[KERNELS];
    unsigned long long state = 5;
    call.dtype = dtype;
    for (size_t round = 0; round < SOME_OF(120); round++) {
        draw(&call, round, &state);
        for (size_t i = 0; i < call.rows * call.n; i++)
            exact[i] = exact_at(&call, i);
        for (size_t k = 0; kl_kernels[k]; k++)
            if (kl_kernels[k]->supported()) {
                cr_assert(kl_simd_select(kl_kernels[k]->name, NULL));
                check_call(&call, exact, &figures[k]);
            }
    }
    cr_assert(kl_simd_select("auto", NULL));
    for (size_t k = 0; kl_kernels[k]; k++)
        if (kl_kernels[k]->supported())
            report(&figures[k], kl_kernels[k]->name, dtype);
}

Test(mixtures, of_float64_are_within_their_bounds) { check_dtype(KL_FLOAT64); }
Test(mixtures, of_float32_are_within_their_bounds) { check_dtype(KL_FLOAT32); }
Test(mixtures, of_float16_are_within_their_bounds) { check_dtype(KL_FLOAT16); }
Test(mixtures, of_bfloat16_are_within_their_bounds) { check_dtype(KL_BFLOAT16); }

/* Rows of pairs that are not close, whose mixture hardly varies. */
static void fill_around(struct call *call, unsigned long long *state)
{
    call->n = (size_t)(500 + 500 * uniform(state));
    for (size_t i = 0; i < call->n; i++) {
        double apart = (i % 2 ? 1 : -1) * (0.15 + 0.15 * uniform(state));
        double m = 1 + 0.02 * uniform(state);
        call->logs[KL_INPUT][i] = logq((quad)(m * (1 - apart)));
        call->logs[KL_TARGET][i] = logq((quad)(m * (1 + apart)));
    }
    store_row(call, KL_INPUT, 0);
    store_row(call, KL_TARGET, 0);
}

/* Roundings of losses are independent of each other, and mostly cancel in long rows: their sums err by 8 to 16 units in the
 * last place. That of the logarithm of nearly equal mixtures without its low part is not: though each loss is within its bound,
 * sums err by 48 and more. */
Test(mixtures, roundings_of_long_rows_of_float64_cancel)
{
    static struct call call;
    static double losses[MAX];
    unsigned long long state = 7;
    for (size_t k = 0; kl_kernels[k]; k++)
        for (int is_js = 0; is_js < 2 && kl_kernels[k]->supported(); is_js++) {
            quad error = 0, of_all = 0;
            cr_assert(kl_simd_select(kl_kernels[k]->name, NULL));
            call = (struct call){.dtype = KL_FLOAT64,
                                 .rows = 1,
                                 .spaces = {KL_LOGIT, KL_LOGIT},
                                 .divergence = is_js ? KL_JS : KL_SKEW,
                                 .share = 0.5,
                                 .temperature = 1};
            for (int round = 0; round < 32; round++) {
                quad exact = 0;
                double sum;
                fill_around(&call, &state);
                for (size_t i = 0; i < call.n; i++)
                    exact += exact_at(&call, i).loss;
                run(&call, true, losses, NULL, &sum);
                error += fabsq((quad)sum - exact);
                of_all += exact;
            }
            double ulps = (double)(error / of_all) * 0x1p53;
            cr_expect(ulps < 28, "%s, is_js %d: %g", kl_kernels[k]->name, is_js, ulps);
        }
    cr_assert(kl_simd_select("auto", NULL));
}

/* ---- Special values */

enum { SPECIALS = 100 };

/* An extreme probability or an ordinary one, or its logarithm. Those of a whole row are at most 1. Of float32 only 0 is below
 * 2^-149. */
static double draw_special(const struct kl_mixture *mixture, int operand, unsigned long long *state)
{
    static const double probs[] = {0,        5e-324,    1e-310, 0x1p-1022, 1e-200, 1e-45,
                                   1e-40,    6e-8,      1.0,    1e30,      1e200,  1e308,
                                   INFINITY, -INFINITY, NAN,    -0.5},
                        logs[] = {-INFINITY, -1e9, -745, -720, -700, -300,     -103, -88,
                                  0,         80,   700,  2840, 1e9,  INFINITY, NAN};
    double u = uniform(state), least = mixture->is_f64 ? -745 : -103;
    bool is_prob = mixture->are_probs[operand];
    if (u >= 0.3)
        u = is_prob ? uniform(state) : log(uniform(state));
    else if (is_prob)
        u = probs[(size_t)(u / 0.3 * (double)COUNT(probs))];
    else
        u = logs[(size_t)(u / 0.3 * (double)COUNT(logs))];
    if (mixture->are_whole && u > is_prob)
        u = is_prob;
    if (!is_prob && u < least && u > -1e9)
        u = least;
    return mixture->is_f64 ? u : (double)(float)u;
}

/* True if a result is that of the definition: the same infinity, NaN, or near it; `size` is that of its terms. */
static bool is_defined(double ours, double exact, double size)
{
    if (isnan(exact) || isinf(exact))
        return isnan(exact) ? isnan(ours) : ours == exact;
    return fabs(ours - exact) <= 1e-8 * fabs(exact) + 1e-12 * size + 0x1p-1070;
}

static void check_element(const struct kl_mixture *mixture, const char *kernel, const double *v,
                          double loss, const double *grads)
{
    struct kl_mixture_element e = kl_mixture_element(mixture, v[KL_INPUT], v[KL_TARGET]);
    double size = e.probs[KL_INPUT] + e.probs[KL_TARGET];
    bool good = is_defined(loss, e.loss, size);
    for (int i = 0; i < KL_OPERANDS; i++)
        good = good && is_defined(grads[i], e.grads[i], mixture->are_probs[i] ? 1 : size);
    cr_expect(good,
              "%s: is_js %d, is_f64 %d, are_whole %d, share %g, input %d %a, target %d %a: loss "
              "%g, derivatives %g %g, and not %g, %g %g",
              kernel, mixture->is_js, mixture->is_f64, mixture->are_whole, mixture->share,
              mixture->are_probs[KL_INPUT], v[KL_INPUT], mixture->are_probs[KL_TARGET],
              v[KL_TARGET], loss, grads[0], grads[1], e.loss, e.grads[0], e.grads[1]);
}

static void check_specials(const struct kl_kernel *kernel, const struct kl_mixture *mixture,
                           unsigned long long *state)
{
    double v[KL_OPERANDS][SPECIALS], probs[KL_OPERANDS][SPECIALS], losses[SPECIALS];
    double grads[KL_OPERANDS][SPECIALS];
    const struct kl_mixture_results to = {.losses = losses, .grads = {grads[0], grads[1]}};
    size_t n = (size_t)(1 + uniform(state) * (SPECIALS - 1));
    for (int k = 0; k < KL_OPERANDS; k++)
        for (size_t i = 0; i < n; i++)
            v[k][i] = probs[k][i] = draw_special(mixture, k, state);
    kernel->mixture(mixture, probs[KL_INPUT], probs[KL_TARGET], &to, n);
    for (size_t i = 0; i < n; i++)
        check_element(mixture, kernel->name, (double[]){v[0][i], v[1][i]}, losses[i],
                      (double[]){grads[0][i], grads[1][i]});
}

/* Shares of 0 and 1 are left out, which are KL_FORWARD and KL_REVERSE. */
Test(mixtures, of_special_values_are_those_of_the_definition)
{
    static const double shares[] = {1e-3, 0.25, 0.5, 0.75, 0.999};
    unsigned long long state = 11;
    for (size_t round = 0; round < SOME_OF(4000); round++)
        for (size_t k = 0; kl_kernels[k]; k++) {
            const struct kl_mixture mixture = {.is_js = round & 1,
                                               .is_f64 = round & 2,
                                               .are_whole = round & 4,
                                               .are_probs = {round & 8, round & 16},
                                               .share = shares[round / 32 % COUNT(shares)]};
            if (kl_kernels[k]->supported())
                check_specials(kl_kernels[k], &mixture, &state);
        }
}

/* Exponentials of float64 that are subnormal have few digits left. */
Test(mixtures, of_subnormal_exponentials_are_those_of_the_definition)
{
    static const struct {
        struct kl_mixture mixture;
        double v[KL_OPERANDS];
    } cases[] = {{{.is_f64 = true, .are_probs = {false, true}, .share = 1e-300}, {-744.5, 0.5}},
                 {{.is_f64 = true, .are_probs = {true, false}, .share = 0.5}, {0x1p-1020, -744.5}},
                 {{.is_f64 = true, .are_probs = {false, true}, .share = 0x1p-60}, {-745, 1}}};
    for (size_t k = 0; kl_kernels[k]; k++)
        for (size_t i = 0; i < COUNT(cases) && kl_kernels[k]->supported(); i++) {
            double x = cases[i].v[KL_INPUT], t = cases[i].v[KL_TARGET], loss, grads[KL_OPERANDS];
            const struct kl_mixture_results to = {.losses = &loss, .grads = {&grads[0], &grads[1]}};
            struct kl_mixture_element e = kl_mixture_element(&cases[i].mixture, x, t);
            kl_kernels[k]->mixture(&cases[i].mixture, &x, &t, &to, 1);
            cr_expect(is_defined(loss, e.loss, 0) && is_defined(grads[0], e.grads[0], 0) &&
                          is_defined(grads[1], e.grads[1], 0),
                      "%s %zu: %g, %g %g", kl_kernels[k]->name, i, loss, grads[0], grads[1]);
        }
}
