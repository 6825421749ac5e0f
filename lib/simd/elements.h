/* Losses of elements, over the vocabulary of template.h, which includes this: their sum, or each of
 * them. */

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

/* Knuth's two-sum. Of a sum that is not finite the error is of no use. */
FN sd s_sum_and_error(sd a, sd b, sd *error)
{
    sd sum = s_add(a, b), back = s_sub(sum, a);
    *error = s_add(s_sub(a, s_sub(sum, back)), s_sub(b, back));
    return sum;
}
FN vd sum_and_error(vd a, vd b, vd *error)
{
    return (vd){s_sum_and_error(a.a, b.a, &error->a), s_sum_and_error(a.b, b.b, &error->b)};
}

struct running {
    vd high, low;
};

FN struct running add_block(struct running sum, vd block)
{
    vd error, total = sum_and_error(sum.high, block, &error);
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

/* extras: what elements have beside their operands. WEIGHT: perhaps a mask, too. */
enum extras { NOTHING, MASK, WEIGHT };

/* part: the first of some elements. */
struct part {
    const char *x, *t;
    const unsigned char *mask;
    const double *weight;
};

FN struct part skip_elements(enum kl_dtype dtype, struct part part, size_t n)
{
    return (struct part){part.x + n * size_of(dtype), part.t + n * size_of(dtype),
                         part.mask ? part.mask + n : NULL, part.weight ? part.weight + n : NULL};
}

/* Loads a vector of a part: x, t, and weight. Of hidden elements, x is -0, which no sum of signs
 * takes for positive, and the others are 0: the loss is 0 by every rule. */
struct loaded {
    vd x, t, weight;
};
FN struct loaded load_elements(enum kl_dtype dtype, enum extras extras, const struct part *part,
                               size_t i)
{
    struct loaded v = {load(dtype, part->x + i * size_of(dtype)),
                       load(dtype, part->t + i * size_of(dtype)), v_set(1)};
    if (extras == WEIGHT)
        v.weight = v_load_f64(part->weight + i);
    if (extras == MASK || (extras == WEIGHT && part->mask)) {
        vm shown = v_mask(part->mask + i);
        v.x = v_select(shown, v.x, v_set(-0.0));
        v.t = v_select(shown, v.t, v_set(0));
        v.weight = extras == WEIGHT ? v_select(shown, v.weight, v_set(0)) : v.weight;
    }
    return v;
}

/* sum_terms: the sum of each lane over a block; false if it may be wrong. n is a multiple of
 * LANES. */
FN bool sum_terms(enum kl_dtype dtype, bool log_target, enum extras extras, const struct part *part,
                  size_t n, vd *sum)
{
    vd watch = v_set(1);
    *sum = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, extras, part, i);
        struct product p = plain_term(dtype, log_target, v.x, v.t, &watch);
        if (extras == WEIGHT)
            *sum = v_fma(v_mul(p.a, p.b), v.weight, *sum);
        else
            *sum = v_fma(p.a, p.b, *sum);
    }
    return !m_any(m_or(not_finite(*sum), watched(dtype, log_target, watch)));
}

/* The sum of the sizes of t x, weighted. */
FN double size_of_inputs(enum kl_dtype dtype, enum extras extras, const struct part *part, size_t n)
{
    vd sum = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, extras, part, i);
        vd t = extras == WEIGHT ? v_mul(v.t, v.weight) : v.t;
        sum = v_add(sum, v_abs(v_mul(t, v.x)));
    }
    return v_total(sum);
}

/* sum_narrow_logs: the sums of t log t and t x of 24-bit operands, weighted, apart. The logarithms err
 * by 2^-44 of themselves, so a difference of more than 2^-4 of the sums errs by 2^-40. */
