/* Blocks of doubles, over the vocabulary of template.h, which includes this. */

/* ---- Blocks of rows of doubles. Single vectors, for rows may be short. */

/* The vectors of a row that are summed without compensation: a sum of softmax's exponentials has no bit to
 * lose to more roundings. */
enum { UNCOMPENSATED_VECTORS = 2 };

/* The uncompensated sum of n doubles, n above 0, whose lanes are to be added. */
INLINE sd uncompensated_lanes(const double *v, size_t n)
{
    if (n < SINGLE_LANES)
        return s_load_n(v, n, 0);
    sd sum = s_load_f64(v);
    size_t i = SINGLE_LANES;
    for (; i + SINGLE_LANES <= n; i += SINGLE_LANES)
        sum = s_add(sum, s_load_f64(v + i));
    return i < n ? s_add(sum, s_load_n(v + i, n - i, 0)) : sum;
}

/* The compensated sum of longer rows. */
INLINE sd compensated_lanes(const double *v, size_t n, sd *low)
{
    enum { PART = UNCOMPENSATED_VECTORS * SINGLE_LANES };
    sd high = s_set(0), error;
    *low = s_set(0);
    for (size_t i = 0; i < n; i += PART) {
        high = s_two_sum(high, uncompensated_lanes(v + i, n - i < PART ? n - i : PART), &error);
        *low = s_add(*low, error);
    }
    return high;
}

/* Adds n sums to (high, low). */
INLINE void add_totals(double *high, double *low, size_t n, sd totals, sd errors)
{
    sd error, sum = s_two_sum(s_load_n(high, n, 0), totals, &error);
    s_store_n(high, sum, n);
    s_store_n(low, s_add(s_load_n(low, n, 0), s_add(errors, error)), n);
}

/* Adds the sums of n rows, n at most SINGLE_LANES, to (high, low). */
INLINE void add_row_totals(const double *v, size_t n, size_t length, double *high, double *low)
{
    sd highs[SINGLE_LANES], lows[SINGLE_LANES];
    bool is_short = length <= UNCOMPENSATED_VECTORS * SINGLE_LANES;
#pragma GCC unroll 8
    for (size_t i = 0; i < SINGLE_LANES; i++) {
        highs[i] = lows[i] = s_set(0);
        if (i < n && is_short)
            highs[i] = uncompensated_lanes(v + i * length, length);
        else if (i < n)
            highs[i] = compensated_lanes(v + i * length, length, &lows[i]);
    }
    add_totals(high, low, n, s_reduce_sums(highs), is_short ? s_set(0) : s_reduce_sums(lows));
}

/* Adds the totals of SINGLE_LANES rows, each of which is a vector. */
INLINE void add_vector_totals(const double *v, double *high, double *low)
{
    sd rows[SINGLE_LANES], error;
#pragma GCC unroll 8
    for (size_t i = 0; i < SINGLE_LANES; i++)
        rows[i] = s_load_f64(v + i * SINGLE_LANES);
    s_store_f64(high, s_two_sum(s_load_f64(high), s_reduce_sums(rows), &error));
    s_store_f64(low, s_add(s_load_f64(low), error));
}

TARGET_ATTR static void row_totals(const double *v, size_t rows, size_t length, double *high,
                                   double *low)
{
    size_t row = 0;
    for (; row + SINGLE_LANES <= rows; row += SINGLE_LANES)
        if (length == SINGLE_LANES)
            add_vector_totals(v + row * length, high + row, low + row);
        else
            add_row_totals(v + row * length, SINGLE_LANES, length, high + row, low + row);
    if (row < rows)
        add_row_totals(v + row * length, rows - row, length, high + row, low + row);
}

TARGET_ATTR static void row_maxima(const double *v, size_t rows, size_t length, double *maxima)
{
    for (size_t row = 0; row < rows; row += SINGLE_LANES) {
        size_t n = rows - row < SINGLE_LANES ? rows - row : SINGLE_LANES;
        sd max[SINGLE_LANES];
        for (size_t i = 0; i < SINGLE_LANES; i++)
            max[i] = s_set(-INFINITY);
        for (size_t i = 0; i < n; i++) {
            const double *of_row = v + (row + i) * length;
            size_t j = 0;
            for (; j + SINGLE_LANES <= length; j += SINGLE_LANES)
                max[i] = s_max(s_load_f64(of_row + j), max[i]);
            if (j < length)
                max[i] = s_max(s_load_n(of_row + j, length - j, -INFINITY), max[i]);
        }
        s_store_n(maxima + row, s_max(s_reduce_maxima(max), s_load_n(maxima + row, n, 0)), n);
    }
}

