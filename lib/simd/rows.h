/* Numbers of a row, or of a part of one, over the vocabulary of template.h, which includes this. */

FN double greatest_lane(vd v)
{
    double lanes[LANES], greatest = -INFINITY;
    v_store_f64(lanes, v);
    for (size_t i = 0; i < LANES; i++)
        greatest = lanes[i] > greatest ? lanes[i] : greatest;
    return greatest;
}

FN fs load_floats(enum kl_dtype dtype, const char *from)
{
    return dtype == KL_FLOAT32 ? f_load_f32(from) : f_load_bf16(from);
}

/* The greatest of n elements that floats hold, n a multiple of FLOATS. */
FN double float_max(enum kl_dtype dtype, const char *v, size_t n)
{
    float lanes[FLOATS], greatest = -INFINITY;
    fs maxima[2] = {f_set(-INFINITY), f_set(-INFINITY)}; /* two chains */
    size_t i = 0;
    for (; i + 2 * FLOATS <= n; i += 2 * FLOATS) {
        maxima[0] = f_max(load_floats(dtype, v + i * size_of(dtype)), maxima[0]);
        maxima[1] = f_max(load_floats(dtype, v + (i + FLOATS) * size_of(dtype)), maxima[1]);
    }
    if (i < n)
        maxima[0] = f_max(load_floats(dtype, v + i * size_of(dtype)), maxima[0]);
    f_store(lanes, f_max(maxima[0], maxima[1]));
    for (size_t lane = 0; lane < FLOATS; lane++)
        greatest = lanes[lane] > greatest ? lanes[lane] : greatest;
    return (double)greatest;
}