FN bool sum_narrow_logs(enum kl_dtype dtype, enum extras extras, const struct part *part, size_t n,
                        vd *sum)
{
    vd logs = v_set(0), inputs = v_set(0), signs = v_set(-0.0), watch = v_set(1);
    for (size_t i = 0; i < n; i += LANES) {
        struct loaded v = load_elements(dtype, extras, part, i);
        watch = v_watch_log(watch, v.t, false);
        if (extras == WEIGHT) {
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
    if (m_any(m_or(not_finite(*sum), v_watched_log(watch, false))))
        return false;
    bool all_negative = !m_any(m_not(v_signed(signs)));
    double size = all_negative ? -v_total(inputs) : size_of_inputs(dtype, extras, part, n);
    return fabs(v_total(*sum)) >= 0x1p-4 * size;
}

FN vd sum_carefully(enum kl_dtype dtype, enum kl_rule rule, enum extras extras,
                    const struct part *part, size_t n)
{
    double losses[BLOCK];
    vd sum = v_set(0);
    careful_block(dtype, rule, part->x, part->t, n, losses);
    for (size_t i = 0; i < n; i += LANES) {
        vd loss = v_load_f64(losses + i);
        if (extras == WEIGHT)
            loss = v_mul(loss, v_load_f64(part->weight + i));
        if (extras != NOTHING && part->mask)
            loss = v_select(v_mask(part->mask + i), loss, v_set(0));
        sum = v_add(sum, loss);
    }
    return sum;
}

/* The sum of the last, partial vector, by a copy padded with zeros, whose loss is 0 by every rule;
 * so nothing beyond the arrays is touched. */
FN vd sum_rest(enum kl_dtype dtype, enum kl_rule rule, enum extras extras, const struct part *part,
               size_t n)
{
    char x[LANES * sizeof(double)] = {0}, t[LANES * sizeof(double)] = {0};
    unsigned char mask[LANES] = {0};
    double weight[LANES] = {0};
    memcpy(x, part->x, n * size_of(dtype));
    memcpy(t, part->t, n * size_of(dtype));
    if (extras == WEIGHT)
        memcpy(weight, part->weight, n * sizeof *weight);
    if (extras != NOTHING && part->mask)
        memcpy(mask, part->mask, n);
    struct part rest = {x, t, part->mask ? mask : NULL, weight};
    return sum_carefully(dtype, rule, extras, &rest, LANES);
}

/* WARY_BLOCKS: so many are not even tried after two blocks in a row that were not ordinary. One alone
 * may have cancelled by chance. Of a long block that was not ordinary, the short ones that make it up
 * are looked at. */
enum { WARY_BLOCKS = 8 };

FN struct kl_sum sum_of(enum kl_dtype dtype, bool log_target, enum extras extras, enum kl_rule rule,
                        const struct kl_elements *e, size_t n)
{
    struct part part = {e->input, e->target, e->mask, e->weight};
    struct running sum = {v_set(0), v_set(0)};
    size_t rest = n % LANES, wary = 0, in_a_row = 0, look_closer = 0;
    bool narrow_logs = dtype != KL_FLOAT64 && !log_target;
    vd block;
    for (n -= rest; n > 0;) {
        size_t most = narrow_logs && look_closer == 0 ? LONG_BLOCK : BLOCK;
        size_t length = n < most ? n : most;
        bool plain = wary == 0 &&
                     (narrow_logs ? sum_narrow_logs(dtype, extras, &part, length, &block)
                                  : sum_terms(dtype, log_target, extras, &part, length, &block));
        if (!plain && length > BLOCK) {
            look_closer = LONG_BLOCK / BLOCK;
            continue;
        }
        if (!plain)
            block = sum_carefully(dtype, rule, extras, &part, length);
        if (wary > 0)
            wary--;
        else if (plain)
            in_a_row = 0;
        else if (++in_a_row > 1)
            wary = WARY_BLOCKS;
        look_closer -= look_closer > 0;
        sum = add_block(sum, block);
        part = skip_elements(dtype, part, length);
        n -= length;
    }
    if (rest)
        sum = add_block(sum, sum_rest(dtype, rule, extras, &part, rest));
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

/* Careful losses of a vector, with the plain ones of lanes that by themselves would have been plain: so a
 * loss has the same bits whatever is beside it. */
FN vd keep_plain(enum kl_dtype dtype, bool log_target, vd x, vd t, vd careful)
{
    vd watch = v_set(1), limit = v_abs(x);
    struct product p = plain_term(dtype, log_target, x, t, &watch);
    vd loss = v_fma(p.a, p.b, v_set(0)), size = v_abs(p.b);
    vm rare = m_or(not_finite(loss), watched(dtype, log_target, watch));
    limit = v_mul(v_select(v_gt(limit, v_set(8)), limit, v_set(8)), v_set(LEAST_NARROW_DIFFERENCE));
    vm ample = m_or(m_not(v_gt(v_set(SMALL_NARROW_DIFFERENCE), size)), m_not(v_gt(limit, size)));
    if (!log_target)
        rare = m_or(rare, m_not(ample));
    return v_select(rare, careful, loss);
}

FN void map_block(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_rule rule, bool log_target,
                  const char *x, const char *t, char *loss, size_t n)
{
    bool narrow_logs = dtype != KL_FLOAT64 && !log_target;
    vd sum = v_set(0), watch = v_set(1), least = v_set(1);
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load(dtype, x + i * size_of(dtype)), ts = load(dtype, t + i * size_of(dtype));
        struct product p = plain_term(dtype, log_target, xs, ts, &watch);
        vd losses = v_fma(p.a, p.b, v_set(0)); /* adding 0 makes 0 of -0 */
        sum = v_add(sum, losses);
        if (narrow_logs)
            least = v_lesser_size(least, p.b);
        store(loss_dtype, loss + i * size_of(loss_dtype), losses);
    }
    bool careful = m_any(m_or(not_finite(sum), watched(dtype, log_target, watch)));
    if (narrow_logs && m_any(v_gt(v_set(SMALL_NARROW_DIFFERENCE), least)))
        careful |= nearly_cancelled(dtype, x, n, least);
    if (__builtin_expect(careful, 0)) {
        double losses[BLOCK];
        careful_block(dtype, rule, x, t, n, losses);
        for (size_t i = 0; i < n; i += LANES) {
            vd from = v_load_f64(losses + i);
            if (dtype != KL_FLOAT64 && loss_dtype == KL_FLOAT64)
                from = keep_plain(dtype, log_target, load(dtype, x + i * size_of(dtype)),
                                  load(dtype, t + i * size_of(dtype)), from);
            store(loss_dtype, loss + i * size_of(loss_dtype), v_add(from, v_set(0)));
        }
    }
}

/* Probabilities against probabilities: t (log t - log q) = q (r log r - rest / q) with r = t / q and
 * rest = r q - t, which rounding left out of r. */
FN vd wide_quotient_losses(vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    vd r = v_div(t, q), rest = v_div(v_residual(r, q, t), q);
    vd logs = log_minus_wide(v_select(v_eq(t, zero), one, r), zero);
    return v_mul(q, v_sub(v_mul(r, logs), rest));
}

/* Operands of 24 bits take t log(t / q), but where the logarithm is small. */
FN vd narrow_quotient_losses(vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    vd logs = log_minus_narrow(v_select(v_eq(t, zero), one, v_div(t, q)), zero);
    vm close = v_gt(v_set(SMALL_NARROW_DIFFERENCE), v_abs(logs));
    vd losses = v_mul(t, logs);
    if (__builtin_expect(m_any(close), 0))
        losses = v_select(close, wide_quotient_losses(q, t), losses);
    return losses;
}

FN vd quotient_losses(enum kl_dtype dtype, enum kl_rule rule, vd q, vd t)
{
    const vd zero = v_set(0), one = v_set(1);
    const vd most = v_set(KL_MOST_QUOTIENT), least = v_set(KL_LEAST_QUOTIENT);
    vm none = v_eq(t, zero);
    vm rare = m_not(m_or(none, v_gt(t, least))); /* NaN is not greater */
    rare = m_or(rare, m_or(m_not(v_gt(q, least)), m_or(m_not(v_gt(most, q)), v_gt(t, most))));
    vd losses = dtype == KL_FLOAT64 ? wide_quotient_losses(q, t) : narrow_quotient_losses(q, t);
    losses = v_select(none, zero, losses);
    if (dtype == KL_FLOAT64) { /* quotients of 24 bits are neither too large nor too small */
        vd r = v_select(none, one, v_div(t, q));
        rare = m_or(rare, m_or(m_not(v_gt(r, least)), m_not(v_gt(most, r))));
    }
    rare = m_or(rare, not_finite(losses));
    if (!m_any(rare))
        return losses;
    double lanes[LANES], qs[LANES], ts[LANES], rares[LANES];
    v_store_f64(lanes, losses);
    v_store_f64(qs, q);
    v_store_f64(ts, t);
    v_store_f64(rares, v_select(rare, one, zero));
    for (size_t i = 0; i < LANES; i++)
        if (rares[i] != 0) {
            struct kl_quotient a = kl_quotient(rule, qs[i], ts[i]);
            lanes[i] = kl_term(rule, a.x, a.t) * a.times;
        }
    return v_load_f64(lanes);
}

FN void losses_of(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_form form,
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

FN void map_of(enum kl_dtype dtype, enum kl_dtype loss_dtype, enum kl_form form, enum kl_rule rule,
               const void *input, const void *target, void *loss, size_t n)
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
    TARGET static struct kl_sum sum_##suffix##_##form(enum kl_rule rule,                           \
                                                      const struct kl_elements *e, size_t n)       \
    {                                                                                              \
        bool is_log = (kl_form) == KL_FORM_LOG;                                                    \
        return e->weight ? sum_of(dtype, is_log, WEIGHT, rule, e, n)                               \
               : e->mask ? sum_of(dtype, is_log, MASK, rule, e, n)                                 \
                         : sum_of(dtype, is_log, NOTHING, rule, e, n);                             \
    }                                                                                              \
    TARGET static void map_##suffix##_##form(enum kl_rule rule, const void *input,                 \
                                             const void *target, void *loss, size_t n)             \
    {                                                                                              \
        map_of(dtype, dtype, kl_form, rule, input, target, loss, n);                               \
    }

#define LOSSES(dtype, suffix, form, kl_form)                                                       \
    TARGET static void losses_##suffix##_##form(enum kl_rule rule, const void *input,              \
                                                const void *target, double *losses, size_t n)      \
    {                                                                                              \
        map_of(dtype, KL_FLOAT64, kl_form, rule, input, target, losses, n);                        \
    }

#define ELEMENTS(dtype, suffix)                                                                    \
    ELEMENTS_FORM(dtype, suffix, prob, KL_FORM_PROB)                                               \
    ELEMENTS_FORM(dtype, suffix, log, KL_FORM_LOG)                                                 \
    LOSSES(dtype, suffix, prob, KL_FORM_PROB)                                                      \
    LOSSES(dtype, suffix, log, KL_FORM_LOG)                                                        \
    LOSSES(dtype, suffix, quotient, KL_FORM_QUOTIENT)                                              \
    TARGET static void widen_##suffix(const void *from, double *to, size_t n)                      \
    {                                                                                              \
        convert(dtype, from, KL_FLOAT64, (char *)to, n);                                           \
    }                                                                                              \
    TARGET static void narrow_##suffix(const double *from, void *to, size_t n)                     \
    {                                                                                              \
        convert(KL_FLOAT64, (const char *)from, dtype, to, n);                                     \
    }
