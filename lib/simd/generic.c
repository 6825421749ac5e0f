/* The kernel of any CPU: the template over two lanes of the compiler's own vectors. */
#include "lib/kernel.h"
#include "lib/simd/constants.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TARGET
#define FN static inline __attribute__((always_inline))
#define SINGLE_LANES 2
typedef double sd __attribute__((vector_size(16)));
typedef uint64_t si __attribute__((vector_size(16)));
typedef si sm; /* all bits of a lane, or none */
#define FLOATS 4
typedef float fs __attribute__((vector_size(16)));

FN sd s_set(double a) { return (sd){a, a}; }
FN si bits_set(uint64_t a) { return (si){a, a}; }
FN si s_bits(sd a) { return (si)a; }
FN sd from_bits(si a) { return (sd)a; }
FN sd s_add(sd a, sd b) { return a + b; }
FN sd s_sub(sd a, sd b) { return a - b; }
FN sd s_mul(sd a, sd b) { return a * b; }
FN sd s_div(sd a, sd b) { return a / b; }
FN sm s_eq(sd a, sd b) { return (sm)(a == b); }
FN sm s_gt(sd a, sd b) { return (sm)(a > b); }
FN sm s_signed(sd a) { return -(s_bits(a) >> 63); }
FN sm sm_not(sm m) { return ~m; }
FN sm sm_or(sm a, sm b) { return a | b; }
FN bool sm_any(sm m) { return (m[0] | m[1]) != 0; }
FN sd s_select(sm m, sd a, sd b) { return from_bits((m & s_bits(a)) | (~m & s_bits(b))); }
FN sd s_and(sd a, sd b) { return from_bits(s_bits(a) & s_bits(b)); }
FN sd s_abs(sd a) { return from_bits(s_bits(a) & bits_set(INT64_MAX)); }
FN double s_total(sd a) { return a[0] + a[1]; }

/* s_max and s_min give the second of two numbers of which one is NaN. */
FN sd s_max(sd a, sd b) { return s_select(s_gt(a, b), a, b); }
FN sd s_min(sd a, sd b) { return s_select(s_gt(b, a), a, b); }
FN sd s_clamp(sd v, sd low, sd high) { return s_min(high, s_max(low, v)); }
FN sd s_raise(sd low, sd v) { return s_max(low, v); }
FN sd s_limit(sd v) { return s_clamp(v, s_set(-700), s_set(700)); }
FN sd s_lesser_size(sd a, sd b) { return s_min(s_abs(a), s_abs(b)); }

