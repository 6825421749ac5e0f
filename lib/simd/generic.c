/* The kernel of any CPU: the template over two lanes of the compiler's own vectors. */
#include "lib/simd/constants.h"
#include "lib/simd/kernel.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TARGET_ATTR
#define INLINE static inline __attribute__((always_inline))
#define SINGLE_LANES 2
typedef double sd __attribute__((vector_size(16)));
typedef uint64_t si __attribute__((vector_size(16)));
typedef si sm; /* all bits of a lane, or none */
#define FLOATS 4
typedef float fs __attribute__((vector_size(16)));

#include "lib/simd/vectors.h"

INLINE sd s_set(double a) { return (sd){a, a}; }
INLINE si bits_set(uint64_t a) { return (si){a, a}; }
INLINE sm s_eq(sd a, sd b) { return (sm)(a == b); }
INLINE sm s_gt(sd a, sd b) { return (sm)(a > b); }
INLINE sm s_signed(sd a) { return -(s_bits(a) >> 63); }
INLINE sm sm_not(sm m) { return ~m; }
INLINE sm sm_or(sm a, sm b) { return a | b; }
INLINE bool sm_any(sm m) { return (m[0] | m[1]) != 0; }
INLINE sd s_select(sm m, sd a, sd b) { return from_bits((m & s_bits(a)) | (~m & s_bits(b))); }
INLINE sd s_and(sd a, sd b) { return from_bits(s_bits(a) & s_bits(b)); }
INLINE sd s_or(sd a, sd b) { return from_bits(s_bits(a) | s_bits(b)); }
INLINE sd s_abs(sd a) { return from_bits(s_bits(a) & bits_set(INT64_MAX)); }
INLINE double s_reduce_sum(sd a) { return a[0] + a[1]; }
INLINE double s_reduce_max(sd a) { return a[0] > a[1] ? a[0] : a[1]; }

/* s_max and s_min give the second of two numbers of which one is NaN. */
INLINE sd s_max(sd a, sd b) { return s_select(s_gt(a, b), a, b); }
INLINE sd s_min(sd a, sd b) { return s_select(s_gt(b, a), a, b); }
INLINE sd s_clamp(sd v, sd low, sd high) { return s_min(high, s_max(low, v)); }
INLINE sd s_max_nan(sd low, sd v) { return s_max(low, v); }
INLINE sd s_clamp_exp(sd v) { return s_clamp(v, s_set(-700), s_set(700)); }
INLINE sd s_min_magnitude(sd a, sd b) { return s_min(s_abs(b), a); }

