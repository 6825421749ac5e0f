/* Logarithms with a number subtracted, and exponentials times a number, over the vocabulary of
 * template.h.
 *
 * Doubles carry the arithmetic of every dtype. "wide" is for float64 operands: logarithms with
 * a low part, compensated sums. "narrow" is for operands of at most 24 bits, where one double
 * has room for all of it.
 *
 * log t = k ln2 + log(1/c) + log1p(r), where c is close to 1/m and r = m c - 1: Tang's method
 * ("Table-driven implementation of the logarithm function", ACM TOMS 16, 1990). The narrow form
 * has an absolute error of about 2^-53, which is plenty until log t and x almost cancel; where
 * they do it is done again in the wide form, which carries some 64 bits. */
#include "lib/simd/constants.h"

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

/* exp(t) d where neither exp(t) nor the product leaves the range of double, and a bad sign of it
 * where one does: see v_watch_exp. */
FN vd exp_times(enum kl_dtype dtype, vd t, vd d)
{
    vd k;
    vd p = dtype == KL_FLOAT64 ? exp_parts_wide(t, &k) : exp_parts_narrow(t, &k);
    return v_scale(v_mul(p, d), k);
}

/* Where exp(t) leaves the range of double the product need not: three factors of 2^k then, and
 * no rounding but the product's and, at the end, that of a subnormal. */
FN vd exp_times_anywhere(vd t, vd d)
{
    vd k;
    vd p = exp_parts_wide(v_clamp(t, v_set(-2000), v_set(2000)), &k);
    k = v_floor(k);
    vd first = v_clamp(k, v_set(-900), v_set(900));
    vd second = v_clamp(v_sub(k, first), v_set(-1000), v_set(1000));
    vd third = v_sub(v_sub(k, first), second);
    return v_scale(v_scale(v_mul(v_scale(p, first), d), second), third);
}
