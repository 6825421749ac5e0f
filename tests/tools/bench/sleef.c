/* The loss with SLEEF's vector logarithms and exponentials of 1 ulp, in lanes of the operands'
 * dtype; its time and the error of its sums. */
#include "lib/simd/kernel.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdio.h>

#if defined __x86_64__ && __has_include(<sleef.h>)
#include <immintrin.h>
#include <sleef.h>

enum { N = 1 << 16, RUNS = 101 };

static double float64_prob(const void *input, const void *target)
{
    const double *x = input, *t = target;
    __m512d sum = _mm512_setzero_pd();
    for (size_t i = 0; i < N; i += 8) {
        __m512d p = _mm512_loadu_pd(t + i);
        __m512d d = _mm512_sub_pd(Sleef_logd8_u10avx512f(p), _mm512_loadu_pd(x + i));
        sum = _mm512_fmadd_pd(p, d, sum);
    }
    return _mm512_reduce_add_pd(sum);
}

static double float64_log(const void *input, const void *target)
{
    const double *x = input, *t = target;
    __m512d sum = _mm512_setzero_pd();
    for (size_t i = 0; i < N; i += 8) {
        __m512d p = _mm512_loadu_pd(t + i);
        __m512d d = _mm512_sub_pd(p, _mm512_loadu_pd(x + i));
        sum = _mm512_fmadd_pd(Sleef_expd8_u10avx512f(p), d, sum);
    }
    return _mm512_reduce_add_pd(sum);
}

static double float32_prob(const void *input, const void *target)
{
    const float *x = input, *t = target;
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < N; i += 16) {
        __m512 p = _mm512_loadu_ps(t + i);
        __m512 d = _mm512_sub_ps(Sleef_logf16_u10avx512f(p), _mm512_loadu_ps(x + i));
        sum = _mm512_fmadd_ps(p, d, sum);
    }
    return (double)_mm512_reduce_add_ps(sum);
}

static double float32_log(const void *input, const void *target)
{
    const float *x = input, *t = target;
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < N; i += 16) {
        __m512 p = _mm512_loadu_ps(t + i);
        __m512 d = _mm512_sub_ps(p, _mm512_loadu_ps(x + i));
        sum = _mm512_fmadd_ps(Sleef_expf16_u10avx512f(p), d, sum);
    }
    return (double)_mm512_reduce_add_ps(sum);
}

static double (*const sums[2][2])(const void *input, const void *target) = {
    {float64_prob, float64_log}, {float32_prob, float32_log}};

static double value(struct kl_sum sum) { return sum.high + sum.low; }

static void compare(enum kl_dtype dtype, bool log_target)
{
    static char x[N * 8] __attribute__((aligned(64))), t[N * 8] __attribute__((aligned(64)));
    const struct kl_kernel *kernel = kl_kernel(), *const *definition = kl_kernels;
    enum kl_rule rule = log_target ? KL_LOG_PYTORCH : KL_PROB_PYTORCH;
    double a[RUNS], b[RUNS], ratios[RUNS], ours = 0, theirs = 0;
    srand48(1);
    for (size_t i = 0; i < N; i++) {
        double p = drand48() + 1e-9;
        kl_store(dtype, x, i, log(drand48() + 1e-9));
        kl_store(dtype, t, i, log_target ? log(p) : p);
    }
    for (int i = 0; i < RUNS; i++) {
        double start = now_ns(), middle;
        ours = value(kernel->sum[dtype][log_target](
            rule, &(struct kl_elements){.input = x, .target = t}, N));
        middle = now_ns();
        theirs = sums[dtype][log_target](x, t);
        a[i] = (middle - start) / N;
        b[i] = (now_ns() - middle) / N;
        ratios[i] = b[i] / a[i];
    }
    while (definition[1])
        definition++;
    double exact = value(
        (*definition)
            ->sum[dtype][log_target](rule, &(struct kl_elements){.input = x, .target = t}, N));
    printf("| %s | %s | %.3f | %.3f | %.2f | %.1g | %.1g |\n", kl_dtype_name(dtype),
           log_target ? "true" : "false", median(a, RUNS), median(b, RUNS), median(ratios, RUNS),
           fabs(ours / exact - 1), fabs(theirs / exact - 1));
}

int main(void)
{
    if (!__builtin_cpu_supports("avx512f")) {
        puts("\n(no AVX-512 here: no comparison with SLEEF)");
        return 0;
    }
    puts("\nBeside SLEEF's AVX-512 functions, sum of 2^16 elements, one thread, ns an element\n");
    puts("| dtype | log_target | kldiv | SLEEF | ratio | our error | SLEEF's error |");
    puts("|---|---|---|---|---|---|---|");
    for (enum kl_dtype dtype = KL_FLOAT64; dtype <= KL_FLOAT32; dtype++)
        for (int log_target = 0; log_target < 2; log_target++)
            compare(dtype, log_target);
    return 0;
}
#else
int main(void)
{
    puts("\n(libsleef-dev is not installed: no comparison with SLEEF)");
    return 0;
}
#endif
