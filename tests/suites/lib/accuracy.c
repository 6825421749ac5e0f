/* Errors of each kernel's losses and sums, measured with 113-bit arithmetic. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/lib/quad.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { N = SOME_OF(1 << 14) };

static const struct {
    int bits, min_exponent;
} formats[KL_DTYPES] = {[KL_FLOAT64] = {53, -1022},
                        [KL_FLOAT32] = {24, -126},
                        [KL_FLOAT16] = {11, -14},
                        [KL_BFLOAT16] = {8, -126}};

/* data: the kind of operands. NEAR has a relative difference of 1e-6, rounded to the dtype, as
 * drift monitors see. */
enum data { RANDOM, NEAR, PEAKED, TINY, CLOSE, JUST_ABOVE_ONE, DATA };

static const char *const data_names[DATA] = {"random", "near",  "peaked",
                                             "tiny",   "close", "just above one"};

static void draw(enum data data, bool log_target, unsigned long long *state, double *x, double *t)
{
    double p = uniform(state), q = uniform(state);
    switch (data) {
    case NEAR:
        q = p * (1 + 1e-6 * (2 * q - 1));
        break;
    case PEAKED:
        p = 1 - p / 1000;
        q = 1 - q / 1000;
        break;
    case TINY:
        p = exp(-80 * p);
        q = exp(-80 * q);
        break;
    case CLOSE: /* logarithms of size up to 77 with a difference slightly above 2^-13 */
        p = exp(-77 * p);
        q = p * (1 + (1 + q) * 0x1p-13);
        break;
    case JUST_ABOVE_ONE: /* the largest error of a short polynomial */
        p = 1.05 + 0.0125 * p;
        q = pow(p, 1 + 0x1.04p-8);
        break;
    default:
        break;
    }
    *x = log(q);
    *t = log_target ? log(p) : p;
}

struct sample {
    enum kl_dtype dtype;
    bool log_target;
    enum data data;
    char x[N * 8], t[N * 8], loss[N * 8];
    quad exact[N], sum, size;
    quad scale; /* sum of t max(|x|, 1) */
};

static quad scale_of(quad target, quad input)
{
    return fabsq(target) * (fabsq(input) > 1 ? fabsq(input) : 1);
}

static void make(struct sample *s, enum kl_dtype dtype, bool log_target, enum data data)
{
    unsigned long long state = 3;
    s->dtype = dtype;
    s->log_target = log_target;
    s->data = data;
    s->sum = s->size = s->scale = 0;
    for (size_t i = 0; i < N; i++) {
        double x, t;
        draw(data, log_target, &state, &x, &t);
        kl_store(dtype, s->x, i, x);
        kl_store(dtype, s->t, i, t);
        quad input = kl_load(dtype, s->x, i), target = kl_load(dtype, s->t, i);
        if (log_target)
            s->exact[i] = expq(target) * (target - input);
        else
            s->exact[i] = target == 0 ? 0 : target * (logq(target) - input);
        s->sum += s->exact[i];
        s->size += fabsq(s->exact[i]);
        s->scale += scale_of(target, input);
    }
}

/* Error in units of the last place of the dtype at the exact value. */
static double error_in_ulps(enum kl_dtype dtype, double ours, quad exact)
{
    int exponent = exact == 0 ? -2000 : ilogb((double)exact);
    if (exponent < formats[dtype].min_exponent)
        exponent = formats[dtype].min_exponent;
    return (double)(fabsq((quad)ours - exact) / (quad)ldexp(1, exponent + 1 - formats[dtype].bits));
}

/* Tolerance for cancellation: log t - x of float64 is accurate to 2^-60 of `scale`, that of
 * smaller dtypes exactly. */
static double cancelled(enum kl_dtype dtype, quad scale)
{
    return dtype == KL_FLOAT64 ? 0x1p-60 * (double)scale : 0;
}

