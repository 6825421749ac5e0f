/* A sparse target of k of 32,000 logits beside one log-sum-exp of each row of input, on one thread: ns a logit. Medians of
 * interleaved runs. */
#include "lib/simd/kernel.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 61, ROWS = 16, LENGTH = 32000, MAX_K = 512 };

static char *input, *values, *grad;
static int32_t indices[ROWS * MAX_K];
static double normalizers[ROWS];

static double time_of(enum kl_dtype dtype, size_t k, bool wants_grad)
{
    const size_t shape[] = {ROWS, LENGTH}, short_shape[] = {ROWS, k};
    const struct kl_tensor x = {dtype, 2, shape, input}, t = {dtype, 2, short_shape, values},
                           normalizer = {KL_FLOAT64, 1, shape, normalizers};
    const struct kl_sparse sparse = {.indices = indices, .log_normalizer = &normalizer};
    const struct kl_options options = {
        .reduction = KL_MEAN, .input_space = KL_LOGIT, .target_space = KL_LOGIT, .sparse = &sparse};
    double loss, start = now_ns();
    const struct kl_results results = {&loss, {wants_grad ? grad : NULL, NULL}, NULL};
    struct kl_plan plan;
    if (!kl_plan(&plan, &x, &t, &options, NULL) ||
        !kl_run_gradients(&plan, NULL, NULL, &results, NULL))
        abort();
    return (now_ns() - start) / (ROWS * LENGTH);
}

static double log_sum_exps(enum kl_dtype dtype)
{
    const struct kl_kernel *kernel = kl_kernel();
    double start = now_ns();
    for (size_t row = 0; row < ROWS; row++) {
        const char *from = input + row * LENGTH * kl_dtype_size(dtype);
        double max = kernel->row_max[dtype](from, LENGTH);
        struct kl_sum sum = kernel->exp_sum[dtype](from, (struct kl_shift){max, 1}, LENGTH);
        normalizers[row] =
            30 + 1e-9 * log(kl_sum_value(sum)); /* of target: its logits are below 6 */
    }
    return (now_ns() - start) / (ROWS * LENGTH);
}

static void measure(enum kl_dtype dtype, size_t k, bool wants_grad)
{
    double ours[RUNS], its[RUNS], ratios[RUNS];
    for (size_t i = 0; i < ROWS * k; i++)
        indices[i] = (int32_t)(i % k * (LENGTH / k) + (size_t)(drand48() * (double)(LENGTH / k)));
    for (int i = -1; i < RUNS; i++) {
        double b = log_sum_exps(dtype), a = time_of(dtype, k, wants_grad);
        if (i >= 0)
            ours[i] = a, its[i] = b, ratios[i] = a / b;
    }
    printf("| %s | %zu | %s | %.2f | %.2f | %.2f |\n", kl_dtype_name(dtype), k,
           wants_grad ? "gradient of input" : "loss", median(ours, RUNS), median(its, RUNS),
           median(ratios, RUNS));
    fflush(stdout);
}

int main(void)
{
    static const enum kl_dtype dtypes[] = {KL_FLOAT32, KL_BFLOAT16, KL_FLOAT64};
    srand48(1);
    input = aligned_alloc(64, (size_t)ROWS * LENGTH * sizeof(double));
    grad = aligned_alloc(64, (size_t)ROWS * LENGTH * sizeof(double));
    values = aligned_alloc(64, (size_t)ROWS * MAX_K * sizeof(double));
    memset(grad, 0, (size_t)ROWS * LENGTH * sizeof(double));
    printf(
        "\nA target of k of 32,000 logits (%s), one thread, ns a logit; goal for the loss with k = "
        "64: 1.15 times one "
        "log-sum-exp\n\n| dtype | k | | kldiv | log-sum-exp | times |\n|---|---|---|---|---|---|\n",
        kl_simd_name());
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t i = 0; i < (size_t)ROWS * LENGTH; i++)
            kl_store(dtypes[d], input, i, 12 * drand48() - 6);
        for (size_t i = 0; i < (size_t)ROWS * MAX_K; i++)
            kl_store(dtypes[d], values, i, 12 * drand48() - 6);
        for (size_t k = 8; k <= MAX_K; k *= 8)
            for (int wants_grad = 0; wants_grad < 2; wants_grad++)
                measure(dtypes[d], k, wants_grad);
    }
    return 0;
}
