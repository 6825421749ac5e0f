/* Rows and blocks of rows, over the vocabulary of template.h, which includes this. */

/* ---- Vectors at the end of an array: what is missing is a number that does no harm. */

FN vd load_part(const double *from, size_t n, double padding)
{
    if (__builtin_expect(n >= LANES, 1))
        return v_load_f64(from);
    bool two = n > SINGLE_LANES;
    return (vd){s_first(from, two ? SINGLE_LANES : n, padding),
                s_first(two ? from + SINGLE_LANES : from, two ? n - SINGLE_LANES : 0, padding)};
}

FN void store_part(double *to, vd v, size_t n)
{
    if (__builtin_expect(n >= LANES, 1)) {
        v_store_f64(to, v);
        return;
    }
    s_store_first(to, v.a, n < SINGLE_LANES ? n : SINGLE_LANES);
    if (n > SINGLE_LANES)
        s_store_first(to + SINGLE_LANES, v.b, n - SINGLE_LANES);
}

/* The first n lanes. */
FN vm first_lanes(size_t n)
{
    static const double lanes[2 * LANES] = {[0 ... LANES - 1] = 1};
    return v_eq(v_load_f64(lanes + LANES - n), v_set(1));
}

/* n elements of any dtype, and 0 in the other lanes. */
FN vd load_elements_part(enum kl_dtype dtype, const char *from, size_t n)
{
    char part[LANES * sizeof(double)] = {0};
    if (__builtin_expect(n >= LANES, 1))
        return load(dtype, from);
    memcpy(part, from, n * size_of(dtype));
    return load(dtype, part);
}

/* ---- Numbers of a row */

FN double greatest_lane(vd v)
{
    double lanes[LANES], greatest = -INFINITY;
    v_store_f64(lanes, v);
    for (size_t i = 0; i < LANES; i++)
        greatest = lanes[i] > greatest ? lanes[i] : greatest;
    return greatest;
}

FN double row_max_of(enum kl_dtype dtype, const char *v, size_t n)
{
    const vd nothing = v_set(-INFINITY);
    vd maxima = nothing;
    for (size_t i = 0; i < n; i += LANES) {
        vd part = load_elements_part(dtype, v + i * size_of(dtype), n - i);
        if (n - i < LANES)
            part = v_select(first_lanes(n - i), part, nothing);
        maxima = v_max(part, maxima);
    }
    return greatest_lane(maxima);
}

FN vd shifted(vd v, struct kl_shift shift)
{
    return v_mul(v_sub(v, v_set(shift.by)), v_set(shift.scale));
}

/* exp(t) for wide operands or those of 24 bits, of t at most 700, or of -700 if it is below. */
FN vd prob_of(bool wide, vd t)
{
    vd limited = v_clamp(t, v_set(-700), v_set(700));
    return wide ? exp_wide(limited) : exp_narrow(limited);
}

struct row_sums {
    vd losses, sum_p, exps, refused;
    vm unusual;
};

/* What an element adds to the sums of its row. A log-probability below -700 is of a probability of
 * 0, which a finite difference is multiplied by. */
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
        term.difference = v_sub(v_clamp(t, least, v_set(INFINITY)), x);
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

FN struct row_sums add_to_row_sums(struct row_sums sums, struct row_term term)
{
    sums.losses = v_fma(term.p, term.difference, sums.losses);
    sums.sum_p = v_add(sums.sum_p, term.p);
    sums.exps = v_add(sums.exps, term.e);
    sums.unusual = m_or(sums.unusual, term.unusual);
    return sums;
}

