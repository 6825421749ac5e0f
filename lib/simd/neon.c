#if defined __aarch64__
#include "lib/simd/constants.h"

#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TARGET_ATTR
#define INLINE static inline __attribute__((always_inline))
#define SINGLE_LANES 2
typedef float64x2_t sd;
typedef int64x2_t si;
typedef uint64x2_t sm;
#define FLOATS 4
typedef float32x4_t fs;

#include "lib/simd/vectors.h"

INLINE sd s_set(double a) { return vdupq_n_f64(a); }
INLINE sd s_fma(sd a, sd b, sd c) { return vfmaq_f64(c, a, b); }
INLINE sd s_mul_sub(sd a, sd b, sd c) { return vnegq_f64(vfmsq_f64(c, a, b)); }
INLINE sd s_max(sd a, sd b) { return vmaxnmq_f64(a, b); }
INLINE sd s_min(sd a, sd b) { return vminnmq_f64(a, b); }
INLINE sd s_abs(sd a) { return vabsq_f64(a); }
INLINE sd s_and(sd a, sd b) { return from_bits(vandq_s64(s_bits(a), s_bits(b))); }
INLINE sm s_eq(sd a, sd b) { return vceqq_f64(a, b); }
INLINE sm s_gt(sd a, sd b) { return vcgtq_f64(a, b); }
INLINE sm s_signed(sd a) { return vcltzq_s64(s_bits(a)); }
INLINE sm sm_not(sm m) { return veorq_u64(m, vdupq_n_u64(UINT64_MAX)); }
INLINE sm sm_or(sm a, sm b) { return vorrq_u64(a, b); }
INLINE bool sm_any(sm m) { return (vgetq_lane_u64(m, 0) | vgetq_lane_u64(m, 1)) != 0; }
INLINE sd s_select(sm m, sd a, sd b) { return vbslq_f64(m, a, b); }
INLINE double s_reduce_sum(sd a) { return vaddvq_f64(a); }
INLINE double s_reduce_max(sd a) { return vmaxvq_f64(a); }

INLINE sd s_clamp(sd v, sd low, sd high) { return vminq_f64(vmaxq_f64(v, low), high); }
INLINE sd s_max_nan(sd low, sd v) { return vmaxq_f64(low, v); }
INLINE sd s_clamp_exp(sd v) { return s_clamp(v, s_set(-700), s_set(700)); }
INLINE sd s_min_magnitude(sd a, sd b) { return vminnmq_f64(a, vabsq_f64(b)); }

INLINE sd s_frexp(sd t, sd *k, si *i)
{
    si bits = s_bits(t);
    *k = vcvtq_f64_s64(vsubq_s64(vshrq_n_s64(bits, 52), vdupq_n_s64(1023)));
    *i = vshrq_n_s64(bits, 48);
    si mantissa = vandq_s64(bits, vdupq_n_s64(0x000fffffffffffff));
    return from_bits(vorrq_s64(mantissa, vdupq_n_s64(0x3ff0000000000000)));
}

INLINE sm s_special(sd t)
{
    sm small = vandq_u64(sm_not(vcgeq_f64(t, s_set(0x1p-1022))), sm_not(vceqzq_f64(t)));
    return vorrq_u64(small, vceqq_f64(t, s_set(INFINITY)));
}

INLINE sd s_lookup(const double *table, si i)
{
    sd a = vld1q_dup_f64(table + (vgetq_lane_s64(i, 0) & 15));
    return vld1q_lane_f64(table + (vgetq_lane_s64(i, 1) & 15), a, 1);
}

INLINE sd s_exp2(sd n)
{
    si root = s_bits(s_lookup(exp2_table, s_bits(n)));
    return from_bits(vaddq_s64(root, vshlq_n_s64(s_bits(n), 48)));
}

INLINE fs f_set(float a) { return vdupq_n_f32(a); }
INLINE fs f_max(fs a, fs b) { return vmaxnmq_f32(a, b); }
INLINE fs f_load_f32(const void *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
INLINE void f_store(void *p, fs v) { vst1q_u8(p, vreinterpretq_u8_f32(v)); }

INLINE fs f_load_bf16(const void *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

INLINE sd s_load_f64(const void *p) { return vreinterpretq_f64_u8(vld1q_u8(p)); }
INLINE void s_store_f64(void *p, sd v) { vst1q_u8(p, vreinterpretq_u8_f64(v)); }

INLINE sd s_load_n(const double *p, size_t n, double other)
{
    sd v = s_set(other);
    memcpy(&v, p, n * sizeof *p);
    return v;
}

INLINE void s_store_n(double *p, sd v, size_t n) { memcpy(p, &v, n * sizeof *p); }

INLINE sm s_mask(const unsigned char *bytes)
{
    sm lanes = vdupq_n_u64(bytes[0] ? UINT64_MAX : 0);
    return vsetq_lane_u64(bytes[1] ? UINT64_MAX : 0, lanes, 1);
}

INLINE sd s_reduce_sums(const sd *rows) { return vpaddq_f64(rows[0], rows[1]); }
INLINE sd s_reduce_maxima(const sd *rows) { return vpmaxnmq_f64(rows[0], rows[1]); }
INLINE sd s_load_f32(const void *p) { return vcvt_f64_f32(vreinterpret_f32_u8(vld1_u8(p))); }
INLINE void s_store_f32(void *p, sd v) { vst1_u8(p, vreinterpret_u8_f32(vcvt_f32_f64(v))); }

/* Two elements of 16 bits, in the low lanes. */
INLINE uint16x4_t load_pair(const void *p)
{
    uint32_t pair;
    memcpy(&pair, p, sizeof pair);
    return vreinterpret_u16_u32(vdup_n_u32(pair));
}

INLINE sd s_load_f16(const void *p)
{
    float32x4_t v = vcvt_f32_f16(vreinterpret_f16_u16(load_pair(p)));
    return vcvt_f64_f32(vget_low_f32(v));
}

INLINE sd s_load_bf16(const void *p)
{
    uint32x4_t v = vshll_n_u16(load_pair(p), 16);
    return vcvt_f64_f32(vget_low_f32(vreinterpretq_f32_u32(v)));
}

/* To float by rounding to odd (Boldo and Melquiond, 2008), so that rounding once more, to fewer bits, is as good as
 * rounding once. */
INLINE float32x4_t to_odd(sd a, sd b) { return vcombine_f32(vcvtx_f32_f64(a), vcvtx_f32_f64(b)); }

INLINE void s_store_pair_f16(void *p, sd a, sd b)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(to_odd(a, b))));
}

INLINE void s_store_pair_bf16(void *p, sd a, sd b)
{
    float32x4_t odd = to_odd(a, b);
    uint32x4_t bits = vreinterpretq_u32_f32(odd);
    uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7fff)));
    up = vbslq_u32(vceqq_f32(odd, odd), up, vdupq_n_u32(0x7fc00000));
    vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(up, 16)));
}

#include "lib/simd/masks.h"

static bool supported(void) { return true; }

#define KERNEL_NAME "neon"
#define KERNEL_STRUCT kl_kernel_neon
#include "lib/simd/template.h"
#endif
