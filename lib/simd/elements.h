/* Losses of elements, over the vocabulary of template.h, which includes this: their sum, or each of
 * them. */

/* Two-sum of lanes, as kl_two_sum. */
INLINE sd s_two_sum(sd a, sd b, sd *error)
{
    sd sum = s_add(a, b), back = s_sub(sum, a);
    *error = s_add(s_sub(a, s_sub(sum, back)), s_sub(b, back));
    return sum;
}

INLINE vd v_two_sum(vd a, vd b, vd *error)
{
    return (vd){s_two_sum(a.a, b.a, &error->a), s_two_sum(a.b, b.b, &error->b)};
}

INLINE vm not_finite(vd v) { return m_not(v_eq(v_sub(v, v), v_set(0))); }

/* `results`, with those of special lanes computed by `define` from the lanes of a and b. */
INLINE vd define_special(vm special, vd results, vd a, vd b,
                         double (*define)(enum kl_rule rule, double a, double b), enum kl_rule rule)
{
    double lanes[LANES], as[LANES], bs[LANES], specials[LANES];
    v_store_f64(lanes, results);
    v_store_f64(as, a);
    v_store_f64(bs, b);
    v_store_f64(specials, v_select(special, v_set(1), v_set(0)));
    for (size_t i = 0; i < LANES; i++)
        if (specials[i] != 0)
            lanes[i] = define(rule, as[i], bs[i]);
    return v_load_f64(lanes);
}

/* ---- The slow path, for any rule and any value: it has float64's accuracy, and computes special values by the
 * definition. Out of line, so that the loops below hold no call and keep their constants in registers. */

/* log t - x by log_minus_f64 errs by 2^-60 of x, or of 1: rounding to float32 does not show that from
 * here on. */
#define MIN_F64_DIFFERENCE 0x1p-29

INLINE vd slow_prob(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *special)
{
    vd zero = v_set(0), min = v_set(MIN_F64_DIFFERENCE);
    vm positive = v_gt(t, zero);
    vd p = rule == KL_PROB_ONEFLOW ? v_select(positive, t, v_set(1)) : t;
    vd difference = log_minus_f64(p, x);
    *special = v_special(p);
    if (dtype != KL_FLOAT64) { /* that of t = 1 is exact */
        vm ample = m_not(v_gt(v_fma(v_abs(x), min, min), v_abs(difference)));
        *special = m_or(*special, m_not(m_or(ample, v_eq(t, v_set(1)))));
    }
    vd loss = v_mul(p, difference);
    if (rule == KL_PROB_ONEFLOW)
        return v_select(positive, loss, zero);
    /* 0 times a finite number is 0; under math, 0 times an infinite one too */
    vd at_zero = rule == KL_PROB_MATH ? v_clamp(x, zero, zero) : v_mul(x, zero);
    return v_select(v_eq(t, zero), at_zero, loss);
}

INLINE vd slow_log(enum kl_dtype dtype, enum kl_rule rule, vd x, vd t, vm *special)
{
    vd zero = v_set(0), d = v_sub(t, x);
    vd at_minus_infinity = rule == KL_LOG_MATH        ? v_clamp(x, zero, zero)
                           : rule == KL_LOGIT_PYTORCH ? v_mul(x, zero)
                           : rule == KL_LOGIT_ONEFLOW ? zero
                                                      : v_set(NAN);
    vm either = m_or(not_finite(x), not_finite(t));
    /* an infinite difference of finite numbers */
    *special = m_not(m_or(either, m_not(v_gt(v_mul(d, d), v_set(DBL_MAX)))));
    d = v_select(v_eq(t, v_set(-INFINITY)), at_minus_infinity, d);
    vd loss = dtype == KL_FLOAT64 ? exp_times_low(t, d) : exp_times_full_range(t, d);
    return rule == KL_LOGIT_ONEFLOW ? v_select(v_eq(t, t), loss, zero) : loss;
}

