/* The vector kernel, written once over a small vocabulary. The file that includes this has
 * defined, for one instruction set:
 *
 *   FN                 what precedes a function of the vocabulary: inline, with its target
 *   LANES, vd, vi, vm  doubles in a vector; vectors of doubles and of 64-bit integers; masks
 *   v_set v_add v_sub v_mul v_abs v_floor
 *   v_fma(a, b, c)     a * b + c, rounded once
 *   v_eq v_gt          comparisons, masks; m_or(a, b); m_any(m), whether any lane holds
 *   v_select(m, a, b)  a where m holds, else b
 *   v_clamp(v, low, high), which lets NaN through
 *   v_split(t, &k, &i) m in [1, 2) with t = m * 2^k for t > 0, and i, the first four bits of
 *                      the mantissa; of 0 and of rare lanes it may make anything
 *   v_rare(t)          mask of the lanes that are negative, infinite or NaN, or positive but too
 *                      small for v_split; not of -0
 *   v_bits(v)          the lanes' bits as integers
 *   v_lookup(table, i) table[i & 15] of sixteen doubles
 *   v_scale(v, k)      v * 2^floor(k), for |k| < 1020
 *   v_load_S, v_store_S for S in f64, f32, f16, bf16: LANES elements at any address, widened
 *                      exactly, or rounded once to nearest even
 *
 * Doubles carry the arithmetic of every dtype. "wide" is for float64 operands: logarithms with
 * a low part, compensated sums. "narrow" is for operands of at most 24 bits, where one double
 * has room for all of it.
 *
 * log t = k ln2 + log(1/c) + log1p(r), where c is close to 1/m and r = m c - 1: Tang's method
 * ("Table-driven implementation of the logarithm function", ACM TOMS 16, 1990). The narrow form
 * has an absolute error of about 2^-53, which is plenty until log t and x almost cancel; lanes
 * where they do are told apart and done again in the wide form, which carries some 64 bits. */
#include "lib/kernel.h"
#include "lib/simd/constants.h"

#include <float.h>
#include <math.h>
#include <string.h>

FN vd horner2(const double *c, int degree, vd r, vd r2)
{
    /* Even and odd powers apart: half the latency, no more work, since r2 is wanted anyway. */
    vd even = v_set(c[degree - (degree & 1)]), odd = v_set(c[degree - !(degree & 1)]);
#pragma GCC unroll 16
    for (int i = degree - 2; i >= 0; i--)
        if (i & 1)
            odd = v_fma(odd, r2, v_set(c[i]));
        else
            even = v_fma(even, r2, v_set(c[i]));
    return v_fma(odd, r, even);
}

/* log t - x for t of at most 24 bits, within 2^-53 or so, and exact at t = 1. */
FN vd log_minus_narrow(vd t, vd x)
{
    vd k;
    vi i;
    vd m = v_split(t, &k, &i);
    vd r = v_fma(m, v_lookup(log_c, i), v_set(-1));
    vd high = v_fma(k, v_set(LN2), v_lookup(log_of_c, i));
    vd r2 = v_mul(r, r);
    vd tail = horner2(narrow_log_poly, 7, r, r2);
    return v_fma(r2, tail, v_add(v_sub(high, x), r));
}

/* The same with the low parts kept, within 2^-62 or so. */
FN vd log_minus_wide(vd t, vd x)
{
    vd k;
    vi i;
    vd m = v_split(t, &k, &i), c = v_lookup(log_c, i);
    vd product = v_mul(m, c);
    vd r = v_sub(product, v_set(1));
    vd rest = v_fma(m, c, v_sub(v_set(0), product)); /* m c - 1 = r + rest, exactly */
    vd r2 = v_mul(r, r);
    vd high = v_fma(k, v_set(LN2_HI), v_lookup(log_of_c_hi, i));
    vd low = v_fma(k, v_set(LN2_LO), v_lookup(log_of_c_lo, i));
    low = v_add(low, v_fma(rest, v_sub(r2, r), rest)); /* rest / (1 + r) */
    low = v_fma(r2, horner2(wide_log_poly, 9, r, r2), low);

    /* |high| >= |r| or high = 0, so the first error needs no comparison. */
    vd s = v_add(high, r);
    low = v_add(low, v_sub(r, v_sub(s, high)));
    vd d = v_sub(s, x);
    vd back = v_sub(s, d);
    vd error = v_add(v_sub(s, v_add(d, back)), v_sub(back, x));
    error = v_select(v_eq(v_sub(d, d), v_set(0)), error, v_set(0)); /* d infinite: no error */
    return v_add(d, v_add(error, low));
}

