/* Logarithms with a number subtracted, and exponentials times a number, over the vocabulary of
 * template.h.
 *
 * Doubles carry the arithmetic of every dtype. Functions ending in _f64 are for float64 operands:
 * logarithms with a low part, compensated sums. Those ending in _f32 are for operands of at most 24
 * bits, where one double has room for all of it.
 *
 * log t = k ln2 + log(1/c) + log1p(r), where c is close to 1/m and r = m c - 1: Tang's method
 * ("Table-driven implementation of the logarithm function", ACM TOMS 16, 1990). It needs a table of 16
 * numbers, which stays in registers or in the first-level cache, a polynomial of degree 8 to 11 and no
 * division. The _f32 forms are accurate enough until log t and x almost cancel; where they do, the difference is
 * computed again in the _f64 form, which carries some 60 bits. */
#include "lib/simd/constants.h"

INLINE vd horner(const double *c, int degree, vd r)
{
    vd sum = v_set(c[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--)
        sum = v_fma(sum, r, v_set(c[i]));
    return sum;
}

/* Even and odd powers apart (Estrin's scheme, one level deep): half the latency, and no more work where r2 is wanted anyway. */
INLINE vd horner2(const double *c, int degree, vd r, vd r2)
{
    vd even = v_set(c[degree - (degree & 1)]), odd = v_set(c[degree - !(degree & 1)]);
#pragma GCC unroll 16
    for (int i = degree - 2; i >= 0; i--)
        if (i & 1)
            odd = v_fma(odd, r2, v_set(c[i]));
        else
            even = v_fma(even, r2, v_set(c[i]));
    return v_fma(odd, r, even);
}

/* r and k ln2 + log(1/c), for t of at most 24 bits. */
INLINE vd reduce_f32(vd t, vd *high)
{
    vd k;
    vi i;
    vd m = v_frexp(t, &k, &i);
    *high = v_fma(k, v_set(LN2), v_lookup(logc, i));
    return v_fma(m, v_lookup(invc, i), v_set(-1));
}

/* log t within 2^-44 of itself, for sums whose cancellation is looked after. */
INLINE vd log_to_sum(vd t)
{
    vd high, r = reduce_f32(t, &high);
    return v_fma(v_fma(horner(short_log_poly, 6, r), r, v_set(1)), r, high);
}

/* log t - x within 2^-53 or so of both. */
INLINE vd log_minus_f32(vd t, vd x)
{
    vd high, r = reduce_f32(t, &high), r2 = v_mul(r, r);
    return v_fma(r2, horner2(f32_log_poly, 7, r, r2), v_add(v_sub(high, x), r));
}

/* log t - x within 2^-41, or 2^-37, which is enough for losses that are rounded to 11 or 8 bits next. */
INLINE vd log_minus_half(bool is_f16, vd t, vd x)
{
    vd high, r = reduce_f32(t, &high), r2 = v_mul(r, r);
    vd tail = is_f16 ? horner2(f16_log_poly, 5, r, r2) : horner2(bf16_log_poly, 4, r, r2);
    return v_fma(r2, tail, v_add(v_sub(high, x), r));
}

/* log t - x of any t, with low parts: within 2^-60 or so before the last roundings. */
INLINE vd log_minus_f64(vd t, vd x)
{
    vd k;
    vi i;
    vd m = v_frexp(t, &k, &i), c = v_lookup(invc, i);
    vd product = v_mul(m, c);
    vd r = v_sub(product, v_set(1));
    vd rest = v_mul_sub(m, c, product); /* m c - 1 = r + rest, exactly */
    vd r2 = v_mul(r, r);
    vd high = v_fma(k, v_set(LN2_HI), v_lookup(logc_hi, i));
    vd low = v_fma(k, v_set(LN2_LO), v_lookup(logc_lo, i));
    low = v_fma(rest, v_sub(v_set(1), r), low); /* rest / (1 + r) */
    low = v_fma(r2, horner2(f64_log_poly, 9, r, r2), low);

    /* |high| >= |r| or high = 0, so the error needs no comparison. That of s - x is no more
     * than half a unit of the result. */
    vd s = v_add(high, r);
    low = v_add(low, v_sub(r, v_sub(s, high)));
    return v_add(v_sub(s, x), low);
}

/* exp(t) = 2^k exp(r), with k a multiple of 1/16: Tang's method for the exponential ("Table-driven
 * implementation of the exponential function in IEEE floating-point arithmetic", ACM TOMS 15, 1989), with a
 * table of 16 roots and a polynomial of degree 5 (_f32) or 7 (_f64). Adding 1.5 * 2^48 rounds to sixteenths, and
 * leaves their number in the low bits, where v_exp2 finds it. */
#define SIXTEENTHS 0x1.8p48

/* exp(t) for t of at most 24 bits and |t| <= 700, by a polynomial of `degree` for what is left of t. */
INLINE vd exp_by(const double *poly, int degree, vd t)
{
    vd shifted = v_fma(t, v_set(1 / LN2), v_set(SIXTEENTHS));
    vd k = v_sub(shifted, v_set(SIXTEENTHS));
    vd r = v_fma(k, v_set(-LN2), t);
    return v_mul(v_exp2(shifted), horner(poly, degree, r));
}

INLINE vd exp_f32(vd t) { return exp_by(f32_exp_poly, 5, t); }

/* exp(t) within 2^-36 of itself, for losses that are rounded to 11 bits next. */
INLINE vd exp_half(vd t) { return exp_by(half_exp_poly, 4, t); }

/* exp(t) within 2^-16 of itself, for |t| <= 700. */
INLINE vd rough_exp(vd t)
{
    vd shifted = v_fma(t, v_set(1 / LN2), v_set(SIXTEENTHS));
    vd r = v_fma(v_sub(shifted, v_set(SIXTEENTHS)), v_set(-LN2), t);
    return v_mul(v_exp2(shifted), v_fma(v_fma(r, v_set(0.5), v_set(1)), r, v_set(1)));
}

/* exp(r) - 1 for the r that is left of t, and what rounding left out of the table's 2^(1/16)s,
 * in proportion. */
INLINE vd exp_rest(vd t, vd shifted)
{
    vd k = v_sub(shifted, v_set(SIXTEENTHS));
    vd r = v_fma(k, v_set(-EXP_LN2_HI), t);
    r = v_fma(k, v_set(-EXP_LN2_LO), r);
    vd r2 = v_mul(r, r);
    vd e = v_fma(r2, horner2(f64_exp_poly, 5, r, r2), r);
    return v_add(e, v_lookup(exp_table_lo, v_bits(shifted)));
}

/* exp(t) for |t| <= 700. */
INLINE vd exp_f64(vd t)
{
    vd shifted = v_fma(t, v_set(1 / LN2), v_set(SIXTEENTHS));
    vd root = v_exp2(shifted);
    return v_fma(root, exp_rest(t, shifted), root);
}

/* exp(t) d, also where exp(t) alone leaves the range of double: by three factors of 2^k. Where |t| <= 700 the first
 * is all of it, and the product has the bits of exp_f64's. */
INLINE vd exp_times_full_range(vd t, vd d)
{
    const vd bias = v_set(SIXTEENTHS);
    t = v_clamp(t, v_set(-2000), v_set(2000));
    vd shifted = v_fma(t, v_set(1 / LN2), bias);
    vd k = v_sub(shifted, bias);
    vd first = v_clamp(k, v_set(-1010), v_set(1010));
    vd second = v_clamp(v_sub(k, first), v_set(-1000), v_set(1000));
    vd third = v_sub(v_sub(k, first), second);
    vd root = v_exp2(v_add(first, bias));
    vd product = v_mul(v_fma(root, exp_rest(t, shifted), root), d);
    return v_mul(v_mul(product, v_exp2(v_add(second, bias))), v_exp2(v_add(third, bias)));
}

/* exp(t) d, where exp(t) is 0 for many t: products that underflow take CPUs 100 times as long as others, and are left
 * out. */
INLINE vd exp_times_low(vd t, vd d)
{
    const vd zero = v_set(0);
    vm some = m_or(m_not(v_gt(v_set(-840), t)), m_not(v_gt(v_set(0x1p132), v_abs(d))));
    return exp_times_full_range(v_select(some, t, zero), v_select(some, d, v_mul(d, zero)));
}
