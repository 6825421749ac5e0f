#if defined __x86_64__
#include "lib/simd/constants.h"

#include <cpuid.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TARGET_ATTR __attribute__((target("avx2,fma,f16c")))
#define INLINE TARGET_ATTR static inline __attribute__((always_inline))
#define SINGLE_LANES 4
typedef __m256d sd;
typedef __m256i si;
typedef __m256d sm;
#define FLOATS 8
typedef __m256 fs;

#include "lib/simd/vectors.h"

#define NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

INLINE sd s_set(double a) { return _mm256_set1_pd(a); }
INLINE sd s_fma(sd a, sd b, sd c) { return _mm256_fmadd_pd(a, b, c); }
INLINE sd s_mul_sub(sd a, sd b, sd c) { return _mm256_fmsub_pd(a, b, c); }
INLINE sd s_max(sd a, sd b) { return _mm256_max_pd(a, b); }
INLINE sd s_min(sd a, sd b) { return _mm256_min_pd(a, b); }
INLINE sd s_abs(sd a) { return _mm256_andnot_pd(s_set(-0.0), a); }
INLINE sd s_and(sd a, sd b) { return _mm256_and_pd(a, b); }
INLINE sd s_or(sd a, sd b) { return _mm256_or_pd(a, b); }
INLINE sm s_eq(sd a, sd b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
INLINE sm s_gt(sd a, sd b) { return _mm256_cmp_pd(a, b, _CMP_GT_OQ); }
INLINE sm s_signed(sd a) { return a; }
INLINE sm sm_not(sm m) { return _mm256_xor_pd(m, _mm256_castsi256_pd(_mm256_set1_epi64x(-1))); }
INLINE sm sm_or(sm a, sm b) { return _mm256_or_pd(a, b); }
INLINE bool sm_any(sm m) { return _mm256_movemask_pd(m) != 0; }
INLINE sd s_select(sm m, sd a, sd b) { return _mm256_blendv_pd(b, a, m); }
INLINE si bits_set(uint64_t a) { return _mm256_set1_epi64x((int64_t)a); }

#include "lib/simd/round.h"

/* s_max and s_min give the second of two numbers of which one is NaN. */
INLINE sd s_clamp(sd v, sd low, sd high) { return _mm256_min_pd(high, _mm256_max_pd(low, v)); }

INLINE sd s_max_nan(sd low, sd v) { return _mm256_max_pd(low, v); }
INLINE sd s_min_magnitude(sd a, sd b) { return _mm256_min_pd(s_abs(b), a); }
INLINE sd s_clamp_exp(sd v) { return _mm256_min_pd(_mm256_max_pd(v, s_set(-700)), s_set(700)); }

INLINE double s_reduce_sum(sd a)
{
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(half) + _mm_cvtsd_f64(_mm_unpackhi_pd(half, half));
}

INLINE double s_reduce_max(sd a)
{
    __m128d half = _mm_max_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_max_sd(half, _mm_unpackhi_pd(half, half)));
}

/* An integer below 2^52 in the mantissa of 2^52 is 2^52 more than itself. */
INLINE sd s_frexp(sd t, sd *k, si *i)
{
    const uint64_t two52 = 0x4330000000000000;
    si bits = s_bits(t);
    si biased = _mm256_or_si256(_mm256_srli_epi64(bits, 52), bits_set(two52));
    *k = s_sub(from_bits(biased), s_set(0x1p52 + 1023));
    *i = _mm256_srli_epi64(bits, 48);
    si mantissa = _mm256_and_si256(bits, bits_set(0x000fffffffffffff));
    return from_bits(_mm256_or_si256(mantissa, bits_set(0x3ff0000000000000)));
}

INLINE sm s_special(sd t)
{
    sm too_small = _mm256_cmp_pd(t, s_set(0x1p-1022), _CMP_NGE_UQ);
    sm too_big = s_eq(t, s_set(INFINITY));
    return sm_or(_mm256_and_pd(too_small, _mm256_cmp_pd(t, s_set(0), _CMP_NEQ_UQ)), too_big);
}

/* Four loads beat vgatherqpd on every core that was measured. */
INLINE sd s_lookup(const double *table, si i)
{
    si masked = _mm256_and_si256(i, bits_set(15));
    __m128i low = _mm256_castsi256_si128(masked), high = _mm256_extracti128_si256(masked, 1);
    __m128d a = _mm_load_sd(table + _mm_cvtsi128_si64(low));
    __m128d b = _mm_load_sd(table + _mm_cvtsi128_si64(high));
    a = _mm_loadh_pd(a, table + _mm_extract_epi64(low, 1));
    b = _mm_loadh_pd(b, table + _mm_extract_epi64(high, 1));
    return _mm256_set_m128d(b, a);
}

