/* Sums, statistics and derivatives of a row, or of a part of one, over the vocabulary of template.h, which includes this. */

INLINE double max_lane(vd v) { return s_reduce_max(s_max(v.a, v.b)); }

INLINE fs load_floats(enum kl_dtype dtype, const char *from)
{
    return dtype == KL_FLOAT32 ? f_load_f32(from) : f_load_bf16(from);
}

/* Maxima of n elements that floats hold, n a multiple of FLOATS. */
INLINE vd float_maxima(enum kl_dtype dtype, const char *v, size_t n)
{
    float lanes[FLOATS];
    fs maxima[2] = {f_set(-INFINITY), f_set(-INFINITY)}; /* two chains */
    size_t i = 0;
    for (; i + 2 * FLOATS <= n; i += 2 * FLOATS) {
        maxima[0] = f_max(load_floats(dtype, v + i * size_of(dtype)), maxima[0]);
        maxima[1] = f_max(load_floats(dtype, v + (i + FLOATS) * size_of(dtype)), maxima[1]);
    }
    if (i < n)
        maxima[0] = f_max(load_floats(dtype, v + i * size_of(dtype)), maxima[0]);
    f_store(lanes, f_max(maxima[0], maxima[1]));
    return v_load_f32(lanes);
}

INLINE double row_max_of(enum kl_dtype dtype, const char *v, size_t n)
{
    const vd nothing = v_set(-INFINITY);
    vd maxima[2] = {nothing, nothing}; /* two chains */
    size_t i = 0;
    if (dtype == KL_FLOAT32 || dtype == KL_BFLOAT16) {
        i = n / FLOATS * FLOATS;
        maxima[1] = float_maxima(dtype, v, i);
    }
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        maxima[0] = v_max(load(dtype, v + i * size_of(dtype)), maxima[0]);
        maxima[1] = v_max(load(dtype, v + (i + LANES) * size_of(dtype)), maxima[1]);
    }
    for (; i < n; i += LANES) {
        vd part = load_elements_part(dtype, v + i * size_of(dtype), n - i);
        if (n - i < LANES)
            part = v_select(first_lanes(n - i), part, nothing);
        maxima[0] = v_max(part, maxima[0]);
    }
    return max_lane(v_max(maxima[0], maxima[1]));
}

INLINE vd shifted(vd v, struct kl_shift shift)
{
    return v_mul(v_sub(v, v_set(shift.offset)), v_set(shift.scale));
}

/* exp(max(t, -700)) of t at most 700. */
INLINE vd prob_of(bool is_f64, vd t)
{
    vd raised = v_max_nan(v_set(-700), t);
    return is_f64 ? exp_f64(raised) : exp_f32(raised);
}

INLINE vd shifted_exp(enum kl_dtype dtype, const char *v, struct kl_shift shift, size_t left)
{
    vd log = shifted(load_elements_part(dtype, v, left), shift);
    return v_select(v_gt(v_set(-700), log), v_set(0), prob_of(dtype == KL_FLOAT64, log));
}

/* Sums by blocks, whose sums are compensated. */
INLINE struct kl_sum exp_sum_of(enum kl_dtype dtype, const char *v, struct kl_shift shift, size_t n)
{
    enum { BLOCK_VECTORS = 16 };
    struct running sum = {v_set(0), v_set(0)};
    for (size_t i = 0; i < n;) {
        size_t end = n - i < BLOCK_VECTORS * LANES ? n : i + BLOCK_VECTORS * LANES;
        vd block = v_set(0);
        for (; end - i >= LANES; i += LANES)
            block = v_add(block, shifted_exp(dtype, v + i * size_of(dtype), shift, LANES));
        if (i < end) {
            vd part = shifted_exp(dtype, v + i * size_of(dtype), shift, end - i);
            block = v_add(block, v_select(first_lanes(end - i), part, v_set(0)));
            i = end;
        }
        sum = add_block(sum, block);
    }
    return total_of(sum);
}

INLINE void exp_scale_of(enum kl_dtype dtype, const char *v, struct kl_shift shift, double factor,
                         char *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd e = shifted_exp(dtype, v + i * size_of(dtype), shift, n - i);
        store_elements_part(dtype, to + i * size_of(dtype), v_mul(v_set(factor), e), n - i);
    }
}

/* row_term: an element's part of the sums of its row. A log-probability below -700 counts as a probability of 0, by
 * which a finite difference is multiplied. */
