/* The vector kernel, written once over a small vocabulary. The file that includes this has
 * defined, for one instruction set:
 *
 *   FN                 what precedes a function of the vocabulary: inline, with its target
 *   LANES, vd, vi, vm  doubles in a vector; vectors of doubles and of 64-bit integers; masks
 *   v_set v_add v_sub v_mul v_div v_abs
 *   v_max, v_min       of two, where one is NaN perhaps the other
 *   v_fma(a, b, c)     a * b + c, rounded once or twice
 *   v_residual(a, b, c)    a * b - c of a c within some units of a * b, to double's precision
 *   v_and              of the lanes' bits
 *   v_eq v_gt          comparisons, masks; v_signed(v), of the lanes with a sign bit; m_or(a, b);
 *                      m_not(m); m_any(m), if any lane holds
 *   v_select(m, a, b)  a where m holds, else b
 *   v_clamp(v, low, high)  which lets NaN through
 *   v_limit(v)         v_clamp(v, -700, 700), which need not let NaN through
 *   v_lesser_size(a, b)    min(|a|, |b|), which need not let NaN through
 *   v_total(v)         the sum of the lanes
 *   v_split(t, &k, &i) m in [1, 2) with t = m * 2^k for t > 0, and i, the first four bits of
 *                      the mantissa. Of 0, anything finite. Of rare lanes anything, NaN for
 *                      choice: then s_watch_log need not look
 *   v_rare(t)          mask of the lanes that are negative, infinite or NaN, or positive but too
 *                      small for v_split; not of -0
 *   v_watch_log(w, t, wide)
 *                      w and what it takes to know afterwards, by v_watched_log(w, wide), that
 *                      a lane of t was rare; of those whose loss comes out as NaN or an
 *                      infinity, and of 0, it need not know
 *   v_watch_exp(w, t, wide)
 *                      the same, by v_watched_exp(w), of lanes whose size is past 700, or, of
 *                      operands that are not wide, which are past 700
 *   v_bits(v)          the lanes' bits as integers
 *   v_lookup(table, i) table[i & 15] of sixteen doubles
 *   v_exp2(n)          2^(n/16), for an integer n in the low 16 bits; not beyond normal doubles
 *   v_load_S, v_store_S for S in f64, f32, f16, bf16: LANES elements at any address, widened
 *                      exactly, or rounded once to nearest even
 *
 * Doubles carry the arithmetic of every dtype: "wide" for float64 operands, "narrow" for those of
 * at most 24 bits. */
#include "lib/kernel.h"
#include "lib/simd/log_exp.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/simd/convert.h"

/* ---- The careful form, for any rule and any value: wide, and what even that does not serve by
 * the definition. Out of line, so that the loops below hold no call and keep their constants in
 * registers. */

/* A wide log t - x errs by 2^-60 of x, or of 1: rounding to float32 does not show that from
 * here on. */
#define LEAST_WIDE_DIFFERENCE 0x1p-29

FN vd careful_prob(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *rare)
{
    vd zero = v_set(0), least = v_set(LEAST_WIDE_DIFFERENCE);
    vm positive = v_gt(t, zero);
    vd p = rule == KL_PROB_ONEFLOW ? v_select(positive, t, v_set(1)) : t;
    vd difference = log_minus_wide(p, x);
    *rare = v_rare(p);
    if (dtype != KL_FLOAT64) { /* that of t = 1 is exact */
        vm ample = m_not(v_gt(v_fma(v_abs(x), least, least), v_abs(difference)));
        *rare = m_or(*rare, m_not(m_or(ample, v_eq(t, v_set(1)))));
    }
    vd loss = v_mul(p, difference);
    if (rule == KL_PROB_ONEFLOW)
        return v_select(positive, loss, zero);
    /* 0 times a finite number is 0; under math, 0 times an infinite one too */
    vd at_zero = rule == KL_PROB_MATH ? v_clamp(x, zero, zero) : v_mul(x, zero);
    return v_select(v_eq(t, zero), at_zero, loss);
}

FN vd careful_log(enum kl_rule rule, vd x, vd t, vm *rare)
{
    vd zero = v_set(0), d = v_sub(t, x);
    vd at_minus_infinity = rule == KL_LOG_MATH        ? v_clamp(x, zero, zero)
                           : rule == KL_LOGIT_PYTORCH ? v_mul(x, zero)
                           : rule == KL_LOGIT_ONEFLOW ? zero
                                                      : v_set(NAN);
    *rare = v_gt(v_mul(d, d), v_set(DBL_MAX)); /* an infinite difference of finite numbers */
    d = v_select(v_eq(t, v_set(-INFINITY)), at_minus_infinity, d);
    vd loss = exp_times_anywhere(t, d);
    return rule == KL_LOGIT_ONEFLOW ? v_select(v_eq(t, t), loss, zero) : loss;
}