FN struct kl_row_sums row_sums_of(enum kl_dtype dtype, bool is_log, bool with_exps, double refused,
                                  const char *x, const char *t, const struct kl_shift *shifts,
                                  size_t n)
{
    const vd zero = v_set(0), nothing = v_set(-700);
    const struct kl_shift x_shift = shifts[KL_INPUT], t_shift = shifts[KL_TARGET];
    bool wide = dtype == KL_FLOAT64;
    struct row_sums sums = {zero, zero, zero, v_set(refused), v_gt(zero, zero)};
    size_t rest = n % LANES, i = 0;
    for (; i < n - rest; i += LANES) {
        vd xs = shifted(load(dtype, x + i * size_of(dtype)), x_shift);
        vd ts = shifted(load(dtype, t + i * size_of(dtype)), t_shift);
        sums = add_to_row_sums(sums, row_term(is_log, wide, with_exps, sums.refused, xs, ts));
    }
    if (rest) { /* padded with what has no loss and no p to speak of */
        vm real = first_lanes(rest);
        vd xs = shifted(load_elements_part(dtype, x + i * size_of(dtype), rest), x_shift);
        vd ts = shifted(load_elements_part(dtype, t + i * size_of(dtype), rest), t_shift);
        sums = add_to_row_sums(sums, row_term(is_log, wide, with_exps, sums.refused,
                                              v_select(real, xs, nothing),
                                              v_select(real, ts, is_log ? nothing : zero)));
    }
    return (struct kl_row_sums){m_any(sums.unusual) ? NAN : v_total(sums.losses),
                                v_total(sums.sum_p), v_total(sums.exps)};
}

/* exp of a number of at most 0, or of -700 if it is below. */
FN vd exp_of_logit(bool wide, vd v)
{
    vd limited = v_max(v_set(-700), v);
    return wide ? exp_wide(limited) : exp_narrow(limited);
}

/* logit_sums: those of elements of which no logit is above its row's maximum; what is no number shows
 * in the sums. */
struct logit_sums {
    vd losses, sum_p, exps;
};
FN struct logit_sums add_logits(struct logit_sums sums, bool wide, vd x, vd t, double *kept_p,
                                double *kept_q, size_t n)
{
    vd p = v_select(v_gt(v_set(-700), t), v_set(0), exp_of_logit(wide, t));
    vd q = exp_of_logit(wide, x);
    if (n < LANES) {
        vm real = first_lanes(n);
        p = v_select(real, p, v_set(0));
        q = v_select(real, q, v_set(0));
    }
    if (kept_p) {
        store_part(kept_p, p, n);
        store_part(kept_q, q, n);
    }
    sums.losses =
        v_fma(p, v_sub(v_max(v_set(-700), t), x), sums.losses); /* 0 times a finite number */
    sums.sum_p = v_add(sums.sum_p, p);
    sums.exps = v_add(sums.exps, q);
    return sums;
}

FN struct kl_row_sums logit_sums_of(enum kl_dtype dtype, bool scaled, bool keeps, const char *x,
                                    const char *t, const struct kl_shift *shifts, double *kept_p,
                                    double *kept_q, size_t n)
{
    const vd zero = v_set(0), scale = v_set(shifts[KL_INPUT].scale);
    const vd x_by = v_set(shifts[KL_INPUT].by), t_by = v_set(shifts[KL_TARGET].by);
    bool wide = dtype == KL_FLOAT64;
    struct logit_sums sums = {zero, zero, zero};
    for (size_t i = 0; i < n; i += LANES) {
        vd xs = v_sub(load_elements_part(dtype, x + i * size_of(dtype), n - i), x_by);
        vd ts = v_sub(load_elements_part(dtype, t + i * size_of(dtype), n - i), t_by);
        if (scaled)
            xs = v_mul(xs, scale), ts = v_mul(ts, scale);
        sums = add_logits(sums, wide, xs, ts, keeps ? kept_p + i : NULL, keeps ? kept_q + i : NULL,
                          n - i);
    }
    return (struct kl_row_sums){v_total(sums.losses), v_total(sums.sum_p), v_total(sums.exps)};
}

/* Derivatives by input of a row whose exponentials were kept. */
FN void kept_grads_of(enum kl_dtype dtype, const struct kl_softmax_row *row, const double *p,
                      const double *q, const struct kl_grads *grads, size_t n)
{
    const vd q_factor = v_set(row->q_factor), p_factor = v_set(row->p_factor);
    bool wide = grads->wide[KL_INPUT];
    size_t size = wide ? sizeof(double) : size_of(dtype);
    char *to = grads->by[KL_INPUT];
    for (size_t i = 0; i < n; i += LANES) {
        vd grad = v_sub(v_mul(q_factor, load_part(q + i, n - i, 0)),
                        v_mul(p_factor, load_part(p + i, n - i, 0)));
        char rest[LANES * sizeof(double)], *at = n - i < LANES ? rest : to + i * size;
        if (wide)
            v_store_f64((double *)(void *)at, grad);
        else
            store(dtype, at, grad);
        if (at == rest)
            memcpy(to + i * size, rest, (n - i) * size);
    }
}