struct row_term {
    vd p, difference, e;
    vm special;
};
INLINE struct row_term row_term(bool is_log, bool is_f64, bool with_exps, vd sentinel, vd x, vd t)
{
    const vd max = v_set(700), min = v_set(-700);
    struct row_term term = {.e = v_set(0)};
    if (is_log) {
        term.p = v_select(v_gt(min, t), v_set(0), prob_of(is_f64, t));
        term.difference = v_sub(v_max_nan(min, t), x);
        term.special = m_or(v_gt(t, max), v_eq(t, sentinel));
    } else {
        term.p = t;
        term.difference = is_f64 ? log_minus_f64(t, x) : log_minus_f32(t, x);
        term.special = v_special(t);
    }
    if (with_exps) {
        term.special = m_or(term.special, v_gt(x, max));
        term.e = prob_of(is_f64, x);
    }
    return term;
}

/* row_pass: one pass over n elements of a row. */
struct row_pass {
    enum kl_dtype dtype;
    bool are_logits; /* both, none above its row's maximum: NaN and infinities show in the sums */
    bool is_log, with_exps, scaled, caches;
    const char *operands[KL_OPERANDS];
    vd by[KL_OPERANDS], scales[KL_OPERANDS], sentinel;
    double *cached_p, *cached_q;
    size_t n;
};

INLINE vd load_shifted(const struct row_pass *r, int operand, size_t i, size_t left)
{
    const char *from = r->operands[operand] + i * size_of(r->dtype);
    vd v = left < LANES ? load_elements_part(r->dtype, from, left) : load(r->dtype, from);
    v = v_sub(v, r->by[operand]);
    return r->scaled ? v_mul(v, r->scales[operand]) : v;
}

/* row_sums: sums of lanes; exponentials of logits, none of which is above 1, to a sum that begins with
 * EXPS_START. */
#define EXPS_START 2.0
struct row_sums {
    vd losses;
    struct running sum_p, exps;
};

INLINE struct running exps_start(void) { return (struct running){v_set(EXPS_START), v_set(0)}; }

/* Dekker's fast two-sum, of a sum that is above what is added. */
INLINE struct running add_exps(struct running sum, vd exps)
{
    vd high = v_add(sum.high, exps);
    return (struct running){high, v_add(sum.low, v_sub(exps, v_sub(high, sum.high)))};
}

/* Adds an element. Uncompensated sums drift where many numbers are equal: those of float64's
 * probabilities are compensated at each step; losses, and operands of 24 bits, whose exponentials err by
 * more, at each block. */
INLINE struct row_sums add_term(struct row_sums sums, const struct row_pass *r,
                                struct row_term term)
{
    bool is_f64 = r->dtype == KL_FLOAT64;
    sums.losses = v_fma(term.p, term.difference, sums.losses);
    if (!is_f64)
        sums.sum_p.high = v_add(sums.sum_p.high, term.p);
    else
        sums.sum_p = r->are_logits ? add_exps(sums.sum_p, term.p) : add_block(sums.sum_p, term.p);
    if (r->with_exps && !is_f64)
        sums.exps.high = v_add(sums.exps.high, term.e);
    else if (r->with_exps)
        sums.exps = add_exps(sums.exps, term.e);
    return sums;
}

/* Adds `left` elements from i on, a vector at most. Lanes past the end have no loss and no p to speak
 * of. */
INLINE struct row_sums add_elements(struct row_sums sums, const struct row_pass *r, size_t i,
                                    size_t left, vm *special)
{
    const vd zero = v_set(0), nothing = v_set(-800);
    vd x = load_shifted(r, KL_INPUT, i, left), t = load_shifted(r, KL_TARGET, i, left);
    if (left < LANES) {
        vm real = first_lanes(left);
        x = v_select(real, x, nothing);
        t = v_select(real, t, r->is_log ? nothing : zero);
    }
    struct row_term term =
        row_term(r->is_log, r->dtype == KL_FLOAT64, r->with_exps, r->sentinel, x, t);
    if (!r->are_logits)
        *special = m_or(*special, term.special);
    if (r->caches) {
        store_part(r->cached_p + i, term.p, left);
        store_part(r->cached_q + i, term.e, left);
    }
    return add_term(sums, r, term);
}

/* The sum of lanes, each of which began with `start`. */
INLINE double total_from(double start, struct running running)
{
    running.high = v_sub(running.high, v_set(start));
    return kl_sum_value(total_of(running));
}