/* The losses of a block, as doubles. n is a multiple of LANES. */
TARGET_ATTR static __attribute__((noinline)) void slow_block(enum kl_dtype dtype, enum kl_rule rule,
                                                             const char *x, const char *t, size_t n,
                                                             double *losses)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load(dtype, x + i * size_of(dtype)), ts = load(dtype, t + i * size_of(dtype));
        vm special;
        vd result = kl_rule_is_log(rule) ? slow_log(dtype, rule, xs, ts, &special)
                                         : slow_prob(dtype, rule, xs, ts, &special);
        if (m_any(special))
            result = define_special(special, result, xs, ts, kl_term, rule);
        v_store_f64(losses + i, result);
    }
}

/* ---- The fast path, for values that are not special, where all rules agree. It checks the outcome of a
 * block rather than each value: a special value makes the sum infinite or NaN, or shows in `track`; and
 * where too much cancelled, the sum is small beside its two parts. Then the block is computed again, by
 * the slow path. */

/* Elements in a block. In float64 an uncompensated sum of more would lose bits that the compensated sum
 * of the blocks keeps; 24-bit operands leave room for more. */
enum { BLOCK = 8 * LANES, LONG_BLOCK = 128 * LANES };

_Static_assert(BLOCK % LANES == 0, "blocks are whole vectors");
_Static_assert(LONG_BLOCK % BLOCK == 0, "a long block is computed again as whole blocks");

struct running {
    vd high, low;
};

INLINE struct running add_block(struct running sum, vd block)
{
    vd error, total = v_two_sum(sum.high, block, &error);
    return (struct running){total, v_add(sum.low, error)};
}

/* The sum of all lanes, by halves: each step's sums do not wait for one another. */
INLINE struct kl_sum total_of(struct running running)
{
    double lanes[SINGLE_LANES];
    sd error, halves = s_two_sum(running.high.a, running.high.b, &error);
    double low = s_reduce_sum(s_add(error, s_add(running.low.a, running.low.b)));
    s_store_f64(lanes, halves);
#pragma GCC unroll 3
    for (size_t width = SINGLE_LANES / 2; width > 0; width /= 2)
#pragma GCC unroll 4
        for (size_t i = 0; i < width; i++) {
            struct kl_sum sum = kl_two_sum(lanes[i], lanes[i + width]);
            lanes[i] = sum.high, low += sum.low;
        }
    return (struct kl_sum){lanes[0],
                           isfinite(lanes[0]) ? low : 0}; /* of infinite sums errors are NaN */
}

/* A loss by the fast path as a product a * b, which sums fuse with their addition. */
struct product {
    vd a, b;
};

INLINE struct product fast_term(enum kl_dtype dtype, bool log_target, vd x, vd t, vd *track)
{
    bool is_f64 = dtype == KL_FLOAT64;
    if (!log_target) {
        *track = v_track_log(*track, t, is_f64);
        return (struct product){t, is_f64 ? log_minus_f64(t, x) : log_minus_f32(t, x)};
    }
    *track = v_track_exp(*track, t, is_f64);
    return (struct product){is_f64 ? exp_f64(t) : exp_f32(v_clamp_exp(t)), v_sub(t, x)};
}

INLINE vm tracked(enum kl_dtype dtype, bool log_target, vd track)
{
    return log_target ? v_tracked_exp(track) : v_tracked_log(track, dtype == KL_FLOAT64);
}

/* mode: the arrays beside the operands. WEIGHT: perhaps a mask, too. */
enum mode { NOTHING, MASK, WEIGHT };

/* cursor: the address of the next element in each array. */
struct cursor {
    const char *x, *t;
    const unsigned char *mask;
    const double *weight;
};

INLINE struct cursor skip_elements(enum kl_dtype dtype, struct cursor cursor, size_t n)
{
    return (struct cursor){cursor.x + n * size_of(dtype), cursor.t + n * size_of(dtype),
                           cursor.mask ? cursor.mask + n : NULL,
                           cursor.weight ? cursor.weight + n : NULL};
}

/* Loads a vector of x, t and weight. Of masked elements, x is -0, which keeps the `and` of all signs,
 * and the others are 0: the loss is 0 by every rule. */