/* exp(t) = 2^k exp(r), with k a multiple of 1/16: gives 2^(k - floor(k)) exp(r), and k. Adding
 * 1.5 * 2^48 rounds to sixteenths, and leaves their number in the low bits. */
FN vd exp_parts_narrow(vd t, vd *k)
{
    vd shifted = v_fma(t, v_set(1 / LN2), v_set(0x1.8p48));
    *k = v_sub(shifted, v_set(0x1.8p48));
    vd r = v_fma(*k, v_set(-LN2), t);
    vd r2 = v_mul(r, r);
    vd e = v_fma(r2, horner2(narrow_exp_poly, 3, r, r2), r);
    vd root = v_lookup(exp_table_hi, v_bits(shifted));
    return v_fma(root, e, root);
}

FN vd exp_parts_wide(vd t, vd *k)
{
    vd shifted = v_fma(t, v_set(1 / LN2), v_set(0x1.8p48));
    *k = v_sub(shifted, v_set(0x1.8p48));
    vd r = v_fma(*k, v_set(-EXP_LN2_HI), t);
    r = v_fma(*k, v_set(-EXP_LN2_LO), r);
    vd r2 = v_mul(r, r);
    vd e = v_fma(r2, horner2(wide_exp_poly, 5, r, r2), r);
    vd root = v_lookup(exp_table_hi, v_bits(shifted));
    vd root_low = v_lookup(exp_table_lo, v_bits(shifted));
    return v_add(root, v_fma(root, e, root_low));
}

/* exp(t) d. Past +-700 float32 has long overflowed or underflowed, and double has not yet. */
FN vd exp_times_narrow(vd t, vd d)
{
    vd k;
    vd p = exp_parts_narrow(v_clamp(t, v_set(-700), v_set(700)), &k);
    return v_scale(v_mul(p, d), k);
}

/* Where exp(t) leaves the range of double the product need not: three factors of 2^k then, and
 * no rounding but the product's and, at the end, that of a subnormal. */
FN vd exp_times_wide(vd t, vd d)
{
    vd k;
    vd p = exp_parts_wide(v_clamp(t, v_set(-2000), v_set(2000)), &k);
    k = v_floor(k);
    vd first = v_clamp(k, v_set(-900), v_set(900));
    vd product = v_mul(v_scale(p, first), d);
    vd rest = v_sub(k, first);
    if (!m_any(v_gt(v_mul(rest, rest), v_set(0))))
        return product;
    vd second = v_clamp(rest, v_set(-1000), v_set(1000));
    return v_scale(v_scale(product, second), v_sub(rest, second));
}

/* The loss of each lane as a product a * b, which sums fuse with their addition. */
struct product {
    vd a, b;
};

/* Narrow lanes that lost more than 13 bits to cancellation, log-probabilities x being negative. */
FN vm cancelled(vd d, vd x) { return v_gt(v_mul(x, v_set(-0x1p-13)), v_abs(d)); }

/* Lanes that this form does not serve come out as anything, and *rare grows by them. */
FN struct product prob_term(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *rare)
{
    vd zero = v_set(0);
    vm positive = v_gt(t, zero);
    vd p = rule == KL_PROB_ONEFLOW ? v_select(positive, t, v_set(1)) : t;
    vd d = dtype == KL_FLOAT64 ? log_minus_wide(p, x) : log_minus_narrow(p, x);
    *rare = m_or(*rare, v_rare(p));
    if (dtype != KL_FLOAT64)
        *rare = m_or(*rare, cancelled(d, x));
    if (rule == KL_PROB_ONEFLOW)
        return (struct product){p, v_select(positive, d, zero)};
    /* 0 times a finite number is 0; under math, 0 times an infinite one too */
    vd at_zero = rule == KL_PROB_MATH ? v_clamp(x, zero, zero) : v_sub(zero, x);
    return (struct product){t, v_select(v_eq(t, zero), at_zero, d)};
}

FN struct product log_term(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *rare)
{
    vd zero = v_set(0);
    vd at_minus_infinity = rule == KL_LOG_MATH ? v_clamp(x, zero, zero) : v_set(NAN);
    vd d = v_select(v_eq(t, v_set(-INFINITY)), at_minus_infinity, v_sub(t, x));
    if (dtype == KL_FLOAT64) /* an infinite difference of finite numbers */
        *rare = m_or(*rare, v_gt(v_mul(d, d), v_set(DBL_MAX)));
    vd loss = dtype == KL_FLOAT64 ? exp_times_wide(t, d) : exp_times_narrow(t, d);
    return (struct product){loss, v_set(1)};
}