/* The sums of a part of a row: by blocks, whose sums are compensated. */
INLINE struct kl_row_sums sums_of(const struct row_pass *r)
{
    enum { BLOCK_VECTORS = 16 };
    bool is_f64 = r->dtype == KL_FLOAT64, has_starts = is_f64 && r->are_logits;
    const struct running none = {v_set(0), v_set(0)};
    struct running losses = none, sum_p = none, exps = none;
    struct row_sums sums = {v_set(0), has_starts ? exps_start() : none,
                            is_f64 ? exps_start() : none};
    vm special = v_gt(v_set(0), v_set(0));
    for (size_t i = 0; i < r->n;) {
        size_t end = r->n - i < BLOCK_VECTORS * LANES ? r->n : i + BLOCK_VECTORS * LANES;
        for (; end - i >= LANES; i += LANES)
            sums = add_elements(sums, r, i, LANES, &special);
        if (i < end) {
            sums = add_elements(sums, r, i, end - i, &special);
            i = end;
        }
        losses = add_block(losses, sums.losses);
        sums.losses = v_set(0);
        if (!is_f64) {
            sum_p = add_block(sum_p, sums.sum_p.high);
            exps = r->with_exps ? add_block(exps, sums.exps.high) : none;
            sums.sum_p = sums.exps = none;
        }
    }
    bool normal = r->are_logits || !m_any(special);
    return (struct kl_row_sums){normal ? total_from(0, losses) : NAN,
                                is_f64 ? total_from(has_starts ? EXPS_START : 0, sums.sum_p)
                                       : total_from(0, sum_p),
                                !r->with_exps ? 0
                                : is_f64      ? total_from(EXPS_START, sums.exps)
                                              : total_from(0, exps)};
}

INLINE struct kl_row_sums row_sums_of(enum kl_dtype dtype, bool is_log, bool with_exps,
                                      double sentinel, const char *x, const char *t,
                                      const struct kl_shift *shifts, size_t n)
{
    const struct row_pass r = {
        .dtype = dtype,
        .is_log = is_log,
        .with_exps = with_exps,
        .scaled = true,
        .operands = {x, t},
        .by = {v_set(shifts[KL_INPUT].offset), v_set(shifts[KL_TARGET].offset)},
        .scales = {v_set(shifts[KL_INPUT].scale), v_set(shifts[KL_TARGET].scale)},
        .sentinel = v_set(sentinel),
        .n = n};
    return sums_of(&r);
}

INLINE struct kl_row_sums logit_sums_of(enum kl_dtype dtype, bool scaled, bool caches,
                                        const char *x, const char *t, const struct kl_shift *shifts,
                                        double *cached_p, double *cached_q, size_t n)
{
    const vd scale = v_set(shifts[KL_INPUT].scale);
    const struct row_pass r = {
        .dtype = dtype,
        .are_logits = true,
        .is_log = true,
        .with_exps = true,
        .scaled = scaled,
        .caches = caches,
        .operands = {x, t},
        .by = {v_set(shifts[KL_INPUT].offset), v_set(shifts[KL_TARGET].offset)},
        .scales = {scale, scale},
        .sentinel = v_set(NAN),
        .cached_p = cached_p,
        .cached_q = cached_q,
        .n = n};
    return sums_of(&r);
}

/* Derivatives by input of a row whose exponentials were cached: the softmax's backward
 * pass, without another exponential. */
INLINE void cached_grads_of(enum kl_dtype dtype, const struct kl_softmax_row *row, const double *p,
                            const double *q, const struct kl_grads *grads, size_t n)
{
    const vd q_factor = v_set(row->q_factor), p_factor = v_set(row->p_factor);
    enum kl_dtype to_dtype = grads->is_f64[KL_INPUT] ? KL_FLOAT64 : dtype;
    char *to = grads->by[KL_INPUT];
    for (size_t i = 0; i < n; i += LANES) {
        vd grad = v_sub(v_mul(q_factor, load_part(q + i, n - i, 0)),
                        v_mul(p_factor, load_part(p + i, n - i, 0)));
        store_elements_part(to_dtype, to + i * size_of(to_dtype), grad, n - i);
    }
}

/* exp(v) of a number of at most 700, 0 where it is far below and operands have 24 bits. */
INLINE vd exp_or_zero(bool is_f64, vd v)
{
    const vd min = v_set(-700);
    if (is_f64 && m_any(v_gt(min, v)))
        return exp_times_full_range(v, v_set(1));
    return is_f64 ? exp_f64(v) : v_select(v_gt(min, v), v_set(0), prob_of(false, v));
}