struct loaded {
    vd x, t, weight;
};
INLINE struct loaded load_elements(enum kl_dtype dtype, enum mode mode, const struct cursor *cursor,
                                   size_t i)
{
    struct loaded v = {load(dtype, cursor->x + i * size_of(dtype)),
                       load(dtype, cursor->t + i * size_of(dtype)), v_set(1)};
    if (mode == WEIGHT)
        v.weight = v_load_f64(cursor->weight + i);
    if (mode == MASK || (mode == WEIGHT && cursor->mask)) {
        vm unmasked = v_mask(cursor->mask + i);
        v.x = v_select(unmasked, v.x, v_set(-0.0));
        v.t = v_select(unmasked, v.t, v_set(0));
        v.weight = mode == WEIGHT ? v_select(unmasked, v.weight, v_set(0)) : v.weight;
    }
    return v;
}

/* sum_terms: the sum of each lane over a block; false if it may be wrong. n is a multiple of
 * LANES. */
INLINE bool sum_terms(enum kl_dtype dtype, bool log_target, enum mode mode,
                      const struct cursor *cursor, size_t n, vd *sum)
{
    vd track = v_set(1);
    *sum = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, mode, cursor, i);
        struct product p = fast_term(dtype, log_target, v.x, v.t, &track);
        if (mode == WEIGHT)
            *sum = v_fma(v_mul(p.a, p.b), v.weight, *sum);
        else
            *sum = v_fma(p.a, p.b, *sum);
    }
    return !m_any(m_or(not_finite(*sum), tracked(dtype, log_target, track)));
}

/* The sum of the sizes of t x, weighted. */
INLINE double size_of_inputs(enum kl_dtype dtype, enum mode mode, const struct cursor *cursor,
                             size_t n)
{
    vd sum = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, mode, cursor, i);
        vd t = mode == WEIGHT ? v_mul(v.t, v.weight) : v.t;
        sum = v_add(sum, v_abs(v_mul(t, v.x)));
    }
    return v_reduce_sum(sum);
}

/* sum_f32_logs: the sums of t log t and t x of 24-bit operands, weighted, apart. The logarithms err
 * by 2^-44 of themselves, so a difference of more than 2^-4 of the sums errs by 2^-40. */
INLINE bool sum_f32_logs(enum kl_dtype dtype, enum mode mode, const struct cursor *cursor, size_t n,
                         vd *sum)
{
    vd logs = v_set(0), inputs = v_set(0), signs = v_set(-0.0), track = v_set(1);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, mode, cursor, i);
        track = v_track_log(track, v.t, false);
        if (mode == WEIGHT) {
            vd t = v_mul(v.t, v.weight), input = v_mul(t, v.x);
            signs = v_and(signs, input);
            logs = v_fma(t, log_to_sum(v.t), logs);
            inputs = v_add(inputs, input);
        } else {
            signs = v_and(signs, v.x);
            logs = v_fma(v.t, log_to_sum(v.t), logs);
            inputs = v_fma(v.t, v.x, inputs);
        }
    }
    *sum = v_sub(logs, inputs);
    if (m_any(m_or(not_finite(*sum), v_tracked_log(track, false))))
        return false;
    bool all_negative = !m_any(m_not(v_signed(signs)));
    double size = all_negative ? -v_reduce_sum(inputs) : size_of_inputs(dtype, mode, cursor, n);
    return fabs(v_reduce_sum(*sum)) >= 0x1p-4 * size;
}

INLINE vd sum_slow(enum kl_dtype dtype, enum kl_rule rule, enum mode mode,
                   const struct cursor *cursor, size_t n)
{
    double losses[BLOCK];
    vd sum = v_set(0);
    slow_block(dtype, rule, cursor->x, cursor->t, n, losses);
    for (size_t i = 0; i < n; i += LANES) {
        vd loss = v_load_f64(losses + i);
        if (mode == WEIGHT)
            loss = v_mul(loss, v_load_f64(cursor->weight + i));
        if (mode != NOTHING && cursor->mask)
            loss = v_select(v_mask(cursor->mask + i), loss, v_set(0));
        sum = v_add(sum, loss);
    }
    return sum;
}

/* The sum of the last, partial vector, by a copy padded with zeros, whose loss is 0 by every rule;
 * so nothing beyond the arrays is touched. */
