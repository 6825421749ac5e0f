/* Rows of doubles, over the vocabulary of template.h and over
 *
 *   row_exp(v), row_log(v, &rare)  to double's precision, of any number but in rare lanes
 *   prob_of(wide, t)               exp(t), to `wide` or to 24-bit operands' needs, of t at most
 *                                  700, or of -700 if it is below
 *   log_minus(wide, t, x)          log t - x likewise, but where v_rare(t)
 *   rough_exp(v)                   within 2^-16 of itself, of |v| <= 700
 *
 * Parts of vectors at the end of an array are padded with a number that does no harm. */

_Static_assert(KL_BROADCAST_LANES % LANES == 0, "a vector of broadcast lanes lies within them");

FN vd load_part(const double *from, size_t n, double padding)
{
    if (__builtin_expect(n >= LANES, 1))
        return v_load_f64(from);
    double part[LANES];
    for (size_t i = 0; i < LANES; i++)
        part[i] = i < n ? from[i] : padding;
    return v_load_f64(part);
}

FN void store_part(double *to, vd v, size_t n)
{
    double part[LANES];
    if (__builtin_expect(n >= LANES, 1)) {
        v_store_f64(to, v);
        return;
    }
    v_store_f64(part, v);
    memcpy(to, part, n * sizeof *to);
}

TARGET static double row_max(const double *v, size_t n)
{
    double lanes[LANES], greatest = -INFINITY;
    vd maxima = v_set(-INFINITY);
    for (size_t i = 0; i < n; i += LANES)
        maxima = v_max(load_part(v + i, n - i, -INFINITY), maxima);
    v_store_f64(lanes, maxima);
    for (size_t i = 0; i < LANES; i++)
        greatest = lanes[i] > greatest ? lanes[i] : greatest;
    return greatest;
}

TARGET static void each_max(const double *v, double *maxima, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(maxima + i, v_max(load_part(v + i, n - i, 0), load_part(maxima + i, n - i, 0)),
                   n - i);
}

/* Knuth's two-sum. Of a sum that is not finite the error is of no use. */
FN vd sum_and_error(vd a, vd b, vd *error)
{
    vd sum = v_add(a, b), back = v_sub(sum, a);
    *error = v_add(v_sub(a, v_sub(sum, back)), v_sub(b, back));
    return sum;
}

TARGET static struct kl_sum row_total(const double *v, size_t n)
{
    double highs[LANES], lows[LANES];
    vd high = v_set(0), low = v_set(0), error;
    for (size_t i = 0; i < n; i += LANES) {
        high = sum_and_error(high, load_part(v + i, n - i, 0), &error);
        low = v_add(low, error);
    }
    v_store_f64(highs, high);
    v_store_f64(lows, low);
    struct kl_sum sum = {0, 0};
    for (size_t i = 0; i < LANES; i++) {
        kl_sum_add(&sum, highs[i]);
        sum.low += isfinite(lows[i]) ? lows[i] : 0;
    }
    return sum;
}

TARGET static void each_add(const double *v, double *high, double *low, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd error;
        vd sum = sum_and_error(load_part(high + i, n - i, 0), load_part(v + i, n - i, 0), &error);
        store_part(high + i, sum, n - i);
        store_part(low + i, v_add(load_part(low + i, n - i, 0), error), n - i);
    }
}

TARGET static void shift(double *v, const double *by, const double *minus, size_t step,
                         double scale, size_t n)
{
    vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = step ? n - i : KL_BROADCAST_LANES;
        vd difference = v_sub(load_part(v + i, n - i, 0), load_part(by + i * step, left, 0));
        vd scaled = v_sub(v_mul(difference, factor), load_part(minus + i * step, left, 0));
        store_part(v + i, scaled, n - i);
    }
}