/* The derivative by target. Where p is 0 it multiplies a finite number. */
INLINE vd logit_grad_by_target(const struct kl_softmax_row *row, vd p, vd z, vd s)
{
    vd difference = v_sub(v_sub(v_max_nan(v_set(-700), s), z), v_set(row->mean));
    return v_mul(v_mul(v_set(row->t_factor), p), difference);
}

INLINE void row_grads_of(enum kl_dtype dtype, bool is_log, bool by_input, bool by_target,
                         const struct kl_softmax_row *row, const char *x, const char *t,
                         const struct kl_grads *to, size_t n)
{
    const struct kl_softmax_row r = *row; /* copies, which no store may change */
    const struct kl_grads grads = *to;
    bool is_f64 = dtype == KL_FLOAT64, has_q = r.q_factor != 0;
    /* Zeros have the signs that cached exponentials give. */
    bool as_cached = !is_f64 && !by_target;
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load_elements_part(dtype, x + i * size_of(dtype), n - i);
        vd ts = load_elements_part(dtype, t + i * size_of(dtype), n - i);
        vd z = shifted(xs, r.shifts[KL_INPUT]), s = shifted(ts, r.shifts[KL_TARGET]);
        vd p = is_log ? exp_or_zero(is_f64, s) : s, by[KL_OPERANDS];
        by[KL_INPUT] = v_mul(v_set(-r.p_factor), p);
        if (by_input && has_q) {
            vd q = as_cached ? prob_of(false, z) : exp_or_zero(is_f64, z);
            by[KL_INPUT] = v_add(v_mul(v_set(r.q_factor), q), by[KL_INPUT]);
        }
        by[KL_TARGET] = logit_grad_by_target(&r, p, z, s);
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            enum kl_dtype to_dtype = grads.is_f64[operand] ? KL_FLOAT64 : dtype;
            if (operand == KL_INPUT ? by_input : by_target)
                store_elements_part(to_dtype, (char *)grads.by[operand] + i * size_of(to_dtype),
                                    by[operand], n - i);
        }
    }
}

struct stats {
    vd min, max, sum, exps;
};

/* Adds a vector: v to the extremes, `counted` and `e` to the sums. */
INLINE struct stats add_to_stats(struct stats s, vd v, vd counted, vd e)
{
    return (struct stats){v_min(v, s.min), v_max(v, s.max), v_add(s.sum, counted),
                          v_add(s.exps, e)};
}

INLINE struct kl_row_stats row_stats_of(enum kl_dtype dtype, const char *from, size_t n,
                                        bool with_exps)
{
    const vd zero = v_set(0);
    struct stats s = {v_set(INFINITY), v_set(-INFINITY), zero, zero};
    for (; n >= LANES; n -= LANES, from += LANES * size_of(dtype)) {
        vd v = load(dtype, from);
        s = add_to_stats(s, v, v, with_exps ? rough_exp(v_clamp_exp(v)) : zero);
    }
    if (n > 0) { /* padded with its first */
        vm real = first_lanes(n);
        vd part = load_elements_part(dtype, from, n);
        vd v = v_select(real, part, v_set(kl_load(dtype, from, 0)));
        vd e = with_exps ? v_select(real, rough_exp(v_clamp_exp(part)), zero) : zero;
        s = add_to_stats(s, v, part, e);
    }
    return (struct kl_row_stats){-max_lane(v_mul(s.min, v_set(-1))), max_lane(s.max),
                                 v_reduce_sum(s.sum), with_exps ? v_reduce_sum(s.exps) : 0};
}

/* extremes: by two chains, for a comparison takes several cycles. */
struct extremes {
    vd min[2], max[2];
};

INLINE vd scan_vector(bool with_exps, vd v, vd *min, vd *max)
{
    *min = v_min(v, *min);
    *max = v_max(v, *max);
    return with_exps ? rough_exp(v_clamp(v, v_set(-700), v_set(700))) : v; /* NaN shows */
}

/* The last, partial vector is padded with its first element. */
INLINE void scan_of(enum kl_dtype dtype, bool with_exps, const char *from, double *to, size_t n,
                    double *min, double *max)
{
    const vd infinity = v_set(INFINITY), nothing = v_set(-INFINITY);
    struct extremes e = {{infinity, infinity}, {nothing, nothing}};
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (size_t j = 0; j < 2; j++) {
            size_t at = i + j * LANES;
            vd v = load(dtype, from + at * size_of(dtype));
            v_store_f64(to + at, scan_vector(with_exps, v, &e.min[j], &e.max[j]));
        }
    for (; i < n; i += LANES) {
        vd v = load_elements_part(dtype, from + i * size_of(dtype), n - i);
        if (n - i < LANES)
            v = v_select(first_lanes(n - i), v,
                         v_set(kl_load(dtype, from + i * size_of(dtype), 0)));
        store_part(to + i, scan_vector(with_exps, v, &e.min[0], &e.max[0]), n - i);
    }
    *min = -max_lane(v_mul(v_min(e.min[0], e.min[1]), v_set(-1)));
    *max = max_lane(v_max(e.max[0], e.max[1]));
}