INLINE vd sum_rest(enum kl_dtype dtype, enum kl_rule rule, enum mode mode,
                   const struct cursor *cursor, size_t n)
{
    char x[LANES * sizeof(double)] = {0}, t[LANES * sizeof(double)] = {0};
    unsigned char mask[LANES] = {0};
    double weight[LANES] = {0};
    memcpy(x, cursor->x, n * size_of(dtype));
    memcpy(t, cursor->t, n * size_of(dtype));
    if (mode == WEIGHT)
        memcpy(weight, cursor->weight, n * sizeof *weight);
    if (mode != NOTHING && cursor->mask)
        memcpy(mask, cursor->mask, n);
    struct cursor rest = {x, t, cursor->mask ? mask : NULL, weight};
    return sum_slow(dtype, rule, mode, &rest, LANES);
}

/* BACKOFF_BLOCKS: so many go by the slow path at once, after two blocks in a row that needed it. One alone
 * may have cancelled by chance. A long block that failed is tried again as short blocks. */
enum { BACKOFF_BLOCKS = 8 };

INLINE struct kl_sum sum_of(enum kl_dtype dtype, bool log_target, enum mode mode, enum kl_rule rule,
                            const struct kl_elements *e, size_t n)
{
    struct cursor cursor = {e->input, e->target, e->mask, e->weight};
    struct running sum = {v_set(0), v_set(0)};
    size_t rest = n % LANES, backoff = 0, in_a_row = 0, short_blocks = 0;
    bool f32_logs = dtype != KL_FLOAT64 && !log_target;
    vd block;
    for (n -= rest; n > 0;) {
        size_t max = f32_logs && short_blocks == 0 ? LONG_BLOCK : BLOCK;
        size_t length = n < max ? n : max;
        bool fast = backoff == 0 &&
                    (f32_logs ? sum_f32_logs(dtype, mode, &cursor, length, &block)
                              : sum_terms(dtype, log_target, mode, &cursor, length, &block));
        if (!fast && length > BLOCK) {
            short_blocks = LONG_BLOCK / BLOCK;
            continue;
        }
        if (!fast)
            block = sum_slow(dtype, rule, mode, &cursor, length);
        if (backoff > 0)
            backoff--;
        else if (fast)
            in_a_row = 0;
        else if (++in_a_row > 1)
            backoff = BACKOFF_BLOCKS;
        short_blocks -= short_blocks > 0;
        sum = add_block(sum, block);
        cursor = skip_elements(dtype, cursor, length);
        n -= length;
    }
    if (rest)
        sum = add_block(sum, sum_rest(dtype, rule, mode, &cursor, rest));
    return total_of(sum);
}

/* log t - x by log_minus_f32 errs by 2^-54 of x, or of 8. Where it is 2^-16 of these at least it errs by
 * 2^-38 of itself: rounding to float32 shows that in one element of 2^13 at worst, and log_minus_half by
 * 2^-24 at most, which rounding to fewer bits shows as rarely. Blocks without a difference below SMALL_F32_DIFFERENCE
 * need no look at x, which where logarithms are as close as that is no more than 104. */
#define SMALL_F32_DIFFERENCE 0x1p-9
#define MIN_F32_DIFFERENCE 0x1p-16

TARGET_ATTR static __attribute__((noinline)) bool nearly_cancelled(enum kl_dtype dtype,
                                                                   const char *x, size_t n, vd min)
{
    vd max = v_set(8);
    for (size_t i = 0; i < n * size_of(dtype); i += LANES * size_of(dtype)) {
        vd size = v_abs(load(dtype, x + i));
        max = v_select(v_gt(size, max), size, max);
    }
    return m_any(v_gt(v_mul(max, v_set(MIN_F32_DIFFERENCE)), min));
}

/* The slow path's losses of a vector, but the fast path's in lanes that did not need the slow path: so a loss has the
 * same bits whatever is beside it. */
INLINE vd keep_fast(enum kl_dtype dtype, bool log_target, vd x, vd t, vd slow)
{
    vd track = v_set(1), limit = v_abs(x);
    struct product p = fast_term(dtype, log_target, x, t, &track);
    vd loss = v_fma(p.a, p.b, v_set(0)), size = v_abs(p.b);
    vm special = m_or(not_finite(loss), tracked(dtype, log_target, track));
    limit = v_mul(v_select(v_gt(limit, v_set(8)), limit, v_set(8)), v_set(MIN_F32_DIFFERENCE));
    vm ample = m_or(m_not(v_gt(v_set(SMALL_F32_DIFFERENCE), size)), m_not(v_gt(limit, size)));
    if (!log_target)
        special = m_or(special, m_not(ample));
    return v_select(special, slow, loss);
}