FN double row_max_of(enum kl_dtype dtype, const char *v, size_t n)
{
    const vd nothing = v_set(-INFINITY);
    vd maxima[2] = {nothing, nothing}; /* two chains */
    size_t i = 0;
    if (dtype == KL_FLOAT32 || dtype == KL_BFLOAT16) {
        i = n / FLOATS * FLOATS;
        maxima[1] = v_set(float_max(dtype, v, i));
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
    return greatest_lane(v_max(maxima[0], maxima[1]));
}

FN vd shifted(vd v, struct kl_shift shift)
{
    return v_mul(v_sub(v, v_set(shift.by)), v_set(shift.scale));
}

/* exp(t) for wide operands or those of 24 bits, of t at most 700, or of -700 if it is below. */
FN vd prob_of(bool wide, vd t)
{
    vd raised = v_raise(v_set(-700), t);
    return wide ? exp_wide(raised) : exp_narrow(raised);
}

/* row_term: an element's part of the sums of its row. A log-probability below -700 is of a probability
 * of 0, which a finite difference is multiplied by. */
struct row_term {
    vd p, difference, e;
    vm unusual;
};
FN struct row_term row_term(bool is_log, bool wide, bool with_exps, vd refused, vd x, vd t)
{
    const vd most = v_set(700), least = v_set(-700);
    struct row_term term = {.e = v_set(0)};
    if (is_log) {
        term.p = v_select(v_gt(least, t), v_set(0), prob_of(wide, t));
        term.difference = v_sub(v_raise(least, t), x);
        term.unusual = m_or(v_gt(t, most), v_eq(t, refused));
    } else {
        term.p = t;
        term.difference = wide ? log_minus_wide(t, x) : log_minus_narrow(t, x);
        term.unusual = v_rare(t);
    }
    if (with_exps) {
        term.unusual = m_or(term.unusual, v_gt(x, most));
        term.e = prob_of(wide, x);
    }
    return term;
}

/* row_reading: n elements of a row, and what is made of them. */
struct row_reading {
    enum kl_dtype dtype;
    bool are_logits; /* both, none above its row's maximum: what is no number shows in the sums */
    bool is_log, with_exps, scaled, keeps;
    const char *operands[KL_OPERANDS];
    vd by[KL_OPERANDS], scales[KL_OPERANDS], refused;
    double *kept_p, *kept_q;
    size_t n;
};

FN vd load_shifted(const struct row_reading *r, int operand, size_t i, size_t left)
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

FN struct running exps_start(void) { return (struct running){v_set(EXPS_START), v_set(0)}; }

/* Dekker's fast two-sum, of a sum that is above what is added. */
FN struct running add_exps(struct running sum, vd exps)
{
    vd high = v_add(sum.high, exps);
    return (struct running){high, v_add(sum.low, v_sub(exps, v_sub(high, sum.high)))};
}

/* Adds an element. Plain sums drift where many numbers are equal: those of float64's probabilities are
 * compensated at each step, losses and operands of 24 bits, whose exponentials err by more, at each
 * block. */
FN struct row_sums add_term(struct row_sums sums, const struct row_reading *r, struct row_term term)
{
    bool wide = r->dtype == KL_FLOAT64;
    sums.losses = v_fma(term.p, term.difference, sums.losses);
    if (!wide)
        sums.sum_p.high = v_add(sums.sum_p.high, term.p);
    else
        sums.sum_p = r->are_logits ? add_exps(sums.sum_p, term.p) : add_block(sums.sum_p, term.p);
    if (r->with_exps && !wide)
        sums.exps.high = v_add(sums.exps.high, term.e);
    else if (r->with_exps)
        sums.exps = add_exps(sums.exps, term.e);
    return sums;
}

/* Adds `left` elements from i on, a vector at most. Lanes past the end have no loss and no p to speak
 * of. */
FN struct row_sums add_elements(struct row_sums sums, const struct row_reading *r, size_t i,
                                size_t left, vm *unusual)
{
    const vd zero = v_set(0), nothing = v_set(-800);
    vd x = load_shifted(r, KL_INPUT, i, left), t = load_shifted(r, KL_TARGET, i, left);
    if (left < LANES) {
        vm real = first_lanes(left);
        x = v_select(real, x, nothing);
        t = v_select(real, t, r->is_log ? nothing : zero);
    }
    struct row_term term =
        row_term(r->is_log, r->dtype == KL_FLOAT64, r->with_exps, r->refused, x, t);
    if (!r->are_logits)
        *unusual = m_or(*unusual, term.unusual);
    if (r->keeps) {
        store_part(r->kept_p + i, term.p, left);
        store_part(r->kept_q + i, term.e, left);
    }
    return add_term(sums, r, term);
}

/* The sum of lanes, each of which began with `start`. */
FN double total_from(double start, struct running running)
{
    double lanes[SINGLE_LANES];
    vd high = v_sub(running.high, v_set(start));
    sd error, halves = s_sum_and_error(high.a, high.b, &error);
    s_store_f64(lanes, halves);
    double sum = lanes[0], low = s_total(s_add(error, s_add(running.low.a, running.low.b)));
    for (size_t i = 1; i < SINGLE_LANES; i++) {
        double more = sum + lanes[i], back = more - sum;
        low += (sum - (more - back)) + (lanes[i] - back);
        sum = more;
    }
    return sum + low;
}

/* The sums of a part of a row: by blocks, whose sums are compensated. */
FN struct kl_row_sums sums_of(const struct row_reading *r)
{
    enum { BLOCK_VECTORS = 16 };
    bool wide = r->dtype == KL_FLOAT64, has_starts = wide && r->are_logits;
    const struct running none = {v_set(0), v_set(0)};
    struct running losses = none, sum_p = none, exps = none;
    struct row_sums sums = {v_set(0), has_starts ? exps_start() : none, wide ? exps_start() : none};
    vm unusual = v_gt(v_set(0), v_set(0));
    for (size_t i = 0; i < r->n;) {
        size_t end = r->n - i < BLOCK_VECTORS * LANES ? r->n : i + BLOCK_VECTORS * LANES;
        for (; end - i >= LANES; i += LANES)
            sums = add_elements(sums, r, i, LANES, &unusual);
        if (i < end) {
            sums = add_elements(sums, r, i, end - i, &unusual);
            i = end;
        }
        losses = add_block(losses, sums.losses);
        sums.losses = v_set(0);
        if (!wide) {
            sum_p = add_block(sum_p, sums.sum_p.high);
            exps = r->with_exps ? add_block(exps, sums.exps.high) : none;
            sums.sum_p = sums.exps = none;
        }
    }
    bool usual = r->are_logits || !m_any(unusual);
    return (struct kl_row_sums){usual ? total_from(0, losses) : NAN,
                                wide ? total_from(has_starts ? EXPS_START : 0, sums.sum_p)
                                     : total_from(0, sum_p),
                                !r->with_exps ? 0
                                : wide        ? total_from(EXPS_START, sums.exps)
                                              : total_from(0, exps)};
}

FN struct kl_row_sums row_sums_of(enum kl_dtype dtype, bool is_log, bool with_exps, double refused,
                                  const char *x, const char *t, const struct kl_shift *shifts,
                                  size_t n)
{
    const struct row_reading r = {
        .dtype = dtype,
        .is_log = is_log,
        .with_exps = with_exps,
        .scaled = true,
        .operands = {x, t},
        .by = {v_set(shifts[KL_INPUT].by), v_set(shifts[KL_TARGET].by)},
        .scales = {v_set(shifts[KL_INPUT].scale), v_set(shifts[KL_TARGET].scale)},
        .refused = v_set(refused),
        .n = n};
    return sums_of(&r);
}

FN struct kl_row_sums logit_sums_of(enum kl_dtype dtype, bool scaled, bool keeps, const char *x,
                                    const char *t, const struct kl_shift *shifts, double *kept_p,
                                    double *kept_q, size_t n)
{
    const vd scale = v_set(shifts[KL_INPUT].scale);
    const struct row_reading r = {.dtype = dtype,
                                  .are_logits = true,
                                  .is_log = true,
                                  .with_exps = true,
                                  .scaled = scaled,
                                  .keeps = keeps,
                                  .operands = {x, t},
                                  .by = {v_set(shifts[KL_INPUT].by), v_set(shifts[KL_TARGET].by)},
                                  .scales = {scale, scale},
                                  .refused = v_set(NAN),
                                  .kept_p = kept_p,
                                  .kept_q = kept_q,
                                  .n = n};
    return sums_of(&r);
}

/* Derivatives by input of a row whose exponentials were kept. */
FN void kept_grads_of(enum kl_dtype dtype, const struct kl_softmax_row *row, const double *p,
                      const double *q, const struct kl_grads *grads, size_t n)
{
    const vd q_factor = v_set(row->q_factor), p_factor = v_set(row->p_factor);
    enum kl_dtype to_dtype = grads->wide[KL_INPUT] ? KL_FLOAT64 : dtype;
    char *to = grads->by[KL_INPUT];
    for (size_t i = 0; i < n; i += LANES) {
        vd grad = v_sub(v_mul(q_factor, load_part(q + i, n - i, 0)),
                        v_mul(p_factor, load_part(p + i, n - i, 0)));
        store_elements_part(to_dtype, to + i * size_of(to_dtype), grad, n - i);
    }
}

/* exp(v) of a number of at most 700, 0 where it is far below and operands have 24 bits. */
FN vd exp_or_zero(bool wide, vd v)
{
    const vd least = v_set(-700);
    if (wide && m_any(v_gt(least, v)))
        return exp_times_anywhere(v, v_set(1));
    return wide ? exp_wide(v) : v_select(v_gt(least, v), v_set(0), prob_of(false, v));
}

/* The derivative by target, of which 0 is multiplied by a finite number. */
FN vd grad_by_target(const struct kl_softmax_row *row, vd p, vd z, vd s)
{
    vd difference = v_sub(v_sub(v_raise(v_set(-700), s), z), v_set(row->mean));
    return v_mul(v_mul(v_set(row->t_factor), p), difference);
}

FN void row_grads_of(enum kl_dtype dtype, bool is_log, bool by_input, bool by_target,
                     const struct kl_softmax_row *row, const char *x, const char *t,
                     const struct kl_grads *to, size_t n)
{
    const struct kl_softmax_row r = *row; /* copies, which no store may change */
    const struct kl_grads grads = *to;
    bool wide = dtype == KL_FLOAT64, has_q = r.q_factor != 0;
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = load_elements_part(dtype, x + i * size_of(dtype), n - i);
        vd ts = load_elements_part(dtype, t + i * size_of(dtype), n - i);
        vd z = shifted(xs, r.shifts[KL_INPUT]), s = shifted(ts, r.shifts[KL_TARGET]);
        vd p = is_log ? exp_or_zero(wide, s) : s, by[KL_OPERANDS];
        by[KL_INPUT] = v_mul(v_set(-r.p_factor), p);
        if (by_input && has_q)
            by[KL_INPUT] = v_add(v_mul(v_set(r.q_factor), exp_or_zero(wide, z)), by[KL_INPUT]);
        by[KL_TARGET] = grad_by_target(&r, p, z, s);
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            enum kl_dtype to_dtype = grads.wide[operand] ? KL_FLOAT64 : dtype;
            if (operand == KL_INPUT ? by_input : by_target)
                store_elements_part(to_dtype, (char *)grads.by[operand] + i * size_of(to_dtype),
                                    by[operand], n - i);
        }
    }
}

