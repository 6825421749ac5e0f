/* Errors of losses of logits, and of probabilities against logarithms, of their sums along rows and of their derivatives,
 * beside the bounds of kldiv.h, for each kernel, measured with 113-bit arithmetic. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/lib/quad.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MAX: elements of a call. EACH: one of how many combinations is tried. Quads take a hundred times as long where they are
 * emulated. */
#ifdef __x86_64__
enum { MAX = 1 << 16, SHORT_ROWS = 500, EACH = 1 };
#else
enum { MAX = 1 << 14, SHORT_ROWS = 100, EACH = 3 };
#endif

/* data: the kind of logits. Many equal ones make plain sums drift. */
enum data { ONE_ABOVE, EQUAL, GRID, RANDOM, WIDE, DATA };
static const char *const data_names[DATA] = {"one above", "equal", "grid", "random", "wide"};

static double draw(enum data data, enum kl_operand operand, size_t i, unsigned long long *state)
{
    double u = uniform(state);
    switch (data) {
    case ONE_ABOVE:
        return operand == KL_INPUT ? -1 : i == 0 ? 14 : 0;
    case EQUAL:
        return i == 0 ? 10 * u : -0.3 - operand;
    case GRID:
        return floor(16 * u) / 2;
    case RANDOM:
        return 8 * u;
    default:
        return 60 * u;
    }
}

/* exact: an element's loss, and the size that its error is measured by: p max(|log p|, |log q|, 1). */
struct exact {
    quad p, q, loss, size;
};

/* call: rows of n elements, one after another or side by side; and what its arrays hold. */
struct call {
    enum kl_dtype dtype;
    enum data data;
    size_t rows, n;
    bool columns;
    double temperature;
    enum kl_space spaces[KL_OPERANDS];
    char *operands[KL_OPERANDS];
    quad *logs[KL_OPERANDS]; /* of the probabilities that the operands stand for, exactly */
    struct exact *exact;     /* of each element */
};

static size_t element_at(const struct call *call, size_t row, size_t i)
{
    return call->columns ? i * call->rows + row : row * call->n + i;
}

/* Makes logs of a row's logits those of its softmax. */
static void normalize(const struct call *call, quad *logs, size_t row)
{
    quad max = -INFINITY, sum = 0;
    for (size_t i = 0; i < call->n; i++) {
        quad *v = &logs[element_at(call, row, i)];
        *v /= (quad)call->temperature;
        max = *v > max ? *v : max;
    }
    for (size_t i = 0; i < call->n; i++)
        sum += expq(logs[element_at(call, row, i)] - max);
    for (size_t i = 0; i < call->n; i++)
        logs[element_at(call, row, i)] -= max + logq(sum);
}

static void fill(struct call *call, enum kl_operand operand, unsigned long long *state)
{
    quad *logs = call->logs[operand];
    for (size_t row = 0; row < call->rows; row++) {
        for (size_t i = 0; i < call->n; i++) {
            size_t at = element_at(call, row, i);
            double v = draw(call->data, operand, i, state);
            kl_store(call->dtype, call->operands[operand], at, v);
            logs[at] = (quad)kl_load(call->dtype, call->operands[operand], at);
        }
        normalize(call, logs, row);
        for (size_t i = 0; i < call->n && call->spaces[operand] != KL_LOGIT; i++) {
            size_t at = element_at(call, row, i);
            bool is_log = call->spaces[operand] == KL_LOG_PROB;
            kl_store(call->dtype, call->operands[operand], at,
                     (double)(is_log ? logs[at] : expq(logs[at])));
            quad stored = (quad)kl_load(call->dtype, call->operands[operand], at);
            logs[at] = is_log ? stored : logq(stored);
        }
    }
}

static quad greater(quad a, quad b) { return a > b ? a : b; }

static struct exact exact_at(const struct call *call, size_t at)
{
    quad log_q = call->logs[KL_INPUT][at], log_p = call->logs[KL_TARGET][at], p = expq(log_p);
    return (struct exact){p, expq(log_q), p * (log_p - log_q),
                          p * greater(greater(fabsq(log_p), fabsq(log_q)), 1)};
}