#define ROWS_FORM(dtype, suffix, form, is_log)                                                     \
    TARGET_ATTR static struct kl_row_sums row_sums_##suffix##_##form(                              \
        bool with_exps, double sentinel, const void *x, const void *t,                             \
        const struct kl_shift shifts[KL_OPERANDS], size_t n)                                       \
    {                                                                                              \
        return with_exps ? row_sums_of(dtype, is_log, true, sentinel, x, t, shifts, n)             \
                         : row_sums_of(dtype, is_log, false, sentinel, x, t, shifts, n);           \
    }                                                                                              \
    TARGET_ATTR static void row_grads_##suffix##_##form(const struct kl_softmax_row *row,          \
                                                        const void *x, const void *t,              \
                                                        const struct kl_grads *grads, size_t n)    \
    {                                                                                              \
        bool by_input = grads->by[KL_INPUT] != NULL, by_target = grads->by[KL_TARGET] != NULL;     \
        if (by_input && by_target)                                                                 \
            row_grads_of(dtype, is_log, true, true, row, x, t, grads, n);                          \
        else if (by_input)                                                                         \
            row_grads_of(dtype, is_log, true, false, row, x, t, grads, n);                         \
        else                                                                                       \
            row_grads_of(dtype, is_log, false, true, row, x, t, grads, n);                         \
    }

#define ROWS(dtype, suffix)                                                                        \
    ROWS_FORM(dtype, suffix, prob, false)                                                          \
    ROWS_FORM(dtype, suffix, log, true)                                                            \
    TARGET_ATTR static void scan_##suffix(const void *from, bool with_exps, double *to, size_t n,  \
                                          double *min, double *max)                                \
    {                                                                                              \
        if (with_exps)                                                                             \
            scan_of(dtype, true, from, to, n, min, max);                                           \
        else                                                                                       \
            scan_of(dtype, false, from, to, n, min, max);                                          \
    }                                                                                              \
    TARGET_ATTR static struct kl_row_sums logit_sums_##suffix(                                     \
        const void *x, const void *t, const struct kl_shift shifts[KL_OPERANDS], double *cached_p, \
        double *cached_q, size_t n)                                                                \
    {                                                                                              \
        bool scaled = shifts[KL_INPUT].scale != 1;                                                 \
        if (cached_p)                                                                              \
            return logit_sums_of(dtype, true, true, x, t, shifts, cached_p, cached_q, n);          \
        return scaled ? logit_sums_of(dtype, true, false, x, t, shifts, NULL, NULL, n)             \
                      : logit_sums_of(dtype, false, false, x, t, shifts, NULL, NULL, n);           \
    }                                                                                              \
    TARGET_ATTR static void cached_grads_##suffix(const struct kl_softmax_row *row,                \
                                                  const double *p, const double *q,                \
                                                  const struct kl_grads *grads, size_t n)          \
    {                                                                                              \
        cached_grads_of(dtype, row, p, q, grads, n);                                               \
    }                                                                                              \
    TARGET_ATTR static struct kl_sum exp_sum_##suffix(const void *v, struct kl_shift shift,        \
                                                      size_t n)                                    \
    {                                                                                              \
        return exp_sum_of(dtype, v, shift, n);                                                     \
    }                                                                                              \
    TARGET_ATTR static void exp_scale_##suffix(const void *v, struct kl_shift shift,               \
                                               double factor, void *to, size_t n)                  \
    {                                                                                              \
        exp_scale_of(dtype, v, shift, factor, to, n);                                              \
    }                                                                                              \
    TARGET_ATTR static double row_max_##suffix(const void *v, size_t n)                            \
    {                                                                                              \
        return row_max_of(dtype, v, n);                                                            \
    }                                                                                              \
    TARGET_ATTR static struct kl_row_stats row_stats_##suffix(const void *from, size_t n,          \
                                                              bool with_exps)                      \
    {                                                                                              \
        return with_exps ? row_stats_of(dtype, from, n, true)                                      \
                         : row_stats_of(dtype, from, n, false);                                    \
    }