/* Whole vectors are stored past the end of a row, where the next one follows: parts of vectors take longer. */
TARGET_ATTR static void broadcast(const double *row_values, size_t rows, size_t length, double *to)
{
    for (size_t row = 0; row < rows; row++, to += length) {
        sd v = s_set(row_values[row]);
        size_t i = 0, left = (rows - row) * length;
        for (; i < length && i + SINGLE_LANES <= left; i += SINGLE_LANES)
            s_store_f64(to + i, v);
        if (i < length)
            s_store_n(to + i, v, length - i);
    }
}

INLINE void softmax_terms_of(bool is_log, bool is_f64, double sentinel, const double *x,
                             const double *t, double *losses, double *ps, double *exps, size_t n)
{
    const vd sentinel_t = v_set(sentinel), nan = v_set(NAN);
    for (size_t i = 0; i < n; i += LANES) {
        struct row_term term = row_term(is_log, is_f64, true, sentinel_t,
                                        load_part(x + i, n - i, 0), load_part(t + i, n - i, 0));
        vd loss = v_mul(term.p, term.difference);
        store_part(losses + i, v_select(term.special, nan, loss), n - i);
        store_part(ps + i, term.p, n - i);
        store_part(exps + i, term.e, n - i);
    }
}

#define SOFTMAX_TERMS(form, is_log)                                                                \
    TARGET_ATTR static void softmax_terms_##form(bool is_f64, double sentinel, const double *x,    \
                                                 const double *t, double *losses, double *ps,      \
                                                 double *exps, size_t n)                           \
    {                                                                                              \
        if (is_f64)                                                                                \
            softmax_terms_of(is_log, true, sentinel, x, t, losses, ps, exps, n);                   \
        else                                                                                       \
            softmax_terms_of(is_log, false, sentinel, x, t, losses, ps, exps, n);                  \
    }
SOFTMAX_TERMS(prob, false)
SOFTMAX_TERMS(log, true)

/* ---- Doubles, one by one */

TARGET_ATTR static struct kl_sum total(const double *v, size_t n)
{
    struct running sum = {v_set(0), v_set(0)};
    for (size_t i = 0; i < n; i += LANES)
        sum = add_block(sum, load_part(v + i, n - i, 0));
    return total_of(sum);
}

/* Error-free extraction (Rump, Ogita and Oishi, "Accurate floating-point summation part I", 2008): adding and
 * subtracting a number far above all others rounds them to multiples of its last bit, so few that their
 * sum is exact; the rest is rounded again 43 bits below. If nothing is left then, the two sums are the exact one.
 * It takes two passes of vector operations, against some 20 scalar ones a number in exact.c. */
TARGET_ATTR static bool exact_total(const double *v, size_t n, double parts[2])
{
    enum { MAX = 1024, LOG_MAX = 10 };
    const vd zero = v_set(0);
    vd maxima = zero, sums[2] = {zero, zero};
    vm left = v_gt(zero, zero);
    int exponent;
    if (n > MAX)
        return false;
    for (size_t i = 0; i < n; i += LANES)
        maxima = v_max(v_abs(load_part(v + i, n - i, 0)), maxima);
    double max = max_lane(maxima);
    frexp(max, &exponent);
    if (!(max < 0x1p1000)) /* NaN or too large */
        return false;
    const vd coarse = v_set(ldexp(1.5, exponent + LOG_MAX));
    const vd fine = v_set(ldexp(1.5, exponent + LOG_MAX - 43));
    for (size_t i = 0; i < n; i += LANES) {
        vd from = load_part(v + i, n - i, 0);
        vd first = v_sub(v_add(from, coarse), coarse), rest = v_sub(from, first);
        vd second = v_sub(v_add(rest, fine), fine);
        sums[0] = v_add(sums[0], first);
        sums[1] = v_add(sums[1], second);
        left = m_or(left, m_not(v_eq(rest, second))); /* as NaN is */
    }
    parts[0] = v_reduce_sum(sums[0]);
    parts[1] = v_reduce_sum(sums[1]);
    return !m_any(left);
}

/* ---- Columns: `length` rows of n doubles, that lie one after the other */