/* figures: the worst errors, in units of their bounds. */
enum figure { OF_ELEMENTS, OF_SUMS, BY_INPUT, BY_TARGET, FIGURES };
static const char *const figure_names[FIGURES] = {"elements", "sums", "by input", "by target"};
struct figures {
    double worst[FIGURES];
    enum data data[FIGURES];
    size_t n[FIGURES];
};

static void note(struct figures *figures, enum figure figure, const struct call *call, double ours,
                 quad exact, quad bound)
{
    /* half a unit of the dtype's last place: relative, and that of subnormals */
    static const double rounding[KL_DTYPES] = {0, 0x1p-24, 0x1p-11, 0x1p-8};
    static const double lowest[KL_DTYPES] = {0, 0x1p-150, 0x1p-25, 0x1p-134};
    quad rounded = greater((quad)rounding[call->dtype] * fabsq(exact), (quad)lowest[call->dtype]);
    quad error = fabsq((quad)ours - exact) - rounded;
    double over = error > 0 ? (double)(error / bound) : 0;
    if (over <= figures->worst[figure])
        return;
    figures->worst[figure] = over;
    figures->data[figure] = call->data;
    figures->n[figure] = call->n;
}

/* Runs a call; `losses` are of elements, or of rows if `summed`. */
static void run(const struct call *call, bool summed, char *losses, char *const grads[KL_OPERANDS])
{
    static const int axes[] = {0, 1};
    size_t shape[] = {call->columns ? call->n : call->rows, call->columns ? call->rows : call->n};
    struct kl_tensor input = {call->dtype, 2, shape, call->operands[KL_INPUT]},
                     target = {call->dtype, 2, shape, call->operands[KL_TARGET]};
    struct kl_options options = {.reduction = KL_NONE,
                                 .input_space = call->spaces[KL_INPUT],
                                 .target_space = call->spaces[KL_TARGET],
                                 .temperature = call->temperature,
                                 .dim = &axes[!call->columns],
                                 .n_dim = 1};
    struct kl_results results = {.loss = losses};
    struct kl_plan plan;
    if (!summed && !call->columns) /* the softmax is along the last axis by itself */
        options.n_dim = 0;
    for (int i = 0; i < KL_OPERANDS && grads; i++)
        results.grad[i] = grads[i];
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
}

/* ---- Bounds of kldiv.h */

static bool has_logits(const struct call *call)
{
    return call->spaces[KL_INPUT] == KL_LOGIT || call->spaces[KL_TARGET] == KL_LOGIT;
}

/* Exponentials of logits of 24 bits have a few bits less. */
static const double OF_SUM = 0x1p-46;
static double of_element(const struct call *call)
{
    return call->dtype == KL_FLOAT64 || !has_logits(call) ? 0x1p-50 : 0x1p-46;
}

static quad at_least_one(quad v) { return greater(fabsq(v), 1); }

static void check_elements(const struct call *call, const char *losses, struct figures *figures)
{
    for (size_t at = 0; at < call->rows * call->n; at++) {
        struct exact exact = call->exact[at];
        quad more =
            call->spaces[KL_TARGET] == KL_LOGIT ? at_least_one(call->logs[KL_TARGET][at]) : 1;
        note(figures, OF_ELEMENTS, call, kl_load(call->dtype, losses, at), exact.loss,
             (quad)of_element(call) * exact.size * more);
    }
}

static void check_rows(const struct call *call, const char *losses, char *const grads[KL_OPERANDS],
                       struct figures *figures)
{
    quad by = (quad)of_element(call) / (quad)call->temperature;
    for (size_t row = 0; row < call->rows; row++) {
        struct exact sum = {0, 0, 0, 0};
        for (size_t i = 0; i < call->n; i++) {
            struct exact exact = call->exact[element_at(call, row, i)];
            sum.p += exact.p, sum.loss += exact.loss, sum.size += exact.size;
        }
        note(figures, OF_SUMS, call, kl_load(call->dtype, losses, row), sum.loss,
             (quad)OF_SUM * sum.size);
        for (size_t i = 0; i < call->n && grads; i++) {
            size_t at = element_at(call, row, i);
            struct exact exact = call->exact[at];
            quad log_q = call->logs[KL_INPUT][at], log_p = call->logs[KL_TARGET][at];
            quad q = exact.q * sum.p, by_target = log_p - log_q - sum.loss;
            if (call->spaces[KL_INPUT] == KL_LOGIT)
                note(figures, BY_INPUT, call, kl_load(call->dtype, grads[KL_INPUT], at),
                     (q - exact.p) / (quad)call->temperature,
                     by * (q * at_least_one(log_q) + exact.p * at_least_one(log_p)));
            if (call->spaces[KL_TARGET] == KL_LOGIT)
                note(figures, BY_TARGET, call, kl_load(call->dtype, grads[KL_TARGET], at),
                     exact.p * by_target / (quad)call->temperature,
                     2 * by * greater(exact.size, exact.p * fabsq(sum.loss)) * at_least_one(log_p));
        }
    }
}