FN struct product term(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *rare)
{
    return rule >= KL_LOG_PYTORCH ? log_term(dtype, rule, x, t, rare)
                                  : prob_term(dtype, rule, x, t, rare);
}

FN vd load(enum kl_dtype dtype, const void *from)
{
    return dtype == KL_FLOAT64   ? v_load_f64(from)
           : dtype == KL_FLOAT32 ? v_load_f32(from)
           : dtype == KL_FLOAT16 ? v_load_f16(from)
                                 : v_load_bf16(from);
}

FN void store(enum kl_dtype dtype, void *to, vd v)
{
    switch (dtype) {
    case KL_FLOAT64:
        v_store_f64(to, v);
        break;
    case KL_FLOAT32:
        v_store_f32(to, v);
        break;
    case KL_FLOAT16:
        v_store_f16(to, v);
        break;
    case KL_BFLOAT16:
        v_store_bf16(to, v);
        break;
    }
}

FN size_t size_of(enum kl_dtype dtype)
{
    return dtype == KL_FLOAT64 ? 8 : dtype == KL_FLOAT32 ? 4 : 2;
}

/* A block is what is computed before looking whether a rare lane was among it. If so, it is
 * computed again, here: in the wide form, and what is rare even there by the definition. The
 * loops that matter hold no call then, and keep their constants in registers. */
enum { BLOCK = 16 * LANES };

TARGET static __attribute__((noinline)) void careful_block(enum kl_dtype dtype, enum kl_rule rule,
                                                           const char *x, const char *t, size_t n,
                                                           double *losses)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load(dtype, x + i * size_of(dtype)), ts = load(dtype, t + i * size_of(dtype));
        vm rare = v_gt(v_set(0), v_set(0));
        struct product p = term(KL_FLOAT64, rule, xs, ts, &rare);
        v_store_f64(losses + i, v_mul(p.a, p.b));
        if (!m_any(rare))
            continue;
        double x_lanes[LANES], t_lanes[LANES];
        v_store_f64(x_lanes, xs);
        v_store_f64(t_lanes, ts);
        for (size_t lane = 0; lane < LANES; lane++)
            losses[i + lane] = kl_term(rule, x_lanes[lane], t_lanes[lane]);
    }
}

struct running {
    vd high, low;
};

/* A piece of 2^14 narrow losses loses at most 2^-42 of their sizes by plain addition. Wide
 * ones are added by Knuth's two-sum, which keeps the error of each addition. */
FN struct running accumulate(enum kl_dtype dtype, enum kl_rule rule, struct running sum,
                             struct product p)
{
    if (dtype != KL_FLOAT64)
        return (struct running){
            rule >= KL_LOG_PYTORCH ? v_add(p.a, sum.high) : v_fma(p.a, p.b, sum.high), sum.low};
    vd value = v_mul(p.a, p.b);
    vd total = v_add(sum.high, value);
    vd back = v_sub(total, sum.high);
    vd error = v_add(v_sub(sum.high, v_sub(total, back)), v_sub(value, back));
    return (struct running){total, v_add(sum.low, error)};
}

FN struct kl_sum total_of(struct running running)
{
    double high[LANES], low[LANES];
    v_store_f64(high, running.high);
    v_store_f64(low, running.low);
    struct kl_sum sum = {0, 0};
    for (int i = 0; i < LANES; i++) {
        kl_sum_add(&sum, high[i]);
        sum.low += isfinite(low[i]) ? low[i] : 0;
    }
    return sum;
}

/* n is a multiple of LANES, at most BLOCK. */
FN struct running sum_block(enum kl_dtype dtype, enum kl_rule rule, const char *x, const char *t,
                            size_t n, struct running before)
{
    struct running sum = before;
    vm rare = v_gt(v_set(0), v_set(0));
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype))
        sum = accumulate(dtype, rule, sum,
                         term(dtype, rule, load(dtype, x + i), load(dtype, t + i), &rare));
    if (__builtin_expect(m_any(rare), 0)) {
        double losses[BLOCK];
        careful_block(dtype, rule, x, t, n, losses);
        sum = before;
        for (size_t i = 0; i < n; i += LANES)
            sum = accumulate(dtype, rule, sum, (struct product){v_load_f64(losses + i), v_set(1)});
    }
    return sum;
}

/* The last, partial vector goes through a copy padded with zeros, whose loss is 0 by every
 * rule; so nothing beyond the arrays is touched. */