/* The losses of a block, as doubles. n is a multiple of LANES. */
TARGET static __attribute__((noinline)) void careful_block(enum kl_dtype dtype, enum kl_rule rule,
                                                           const char *x, const char *t, size_t n,
                                                           double *losses)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load(dtype, x + i * size_of(dtype)), ts = load(dtype, t + i * size_of(dtype));
        vm rare;
        v_store_f64(losses + i, kl_rule_is_log(rule) ? careful_log(rule, xs, ts, &rare)
                                                     : careful_prob(dtype, rule, xs, ts, &rare));
        if (!m_any(rare))
            continue;
        double x_lanes[LANES], t_lanes[LANES], rare_lanes[LANES];
        v_store_f64(x_lanes, xs);
        v_store_f64(t_lanes, ts);
        v_store_f64(rare_lanes, v_select(rare, v_set(1), v_set(0)));
        for (size_t lane = 0; lane < LANES; lane++)
            if (rare_lanes[lane] != 0)
                losses[i + lane] = kl_term(rule, x_lanes[lane], t_lanes[lane]);
    }
}

/* ---- The plain form, for ordinary values, by which alone the rules do not differ. It looks at
 * a block's outcome rather than at each value: whatever is not ordinary makes a sum that is not
 * finite, or shows in the watch; and where too much cancelled, the sum is small beside what it
 * is the difference of. Then the block is computed again, carefully. */

/* Elements in a block. In float64 a plain sum of more would lose the bits that the sum of the
 * blocks keeps; 24-bit operands leave room for more. */
enum { BLOCK = 8 * LANES, LONG_BLOCK = 128 * LANES };

_Static_assert(BLOCK % LANES == 0, "blocks are whole vectors");
_Static_assert(LONG_BLOCK % BLOCK == 0, "a long block is looked at again as whole blocks");

FN vm not_finite(vd v) { return m_not(v_eq(v_sub(v, v), v_set(0))); }

struct running {
    vd high, low;
};

/* Knuth's two-sum: the error of the addition is kept. */
FN struct running add_block(struct running sum, vd block)
{
    vd total = v_add(sum.high, block);
    vd back = v_sub(total, sum.high);
    vd error = v_add(v_sub(sum.high, v_sub(total, back)), v_sub(block, back));
    return (struct running){total, v_add(sum.low, error)};
}

FN struct kl_sum total_of(struct running running)
{
    double high[LANES], low[LANES];
    v_store_f64(high, running.high);
    v_store_f64(low, running.low);
    struct kl_sum sum = {0, 0};
    for (int i = 0; i < LANES; i++) {
        kl_sum_add(&sum, high[i]);
        sum.low += isfinite(low[i]) ? low[i] : 0;
    }
    return sum;
}

/* A plain loss as a product a * b, which sums fuse with their addition. */
struct product {
    vd a, b;
};

FN struct product plain_term(enum kl_dtype dtype, bool log_target, vd x, vd t, vd *watch)
{
    bool wide = dtype == KL_FLOAT64;
    if (!log_target) {
        *watch = v_watch_log(*watch, t, wide);
        return (struct product){t, wide ? log_minus_wide(t, x) : log_minus_narrow(t, x)};
    }
    *watch = v_watch_exp(*watch, t, wide);
    return (struct product){wide ? exp_wide(t) : exp_narrow(v_limit(t)), v_sub(t, x)};
}

FN vm watched(enum kl_dtype dtype, bool log_target, vd watch)
{
    return log_target ? v_watched_exp(watch) : v_watched_log(watch, dtype == KL_FLOAT64);
}

/* sum_terms: the sum of each lane over a block; false if it may be wrong. n is a multiple of
 * LANES. */
FN bool sum_terms(enum kl_dtype dtype, bool log_target, const char *x, const char *t, size_t n,
                  vd *sum)
{
    vd watch = v_set(1);
    *sum = v_set(0);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        vd xs = load(dtype, x + i), ts = load(dtype, t + i);
        struct product p = plain_term(dtype, log_target, xs, ts, &watch);
        *sum = v_fma(p.a, p.b, *sum);
    }
    return !m_any(m_or(not_finite(*sum), watched(dtype, log_target, watch)));
}