#ifdef __FP_FAST_FMA
INLINE sd s_fma(sd a, sd b, sd c)
{
    return (sd){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
}

INLINE sd s_mul_sub(sd a, sd b, sd c) { return s_fma(a, b, -c); }
#else
/* Two roundings. */
INLINE sd s_fma(sd a, sd b, sd c) { return a * b + c; }

/* The first 26 bits of each lane: of such two the product is exact. */
INLINE sd first_half(sd a) { return from_bits(s_bits(a) & bits_set(~UINT64_C(0x7ffffff))); }

/* Dekker's product ("A floating-point technique for extending the available precision", 1971), but
 * that the product of the last halves, of 27 bits each, rounds. */
INLINE sd s_mul_sub(sd a, sd b, sd c)
{
    sd a_first = first_half(a), b_first = first_half(b);
    sd a_last = a - a_first, b_last = b - b_first;
    return (((a_first * b_first - c) + a_first * b_last) + a_last * b_first) + a_last * b_last;
}
#endif

/* An integer below 2^52 in the mantissa of 2^52 is 2^52 more than itself. */
INLINE sd s_frexp(sd t, sd *k, si *i)
{
    const si two52 = bits_set(0x4330000000000000);
    si bits = s_bits(t);
    *k = from_bits((bits >> 52) | two52) - s_set(0x1p52 + 1023);
    *i = bits >> 48;
    return from_bits((bits & bits_set(0x000fffffffffffff)) | bits_set(0x3ff0000000000000));
}

INLINE sm s_special(sd t)
{
    sm normal = (sm)(t >= s_set(0x1p-1022)) & (sm)(t < s_set(INFINITY));
    return ~(normal | s_eq(t, s_set(0)));
}

INLINE sd s_lookup(const double *table, si i) { return (sd){table[i[0] & 15], table[i[1] & 15]}; }

INLINE sd s_exp2(sd n)
{
    return from_bits(s_bits(s_lookup(exp2_table, s_bits(n))) + (s_bits(n) << 48));
}

INLINE fs f_set(float a) { return (fs){a, a, a, a}; }

INLINE fs f_max(fs a, fs b)
{
    typedef int32_t words __attribute__((vector_size(16)));
    words max = a > b;
    return (fs)(((words)a & max) | ((words)b & ~max));
}

INLINE fs f_load_f32(const void *p)
{
    fs v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void f_store(void *p, fs v) { memcpy(p, &v, sizeof v); }

INLINE fs f_load_bf16(const void *p)
{
    uint16_t halves[FLOATS];
    uint32_t words[FLOATS];
    memcpy(halves, p, sizeof halves);
    for (int i = 0; i < FLOATS; i++)
        words[i] = (uint32_t)halves[i] << 16;
    return f_load_f32(words);
}

INLINE sd s_load_f64(const void *p)
{
    sd v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void s_store_f64(void *p, sd v) { memcpy(p, &v, sizeof v); }

INLINE sd s_load_n(const double *p, size_t n, double other)
{
    sd v = s_set(other);
    memcpy(&v, p, n * sizeof *p);
    return v;
}

INLINE void s_store_n(double *p, sd v, size_t n) { memcpy(p, &v, n * sizeof *p); }
INLINE sm s_mask(const unsigned char *bytes)
{
    return (sm){-(uint64_t) !!bytes[0], -(uint64_t) !!bytes[1]};
}
INLINE sd s_reduce_sums(const sd *rows)
{
    return (sd){s_reduce_sum(rows[0]), s_reduce_sum(rows[1])};
}

INLINE sd s_reduce_maxima(const sd *rows)
{
    sd a = {rows[0][0], rows[1][0]}, b = {rows[0][1], rows[1][1]};
    return s_max(a, b);
}

INLINE sd s_load_f32(const void *p)
{
    float v[2];
    memcpy(v, p, sizeof v);
    return (sd){(double)v[0], (double)v[1]};
}

INLINE void s_store_f32(void *p, sd v)
{
    const float narrow[] = {(float)v[0], (float)v[1]};
    memcpy(p, narrow, sizeof narrow);
}

/* The bits of a half are, moved, those of a double 2^1008 times smaller, but for the exponent of
 * infinities and NaN. */
INLINE sd s_load_f16(const void *p)
{
    uint16_t halves[2];
    memcpy(halves, p, sizeof halves);
    si bits = {halves[0], halves[1]}, size = bits & bits_set(0x7fff);
    si special = (si)(size >= bits_set(0x7c00)) & bits_set(0x7ff0000000000000);
    si scaled = s_bits(from_bits(size << 42) * s_set(0x1p1008)) | special;
    return from_bits(scaled | (bits >> 15 << 63));
}

INLINE sd s_load_bf16(const void *p)
{
    uint16_t halves[2];
    memcpy(halves, p, sizeof halves);
    const uint32_t words[] = {(uint32_t)halves[0] << 16, (uint32_t)halves[1] << 16};
    return s_load_f32(words);
}

#include "lib/simd/round.h"

INLINE si bits_of_f16(sd v)
{
    sd size = s_abs(s_round(v, 11, 0x1p-14, 0x1p16));
    si bits = s_bits(s_min(size, s_set(0x1p16)) * s_set(0x1p-1008)) >> 42, nan = sm_not(s_eq(v, v));
    return (bits & ~nan) | (nan & bits_set(0x7e00)) | (s_bits(v) >> 63 << 15);
}

INLINE void s_store_pair_f16(void *p, sd a, sd b)
{
    si bits = bits_of_f16(a) | bits_of_f16(b) << 32;
    const uint16_t halves[] = {(uint16_t)bits[0], (uint16_t)bits[1], (uint16_t)(bits[0] >> 32),
                               (uint16_t)(bits[1] >> 32)};
    memcpy(p, halves, sizeof halves);
}

INLINE void s_store_pair_bf16(void *p, sd a, sd b)
{
    uint32_t words[4];
    s_store_f32(words, s_round_bf16(a));
    s_store_f32(words + 2, s_round_bf16(b));
    const uint16_t halves[] = {(uint16_t)(words[0] >> 16), (uint16_t)(words[1] >> 16),
                               (uint16_t)(words[2] >> 16), (uint16_t)(words[3] >> 16)};
    memcpy(p, halves, sizeof halves);
}

#include "lib/simd/masks.h"

static bool supported(void) { return true; }

#define KERNEL_NAME "generic"
#define KERNEL_STRUCT kl_kernel_generic
#include "lib/simd/template.h"