struct stats {
    vd least, greatest, sum, exps;
};

/* Adds a vector, of which `counted` and `e` count in the sums. */
FN struct stats add_to_stats(struct stats s, vd v, vd counted, vd e)
{
    return (struct stats){v_min(v, s.least), v_max(v, s.greatest), v_add(s.sum, counted),
                          v_add(s.exps, e)};
}

FN struct kl_row_stats row_stats_of(enum kl_dtype dtype, const char *from, size_t n, bool with_exps)
{
    const vd zero = v_set(0);
    struct stats s = {v_set(INFINITY), v_set(-INFINITY), zero, zero};
    for (; n >= LANES; n -= LANES, from += LANES * size_of(dtype)) {
        vd v = load(dtype, from);
        s = add_to_stats(s, v, v, with_exps ? rough_exp(v_limit(v)) : zero);
    }
    if (n > 0) { /* padded with its first */
        vm real = first_lanes(n);
        vd part = load_elements_part(dtype, from, n);
        vd v = v_select(real, part, v_set(kl_load(dtype, from, 0)));
        vd e = with_exps ? v_select(real, rough_exp(v_limit(part)), zero) : zero;
        s = add_to_stats(s, v, part, e);
    }
    return (struct kl_row_stats){-greatest_lane(v_mul(s.least, v_set(-1))),
                                 greatest_lane(s.greatest), v_total(s.sum),
                                 with_exps ? v_total(s.exps) : 0};
}