#ifdef __FP_FAST_FMA
FN sd s_fma(sd a, sd b, sd c)
{
    return (sd){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
}

FN sd s_residual(sd a, sd b, sd c) { return s_fma(a, b, -c); }
#else
/* Two roundings. */
FN sd s_fma(sd a, sd b, sd c) { return a * b + c; }

/* The first 26 bits of each lane: of such two the product is exact. */
FN sd first_half(sd a) { return from_bits(s_bits(a) & bits_set(~UINT64_C(0x7ffffff))); }

/* Dekker's product ("A floating-point technique for extending the available precision", 1971), but
 * that the product of the last halves, of 27 bits each, rounds. */
FN sd s_residual(sd a, sd b, sd c)
{
    sd a_first = first_half(a), b_first = first_half(b);
    sd a_last = a - a_first, b_last = b - b_first;
    return (((a_first * b_first - c) + a_first * b_last) + a_last * b_first) + a_last * b_last;
}
#endif

/* An integer below 2^52 in the mantissa of 2^52 is 2^52 more than itself. */
FN sd s_split(sd t, sd *k, si *i)
{
    const si two52 = bits_set(0x4330000000000000);
    si bits = s_bits(t);
    *k = from_bits((bits >> 52) | two52) - s_set(0x1p52 + 1023);
    *i = bits >> 48;
    return from_bits((bits & bits_set(0x000fffffffffffff)) | bits_set(0x3ff0000000000000));
}

FN sm s_rare(sd t)
{
    sm ordinary = (sm)(t >= s_set(0x1p-1022)) & (sm)(t < s_set(INFINITY));
    return ~(ordinary | s_eq(t, s_set(0)));
}

/* Infinities and NaN show in t * log t; negative and subnormal numbers do not. The number before t
 * in the order of bits is NaN for 0, which is ordinary and which the minimum passes over. */
FN sd s_watch_log(sd watch, sd t, bool wide)
{
    return s_min(wide ? from_bits(s_bits(t) - 1) : t, watch);
}

FN sm s_watched_log(sd watch, bool wide) { return s_gt(s_set(wide ? 0x1p-1022 : 0), watch); }
FN sd s_watch_exp(sd watch, sd t, bool wide) { return s_max(wide ? s_abs(t) : t, watch); }
FN sm s_watched_exp(sd watch) { return s_gt(watch, s_set(700)); }

FN sd s_lookup(const double *table, si i) { return (sd){table[i[0] & 15], table[i[1] & 15]}; }
FN si s_tally(si i, sm m) { return i - m; }

FN sd s_exp2(sd n)
{
    return from_bits(s_bits(s_lookup(exp2_table, s_bits(n))) + (s_bits(n) << 48));
}

FN fs f_set(float a) { return (fs){a, a, a, a}; }

FN fs f_max(fs a, fs b)
{
    typedef int32_t words __attribute__((vector_size(16)));
    words greater = a > b;
    return (fs)(((words)a & greater) | ((words)b & ~greater));
}

FN fs f_load_f32(const void *p)
{
    fs v;
    memcpy(&v, p, sizeof v);
    return v;
}

FN void f_store(void *p, fs v) { memcpy(p, &v, sizeof v); }

FN fs f_load_bf16(const void *p)
{
    uint16_t halves[FLOATS];
    uint32_t words[FLOATS];
    memcpy(halves, p, sizeof halves);
    for (int i = 0; i < FLOATS; i++)
        words[i] = (uint32_t)halves[i] << 16;
    return f_load_f32(words);
}

FN sd s_load_f64(const void *p)
{
    sd v;
    memcpy(&v, p, sizeof v);
    return v;
}

FN void s_store_f64(void *p, sd v) { memcpy(p, &v, sizeof v); }

FN sd s_first(const double *p, size_t n, double other)
{
    sd v = s_set(other);
    memcpy(&v, p, n * sizeof *p);
    return v;
}

FN void s_store_first(double *p, sd v, size_t n) { memcpy(p, &v, n * sizeof *p); }
FN sm s_mask(const unsigned char *bytes)
{
    return (sm){-(uint64_t) !!bytes[0], -(uint64_t) !!bytes[1]};
}
FN sd s_totals(const sd *rows) { return (sd){s_total(rows[0]), s_total(rows[1])}; }

FN sd s_maxima(const sd *rows)
{
    sd a = {rows[0][0], rows[1][0]}, b = {rows[0][1], rows[1][1]};
    return s_max(a, b);
}

FN sd s_load_f32(const void *p)
{
    float v[2];
    memcpy(v, p, sizeof v);
    return (sd){(double)v[0], (double)v[1]};
}

FN void s_store_f32(void *p, sd v)
{
    const float narrow[] = {(float)v[0], (float)v[1]};
    memcpy(p, narrow, sizeof narrow);
}

/* The bits of a half are, moved, those of a double 2^1008 times smaller, but for the exponent of
 * infinities and NaN. */
FN sd s_load_f16(const void *p)
{
    uint16_t halves[2];
    memcpy(halves, p, sizeof halves);
    si bits = {halves[0], halves[1]}, size = bits & bits_set(0x7fff);
    si special = (si)(size >= bits_set(0x7c00)) & bits_set(0x7ff0000000000000);
    si scaled = s_bits(from_bits(size << 42) * s_set(0x1p1008)) | special;
    return from_bits(scaled | (bits >> 15 << 63));
}

FN sd s_load_bf16(const void *p)
{
    uint16_t halves[2];
    memcpy(halves, p, sizeof halves);
    const uint32_t words[] = {(uint32_t)halves[0] << 16, (uint32_t)halves[1] << 16};
    return s_load_f32(words);
}

FN void s_store_f16(void *p, sd v)
{
    kl_store(KL_FLOAT16, p, 0, v[0]);
    kl_store(KL_FLOAT16, p, 1, v[1]);
}

FN void s_store_bf16(void *p, sd v)
{
    kl_store(KL_BFLOAT16, p, 0, v[0]);
    kl_store(KL_BFLOAT16, p, 1, v[1]);
}

static bool supported(void) { return true; }

#define KERNEL_NAME "generic"
#define KERNEL_STRUCT kl_kernel_generic
#include "lib/simd/pair.h"
#include "lib/simd/template.h"
