/* Rounding of doubles to fewer bits, over the single vectors of template.h, before the stores that take it. */

/* v rounded once to nearest even: to `bits` bits, or, below `min`, to multiples of its last one; beyond `max` to anything
 * that is. Adding 1.5 times a power of two and subtracting it rounds what is below 2^-52 of it (Dekker, "A floating-point
 * technique for extending the available precision", 1971); infinity & v is the power of v. */
INLINE sd s_round(sd v, int bits, double min, double max)
{
    const sd shift = s_set(1.5 * (double)(UINT64_C(1) << (53 - bits)));
    sd power = s_min(s_set(max), s_max(s_set(min), s_and(v, s_set((double)INFINITY))));
    sd moved = s_fma(power, shift, v); /* the product is exact */
    return s_or(s_fma(power, s_sub(s_set(0), shift), moved), s_and(v, s_set(-0.0)));
}

/* Doubles rounded to bfloat16, which floats hold exactly. */
INLINE sd s_round_bf16(sd v) { return s_round(v, 8, 0x1p-126, 0x1p128); }