/* The sum of t |x|. */
TARGET static __attribute__((noinline)) double size_of_inputs(enum kl_dtype dtype, const char *x,
                                                              const char *t, size_t n)
{
    vd sum = v_set(0);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype))
        sum = v_fma(load(dtype, t + i), v_abs(load(dtype, x + i)), sum);
    return v_total(sum);
}

/* sum_narrow_logs: the sums of t log t and t x of 24-bit operands, apart. The logarithms err by
 * 2^-44 of themselves, so a difference of more than 2^-4 of the sums errs by 2^-40. */
FN bool sum_narrow_logs(enum kl_dtype dtype, const char *x, const char *t, size_t n, vd *sum)
{
    vd logs = v_set(0), inputs = v_set(0), signs = v_set(-0.0), watch = v_set(1);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        vd xs = load(dtype, x + i), ts = load(dtype, t + i);
        watch = v_watch_log(watch, ts, false);
        signs = v_and(signs, xs);
        logs = v_fma(ts, log_to_sum(ts), logs);
        inputs = v_fma(ts, xs, inputs);
    }
    *sum = v_sub(logs, inputs);
    if (m_any(m_or(not_finite(*sum), v_watched_log(watch, false))))
        return false;
    bool all_negative = !m_any(m_not(v_signed(signs)));
    double size = all_negative ? -v_total(inputs) : size_of_inputs(dtype, x, t, n);
    return fabs(v_total(*sum)) >= 0x1p-4 * size;
}

FN vd sum_carefully(enum kl_dtype dtype, enum kl_rule rule, const char *x, const char *t, size_t n)
{
    double losses[BLOCK];
    vd sum = v_set(0);
    careful_block(dtype, rule, x, t, n, losses);
    for (size_t i = 0; i < n; i += LANES)
        sum = v_add(sum, v_load_f64(losses + i));
    return sum;
}

/* After two blocks in a row that were not ordinary, so many are not even tried. One alone may
 * have cancelled by chance. Of a long block that was not ordinary, the short ones that make it
 * up are looked at. */
enum { WARY_BLOCKS = 8 };

/* The last, partial vector goes through a copy padded with zeros, whose loss is 0 by every
 * rule; so nothing beyond the arrays is touched. */
FN struct kl_sum sum_of(enum kl_dtype dtype, bool log_target, enum kl_rule rule, const void *input,
                        const void *target, size_t n)
{
    const char *x = input, *t = target;
    struct running sum = {v_set(0), v_set(0)};
    size_t rest = n % LANES, wary = 0, in_a_row = 0, look_closer = 0;
    bool narrow_logs = dtype != KL_FLOAT64 && !log_target;
    vd block;
    for (n -= rest; n > 0;) {
        size_t most = narrow_logs && look_closer == 0 ? LONG_BLOCK : BLOCK;
        size_t length = n < most ? n : most;
        bool plain =
            wary == 0 && (narrow_logs ? sum_narrow_logs(dtype, x, t, length, &block)
                                      : sum_terms(dtype, log_target, x, t, length, &block));
        if (!plain && length > BLOCK) {
            look_closer = LONG_BLOCK / BLOCK;
            continue;
        }
        if (!plain)
            block = sum_carefully(dtype, rule, x, t, length);
        if (wary > 0)
            wary--;
        else if (plain)
            in_a_row = 0;
        else if (++in_a_row > 1)
            wary = WARY_BLOCKS;
        look_closer -= look_closer > 0;
        sum = add_block(sum, block);
        x += length * size_of(dtype);
        t += length * size_of(dtype);
        n -= length;
    }
    if (rest) {
        char xs[LANES * sizeof(double)] = {0}, ts[LANES * sizeof(double)] = {0};
        memcpy(xs, x, rest * size_of(dtype));
        memcpy(ts, t, rest * size_of(dtype));
        sum = add_block(sum, sum_carefully(dtype, rule, xs, ts, LANES));
    }
    return total_of(sum);
}

/* A narrow log t - x errs by 2^-54 of x, or of 8. Where it is 2^-16 of these at least it errs by
 * 2^-38 of itself: rounding to float32 shows that in one element of 2^13 at worst. Blocks without
 * anything below the first number need no look at x, which where logarithms are as close as that
 * is no more than 104. */
#define SMALL_NARROW_DIFFERENCE 0x1p-9
#define LEAST_NARROW_DIFFERENCE 0x1p-16

TARGET static __attribute__((noinline)) bool nearly_cancelled(enum kl_dtype dtype, const char *x,
                                                              size_t n, vd least)
{
    vd greatest = v_set(8);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        vd size = v_abs(load(dtype, x + i));
        greatest = v_select(v_gt(size, greatest), size, greatest);
    }
    return m_any(v_gt(v_mul(greatest, v_set(LEAST_NARROW_DIFFERENCE)), least));
}