/* exp(v) of a number of at most 700. Far below 0, what is left of it rounds to 0 where operands have 24
 * bits. */
FN vd exp_or_zero(bool wide, vd v)
{
    if (wide && m_any(v_gt(v_set(-700), v)))
        return exp_times_anywhere(v, v_set(1));
    return exp_of_logit(wide, v);
}

FN void row_grads_of(enum kl_dtype dtype, bool is_log, bool by_input, bool by_target, bool has_q,
                     const struct kl_softmax_row *row, const char *x, const char *t,
                     const struct kl_grads *grads, size_t n)
{
    const struct kl_shift x_shift = row->shifts[KL_INPUT], t_shift = row->shifts[KL_TARGET];
    const vd q_factor = v_set(row->q_factor), p_factor = v_set(row->p_factor);
    const vd t_factor = v_set(row->t_factor), mean = v_set(row->mean), zero = v_set(0);
    bool wide = dtype == KL_FLOAT64;
    for (size_t i = 0; i < n; i += LANES) {
        vd z = shifted(load_elements_part(dtype, x + i * size_of(dtype), n - i), x_shift);
        vd s = shifted(load_elements_part(dtype, t + i * size_of(dtype), n - i), t_shift);
        vd p = is_log ? exp_or_zero(wide, s) : s, by[KL_OPERANDS] = {zero, zero};
        if (by_input)
            by[KL_INPUT] =
                v_sub(has_q ? v_mul(q_factor, exp_or_zero(wide, z)) : zero, v_mul(p_factor, p));
        if (by_target)
            by[KL_TARGET] =
                v_select(v_eq(p, zero), zero, v_mul(v_mul(t_factor, p), v_sub(v_sub(s, z), mean)));
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            char rest[LANES * sizeof(double)], *to = grads->by[operand];
            size_t size = grads->wide[operand] ? sizeof(double) : size_of(dtype);
            if (!(operand == KL_INPUT ? by_input : by_target))
                continue;
            bool whole = n - i >= LANES;
            to = whole ? to + i * size : rest;
            if (grads->wide[operand])
                v_store_f64((double *)(void *)to, by[operand]);
            else
                store(dtype, to, by[operand]);
            if (!whole)
                memcpy((char *)grads->by[operand] + i * size, rest, (n - i) * size);
        }
    }
}

struct stats {
    vd least, greatest, sum, exps;
};

/* Adds what counts of a vector to sums. */
FN struct stats add_to_stats(struct stats s, vd v, vm counts, bool all_count, bool with_exps)
{
    s.least = v_min(v, s.least);
    s.greatest = v_max(v, s.greatest);
    s.sum = v_add(s.sum, all_count ? v : v_select(counts, v, v_set(0)));
    if (with_exps) {
        vd e = rough_exp(v_limit(v));
        s.exps = v_add(s.exps, all_count ? e : v_select(counts, e, v_set(0)));
    }
    return s;
}

FN struct kl_row_stats row_stats_of(enum kl_dtype dtype, const char *from, size_t n, bool with_exps)
{
    struct stats s = {v_set(INFINITY), v_set(-INFINITY), v_set(0), v_set(0)};
    for (; n >= LANES; n -= LANES, from += LANES * size_of(dtype))
        s = add_to_stats(s, load(dtype, from), v_eq(s.sum, s.sum), true, with_exps);
    if (n > 0) { /* padded with its first */
        vm real = first_lanes(n);
        vd first = v_set(kl_load(dtype, from, 0));
        vd v = v_select(real, load_elements_part(dtype, from, n), first);
        s = add_to_stats(s, v, real, false, with_exps);
    }
    return (struct kl_row_stats){-greatest_lane(v_mul(s.least, v_set(-1))),
                                 greatest_lane(s.greatest), v_total(s.sum),
                                 with_exps ? v_total(s.exps) : 0};
}

/* ---- Blocks of rows of doubles. Single vectors, for rows may be short. */

/* The vectors of a row after which a plain sum of doubles would lose the bits that compensation
 * keeps. */