/* ---- Calls */

static struct call new_call(enum kl_dtype dtype)
{
    struct call call = {.dtype = dtype, .exact = malloc(MAX * sizeof(struct exact))};
    for (int i = 0; i < KL_OPERANDS; i++) {
        call.operands[i] = malloc(MAX * sizeof(double));
        call.logs[i] = malloc(MAX * sizeof(quad));
    }
    return call;
}

static void check_call(struct call *call, const struct kl_kernel *const *kernels,
                       struct figures *figures)
{
    char *losses = malloc(MAX * 8), *grads[] = {malloc(MAX * 8), malloc(MAX * 8)};
    for (size_t at = 0; at < call->rows * call->n; at++)
        call->exact[at] = exact_at(call, at);
    for (size_t i = 0; kernels[i]; i++) {
        if (!kernels[i]->supported())
            continue;
        cr_assert(kl_simd_select(kernels[i]->name, NULL));
        run(call, true, losses, NULL);
        check_rows(call, losses, NULL, &figures[i]);
        run(call, true, losses, grads);
        check_rows(call, losses, grads, &figures[i]);
        if (!call->columns) {
            run(call, false, losses, NULL);
            check_elements(call, losses, &figures[i]);
        }
    }
    cr_assert(kl_simd_select("auto", NULL));
    free(losses), free(grads[0]), free(grads[1]);
}

static void check_figures(const struct figures *figures, const char *kernel, enum kl_dtype dtype)
{
    for (enum figure f = 0; f < FIGURES; f++) {
        const char *data = data_names[figures->data[f]];
        cr_log_info("%-8s %-9s %-9s %6.3f of the bound (%s, rows of %zu)", kernel,
                    kl_dtype_name(dtype), figure_names[f], figures->worst[f], data, figures->n[f]);
        cr_expect(figures->worst[f] <= 1, "%s %s %s: %g times the bound (%s, rows of %zu)", kernel,
                  kl_dtype_name(dtype), figure_names[f], figures->worst[f], data, figures->n[f]);
    }
}

enum { KERNELS = 8 };
static const size_t lengths[] = {1, 2, 5, 10, 17, 33, 63, 64, 100, 257, 1000, 1025, 16384, 65536};

static void check_dtype(enum kl_dtype dtype)
{
    static const enum kl_space spaces[][KL_OPERANDS] = {{KL_LOGIT, KL_LOGIT},
                                                        {KL_LOGIT, KL_PROB},
                                                        {KL_LOGIT, KL_LOG_PROB},
                                                        {KL_LOG_PROB, KL_LOGIT},
                                                        {KL_PROB, KL_LOG_PROB}};
    struct figures figures[KERNELS] = {{.worst = {0}}};
    struct call call = new_call(dtype);
    unsigned long long state = 5;
    for (enum data data = 0; data < DATA; data++)
        for (size_t i = 0; i < COUNT(lengths) && lengths[i] <= (data == ONE_ABOVE ? MAX : MAX / 4);
             i++)
            for (size_t s = 0; s < COUNT(spaces) && (s == 0 || lengths[i] < 300); s++) {
                if ((i + 2 * s + (size_t)data) % EACH != 0)
                    continue;
                call.data = data, call.n = lengths[i];
                call.rows = lengths[i] < SHORT_ROWS ? SHORT_ROWS / lengths[i] : 1;
                call.columns = (i + s + (size_t)data) % 4 == 3 && call.rows > 1;
                memcpy(call.spaces, spaces[s], sizeof call.spaces);
                call.temperature = (i + s) % 3 == 1 && has_logits(&call) ? 1.7 : 1;
                fill(&call, KL_INPUT, &state);
                fill(&call, KL_TARGET, &state);
                check_call(&call, kl_kernels, figures);
            }
    for (size_t i = 0; kl_kernels[i]; i++)
        if (kl_kernels[i]->supported())
            check_figures(&figures[i], kl_kernels[i]->name, dtype);
    for (int i = 0; i < KL_OPERANDS; i++)
        free(call.operands[i]), free(call.logs[i]);
    free(call.exact);
}