TARGET_ATTR static void add(const double *v, size_t length, double *high, double *low, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd sum = load_part(high + i, n - i, 0), errors = load_part(low + i, n - i, 0), error;
        for (size_t j = 0; j < length; j++) {
            sum = v_two_sum(sum, load_part(v + j * n + i, n - i, 0), &error);
            errors = v_add(errors, error);
        }
        store_part(high + i, sum, n - i);
        store_part(low + i, errors, n - i);
    }
}

TARGET_ATTR static void max(const double *v, size_t length, double *maxima, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        vd all = load_part(maxima + i, n - i, 0);
        for (size_t j = 0; j < length; j++)
            all = v_max(load_part(v + j * n + i, n - i, 0), all);
        store_part(maxima + i, all, n - i);
    }
}

TARGET_ATTR static void shift(double *v, const double *by, const double *minus, double scale,
                              size_t n)
{
    const vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        vd difference = v_sub(load_part(v + i, n - i, 0), load_part(by + i, n - i, 0));
        vd scaled = v_sub(v_mul(difference, factor), load_part(minus + i, n - i, 0));
        store_part(v + i, scaled, n - i);
    }
}

TARGET_ATTR static void multiply(double *v, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(v + i, v_mul(load_part(v + i, n - i, 0), load_part(by + i, n - i, 0)), n - i);
}

TARGET_ATTR static void scale(double *v, double by, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(v + i, v_mul(load_part(v + i, n - i, 0), v_set(by)), n - i);
}

TARGET_ATTR static void apply_mask(double *v, const unsigned char *mask, double value, size_t n)
{
    const vd other = v_set(value);
    for (size_t i = 0; i < n; i += LANES) {
        vm unmasked = load_mask_part(mask + i, n - i);
        store_part(v + i, v_select(unmasked, load_part(v + i, n - i, 0), other), n - i);
    }
}

