/* Special values, for instruction sets whose masks are vectors: the file that includes this has defined sm as one, and s_set,
 * s_abs, s_gt, s_min and s_max, of which the last two give the other one of two numbers of which the first is NaN. */

typedef uint64_t su __attribute__((vector_size(SINGLE_LANES * sizeof(uint64_t))));

/* Infinities and NaN show in t * log t. Negative and subnormal numbers do not: they show in the minimum of the numbers
 * before t in the order of bits. For 0, which is not special, that number is NaN, and the minimum skips it. */
INLINE sd s_track_log(sd track, sd t, bool is_f64)
{
    return s_min(is_f64 ? (sd)((su)t - 1) : t, track);
}

INLINE sm s_tracked_log(sd track, bool is_f64)
{
    return s_gt(s_set(is_f64 ? 0x1p-1022 : 0), track);
}

INLINE sd s_track_exp(sd track, sd t, bool is_f64) { return s_max(is_f64 ? s_abs(t) : t, track); }

INLINE si s_masked_increment(si i, sm m) { return (si)((su)i - (su)m); }