static void check_losses(const struct kl_kernel *kernel, struct sample *s)
{
    enum kl_rule rule = s->log_target ? KL_LOG_PYTORCH : KL_PROB_PYTORCH;
    double max = s->dtype == KL_FLOAT64 ? 2.6 : 0.51, worst = 0;
    size_t misrounded = 0;
    kernel->map[s->dtype][s->log_target](rule, s->x, s->t, s->loss, N);
    for (size_t i = 0; i < N; i++) {
        double ours = kl_load(s->dtype, s->loss, i);
        double error = error_in_ulps(s->dtype, ours, s->exact[i]);
        quad scale = scale_of(kl_load(s->dtype, s->t, i), kl_load(s->dtype, s->x, i));
        misrounded += !(error <= 0.5);
        if (!(error <= worst) && !(fabsq(ours - s->exact[i]) <= cancelled(s->dtype, scale)))
            worst = error;
    }
    bool few = s->dtype == KL_FLOAT64 || misrounded * 10000 <= N;
    cr_expect(few && worst <= max, "%s %s %s log_target=%d: %zu of %d misrounded, worst %.3f ulp",
              kernel->name, kl_dtype_name(s->dtype), data_names[s->data], s->log_target, misrounded,
              N, worst);
}

static void check_sum(const struct kl_kernel *kernel, const struct sample *s)
{
    enum kl_rule rule = s->log_target ? KL_LOG_PYTORCH : KL_PROB_PYTORCH;
    struct kl_sum sum = kernel->sum[s->dtype][s->log_target](
        rule, &(struct kl_elements){.input = s->x, .target = s->t}, N);
    quad error = fabsq((quad)sum.high + sum.low - s->sum);
    quad bound = s->size * (s->dtype == KL_FLOAT64 ? 0x1p-50 : 0x1p-40);
    cr_expect(error <= bound + cancelled(s->dtype, s->scale),
              "%s %s %s log_target=%d: sum off by 2^%.1f of the terms", kernel->name,
              kl_dtype_name(s->dtype), data_names[s->data], s->log_target,
              log2((double)(error / s->size)));
}

Test(accuracy, of_losses_and_sums)
{
    struct sample *s = malloc(sizeof *s);
    for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++)
        for (int log_target = 0; log_target < 2; log_target++)
            for (enum data data = 0; data < DATA; data++) {
                make(s, dtype, log_target, data);
                for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
                    if ((*k)->supported()) {
                        check_losses(*k, s);
                        check_sum(*k, s);
                    }
            }
    free(s);
}

/* Pairs of float32, found by search, whose difference leaves few of the bits of a long double
 * logarithm. */
Test(accuracy, of_what_cancels_by_chance)
{
    static const float pairs[][2] = {{0x1.42096p-5f, 0x1.0a439ap+0f},
                                     {-0x1.23c352p-1f, 0x1.2197b4p-1f},
                                     {-0x1.8cef6ep-1f, 0x1.d7a2d4p-2f},
                                     {0, 1},
                                     {0x1p-149f, 1}};
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t i = 0; i < COUNT(pairs) && (*k)->supported(); i++) {
            quad x = pairs[i][0], t = pairs[i][1], exact = t * (logq(t) - x);
            float loss;
            (*k)->map[KL_FLOAT32][false](KL_PROB_PYTORCH, &pairs[i][0], &pairs[i][1], &loss, 1);
            cr_expect(error_in_ulps(KL_FLOAT32, loss, exact) <= 0.51, "%s: pair %zu: %a",
                      (*k)->name, i, (double)loss);
            struct kl_sum sum = (*k)->sum[KL_FLOAT32][false](
                KL_PROB_PYTORCH,
                &(struct kl_elements){.input = &pairs[i][0], .target = &pairs[i][1]}, 1);
            cr_expect(fabsq((quad)sum.high + sum.low - exact) <= 0x1p-40 * fabsq(exact),
                      "%s: sum of pair %zu: %a", (*k)->name, i, sum.high);
        }
}