/* Counts by the compiler's own vectors of bytes, which hold numbers to 255. */
TARGET_ATTR static size_t count(const unsigned char *mask, size_t n)
{
    typedef unsigned char bytes __attribute__((vector_size(32)));
    enum { MAX = 255 };
    size_t all = 0;
    while (n >= sizeof(bytes)) {
        bytes counts = {0}, v;
        for (int i = 0; i < MAX && n >= sizeof v; i++) {
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

/* MAX_ZERO: numbers below it have an exponential of 0. Of the numbers below -700, most are below it. */
#define MAX_ZERO (-746)

INLINE vd row_exp(vd v)
{
    if (__builtin_expect(!m_any(v_gt(v_abs(v), v_set(700))), 1))
        return exp_f64(v);
    vm none = v_gt(v_set(MAX_ZERO), v);
    v = v_select(none, v_set(0), v);
    if (m_any(v_gt(v_abs(v), v_set(700))))
        return v_select(none, v_set(0), exp_times_full_range(v, v_set(1)));
    return v_select(none, v_set(0), exp_f64(v));
}

TARGET_ATTR static void exps(const double *v, double *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(to + i, row_exp(load_part(v + i, n - i, 0)), n - i);
}

static double log_of(enum kl_rule rule, double v, double unused)
{
    (void)rule, (void)unused;
    return log(v);
}

TARGET_ATTR static void logs(const double *v, double *to, size_t n)
{
    const vd zero = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        vd from = load_part(v + i, n - i, 1);
        vd result = v_select(v_eq(from, zero), v_set(-INFINITY), log_minus_f64(from, zero));
        vm special = v_special(from);
        if (m_any(special))
            result = define_special(special, result, from, from, log_of, KL_PROB_MATH);
        store_part(to + i, result, n - i);
    }
}

/* t (log t - log q) = q r log r with r = t / q, and what rounding left out of r is an input to
 * the logarithm's difference: log(t / q) = log r + (t - r q) / t. */
TARGET_ATTR static void quotients(enum kl_rule rule, double *x, double *t, double *divisor,
                                  size_t n)
{
    const vd zero = v_set(0), max = v_set(KL_MAX_QUOTIENT), min = v_set(KL_MIN_QUOTIENT);
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        vd q = load_part(x + i, left, 1), p = load_part(t + i, left, 1);
        vd r = v_div(p, q);
        vd rest = v_div(v_mul_sub(r, q, p), p);
        vm none = v_eq(p, zero);
        vm special = m_not(m_or(none, v_gt(p, min)));
        special = m_or(special, m_not(m_or(none, v_gt(r, min))));
        special = m_or(special, m_or(v_gt(r, max), m_or(v_gt(q, max), m_not(v_gt(q, min)))));
        if (m_any(special)) {
            for (size_t j = i; j < i + (left < LANES ? left : LANES); j++) {
                struct kl_quotient a = kl_quotient(rule, x[j], t[j]);
                x[j] = a.x, t[j] = a.t, divisor[j] = a.divisor;
            }
            continue;
        }
        store_part(x + i, v_select(none, zero, rest), left);
        store_part(t + i, r, left);
        store_part(divisor + i, v_set(1), left);
    }
}

TARGET_ATTR static void softmax_backward(double *grads, const double *e, const double *sums,
                                         double scale, size_t n)
{
    const vd factor = v_set(scale);
    for (size_t i = 0; i < n; i += LANES) {
        vd taken = v_mul(load_part(e + i, n - i, 0), load_part(sums + i, n - i, 0));
        vd grad = v_sub(load_part(grads + i, n - i, 0), taken);
        store_part(grads + i, v_mul(grad, factor), n - i);
    }
}

/* ---- Rows whose softmaxes nearly agree */

/* d + expm1(-d) for |d| <= MAX_SERIES, within 2^-50 of itself, by its Taylor series. */
#define MAX_SERIES 0.5
INLINE vd close_series(vd d)
{
    static const double inverse_factorials[] = {
        1 / 2.0,         1 / 6.0,          1 / 24.0,          1 / 120.0,          1 / 720.0,
        1 / 5040.0,      1 / 40320.0,      1 / 362880.0,      1 / 3628800.0,      1 / 39916800.0,
        1 / 479001600.0, 1 / 6227020800.0, 1 / 87178291200.0, 1 / 1307674368000.0};
    return v_mul(v_mul(d, d), horner(inverse_factorials, 13, v_mul(d, v_set(-1))));
}

/* FAR: |d| above which q is not computed from p, but from its own logarithm: where p is 0, all of q counts. */
#define FAR 30

/* (p - q) - (maxima + maxima_low): a difference of logits that may be small where they are large, by a two-sum. */
INLINE vd logit_difference(vd p, vd q, vd maxima, vd maxima_low)
{
    vd error, high = v_two_sum(p, v_mul(q, v_set(-1)), &error);
    error = v_select(not_finite(error), v_set(0), error);
    return v_add(v_sub(high, maxima), v_sub(error, maxima_low));
}

INLINE vd log_ratio(const struct kl_log_ratios *ratios, size_t i, size_t left)
{
    vd difference = logit_difference(
        load_part(ratios->target + i, left, 0), load_part(ratios->input + i, left, 0),
        load_part(ratios->maxima[0] + i, left, 0), load_part(ratios->maxima[1] + i, left, 0));
    return v_sub(v_mul(difference, v_set(ratios->scale)), load_part(ratios->shift + i, left, 0));
}

TARGET_ATTR static void log_ratios(const struct kl_log_ratios *ratios, double *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(to + i, log_ratio(ratios, i, n - i), n - i);
}

TARGET_ATTR static void close_terms(const struct kl_close_rows *rows, double *losses, double *rests,
                                    size_t n)
{
    const vd zero = v_set(0), one = v_set(1);
    for (size_t i = 0; i < n; i += LANES) {
        vd d = log_ratio(&rows->ratios, i, n - i), size = v_abs(d);
        vd p = load_part(rows->p + i, n - i, 0), series = close_series(d);
        vd loss = v_mul(p, series), rest = v_mul(p, v_sub(series, d));
        vm more = v_gt(size, v_set(MAX_SERIES)), far = v_gt(size, v_set(FAR));
        if (m_any(more)) {
            vd log_q = load_part(rows->log_q + i, n - i, 0);
            vd e = row_exp(v_select(far, log_q, v_mul(d, v_set(-1)))), less = v_sub(e, one);
            vd far_rest = v_sub(e, p), far_loss = v_select(v_gt(p, zero), v_mul(p, d), zero);
            far_loss = v_add(far_loss, far_rest);
            loss = v_select(more, v_select(far, far_loss, v_mul(p, v_add(d, less))), loss);
            rest = v_select(more, v_select(far, far_rest, v_mul(p, less)), rest);
        }
        store_part(losses + i, loss, n - i);
        store_part(rests + i, rest, n - i);
    }
}