INLINE sd s_exp2(sd n)
{
    si root = s_bits(s_lookup(exp2_table, s_bits(n)));
    return from_bits(_mm256_add_epi64(root, _mm256_slli_epi64(s_bits(n), 48)));
}

INLINE fs f_set(float a) { return _mm256_set1_ps(a); }
INLINE fs f_max(fs a, fs b) { return _mm256_max_ps(a, b); }
INLINE fs f_load_f32(const void *p) { return _mm256_loadu_ps(p); }
INLINE void f_store(void *p, fs v) { _mm256_storeu_ps(p, v); }

INLINE fs f_load_bf16(const void *p)
{
    si words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
    return _mm256_castsi256_ps(words);
}

INLINE sd s_load_f64(const void *p) { return _mm256_loadu_pd(p); }
INLINE void s_store_f64(void *p, sd v) { _mm256_storeu_pd(p, v); }

/* All bits of the first n lanes. */
INLINE si first_bits(size_t n)
{
    static const int64_t bits[2 * SINGLE_LANES] = {-1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(bits + SINGLE_LANES - n));
}

INLINE sd s_load_n(const double *p, size_t n, double other)
{
    si first = first_bits(n);
    return _mm256_blendv_pd(s_set(other), _mm256_maskload_pd(p, first), from_bits(first));
}

INLINE void s_store_n(double *p, sd v, size_t n) { _mm256_maskstore_pd(p, first_bits(n), v); }

INLINE sm s_mask(const unsigned char *bytes)
{
    int32_t four;
    memcpy(&four, bytes, sizeof four);
    si is_f64 = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
    return from_bits(_mm256_cmpgt_epi64(is_f64, _mm256_setzero_si256()));
}

/* Four vectors to one, lane i of which is `combine` of the lanes of vector i. */
#define FOLD(name, combine)                                                                        \
    INLINE sd name##_neighbours(sd a, sd b)                                                        \
    {                                                                                              \
        return combine(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));                        \
    }                                                                                              \
    INLINE sd name(const sd *rows)                                                                 \
    {                                                                                              \
        sd a = name##_neighbours(rows[0], rows[1]), b = name##_neighbours(rows[2], rows[3]);       \
        return combine(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31));    \
    }
FOLD(s_reduce_sums, s_add)
FOLD(s_reduce_maxima, s_max)

INLINE sd s_load_f32(const void *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
INLINE void s_store_f32(void *p, sd v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }

INLINE sd s_load_f16(const void *p) { return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(p))); }

INLINE sd s_load_bf16(const void *p)
{
    __m128i words = _mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64(p)), 16);
    return _mm256_cvtps_pd(_mm_castsi128_ps(words));
}

/* To float by rounding to odd (Boldo and Melquiond, 2008), so that rounding once more, to the bits of a half, is as good as
 * rounding once: what is not exact is cut off, and its last bit set, where a carry of the rest leaves it. */
INLINE __m128 to_odd(sd v)
{
    const si below = bits_set((1 << 29) - 1);
    si bits = s_bits(v), carry = _mm256_add_epi64(_mm256_and_si256(bits, below), below);
    return _mm256_cvtpd_ps(from_bits(_mm256_andnot_si256(below, _mm256_or_si256(bits, carry))));
}

INLINE void s_store_pair_f16(void *p, sd a, sd b)
{
    __m256 floats = _mm256_set_m128(to_odd(b), to_odd(a));
    _mm_storeu_si128(p, _mm256_cvtps_ph(floats, NEAREST));
}

/* Numbers rounded to bfloat16, each in the low half of 32 bits. */
INLINE __m128i halves_of(sd v)
{
    return _mm_srli_epi32(_mm_castps_si128(_mm256_cvtpd_ps(s_round_bf16(v))), 16);
}

INLINE void s_store_pair_bf16(void *p, sd a, sd b)
{
    _mm_storeu_si128(p, _mm_packus_epi32(halves_of(a), halves_of(b)));
}

#include "lib/simd/masks.h"

static bool supported(void)
{
    unsigned a, b, c = 0, d; /* clang 14 cannot be asked for f16c */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#define KERNEL_NAME "avx2"
#define KERNEL_STRUCT kl_kernel_avx2
#include "lib/simd/template.h"
#endif