enum { PLAIN_VECTORS = 8 };

/* Knuth's two-sum. Of a sum that is not finite the error is of no use. */
FN sd s_sum_and_error(sd a, sd b, sd *error)
{
    sd sum = s_add(a, b), back = s_sub(sum, a);
    *error = s_add(s_sub(a, s_sub(sum, back)), s_sub(b, back));
    return sum;
}

/* The plain sum of n doubles, n above 0, whose lanes are to be added. */
FN sd plain_lanes(const double *v, size_t n)
{
    if (n < SINGLE_LANES)
        return s_first(v, n, 0);
    sd sum = s_load_f64(v);
    size_t i = SINGLE_LANES;
    for (; i + SINGLE_LANES <= n; i += SINGLE_LANES)
        sum = s_add(sum, s_load_f64(v + i));
    return i < n ? s_add(sum, s_first(v + i, n - i, 0)) : sum;
}

/* The compensated sum of longer rows. */
FN sd compensated_lanes(const double *v, size_t n, sd *low)
{
    enum { PART = PLAIN_VECTORS * SINGLE_LANES };
    sd high = s_set(0), error;
    *low = s_set(0);
    for (size_t i = 0; i < n; i += PART) {
        high = s_sum_and_error(high, plain_lanes(v + i, n - i < PART ? n - i : PART), &error);
        *low = s_add(*low, error);
    }
    return high;
}

/* Adds n sums to (high, low). */
FN void add_totals(double *high, double *low, size_t n, sd totals, sd errors)
{
    sd error, sum = s_sum_and_error(s_first(high, n, 0), totals, &error);
    s_store_first(high, sum, n);
    s_store_first(low, s_add(s_first(low, n, 0), s_add(errors, error)), n);
}

TARGET static void row_totals(const double *v, size_t rows, size_t length, double *high,
                              double *low)
{
    bool is_short = length <= PLAIN_VECTORS * SINGLE_LANES;
    for (size_t row = 0; row < rows; row += SINGLE_LANES) {
        size_t n = rows - row < SINGLE_LANES ? rows - row : SINGLE_LANES;
        sd highs[SINGLE_LANES], lows[SINGLE_LANES];
        for (size_t i = n; i < SINGLE_LANES; i++)
            highs[i] = lows[i] = s_set(0);
        for (size_t i = 0; i < n; i++) {
            const double *of_row = v + (row + i) * length;
            if (is_short)
                highs[i] = plain_lanes(of_row, length);
            else
                highs[i] = compensated_lanes(of_row, length, &lows[i]);
        }
        add_totals(high + row, low + row, n, s_totals(highs), is_short ? s_set(0) : s_totals(lows));
    }
}

TARGET static void row_maxima(const double *v, size_t rows, size_t length, double *maxima)
{
    for (size_t row = 0; row < rows; row += SINGLE_LANES) {
        size_t n = rows - row < SINGLE_LANES ? rows - row : SINGLE_LANES;
        sd most[SINGLE_LANES];
        for (size_t i = 0; i < SINGLE_LANES; i++)
            most[i] = s_set(-INFINITY);
        for (size_t i = 0; i < n; i++) {
            const double *of_row = v + (row + i) * length;
            size_t j = 0;
            for (; j + SINGLE_LANES <= length; j += SINGLE_LANES)
                most[i] = s_max(s_load_f64(of_row + j), most[i]);
            if (j < length)
                most[i] = s_max(s_first(of_row + j, length - j, -INFINITY), most[i]);
        }
        s_store_first(maxima + row, s_max(s_maxima(most), s_first(maxima + row, n, 0)), n);
    }
}

TARGET static void spread(const double *of_rows, size_t rows, size_t length, double *to)
{
    for (size_t row = 0; row < rows; row++, to += length) {
        sd v = s_set(of_rows[row]);
        size_t i = 0;
        for (; i + SINGLE_LANES <= length; i += SINGLE_LANES)
            s_store_f64(to + i, v);
        s_store_first(to + i, v, length - i);
    }
}