/* Bytes by way of float16, where 1 is 0x3c00: the compiler's own vectors put 0 beside each. */
TARGET static void widen_bytes(const unsigned char *from, double *to, size_t n)
{
    typedef unsigned char bytes __attribute__((vector_size(16)));
    enum { AT_ONCE = sizeof(bytes) };
    _Static_assert(AT_ONCE % LANES == 0, "what is widened at once is whole vectors");
    for (; n >= AT_ONCE; n -= AT_ONCE, from += AT_ONCE, to += AT_ONCE) {
        bytes b, halves[2], zero = {0};
        memcpy(&b, from, sizeof b);
        b = (bytes)(b != 0) & 0x3c;
        halves[0] = __builtin_shufflevector(zero, b, 0, 16, 0, 17, 0, 18, 0, 19, 0, 20, 0, 21, 0,
                                            22, 0, 23);
        halves[1] = __builtin_shufflevector(zero, b, 0, 24, 0, 25, 0, 26, 0, 27, 0, 28, 0, 29, 0,
                                            30, 0, 31);
        for (size_t i = 0; i < AT_ONCE; i += LANES)
            v_store_f64(to + i, load(KL_FLOAT16, (const char *)halves + i * 2));
    }
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] != 0;
}

TARGET static void multiply(double *v, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(v + i, v_mul(load_part(v + i, n - i, 0), load_part(by + i, n - i, 0)), n - i);
}

TARGET static void apply_mask(double *v, const double *mask, double value, size_t n)
{
    vd zero = v_set(0), other = v_set(value);
    for (size_t i = 0; i < n; i += LANES) {
        vm masked = v_eq(load_part(mask + i, n - i, 0), zero);
        store_part(v + i, v_select(masked, other, load_part(v + i, n - i, 0)), n - i);
    }
}

TARGET static void exps(const double *v, double *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(to + i, row_exp(load_part(v + i, n - i, 0)), n - i);
}