INLINE void map_block(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_rule rule,
                      bool log_target, const char *x, const char *t, char *loss, size_t n)
{
    bool f32_logs = dtype != KL_FLOAT64 && !log_target;
    bool to_half = loss_dtype == KL_FLOAT16 || loss_dtype == KL_BFLOAT16;
    vd sum = v_set(0), track = v_set(1), min = v_set(1);
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load(dtype, x + i * size_of(dtype)), ts = load(dtype, t + i * size_of(dtype));
        struct product p = fast_term(dtype, log_target, xs, ts, &track);
        if (to_half && log_target)
            p.a = exp_half(v_clamp_exp(ts));
        else if (to_half)
            p.b = log_minus_half(loss_dtype == KL_FLOAT16, ts, xs);
        vd losses = v_fma(p.a, p.b, v_set(0)); /* adding 0 makes 0 of -0 */
        sum = v_add(sum, losses);
        if (f32_logs)
            min = v_min_magnitude(min, p.b);
        store(loss_dtype, loss + i * size_of(loss_dtype), losses);
    }
    bool slow = m_any(m_or(not_finite(sum), tracked(dtype, log_target, track)));
    if (f32_logs && m_any(v_gt(v_set(SMALL_F32_DIFFERENCE), min)))
        slow |= nearly_cancelled(dtype, x, n, min);
    if (__builtin_expect(slow, 0)) {
        double losses[BLOCK];
        slow_block(dtype, rule, x, t, n, losses);
        for (size_t i = 0; i < n; i += LANES) {
            vd from = v_load_f64(losses + i);
            if (dtype != KL_FLOAT64 && loss_dtype == KL_FLOAT64)
                from = keep_fast(dtype, log_target, load(dtype, x + i * size_of(dtype)),
                                 load(dtype, t + i * size_of(dtype)), from);
            store(loss_dtype, loss + i * size_of(loss_dtype), v_add(from, v_set(0)));
        }
    }
}

/* Probabilities against probabilities: t (log t - log q) = q (r log r - rest / q) with r = t / q and
 * rest = r q - t, which rounding left out of r. */
INLINE vd f64_quotient_losses(vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    vd r = v_div(t, q), rest = v_div(v_mul_sub(r, q, t), q);
    vd logs = log_minus_f64(v_select(v_eq(t, zero), one, r), zero);
    return v_mul(q, v_sub(v_mul(r, logs), rest));
}

/* Operands of 24 bits take t log(t / q), but where the logarithm is small. */
INLINE vd f32_quotient_losses(vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    vd logs = log_minus_f32(v_select(v_eq(t, zero), one, v_div(t, q)), zero);
    vm close = v_gt(v_set(SMALL_F32_DIFFERENCE), v_abs(logs));
    vd losses = v_mul(t, logs);
    if (__builtin_expect(m_any(close), 0))
        losses = v_select(close, f64_quotient_losses(q, t), losses);
    return losses;
}

static double quotient_term(enum kl_rule rule, double q, double t)
{
    struct kl_quotient a = kl_quotient(rule, q, t);
    return kl_term(rule, a.x, a.t) * a.times;
}

INLINE vd quotient_losses(enum kl_dtype dtype, enum kl_rule rule, vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    const vd max = v_set(KL_MAX_QUOTIENT), min = v_set(KL_MIN_QUOTIENT);
    vm none = v_eq(t, zero);
    vm special = m_not(m_or(none, v_gt(t, min))); /* NaN is not greater */
    special = m_or(special, m_or(m_not(v_gt(q, min)), m_or(m_not(v_gt(max, q)), v_gt(t, max))));
    vd losses = dtype == KL_FLOAT64 ? f64_quotient_losses(q, t) : f32_quotient_losses(q, t);
    losses = v_select(none, zero, losses);
    if (dtype == KL_FLOAT64) { /* quotients of 24 bits are neither too large nor too small */
        vd r = v_select(none, one, v_div(t, q));
        special = m_or(special, m_or(m_not(v_gt(r, min)), m_not(v_gt(max, r))));
    }
    special = m_or(special, not_finite(losses));
    return m_any(special) ? define_special(special, losses, q, t, quotient_term, rule) : losses;
}

