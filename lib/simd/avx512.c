#if defined __x86_64__
#include "lib/simd/constants.h"

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TARGET_ATTR __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,f16c")))
#define INLINE TARGET_ATTR static inline __attribute__((always_inline))
#define SINGLE_LANES 8
typedef __m512d sd;
typedef __m512i si;
typedef __mmask8 sm;
#define FLOATS 16
typedef __m512 fs;

#include "lib/simd/vectors.h"

#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

INLINE sd s_set(double a) { return _mm512_set1_pd(a); }
INLINE sd s_fma(sd a, sd b, sd c) { return _mm512_fmadd_pd(a, b, c); }
INLINE sd s_mul_sub(sd a, sd b, sd c) { return _mm512_fmsub_pd(a, b, c); }
INLINE sd s_max(sd a, sd b) { return _mm512_max_pd(a, b); }
INLINE sd s_min(sd a, sd b) { return _mm512_min_pd(a, b); }
INLINE sd s_abs(sd a) { return _mm512_abs_pd(a); }
INLINE sd s_and(sd a, sd b) { return _mm512_and_pd(a, b); }
INLINE sd s_or(sd a, sd b) { return _mm512_or_pd(a, b); }
INLINE double s_reduce_sum(sd a) { return _mm512_reduce_add_pd(a); }
INLINE double s_reduce_max(sd a) { return _mm512_reduce_max_pd(a); }
INLINE sm s_eq(sd a, sd b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
INLINE sm s_gt(sd a, sd b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
INLINE sm s_signed(sd a) { return _mm512_movepi64_mask(_mm512_castpd_si512(a)); }
INLINE sm sm_not(sm m) { return (sm)~m; }
INLINE sm sm_or(sm a, sm b) { return a | b; }
INLINE bool sm_any(sm m) { return m != 0; }
INLINE sd s_select(sm m, sd a, sd b) { return _mm512_mask_blend_pd(m, b, a); }

#include "lib/simd/round.h"

/* s_max and s_min give the second of two numbers of which one is NaN. */
INLINE sd s_clamp(sd v, sd low, sd high) { return _mm512_min_pd(high, _mm512_max_pd(low, v)); }

/* vrangepd: which of two numbers, and with which sign; a NaN is not one of them. */
enum { LESSER_SIZE = 2, GREATER_SIZE = 3, SIGN_OF_FIRST = 0 << 2, NO_SIGN = 2 << 2 };

INLINE sd s_max_nan(sd low, sd v) { return _mm512_max_pd(low, v); }
INLINE sd s_clamp_exp(sd v) { return _mm512_range_pd(v, s_set(700), LESSER_SIZE | SIGN_OF_FIRST); }
INLINE sd s_min_magnitude(sd a, sd b) { return _mm512_range_pd(a, b, LESSER_SIZE | NO_SIGN); }

/* s_frexp: 0 has the exponent of the least positive number; the m of a negative number is NaN. */
INLINE sd s_frexp(sd t, sd *k, si *i)
{
    sd m = _mm512_getmant_pd(t, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    *k = _mm512_getexp_pd(_mm512_max_pd(s_set(0x1p-1074), t));
    *i = _mm512_srli_epi64(s_bits(m), 48);
    return m;
}

INLINE sm s_special(sd t)
{
    enum { QUIET_NAN = 1, PLUS_INF = 8, MINUS_INF = 16, NEGATIVE = 64, SIGNALING_NAN = 128 };
    return _mm512_fpclass_pd_mask(t, QUIET_NAN | PLUS_INF | MINUS_INF | NEGATIVE | SIGNALING_NAN);
}

INLINE sd s_track_log(sd track, sd t, bool is_f64)
{
    (void)t, (void)is_f64;
    return track;
}

INLINE sm s_tracked_log(sd track, bool is_f64)
{
    (void)track, (void)is_f64;
    return 0;
}

INLINE sd s_track_exp(sd track, sd t, bool is_f64)
{
    return is_f64 ? _mm512_range_pd(track, t, GREATER_SIZE | NO_SIGN) : _mm512_max_pd(t, track);
}

INLINE sd s_lookup(const double *table, si i)
{
    return _mm512_permutex2var_pd(_mm512_loadu_pd(table), i, _mm512_loadu_pd(table + 8));
}

INLINE si s_masked_increment(si i, sm m)
{
    return _mm512_mask_sub_epi64(i, m, i, _mm512_set1_epi64(-1));
}

INLINE sd s_exp2(sd n)
{
    si root = s_bits(s_lookup(exp2_table, s_bits(n)));
    return from_bits(_mm512_add_epi64(root, _mm512_slli_epi64(s_bits(n), 48)));
}

INLINE fs f_set(float a) { return _mm512_set1_ps(a); }
INLINE fs f_max(fs a, fs b) { return _mm512_max_ps(a, b); }
INLINE fs f_load_f32(const void *p) { return _mm512_loadu_ps(p); }
INLINE void f_store(void *p, fs v) { _mm512_storeu_ps(p, v); }

INLINE fs f_load_bf16(const void *p)
{
    si words = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16);
    return _mm512_castsi512_ps(words);
}

INLINE sd s_load_f64(const void *p) { return _mm512_loadu_pd(p); }
INLINE void s_store_f64(void *p, sd v) { _mm512_storeu_pd(p, v); }

INLINE sd s_load_n(const double *p, size_t n, double other)
{
    return _mm512_mask_loadu_pd(s_set(other), (__mmask8)((1u << n) - 1), p);
}

INLINE void s_store_n(double *p, sd v, size_t n)
{
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), v);
}