/* Losses whose exponential barely fits a double, or does not; their sum exceeds float32. */
Test(accuracy, of_the_sign_of_sums_that_overflow)
{
    enum { LENGTH = 64 };
    float x[LENGTH], t[LENGTH];
    for (size_t i = 0; i < LENGTH; i++)
        x[i] = t[i] = -1;
    t[0] = 709;
    x[0] = 709 - 0x1p-14f;
    t[1] = 695;
    x[1] = 695.125f;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!(*k)->supported())
            continue;
        struct kl_sum sum = (*k)->sum[KL_FLOAT32][true](
            KL_LOG_PYTORCH, &(struct kl_elements){.input = x, .target = t}, LENGTH);
        cr_expect(sum.high > 0x1p900, "%s: %g", (*k)->name, sum.high);
    }
}

/* Accuracy for drift monitors: six digits of the KL of nearly equal float32 distributions, and 0
 * for equal ones. */
Test(accuracy, of_the_divergence_near_zero)
{
    static float x[N], t[N];
    unsigned long long state = 23;
    quad exact = 0, total = 0, input_total = 0;
    double p[N], q[N];
    for (size_t i = 0; i < N; i++) {
        p[i] = uniform(&state);
        q[i] = p[i] * (1 + 1e-6 * (2 * uniform(&state) - 1));
        total += p[i];
        input_total += q[i];
    }
    for (size_t i = 0; i < N; i++) {
        t[i] = (float)(p[i] / (double)total);
        x[i] = (float)log(q[i] / (double)input_total);
        exact += (quad)t[i] * (logq((quad)t[i]) - (quad)x[i]);
    }
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!(*k)->supported())
            continue;
        struct kl_sum sum = (*k)->sum[KL_FLOAT32][false](
            KL_PROB_PYTORCH, &(struct kl_elements){.input = x, .target = t}, N);
        double error = (double)(fabsq((quad)sum.high + sum.low - exact) / fabsq(exact));
        cr_expect(error < 1e-6, "%s: relative error %g", (*k)->name, error);
        struct kl_sum none = (*k)->sum[KL_FLOAT32][true](
            KL_LOG_PYTORCH, &(struct kl_elements){.input = x, .target = x}, N);
        cr_expect(none.high == 0 && none.low == 0, "%s: %g", (*k)->name, none.high);
    }
}

/* Doubles at a half, between it and the next one, and beside these, are rounded once, as kl_store rounds them. */
Test(accuracy, halves_are_rounded_once)
{
    enum { BESIDE = 11 };
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t i = 0; (*k)->supported() && i < (size_t)2 << 16; i++) {
            enum kl_dtype dtype = i & 1 ? KL_FLOAT16 : KL_BFLOAT16;
            uint16_t halves[] = {(uint16_t)(i >> 1), (uint16_t)((i >> 1) + 1)}, ours[BESIDE], exact;
            double a = kl_load(dtype, halves, 0), b = kl_load(dtype, halves, 1);
            if (isinf(b) && isfinite(a))
                b = copysign(dtype == KL_FLOAT16 ? 0x1p16 : 0x1p128, a);
            double tie = (a + b) / 2;
            const double v[BESIDE] = {a,
                                      -b,
                                      tie,
                                      -tie,
                                      nextafter(tie, 0),
                                      nextafter(tie, 2 * tie),
                                      tie * (1 + 0x1p-24),
                                      tie * (1 - 0x1p-24),
                                      tie * (1 + 0x1p-30),
                                      a * (1 + 0x1p-52),
                                      a + (b - a) / 3};
            (*k)->narrow[dtype](v, ours, BESIDE);
            for (size_t j = 0; j < BESIDE; j++) {
                kl_store(dtype, &exact, 0, v[j]);
                if (isnan(v[j]) ? !isnan(kl_load(dtype, ours, j)) : ours[j] != exact)
                    cr_expect(false, "%s %s %a: %04x, not %04x", (*k)->name, kl_dtype_name(dtype),
                              v[j], ours[j], exact);
            }
        }
}