INLINE void losses_of(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_form form,
                      enum kl_rule rule, const char *x, const char *t, char *loss, size_t n)
{
    if (form != KL_FORM_QUOTIENT)
        map_block(dtype, loss_dtype, rule, form == KL_FORM_LOG, x, t, loss, n);
    else
        for (size_t i = 0; i < n; i += LANES)
            v_store_f64((double *)(void *)loss + i,
                        quotient_losses(dtype, rule, load(dtype, x + i * size_of(dtype)),
                                        load(dtype, t + i * size_of(dtype))));
}

INLINE void map_of(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_form form,
                   enum kl_rule rule, const void *input, const void *target, void *loss, size_t n)
{
    const char *x = input, *t = target;
    char *to = loss;
    size_t rest = n % LANES;
    for (n -= rest; n > 0;) {
        size_t length = n < BLOCK ? n : BLOCK;
        losses_of(dtype, loss_dtype, form, rule, x, t, to, length);
        x += length * size_of(dtype);
        t += length * size_of(dtype);
        to += length * size_of(loss_dtype);
        n -= length;
    }
    if (rest) {
        char xs[LANES * sizeof(double)] = {0}, ts[LANES * sizeof(double)] = {0};
        char losses[LANES * sizeof(double)];
        if (form == KL_FORM_QUOTIENT) /* by which is divided */
            store(dtype, xs, v_set(1));
        memcpy(xs, x, rest * size_of(dtype));
        memcpy(ts, t, rest * size_of(dtype));
        losses_of(dtype, loss_dtype, form, rule, xs, ts, losses, LANES);
        memcpy(to, losses, rest * size_of(loss_dtype));
    }
}

#define ELEMENTS_FORM(dtype, suffix, form, kl_form)                                                \
    TARGET_ATTR static struct kl_sum sum_##suffix##_##form(enum kl_rule rule,                      \
                                                           const struct kl_elements *e, size_t n)  \
    {                                                                                              \
        bool is_log = (kl_form) == KL_FORM_LOG;                                                    \
        return e->weight ? sum_of(dtype, is_log, WEIGHT, rule, e, n)                               \
               : e->mask ? sum_of(dtype, is_log, MASK, rule, e, n)                                 \
                         : sum_of(dtype, is_log, NOTHING, rule, e, n);                             \
    }                                                                                              \
    TARGET_ATTR static void map_##suffix##_##form(enum kl_rule rule, const void *input,            \
                                                  const void *target, void *loss, size_t n)        \
    {                                                                                              \
        map_of(dtype, dtype, kl_form, rule, input, target, loss, n);                               \
    }

#define LOSSES(dtype, suffix, form, kl_form)                                                       \
    TARGET_ATTR static void losses_##suffix##_##form(enum kl_rule rule, const void *input,         \
                                                     const void *target, double *losses, size_t n) \
    {                                                                                              \
        map_of(dtype, KL_FLOAT64, kl_form, rule, input, target, losses, n);                        \
    }

#define ELEMENTS(dtype, suffix)                                                                    \
    ELEMENTS_FORM(dtype, suffix, prob, KL_FORM_PROB)                                               \
    ELEMENTS_FORM(dtype, suffix, log, KL_FORM_LOG)                                                 \
    LOSSES(dtype, suffix, prob, KL_FORM_PROB)                                                      \
    LOSSES(dtype, suffix, log, KL_FORM_LOG)                                                        \
    LOSSES(dtype, suffix, quotient, KL_FORM_QUOTIENT)                                              \
    TARGET_ATTR static void widen_##suffix(const void *from, double *to, size_t n)                 \
    {                                                                                              \
        convert(dtype, from, KL_FLOAT64, (char *)to, n);                                           \
    }                                                                                              \
    TARGET_ATTR static void narrow_##suffix(const double *from, void *to, size_t n)                \
    {                                                                                              \
        convert(KL_FLOAT64, (const char *)from, dtype, to, n);                                     \
    }
