/* Divergences of logits beside KL_FORWARD of the same arrays, on one thread: ns an element, and how many times its time they
 * take. Medians of interleaved runs. */
#include "lib/kldiv.h"
#include "tests/tools/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 25, MAX = 1 << 20, KINDS = 3 };

static const struct {
    const char *name;
    struct kl_options options;
} divergences[] = {{"reverse", {.divergence = KL_REVERSE}},
                   {"js, beta 0.5", {.divergence = KL_JS, .beta = 0.5}},
                   {"js, beta 0.1", {.divergence = KL_JS, .beta = 0.1}},
                   {"skew, alpha 0.1", {.divergence = KL_SKEW, .alpha = 0.1}}};

/* Which derivatives are computed beside the loss. */
static const struct {
    const char *name;
    bool by[KL_OPERANDS];
} gradients[KINDS] = {{"loss", {false, false}},
                      {"gradient of input", {true, false}},
                      {"both gradients", {true, true}}};

static char *operands[KL_OPERANDS], *grads[KL_OPERANDS];

static double time_of(enum kl_dtype dtype, size_t length, struct kl_options options, int kind)
{
    static const int last[] = {-1};
    const size_t shape[] = {MAX / length, length};
    const struct kl_tensor input = {dtype, 2, shape, operands[KL_INPUT]},
                           target = {dtype, 2, shape, operands[KL_TARGET]};
    double loss, start = now_ns();
    struct kl_results results = {.loss = &loss};
    struct kl_plan plan;
    options.reduction = KL_MEAN;
    options.input_space = options.target_space = KL_LOGIT;
    options.dim = last, options.n_dim = 1;
    for (int i = 0; i < KL_OPERANDS; i++)
        results.grad[i] = gradients[kind].by[i] ? grads[i] : NULL;
    if (!kl_plan(&plan, &input, &target, &options, NULL) ||
        !kl_run_gradients(&plan, NULL, NULL, &results, NULL))
        abort();
    return (now_ns() - start) / (double)(shape[0] * shape[1]);
}

static void measure(enum kl_dtype dtype, size_t length, size_t divergence, int kind)
{
    const struct kl_options forward = {.divergence = KL_FORWARD};
    double ours[RUNS], its[RUNS], ratios[RUNS];
    for (int i = -1; i < RUNS; i++) {
        double a = time_of(dtype, length, divergences[divergence].options, kind);
        double b = time_of(dtype, length, forward, kind);
        if (i >= 0)
            ours[i] = a, its[i] = b, ratios[i] = a / b;
    }
    printf("| %s | %zu | %s | %s | %.2f | %.2f | %.2f |\n", kl_dtype_name(dtype), length,
           divergences[divergence].name, gradients[kind].name, median(ours, RUNS),
           median(its, RUNS), median(ratios, RUNS));
    fflush(stdout);
}

int main(void)
{
    static const enum kl_dtype dtypes[] = {KL_FLOAT32, KL_BFLOAT16, KL_FLOAT64};
    static const size_t lengths[] = {10, 100, 1024, 32000};
    srand48(1);
    for (int i = 0; i < KL_OPERANDS; i++) {
        operands[i] = aligned_alloc(64, MAX * sizeof(double));
        grads[i] = aligned_alloc(64, MAX * sizeof(double));
        memset(grads[i], 0, MAX * sizeof(double));
    }
    printf(
        "\nDivergences of logits (%s), one thread, ns an element; goal with a gradient: 2.2 times "
        "forward's time\n\n"
        "| dtype | row | divergence | | kldiv | forward | times |\n|---|---|---|---|---|---|---|\n",
        kl_simd_name());
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t i = 0; i < 2 * (size_t)MAX; i++)
            kl_store(dtypes[d], operands[i % 2], i / 2, 12 * drand48() - 6);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t j = 0; j < sizeof divergences / sizeof *divergences; j++)
                for (int kind = 0; kind < KINDS; kind++)
                    measure(dtypes[d], lengths[i], j, kind);
    }
    return 0;
}