FN void softmax_terms_of(bool is_log, bool wide, double refused, const double *x, const double *t,
                         double *losses, double *ps, double *exps, size_t n)
{
    const vd refused_t = v_set(refused), nan = v_set(NAN);
    for (size_t i = 0; i < n; i += LANES) {
        struct row_term term = row_term(is_log, wide, true, refused_t, load_part(x + i, n - i, 0),
                                        load_part(t + i, n - i, 0));
        vd loss = v_mul(term.p, term.difference);
        store_part(losses + i, v_select(term.unusual, nan, loss), n - i);
        store_part(ps + i, term.p, n - i);
        store_part(exps + i, term.e, n - i);
    }
}

#define SOFTMAX_TERMS(form, is_log)                                                                \
    TARGET static void softmax_terms_##form(bool wide, double refused, const double *x,            \
                                            const double *t, double *losses, double *ps,           \
                                            double *exps, size_t n)                                \
    {                                                                                              \
        if (wide)                                                                                  \
            softmax_terms_of(is_log, true, refused, x, t, losses, ps, exps, n);                    \
        else                                                                                       \
            softmax_terms_of(is_log, false, refused, x, t, losses, ps, exps, n);                   \
    }
SOFTMAX_TERMS(prob, false)
SOFTMAX_TERMS(log, true)

/* ---- Doubles, one by one */

FN vd sum_and_error(vd a, vd b, vd *error)
{
    vd sum = v_add(a, b), back = v_sub(sum, a);
    *error = v_add(v_sub(a, v_sub(sum, back)), v_sub(b, back));
    return sum;
}

TARGET static struct kl_sum total(const double *v, size_t n)
{
    struct running sum = {v_set(0), v_set(0)};
    for (size_t i = 0; i < n; i += LANES)
        sum = add_block(sum, load_part(v + i, n - i, 0));
    return total_of(sum);
}

TARGET static void add(const double *v, double *high, double *low, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd error;
        vd sum = sum_and_error(load_part(high + i, n - i, 0), load_part(v + i, n - i, 0), &error);
        store_part(high + i, sum, n - i);
        store_part(low + i, v_add(load_part(low + i, n - i, 0), error), n - i);
    }
}

TARGET static void greater(const double *v, double *maxima, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(maxima + i, v_max(load_part(v + i, n - i, 0), load_part(maxima + i, n - i, 0)),
                   n - i);
}

TARGET static void shift(double *v, const double *by, const double *minus, double scale, size_t n)
{
    const vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        vd difference = v_sub(load_part(v + i, n - i, 0), load_part(by + i, n - i, 0));
        vd scaled = v_sub(v_mul(difference, factor), load_part(minus + i, n - i, 0));
        store_part(v + i, scaled, n - i);
    }
}

TARGET static void multiply(double *v, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(v + i, v_mul(load_part(v + i, n - i, 0), load_part(by + i, n - i, 0)), n - i);
}

TARGET static void scale(double *v, double by, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(v + i, v_mul(load_part(v + i, n - i, 0), v_set(by)), n - i);
}

/* The lanes whose bytes, n of them at most, are not 0. */
FN vm load_mask_part(const unsigned char *mask, size_t n)
{
    unsigned char part[LANES] = {0};
    if (__builtin_expect(n >= LANES, 1))
        return v_mask(mask);
    memcpy(part, mask, n);
    return v_mask(part);
}

TARGET static void apply_mask(double *v, const unsigned char *mask, double value, size_t n)
{
    const vd other = v_set(value);
    for (size_t i = 0; i < n; i += LANES) {
        vm shown = load_mask_part(mask + i, n - i);
        store_part(v + i, v_select(shown, load_part(v + i, n - i, 0), other), n - i);
    }
}

/* By the compiler's own vectors of bytes, which count to 255. */
TARGET static size_t count(const unsigned char *mask, size_t n)
{
    typedef unsigned char bytes __attribute__((vector_size(32)));
    enum { MOST = 255 };
    size_t all = 0;
    while (n >= sizeof(bytes)) {
        bytes counts = {0}, v;
        for (int i = 0; i < MOST && n >= sizeof v; i++) {
            memcpy(&v, mask, sizeof v);
            counts -= (bytes)(v != 0);
            mask += sizeof v, n -= sizeof v;
        }
        for (size_t i = 0; i < sizeof counts; i++)
            all += counts[i];
    }
    for (size_t i = 0; i < n; i++)
        all += mask[i] != 0;
    return all;
}