/* extremes: by two chains, for a comparison takes several cycles. */
struct extremes {
    vd least[2], greatest[2];
};

FN vd scan_vector(bool with_exps, vd v, vd *least, vd *greatest)
{
    *least = v_min(v, *least);
    *greatest = v_max(v, *greatest);
    return with_exps ? rough_exp(v_clamp(v, v_set(-700), v_set(700))) : v; /* NaN shows */
}

/* The last, partial vector is padded with its first element. */
FN void scan_of(enum kl_dtype dtype, bool with_exps, const char *from, double *to, size_t n,
                double *least, double *greatest)
{
    const vd most = v_set(INFINITY), nothing = v_set(-INFINITY);
    struct extremes e = {{most, most}, {nothing, nothing}};
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (size_t j = 0; j < 2; j++) {
            size_t at = i + j * LANES;
            vd v = load(dtype, from + at * size_of(dtype));
            v_store_f64(to + at, scan_vector(with_exps, v, &e.least[j], &e.greatest[j]));
        }
    for (; i < n; i += LANES) {
        vd v = load_elements_part(dtype, from + i * size_of(dtype), n - i);
        if (n - i < LANES)
            v = v_select(first_lanes(n - i), v,
                         v_set(kl_load(dtype, from + i * size_of(dtype), 0)));
        store_part(to + i, scan_vector(with_exps, v, &e.least[0], &e.greatest[0]), n - i);
    }
    *least = -greatest_lane(v_mul(v_min(e.least[0], e.least[1]), v_set(-1)));
    *greatest = greatest_lane(v_max(e.greatest[0], e.greatest[1]));
}

#define ROWS_FORM(dtype, suffix, form, is_log)                                                     \
    TARGET static struct kl_row_sums row_sums_##suffix##_##form(                                   \
        bool with_exps, double refused, const void *x, const void *t,                              \
        const struct kl_shift shifts[KL_OPERANDS], size_t n)                                       \
    {                                                                                              \
        return with_exps ? row_sums_of(dtype, is_log, true, refused, x, t, shifts, n)              \
                         : row_sums_of(dtype, is_log, false, refused, x, t, shifts, n);            \
    }                                                                                              \
    TARGET static void row_grads_##suffix##_##form(const struct kl_softmax_row *row,               \
                                                   const void *x, const void *t,                   \
                                                   const struct kl_grads *grads, size_t n)         \
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
    TARGET static void scan_##suffix(const void *from, bool with_exps, double *to, size_t n,       \
                                     double *least, double *greatest)                              \
    {                                                                                              \
        if (with_exps)                                                                             \
            scan_of(dtype, true, from, to, n, least, greatest);                                    \
        else                                                                                       \
            scan_of(dtype, false, from, to, n, least, greatest);                                   \
    }                                                                                              \
    TARGET static struct kl_row_sums logit_sums_##suffix(                                          \
        const void *x, const void *t, const struct kl_shift shifts[KL_OPERANDS], double *kept_p,   \
        double *kept_q, size_t n)                                                                  \
    {                                                                                              \
        bool scaled = shifts[KL_INPUT].scale != 1;                                                 \
        if (kept_p)                                                                                \
            return logit_sums_of(dtype, true, true, x, t, shifts, kept_p, kept_q, n);              \
        return scaled ? logit_sums_of(dtype, true, false, x, t, shifts, NULL, NULL, n)             \
                      : logit_sums_of(dtype, false, false, x, t, shifts, NULL, NULL, n);           \
    }                                                                                              \
    TARGET static void kept_grads_##suffix(const struct kl_softmax_row *row, const double *p,      \
                                           const double *q, const struct kl_grads *grads,          \
                                           size_t n)                                               \
    {                                                                                              \
        kept_grads_of(dtype, row, p, q, grads, n);                                                 \
    }                                                                                              \
    TARGET static double row_max_##suffix(const void *v, size_t n)                                 \
    {                                                                                              \
        return row_max_of(dtype, v, n);                                                            \
    }                                                                                              \
    TARGET static struct kl_row_stats row_stats_##suffix(const void *from, size_t n,               \
                                                         bool with_exps)                           \
    {                                                                                              \
        return with_exps ? row_stats_of(dtype, from, n, true)                                      \
                         : row_stats_of(dtype, from, n, false);                                    \
    }
