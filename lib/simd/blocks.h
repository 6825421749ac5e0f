/* Blocks of doubles, over the vocabulary of template.h, which includes this. */

/* ---- Blocks of rows of doubles. Single vectors, for rows may be short. */

/* The vectors of a row that are summed plainly: a sum of softmax's exponentials has no bit to lose to
 * more roundings. */
enum { PLAIN_VECTORS = 2 };

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

/* Adds the sums of n rows, n at most SINGLE_LANES, to (high, low). */
FN void add_row_totals(const double *v, size_t n, size_t length, double *high, double *low)
{
    sd highs[SINGLE_LANES], lows[SINGLE_LANES];
    bool is_short = length <= PLAIN_VECTORS * SINGLE_LANES;
#pragma GCC unroll 8
    for (size_t i = 0; i < SINGLE_LANES; i++) {
        highs[i] = lows[i] = s_set(0);
        if (i < n && is_short)
            highs[i] = plain_lanes(v + i * length, length);
        else if (i < n)
            highs[i] = compensated_lanes(v + i * length, length, &lows[i]);
    }
    add_totals(high, low, n, s_totals(highs), is_short ? s_set(0) : s_totals(lows));
}

/* Adds those of SINGLE_LANES rows, each of which is a vector. */
FN void add_vector_totals(const double *v, double *high, double *low)
{
    sd rows[SINGLE_LANES], error;
#pragma GCC unroll 8
    for (size_t i = 0; i < SINGLE_LANES; i++)
        rows[i] = s_load_f64(v + i * SINGLE_LANES);
    s_store_f64(high, s_sum_and_error(s_load_f64(high), s_totals(rows), &error));
    s_store_f64(low, s_add(s_load_f64(low), error));
}

TARGET static void row_totals(const double *v, size_t rows, size_t length, double *high,
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

TARGET static struct kl_sum total(const double *v, size_t n)
{
    struct running sum = {v_set(0), v_set(0)};
    for (size_t i = 0; i < n; i += LANES)
        sum = add_block(sum, load_part(v + i, n - i, 0));
    return total_of(sum);
}

/* Rump's extraction: adding and subtracting a power of 2 far above all numbers rounds them to multiples
 * of its last bit, so few that their sum is exact; what that leaves is rounded 43 bits below. */
TARGET static bool exact_total(const double *v, size_t n, double parts[2])
{
    enum { MOST = 1024, LOG_MOST = 10 };
    const vd zero = v_set(0);
    vd most = zero, sums[2] = {zero, zero};
    vm left = v_gt(zero, zero);
    int exponent;
    if (n > MOST)
        return false;
    for (size_t i = 0; i < n; i += LANES)
        most = v_max(v_abs(load_part(v + i, n - i, 0)), most);
    double greatest = greatest_lane(most);
    frexp(greatest, &exponent);
    if (!(greatest < 0x1p1000)) /* NaN or too large */
        return false;
    const vd coarse = v_set(ldexp(1.5, exponent + LOG_MOST));
    const vd fine = v_set(ldexp(1.5, exponent + LOG_MOST - 43));
    for (size_t i = 0; i < n; i += LANES) {
        vd from = load_part(v + i, n - i, 0);
        vd first = v_sub(v_add(from, coarse), coarse), rest = v_sub(from, first);
        vd second = v_sub(v_add(rest, fine), fine);
        sums[0] = v_add(sums[0], first);
        sums[1] = v_add(sums[1], second);
        left = m_or(left, m_not(v_eq(rest, second))); /* as NaN is */
    }
    parts[0] = v_total(sums[0]);
    parts[1] = v_total(sums[1]);
    return !m_any(left);
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

/* Counts by the compiler's own vectors of bytes, which hold numbers to 255. */
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
        double lanes[LANES], numbers[LANES], rares[LANES];
        vd from = load_part(v + i, n - i, 1);
        vd result = v_select(v_eq(from, zero), v_set(-INFINITY), log_minus_wide(from, zero));
        vm rare = v_rare(from);
        if (m_any(rare)) {
            v_store_f64(lanes, result);
            v_store_f64(numbers, from);
            v_store_f64(rares, v_select(rare, v_set(1), zero));
            for (size_t lane = 0; lane < LANES; lane++)
                lanes[lane] = rares[lane] != 0 ? log(numbers[lane]) : lanes[lane];
            result = v_load_f64(lanes);
        }
        store_part(to + i, result, n - i);
    }
}

/* t (log t - log q) = q r log r with r = t / q, and what rounding left out of r is an input to
 * the logarithm's difference: log(t / q) = log r + (t - r q) / t. */
TARGET static void quotients(enum kl_rule rule, double *x, double *t, double *over, size_t n)
{
    const vd zero = v_set(0), most = v_set(KL_MOST_QUOTIENT), least = v_set(KL_LEAST_QUOTIENT);
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
                x[j] = a.x, t[j] = a.t, over[j] = a.over;
            }
            continue;
        }
        store_part(x + i, v_select(none, zero, rest), left);
        store_part(t + i, r, left);
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