FN vd row_exp(vd v)
{
    bool far = m_any(v_gt(v_abs(v), v_set(700)));
    return __builtin_expect(far, 0) ? exp_times_anywhere(v, v_set(1)) : exp_wide(v);
}

TARGET static void exps(const double *v, double *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(to + i, row_exp(load_part(v + i, n - i, 0)), n - i);
}

TARGET static void logs(const double *v, double *to, size_t n)
{
    const vd zero = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        double lanes[LANES], rare_lanes[LANES];
        vd from = load_part(v + i, n - i, 1);
        vd result = v_select(v_eq(from, zero), v_set(-INFINITY), log_minus_wide(from, zero));
        if (m_any(v_rare(from))) {
            v_store_f64(rare_lanes, from);
            for (size_t lane = 0; lane < LANES; lane++)
                lanes[lane] = log(rare_lanes[lane]);
            result = v_load_f64(lanes);
        }
        store_part(to + i, result, n - i);
    }
}

/* t (log t - log q) = q r log r with r = t / q, and what rounding left out of r is an input to
 * the logarithm's difference: log(t / q) = log r + (t - r q) / t. */
TARGET static void quotients(enum kl_rule rule, double *x, double *t, double *times, double *over,
                             size_t n)
{
    const vd zero = v_set(0), most = v_set(0x1p900), least = v_set(0x1p-900);
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        vd q = load_part(x + i, left, 1), p = load_part(t + i, left, 1);
        vd r = v_div(p, q);
        vd rest = v_div(v_residual(r, q, p), p);
        vm none = v_eq(p, zero);
        vm rare = m_not(m_or(none, v_gt(p, least)));
        rare = m_or(rare, m_not(m_or(none, v_gt(r, least))));
        rare = m_or(rare, m_or(v_gt(r, most), m_or(v_gt(q, most), m_not(v_gt(q, least)))));
        if (m_any(rare)) {
            for (size_t j = i; j < i + (left < LANES ? left : LANES); j++) {
                struct kl_quotient a = kl_quotient(rule, x[j], t[j]);
                x[j] = a.x, t[j] = a.t, times[j] = a.times, over[j] = a.over;
            }
            continue;
        }
        store_part(x + i, v_select(none, zero, rest), left);
        store_part(t + i, r, left);
        store_part(times + i, q, left);
        store_part(over + i, v_set(1), left);
    }
}

TARGET static void softmax_backward(double *grads, const double *e, const double *sums,
                                    double scale, size_t n)
{
    const vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        vd taken = v_mul(load_part(e + i, n - i, 0), load_part(sums + i, n - i, 0));
        vd grad = v_sub(load_part(grads + i, n - i, 0), taken);
        store_part(grads + i, v_mul(grad, factor), n - i);
    }
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
            row_grads_of(dtype, is_log, true, true, true, row, x, t, grads, n);                    \
        else if (by_input && row->q_factor != 0)                                                   \
            row_grads_of(dtype, is_log, true, false, true, row, x, t, grads, n);                   \
        else if (by_input)                                                                         \
            row_grads_of(dtype, is_log, true, false, false, row, x, t, grads, n);                  \
        else                                                                                       \
            row_grads_of(dtype, is_log, false, true, false, row, x, t, grads, n);                  \
    }

/* The last, partial vector goes through a copy, padded with its first element. */
FN void scan_of(enum kl_dtype dtype, bool with_exps, const char *from, double *to, size_t n,
                double *least, double *greatest)
{
    vd minima = v_set(INFINITY), maxima = v_set(-INFINITY);
    for (size_t i = 0; i < n; i += LANES) {
        vd v = load_elements_part(dtype, from + i * size_of(dtype), n - i);
        if (n - i < LANES)
            v = v_select(first_lanes(n - i), v,
                         v_set(kl_load(dtype, from + i * size_of(dtype), 0)));
        minima = v_min(v, minima);
        maxima = v_max(v, maxima);
        store_part(to + i, with_exps ? rough_exp(v_limit(v)) : v, n - i);
    }
    *least = -greatest_lane(v_mul(minima, v_set(-1)));
    *greatest = greatest_lane(maxima);
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