Test(softmax_accuracy, of_float64) { check_dtype(KL_FLOAT64); }
Test(softmax_accuracy, of_float32) { check_dtype(KL_FLOAT32); }
Test(softmax_accuracy, of_float16) { check_dtype(KL_FLOAT16); }
Test(softmax_accuracy, of_bfloat16) { check_dtype(KL_BFLOAT16); }

/* ---- Softmaxes that nearly agree */

/* A divergence of terms p (d + expm1(-d)), with d = log(p / q), that do not cancel; the largest |d|
 * and the largest |log p|. */
struct close_row {
    quad loss, max_d, max_log;
};

static struct close_row close_row(const struct call *call, size_t row)
{
    struct close_row exact = {0, 0, 0};
    for (size_t i = 0; i < call->n; i++) {
        size_t at = element_at(call, row, i);
        quad log_p = call->logs[KL_TARGET][at], d = log_p - call->logs[KL_INPUT][at];
        exact.loss += expq(log_p) * (d + expm1q(-d));
        exact.max_d = greater(exact.max_d, fabsq(d));
        exact.max_log = greater(exact.max_log, fabsq(log_p));
    }
    return exact;
}

/* Draws rows that spread by 10 to 100, and others that differ by 1e-8 to 1/10. */
static void fill_close(struct call *call, unsigned long long *state)
{
    for (size_t row = 0; row < call->rows; row++) {
        double spread = 10 * pow(10, uniform(state)), apart = pow(10, -1 - 7 * uniform(state));
        double offset = row % 3 == 0 ? 1000 * uniform(state) : 0;
        for (size_t i = 0; i < call->n; i++) {
            size_t at = element_at(call, row, i);
            double x = spread * (uniform(state) - 0.5);
            double t = x + offset + apart * (uniform(state) - 0.5);
            kl_store(call->dtype, call->operands[KL_INPUT], at, x);
            kl_store(call->dtype, call->operands[KL_TARGET], at, t);
            for (int o = 0; o < KL_OPERANDS; o++)
                call->logs[o][at] = (quad)kl_load(call->dtype, call->operands[o], at);
        }
        for (int o = 0; o < KL_OPERANDS; o++)
            normalize(call, call->logs[o], row);
    }
}

static void check_close(const struct call *call, const struct kl_kernel *kernel, double *worst)
{
    double losses[SHORT_ROWS];
    run(call, true, (char *)losses, NULL);
    for (size_t row = 0; row < call->rows; row++) {
        struct close_row exact = close_row(call, row);
        if (exact.loss >= 0x1p-20)
            continue;
        quad bound = 0x1p-50 * (1 / exact.max_d + exact.max_log) * exact.loss;
        double over = (double)(fabsq((quad)losses[row] - exact.loss) / bound);
        *worst = over > *worst ? over : *worst;
        cr_expect(over <= 1, "%s: a close row of %zu errs by %g times the bound: %g", kernel->name,
                  call->n, over, losses[row]);
    }
}

