/* Two vectors side by side as one of twice the lanes: every operation of the vocabulary works on
 * two independent chains, which is what hides the latency of polynomials that the schedulers of
 * today's cores are too small to hide. (Measured on Zen 4: float32 sums take 0.8 of the time.)
 *
 * The file that includes this has defined the vocabulary of template.h for single vectors, with
 * s for v: SINGLE_LANES, sd, si, sm, s_add and so on. */

#define LANES (2 * SINGLE_LANES)

typedef struct {
    sd a, b;
} vd;
typedef struct {
    si a, b;
} vi;
typedef struct {
    sm a, b;
} vm;

#define PAIR_1(result, name, type)                                                                 \
    INLINE result v_##name(type x) { return (result){s_##name(x.a), s_##name(x.b)}; }
#define PAIR_2(result, name)                                                                       \
    INLINE result v_##name(vd x, vd y) { return (result){s_##name(x.a, y.a), s_##name(x.b, y.b)}; }
#define PAIR_3(name, type)                                                                         \
    INLINE vd v_##name(type x, vd y, vd z)                                                         \
    {                                                                                              \
        return (vd){s_##name(x.a, y.a, z.a), s_##name(x.b, y.b, z.b)};                             \
    }
#define PAIR_LOAD(suffix, size)                                                                    \
    INLINE vd v_load_##suffix(const void *from)                                                    \
    {                                                                                              \
        const char *second = (const char *)from + SINGLE_LANES * (size);                           \
        return (vd){s_load_##suffix(from), s_load_##suffix(second)};                               \
    }
#define PAIR_STORE(suffix, size)                                                                   \
    INLINE void v_store_##suffix(void *to, vd v)                                                   \
    {                                                                                              \
        s_store_##suffix(to, v.a);                                                                 \
        s_store_##suffix((char *)to + SINGLE_LANES * (size), v.b);                                 \
    }

INLINE sm s_tracked_exp(sd track) { return s_gt(track, s_set(700)); }

INLINE vd v_set(double a) { return (vd){s_set(a), s_set(a)}; }

PAIR_2(vd, add)
PAIR_2(vd, sub)
PAIR_2(vd, mul)
PAIR_2(vd, div)
PAIR_2(vd, max)
PAIR_2(vd, min)
PAIR_2(vd, max_nan)
PAIR_2(vd, and)
PAIR_2(vd, min_magnitude)
PAIR_2(vm, eq)
PAIR_2(vm, gt)
PAIR_3(fma, vd)
PAIR_3(mul_sub, vd)
PAIR_3(clamp, vd)
PAIR_3(select, vm)
PAIR_1(vd, abs, vd)
PAIR_1(vd, clamp_exp, vd)
PAIR_1(vd, exp2, vd)
PAIR_1(vm, signed, vd)
PAIR_1(vm, tracked_exp, vd)
PAIR_1(vi, bits, vd)
PAIR_1(vm, special, vd)
PAIR_LOAD(f64, 8)
PAIR_LOAD(f32, 4)
PAIR_LOAD(f16, 2)
PAIR_LOAD(bf16, 2)
PAIR_STORE(f64, 8)
PAIR_STORE(f32, 4)

INLINE void v_store_f16(void *to, vd v) { s_store_pair_f16(to, v.a, v.b); }
INLINE void v_store_bf16(void *to, vd v) { s_store_pair_bf16(to, v.a, v.b); }

INLINE vm m_or(vm x, vm y) { return (vm){sm_or(x.a, y.a), sm_or(x.b, y.b)}; }

INLINE vm m_not(vm x) { return (vm){sm_not(x.a), sm_not(x.b)}; }

INLINE vd v_track_log(vd track, vd t, bool is_f64)
{
    return (vd){s_track_log(track.a, t.a, is_f64), s_track_log(track.b, t.b, is_f64)};
}

INLINE vd v_track_exp(vd track, vd t, bool is_f64)
{
    return (vd){s_track_exp(track.a, t.a, is_f64), s_track_exp(track.b, t.b, is_f64)};
}

INLINE vm v_tracked_log(vd track, bool is_f64)
{
    return (vm){s_tracked_log(track.a, is_f64), s_tracked_log(track.b, is_f64)};
}

INLINE vm v_mask(const unsigned char *bytes)
{
    return (vm){s_mask(bytes), s_mask(bytes + SINGLE_LANES)};
}

INLINE double v_reduce_sum(vd x) { return s_reduce_sum(s_add(x.a, x.b)); }

INLINE bool m_any(vm x) { return sm_any(sm_or(x.a, x.b)); }

INLINE vd v_frexp(vd t, vd *k, vi *i)
{
    return (vd){s_frexp(t.a, &k->a, &i->a), s_frexp(t.b, &k->b, &i->b)};
}

INLINE vd v_lookup(const double *table, vi i)
{
    return (vd){s_lookup(table, i.a), s_lookup(table, i.b)};
}