TARGET static void logs(const double *v, double *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        double lanes[LANES], rare_lanes[LANES];
        vm rare;
        vd from = load_part(v + i, n - i, 1);
        vd result = row_log(from, &rare);
        if (m_any(rare)) {
            v_store_f64(lanes, result);
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

FN vd shifted(vd v, struct kl_shift shift)
{
    return v_mul(v_sub(v, v_set(shift.by)), v_set(shift.scale));
}

struct row_sums {
    vd losses, sum_p, exps, refused;
    vm unusual;
};

/* A log-probability below -700 is of a probability of 0, which a finite difference is multiplied
 * by. */
FN struct row_sums add_to_row_sums(struct row_sums sums, bool is_log, bool wide, bool with_exps,
                                   vd x, vd t)
{
    vd most = v_set(700);
    vd least = v_set(-700);
    vd p = is_log ? v_select(v_gt(least, t), v_set(0), prob_of(wide, t)) : t;
    vd d = is_log ? v_sub(v_clamp(t, least, v_set(INFINITY)), x) : log_minus(wide, t, x);
    vm unusual = is_log ? m_or(v_gt(t, most), v_eq(t, sums.refused)) : v_rare(t);
    sums.unusual = m_or(sums.unusual, unusual);
    sums.losses = v_fma(p, d, sums.losses);
    sums.sum_p = v_add(sums.sum_p, p);
    if (with_exps) {
        sums.unusual = m_or(sums.unusual, v_gt(x, most));
        sums.exps = v_add(sums.exps, prob_of(wide, x));
    }
    return sums;
}

FN struct kl_row_sums total_row_sums(struct row_sums sums)
{
    return (struct kl_row_sums){m_any(sums.unusual) ? NAN : v_total(sums.losses),
                                v_total(sums.sum_p), v_total(sums.exps)};
}

/* The first n lanes. */
FN vm first_lanes(size_t n)
{
    double lanes[LANES];
    for (size_t i = 0; i < LANES; i++)
        lanes[i] = i < n;
    return v_eq(v_load_f64(lanes), v_set(1));
}

FN struct kl_row_sums row_sums_of(bool is_log, bool wide, bool with_exps, double refused,
                                  const double *x, const double *t, struct kl_shift x_shift,
                                  struct kl_shift t_shift, size_t n)
{
    const vd zero = v_set(0), nothing = v_set(-700);
    struct row_sums sums = {zero, zero, zero, v_set(refused), v_gt(zero, zero)};
    size_t rest = n % LANES, i = 0;
    for (; i < n - rest; i += LANES) {
        vd xs = shifted(v_load_f64(x + i), x_shift), ts = shifted(v_load_f64(t + i), t_shift);
        sums = add_to_row_sums(sums, is_log, wide, with_exps, xs, ts);
    }
    if (rest) { /* padded with what has no loss and no p to speak of */
        vm real = first_lanes(rest);
        vd xs = shifted(load_part(x + i, rest, 0), x_shift);
        vd ts = shifted(load_part(t + i, rest, 0), t_shift);
        sums = add_to_row_sums(sums, is_log, wide, with_exps, v_select(real, xs, nothing),
                               v_select(real, ts, is_log ? nothing : zero));
    }
    return total_row_sums(sums);
}

TARGET static double sum_exps(bool wide, const double *v, struct kl_shift shift, size_t n)
{
    vd sum = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd z = shifted(load_part(v + i, n - i, -INFINITY), shift);
        sum = v_add(sum, wide ? prob_of(true, z) : prob_of(false, z));
    }
    return v_total(sum);
}

/* Parts of rows that lie across vectors, n of them and KL_BROADCAST_LANES at a time. */
FN void each_row_sums_of(bool is_log, bool wide, bool with_exps, double refused, const double *x,
                         const double *t, const struct kl_row_shifts *shifts,
                         struct kl_rows_sums *rows, size_t n)
{
    vd x_scale = v_set(shifts->x_scale), t_scale = v_set(shifts->t_scale);
    for (size_t i = 0; i < n; i += LANES) {
        struct row_sums sums = {v_load_f64(rows->losses + i), v_load_f64(rows->sum_p + i),
                                v_load_f64(rows->exps + i), v_set(refused),
                                v_gt(v_set(0), v_set(0))};
        vd xs = v_mul(v_sub(v_load_f64(x + i), v_load_f64(shifts->x + i)), x_scale);
        vd ts = v_mul(v_sub(v_load_f64(t + i), v_load_f64(shifts->t + i)), t_scale);
        sums = add_to_row_sums(sums, is_log, wide, with_exps, xs, ts);
        v_store_f64(rows->losses + i, v_select(sums.unusual, v_set(NAN), sums.losses));
        v_store_f64(rows->sum_p + i, sums.sum_p);
        v_store_f64(rows->exps + i, sums.exps);
    }
}

#define EACH_ROW_SUMS(form, is_log)                                                                \
    TARGET static void each_row_sums_##form(                                                       \
        bool wide, bool with_exps, double refused, const double *x, const double *t,               \
        const struct kl_row_shifts *shifts, struct kl_rows_sums *rows, size_t n)                   \
    {                                                                                              \
        if (wide && with_exps)                                                                     \
            each_row_sums_of(is_log, true, true, refused, x, t, shifts, rows, n);                  \
        else if (wide)                                                                             \
            each_row_sums_of(is_log, true, false, refused, x, t, shifts, rows, n);                 \
        else if (with_exps)                                                                        \
            each_row_sums_of(is_log, false, true, refused, x, t, shifts, rows, n);                 \
        else                                                                                       \
            each_row_sums_of(is_log, false, false, refused, x, t, shifts, rows, n);                \
    }