FN struct kl_sum sum_of(enum kl_dtype dtype, enum kl_rule rule, const void *input,
                        const void *target, size_t n)
{
    const char *x = input, *t = target;
    struct running sum = {v_set(0), v_set(0)};
    size_t rest = n % LANES;
    for (n -= rest; n > 0;) {
        size_t length = n < BLOCK ? n : BLOCK;
        sum = sum_block(dtype, rule, x, t, length, sum);
        x += length * size_of(dtype);
        t += length * size_of(dtype);
        n -= length;
    }
    if (rest) {
        char xs[LANES * sizeof(double)] = {0}, ts[LANES * sizeof(double)] = {0};
        memcpy(xs, x, rest * size_of(dtype));
        memcpy(ts, t, rest * size_of(dtype));
        sum = sum_block(dtype, rule, xs, ts, LANES, sum);
    }
    return total_of(sum);
}

FN void map_block(enum kl_dtype dtype, enum kl_rule rule, const char *x, const char *t, char *loss,
                  size_t n)
{
    vm rare = v_gt(v_set(0), v_set(0));
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        struct product p = term(dtype, rule, load(dtype, x + i), load(dtype, t + i), &rare);
        store(dtype, loss + i, v_fma(p.a, p.b, v_set(0))); /* adding 0 makes 0 of -0 */
    }
    if (__builtin_expect(m_any(rare), 0)) {
        double losses[BLOCK];
        careful_block(dtype, rule, x, t, n, losses);
        for (size_t i = 0; i < n; i += LANES)
            store(dtype, loss + i * size_of(dtype), v_add(v_load_f64(losses + i), v_set(0)));
    }
}

FN void map_of(enum kl_dtype dtype, enum kl_rule rule, const void *input, const void *target,
               void *loss, size_t n)
{
    const char *x = input, *t = target;
    char *to = loss;
    size_t rest = n % LANES;
    for (n -= rest; n > 0;) {
        size_t length = n < BLOCK ? n : BLOCK;
        map_block(dtype, rule, x, t, to, length);
        x += length * size_of(dtype);
        t += length * size_of(dtype);
        to += length * size_of(dtype);
        n -= length;
    }
    if (rest) {
        char xs[LANES * sizeof(double)] = {0}, ts[LANES * sizeof(double)] = {0};
        char losses[LANES * sizeof(double)];
        memcpy(xs, x, rest * size_of(dtype));
        memcpy(ts, t, rest * size_of(dtype));
        map_block(dtype, rule, xs, ts, losses, LANES);
        memcpy(to, losses, rest * size_of(dtype));
    }
}

FN void convert(enum kl_dtype from_dtype, const char *from, enum kl_dtype to_dtype, char *to,
                size_t n)
{
    for (; n >= LANES; n -= LANES) {
        store(to_dtype, to, load(from_dtype, from));
        from += LANES * size_of(from_dtype);
        to += LANES * size_of(to_dtype);
    }
    if (n) {
        char rest[LANES * sizeof(double)] = {0}, converted[LANES * sizeof(double)];
        memcpy(rest, from, n * size_of(from_dtype));
        store(to_dtype, converted, load(from_dtype, rest));
        memcpy(to, converted, n * size_of(to_dtype));
    }
}

#define RULE(dtype, suffix, rule)                                                                  \
    TARGET static struct kl_sum sum_##suffix##_##rule(const void *input, const void *target,       \
                                                      size_t n)                                    \
    {                                                                                              \
        return sum_of(dtype, KL_##rule, input, target, n);                                         \
    }                                                                                              \
    TARGET static void map_##suffix##_##rule(const void *input, const void *target, void *loss,    \
                                             size_t n)                                             \
    {                                                                                              \
        map_of(dtype, KL_##rule, input, target, loss, n);                                          \
    }

#define DTYPE(dtype, suffix)                                                                       \
    RULE(dtype, suffix, PROB_PYTORCH)                                                              \
    RULE(dtype, suffix, PROB_ONEFLOW)                                                              \
    RULE(dtype, suffix, PROB_MATH)                                                                 \
    RULE(dtype, suffix, LOG_PYTORCH)                                                               \
    RULE(dtype, suffix, LOG_MATH)                                                                  \
    TARGET static void widen_##suffix(const void *from, double *to, size_t n)                      \
    {                                                                                              \
        convert(dtype, from, KL_FLOAT64, (char *)to, n);                                           \
    }                                                                                              \
    TARGET static void narrow_##suffix(const double *from, void *to, size_t n)                     \
    {                                                                                              \
        convert(KL_FLOAT64, (const char *)from, dtype, to, n);                                     \
    }

#include "lib/simd/table.h"