INLINE sm s_mask(const unsigned char *bytes)
{
    __m128i b = _mm_loadl_epi64((const void *)bytes);
    return (sm)_mm_test_epi8_mask(b, b);
}

/* Eight vectors to one, lane i of which is `combine` of the lanes of vector i: of neighbouring lanes,
 * then of pairs, then of pairs of pairs. */
#define FOLD(name, combine)                                                                        \
    INLINE sd name##_neighbours(sd a, sd b)                                                        \
    {                                                                                              \
        return combine(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));                        \
    }                                                                                              \
    INLINE sd name##_pairs(sd a, sd b)                                                             \
    {                                                                                              \
        return combine(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));        \
    }                                                                                              \
    INLINE sd name(const sd *rows)                                                                 \
    {                                                                                              \
        sd a = name##_pairs(name##_neighbours(rows[0], rows[1]),                                   \
                            name##_neighbours(rows[2], rows[3]));                                  \
        sd b = name##_pairs(name##_neighbours(rows[4], rows[5]),                                   \
                            name##_neighbours(rows[6], rows[7]));                                  \
        return name##_pairs(a, b);                                                                 \
    }
FOLD(s_reduce_sums, s_add)
FOLD(s_reduce_maxima, s_max)

INLINE sd s_load_f32(const void *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
INLINE void s_store_f32(void *p, sd v) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); }

INLINE sd s_load_f16(const void *p) { return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(p))); }

INLINE sd s_load_bf16(const void *p)
{
    __m256i words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
    return _mm512_cvtps_pd(_mm256_castsi256_ps(words));
}

/* To float by rounding to odd (Boldo and Melquiond, 2008), so that rounding once more, to the bits of a half, is as good as
 * rounding once: what is not exact is cut off, and its last bit set, where a carry of the rest leaves it. */
INLINE __m256 to_odd(sd v)
{
    enum { OR_AND_NOT = 0x54 }; /* (a | b) & ~c */
    const si below = _mm512_set1_epi64((1 << 29) - 1);
    si bits = s_bits(v), carry = _mm512_add_epi64(_mm512_and_si512(bits, below), below);
    bits = _mm512_ternarylogic_epi64(bits, carry, below, OR_AND_NOT);
    return _mm512_cvtpd_ps(_mm512_castsi512_pd(bits));
}

INLINE fs join(__m256 a, __m256 b) { return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1); }

INLINE void s_store_pair_f16(void *p, sd a, sd b)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(join(to_odd(a), to_odd(b)), NEAREST));
}

INLINE void s_store_pair_bf16(void *p, sd a, sd b)
{
    fs floats = join(_mm512_cvtpd_ps(s_round_bf16(a)), _mm512_cvtpd_ps(s_round_bf16(b)));
    si bits = _mm512_srli_epi32(_mm512_castps_si512(floats), 16);
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(bits));
}

/* No CPU has these without f16c. */
static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

#define KERNEL_NAME "avx512"
#define KERNEL_STRUCT kl_kernel_avx512
#include "lib/simd/template.h"
#endif