#define ROW_SUMS(form, is_log)                                                                     \
    TARGET static struct kl_row_sums row_sums_##form(                                              \
        bool wide, bool with_exps, double refused, const double *x, const double *t,               \
        struct kl_shift x_shift, struct kl_shift t_shift, size_t n)                                \
    {                                                                                              \
        if (wide && with_exps)                                                                     \
            return row_sums_of(is_log, true, true, refused, x, t, x_shift, t_shift, n);            \
        if (wide)                                                                                  \
            return row_sums_of(is_log, true, false, refused, x, t, x_shift, t_shift, n);           \
        if (with_exps)                                                                             \
            return row_sums_of(is_log, false, true, refused, x, t, x_shift, t_shift, n);           \
        return row_sums_of(is_log, false, false, refused, x, t, x_shift, t_shift, n);              \
    }
ROW_SUMS(prob, false)
ROW_SUMS(log, true)
EACH_ROW_SUMS(prob, false)
EACH_ROW_SUMS(log, true)

TARGET static void softmax_backward(double *grads, const double *e, const double *sums, size_t step,
                                    double scale, size_t n)
{
    vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        vd sum = load_part(sums + i * step, step ? n - i : KL_BROADCAST_LANES, 0);
        vd taken = v_mul(load_part(e + i, n - i, 0), sum);
        vd grad = v_sub(load_part(grads + i, n - i, 0), taken);
        store_part(grads + i, v_mul(grad, factor), n - i);
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
    double least[LANES], greatest[LANES];
    struct stats s = {v_set(INFINITY), v_set(-INFINITY), v_set(0), v_set(0)};
    for (; n >= LANES; n -= LANES, from += LANES * size_of(dtype))
        s = add_to_stats(s, load(dtype, from), v_eq(s.sum, s.sum), true, with_exps);
    if (n > 0) { /* padded with its first */
        char rest[LANES * sizeof(double)] = {0};
        vm real = first_lanes(n);
        memcpy(rest, from, n * size_of(dtype));
        vd v = v_select(real, load(dtype, rest), v_set(kl_load(dtype, from, 0)));
        s = add_to_stats(s, v, real, false, with_exps);
    }
    v_store_f64(least, s.least);
    v_store_f64(greatest, s.greatest);
    struct kl_row_stats all = {INFINITY, -INFINITY, v_total(s.sum),
                               with_exps ? v_total(s.exps) : 0};
    for (size_t i = 0; i < LANES; i++) {
        all.least = least[i] < all.least ? least[i] : all.least;
        all.greatest = greatest[i] > all.greatest ? greatest[i] : all.greatest;
    }
    return all;
}

FN void each_stats_of(const double *v, struct kl_rows_stats *rows, size_t n, bool with_exps)
{
    for (size_t i = 0; i < n; i += LANES) {
        struct stats s = {load_part(rows->least + i, n - i, 0),
                          load_part(rows->greatest + i, n - i, 0),
                          load_part(rows->sum + i, n - i, 0), load_part(rows->exps + i, n - i, 0)};
        s = add_to_stats(s, load_part(v + i, n - i, 0), v_eq(s.sum, s.sum), true, with_exps);
        store_part(rows->least + i, s.least, n - i);
        store_part(rows->greatest + i, s.greatest, n - i);
        store_part(rows->sum + i, s.sum, n - i);
        store_part(rows->exps + i, s.exps, n - i);
    }
}

TARGET static void each_row_stats(const double *v, struct kl_rows_stats *rows, size_t n,
                                  bool with_exps)
{
    if (with_exps)
        each_stats_of(v, rows, n, true);
    else
        each_stats_of(v, rows, n, false);
}

#define ROW_STATS(dtype, suffix)                                                                   \
    TARGET static struct kl_row_stats row_stats_##suffix(const void *from, size_t n,               \
                                                         bool with_exps)                           \
    {                                                                                              \
        return with_exps ? row_stats_of(dtype, from, n, true)                                      \
                         : row_stats_of(dtype, from, n, false);                                    \
    }
ROW_STATS(KL_FLOAT64, f64)
ROW_STATS(KL_FLOAT32, f32)
ROW_STATS(KL_FLOAT16, f16)
ROW_STATS(KL_BFLOAT16, bf16)