FN void map_block(enum kl_dtype dtype, enum kl_rule rule, bool log_target, const char *x,
                  const char *t, char *loss, size_t n)
{
    bool narrow_logs = dtype != KL_FLOAT64 && !log_target;
    vd sum = v_set(0), watch = v_set(1), least = v_set(1);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        vd xs = load(dtype, x + i), ts = load(dtype, t + i);
        struct product p = plain_term(dtype, log_target, xs, ts, &watch);
        vd losses = v_fma(p.a, p.b, v_set(0)); /* adding 0 makes 0 of -0 */
        sum = v_add(sum, losses);
        if (narrow_logs)
            least = v_lesser_size(least, p.b);
        store(dtype, loss + i, losses);
    }
    bool careful = m_any(m_or(not_finite(sum), watched(dtype, log_target, watch)));
    if (narrow_logs && m_any(v_gt(v_set(SMALL_NARROW_DIFFERENCE), least)))
        careful |= nearly_cancelled(dtype, x, n, least);
    if (__builtin_expect(careful, 0)) {
        double losses[BLOCK];
        careful_block(dtype, rule, x, t, n, losses);
        for (size_t i = 0; i < n; i += LANES)
            store(dtype, loss + i * size_of(dtype), v_add(v_load_f64(losses + i), v_set(0)));
    }
}

FN void map_of(enum kl_dtype dtype, bool log_target, enum kl_rule rule, const void *input,
               const void *target, void *loss, size_t n)
{
    const char *x = input, *t = target;
    char *to = loss;
    size_t rest = n % LANES;
    for (n -= rest; n > 0;) {
        size_t length = n < BLOCK ? n : BLOCK;
        map_block(dtype, rule, log_target, x, t, to, length);
        x += length * size_of(dtype);
        t += length * size_of(dtype);
        to += length * size_of(dtype);
        n -= length;
    }
    if (rest) {
        char xs[LANES * sizeof(double)] = {0}, ts[LANES * sizeof(double)] = {0};
        char losses[LANES * sizeof(double)];
        memcpy(xs, x, rest * size_of(dtype));
        memcpy(ts, t, rest * size_of(dtype));
        map_block(dtype, rule, log_target, xs, ts, losses, LANES);
        memcpy(to, losses, rest * size_of(dtype));
    }
}

#define FORM(dtype, suffix, form, log_target)                                                      \
    TARGET static struct kl_sum sum_##suffix##_##form(enum kl_rule rule, const void *input,        \
                                                      const void *target, size_t n)                \
    {                                                                                              \
        return sum_of(dtype, log_target, rule, input, target, n);                                  \
    }                                                                                              \
    TARGET static void map_##suffix##_##form(enum kl_rule rule, const void *input,                 \
                                             const void *target, void *loss, size_t n)             \
    {                                                                                              \
        map_of(dtype, log_target, rule, input, target, loss, n);                                   \
    }

#define DTYPE(dtype, suffix)                                                                       \
    FORM(dtype, suffix, prob, false)                                                               \
    FORM(dtype, suffix, log, true)                                                                 \
    TARGET static void widen_##suffix(const void *from, double *to, size_t n)                      \
    {                                                                                              \
        convert(dtype, from, KL_FLOAT64, (char *)to, n);                                           \
    }                                                                                              \
    TARGET static void narrow_##suffix(const double *from, void *to, size_t n)                     \
    {                                                                                              \
        convert(KL_FLOAT64, (const char *)from, dtype, to, n);                                     \
    }

#include "lib/simd/grad.h"

FN vd row_exp(vd v)
{
    bool far = m_any(v_gt(v_abs(v), v_set(700)));
    return __builtin_expect(far, 0) ? exp_times_anywhere(v, v_set(1)) : exp_wide(v);
}

FN vd row_log(vd v, vm *rare)
{
    *rare = v_rare(v);
    return v_select(v_eq(v, v_set(0)), v_set(-INFINITY), log_minus_wide(v, v_set(0)));
}

FN vd prob_of(bool wide, vd t)
{
    vd low = v_clamp(t, v_set(-700), v_set(700));
    return wide ? exp_wide(low) : exp_narrow(low);
}

FN vd log_minus(bool wide, vd t, vd x)
{
    return wide ? log_minus_wide(t, x) : log_minus_narrow(t, x);
}

#include "lib/simd/rows.h"
#include "lib/simd/table.h"