Test(softmax_accuracy, of_close_rows)
{
    static const size_t sizes[] = {2, 3, 10, 40, 100, 300};
    struct call call = new_call(KL_FLOAT64);
    unsigned long long state = 9;
    double worst[KERNELS] = {0};
    call.spaces[KL_INPUT] = call.spaces[KL_TARGET] = KL_LOGIT;
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        call.n = sizes[i / 2], call.rows = call.n < 40 ? SHORT_ROWS / 2 : 20;
        call.columns = i % 2, call.temperature = 1;
        fill_close(&call, &state);
        for (size_t k = 0; kl_kernels[k]; k++)
            if (kl_kernels[k]->supported()) {
                cr_assert(kl_simd_select(kl_kernels[k]->name, NULL));
                check_close(&call, kl_kernels[k], &worst[k]);
            }
    }
    cr_assert(kl_simd_select("auto", NULL));
    for (size_t k = 0; kl_kernels[k]; k++)
        if (kl_kernels[k]->supported())
            cr_log_info("%-8s close rows %6.3f of the bound", kl_kernels[k]->name, worst[k]);
    for (int i = 0; i < KL_OPERANDS; i++)
        free(call.operands[i]), free(call.logs[i]);
    free(call.exact);
}

/* Terms of every d, alone: of series, of exponentials, of q that p does not give, and of p that is 0. */
Test(softmax_accuracy, terms_of_close_rows)
{
    enum { N = 4099 };
    static double d[N], x[N], p[N], log_q[N], losses[N], rests[N];
    static const double zeros[N];
    unsigned long long state = 11;
    for (size_t i = 0; i < N; i++) {
        double log_p = -800 * uniform(&state) * uniform(&state);
        d[i] = (uniform(&state) - 0.5) * pow(10, 6 * uniform(&state) - 4);
        x[i] = i % 2 ? -d[i] * 3 : 0;
        p[i] = i % 50 == 0 ? 0 : exp(log_p);
        log_q[i] = i % 50 == 0 ? -1 - fabs(d[i]) : log(p[i]) - d[i];
    }
    for (int k = 0; kl_kernels[k]; k++) {
        if (!kl_kernels[k]->supported())
            continue;
        static double targets[N];
        for (size_t i = 0; i < N; i++)
            targets[i] = x[i] + d[i];
        const struct kl_close_rows rows = {{targets, x, {zeros, zeros}, zeros, 1}, p, log_q};
        kl_kernels[k]->close_terms(&rows, losses, rests, N);
        for (size_t i = 0; i < N; i++) {
            quad exact_d = (quad)targets[i] - (quad)x[i], a = fabsq(exact_d);
            bool far = a > 30;
            quad rest = far ? expq((quad)log_q[i]) - (quad)p[i] : (quad)p[i] * expm1q(-exact_d);
            quad loss = (quad)p[i] * exact_d + rest;
            quad size = far ? expq((quad)log_q[i]) + (quad)p[i] * a : fabsq(loss);
            cr_expect(fabsq(losses[i] - loss) <= 0x1p-46Q * size + 0x1p-1060Q, "%s: d %g, p %g: %g",
                      kl_kernels[k]->name, d[i], p[i], losses[i]);
            size = far ? size : fabsq(rest);
            cr_expect(fabsq(rests[i] - rest) <= 0x1p-46Q * size + 0x1p-1060Q, "%s: d %g, p %g: %g",
                      kl_kernels[k]->name, d[i], p[i], rests[i]);
        }
    }
}

/* A loss of the row is infinite, so that all of it is looked at again. */
Test(softmax_accuracy, beside_an_infinite_loss)
{
    static const size_t shape[] = {1, 3};
    const double x[] = {0, -INFINITY, -1}, t[] = {0, -33, -40};
    const struct kl_tensor input = {KL_FLOAT64, 2, shape, x}, target = {KL_FLOAT64, 2, shape, t};
    const struct kl_options options = {
        .reduction = KL_NONE, .input_space = KL_LOGIT, .target_space = KL_LOGIT};
    quad p = 1 / (1 + expq(-33) + expq(-40)), loss = p * (logq(p) + log1pq(expq(-1)));
    double losses[3];
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    for (size_t k = 0; kl_kernels[k]; k++)
        if (kl_kernels[k]->supported()) {
            cr_assert(kl_simd_select(kl_kernels[k]->name, NULL));
            cr_assert(kl_run(&plan, NULL, losses, NULL));
            cr_expect(fabsq((quad)losses[0] - loss) <= 0x1p-52Q * loss, "%s: %.17g",
                      kl_kernels[k]->name, losses[0]);
            cr_expect_eq(losses[1], INFINITY);
        }
    cr_assert(kl_simd_select("auto", NULL));
}
