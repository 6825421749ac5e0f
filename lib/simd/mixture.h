/* Divergences from a mixture of both operands, over the vocabulary of template.h, which includes this.
 *
 * With d = log(p / q), s the share of p and u = (1 - s) expm1(-d), the mixture m is p (1 + u). So log(p / m) is -log1p(u),
 * and log(q / m) is that less d. Where p and q are close, losses are of the order of d^2, and their terms of d: they are
 * computed from two series that begin with the square,
 *     h = d + expm1(-d)     and     r = u - log1p(u),
 * so that the loss of KL_SKEW with m - p added is p r, and that of KL_JS is
 *     p ((1 - s) (d^2 - h (1 + d)) - u^2 + r (1 + u)),
 * whose terms cancel by a factor of 4 at most if s is not below 1/2: otherwise the operands change places. Where they are not
 * close, logarithms of p, q and m do. Of operands of 24 bits fewer are close, by shorter series. */

/* CLOSE_F64, CLOSE_F32: |d| up to which elements are close. Series are within 2^-50, and some 2^-41, of themselves. */
#define CLOSE_F64 0.25
#define CLOSE_F32 0x1p-6

INLINE vd max_close(bool is_f64) { return v_set(is_f64 ? CLOSE_F64 : CLOSE_F32); }

/* d + expm1(-d) by its Taylor series. */
INLINE vd close_exp_rest(bool is_f64, vd d)
{
    static const double inverse_factorials[] = {
        1 / 2.0,     1 / 6.0,      1 / 24.0,      1 / 120.0,      1 / 720.0,      1 / 5040.0,
        1 / 40320.0, 1 / 362880.0, 1 / 3628800.0, 1 / 39916800.0, 1 / 479001600.0};
    return v_mul(v_mul(d, d), horner(inverse_factorials, is_f64 ? 10 : 4, v_mul(d, v_set(-1))));
}

/* u - log1p(u) by the series of the inverse hyperbolic tangent: with z = u / (2 + u), log1p(u) is 2 (z + z^3 / 3 + ...), and u - 2 z
 * is u z. |u| is at most expm1(CLOSE), as is that of u / (1 + u). */
INLINE vd close_log_rest(bool is_f64, vd u)
{
    static const double odd[] = {2 / 3.0,  2 / 5.0,  2 / 7.0,  2 / 9.0,
                                 2 / 11.0, 2 / 13.0, 2 / 15.0, 2 / 17.0};
    vd z = v_div(u, v_add(u, v_set(2))), z2 = v_mul(z, z);
    return v_mul(z, v_sub(u, v_mul(z2, horner(odd, is_f64 ? 7 : 2, z2))));
}

/* pair: an element of both operands: p is of the one whose share is `share`. */
struct pair {
    vd p, q, log_p, log_q, d, mean;
    vd zero; /* or NaN, if p or q is no number */
    vm special;
};

/* shares: what is known of a call: the shares of both operands, and flags. */
struct shares {
    bool is_f64, is_js, are_whole;
    bool has_zeros;     /* p or q may be 0 */
    double share, rest; /* of p and q */
};

/* True if p is input's: the operands of KL_JS change places where the share of target is below 1/2. */
INLINE bool swaps(const struct kl_mixture *mixture)
{
    return mixture->is_js && mixture->share < 0.5;
}

/* Makes the shares: the flags are constants to the compiler, and each share is as exact as it was given. */
INLINE struct shares shares_of(bool is_f64, bool is_js, bool are_whole, bool has_zeros,
                               const struct kl_mixture *mixture)
{
    bool swapped = swaps(mixture);
    double other = 1 - mixture->share;
    return (struct shares){is_f64,
                           is_js,
                           are_whole,
                           has_zeros,
                           swapped ? other : mixture->share,
                           swapped ? mixture->share : other};
}

/* exp(v), which is infinite where it overflows. */
INLINE vd prob_of_log(bool is_f64, vd v)
{
    if (is_f64)
        return row_exp(v);
    return v_select(v_gt(v, v_set(700)), v_set(INFINITY), exp_or_zero(false, v));
}

INLINE vd log_of_prob(bool is_f64, vd v)
{
    const vd zero = v_set(0);
    vd log = is_f64 ? log_minus_f64(v, zero) : log_minus_f32(v, zero);
    return v_select(v_eq(v, zero), v_set(-INFINITY), log);
}

INLINE vm both(vm a, vm b) { return m_not(m_or(m_not(a), m_not(b))); }

/* log(p / q) of probabilities or logarithms, each without a rounding error of its own; of 24 bits it may have one. NaN
 * where p / q overflows. */
INLINE vd ratio_of(bool is_f64, bool p_is_prob, bool q_is_prob, const struct pair *e)
{
    if (!is_f64)
        return v_sub(e->log_p, e->log_q);
    if (p_is_prob && q_is_prob) {
        vd r = v_div(e->p, e->q);
        return v_sub(log_minus_f64(r, v_set(0)), v_div(v_mul_sub(r, e->q, e->p), e->p));
    }
    if (p_is_prob)
        return log_minus_f64(e->p, e->log_q);
    if (q_is_prob)
        return v_mul(log_minus_f64(e->q, e->log_p), v_set(-1));
    return v_sub(e->log_p, e->log_q);
}

/* pair_result: a loss, and log(p / m) and log(q / m). */
struct pair_result {
    vd loss, p_log, q_log;
};

INLINE struct pair_result mix_close(const struct shares *m, const struct pair *e)
{
    const vd one = v_set(1), rest = v_set(m->rest);
    vd h = close_exp_rest(m->is_f64, e->d), u = v_mul(rest, v_sub(h, e->d));
    vd r = close_log_rest(m->is_f64, u);
    struct pair_result result = {.p_log = v_sub(r, u)};
    result.q_log = v_sub(result.p_log, e->d);
    if (m->is_js) {
        vd of_q = v_sub(v_mul(e->d, e->d), v_mul(h, v_add(one, e->d)));
        vd of_m = v_sub(v_mul(r, v_add(one, u)), v_mul(u, u));
        result.loss = v_mul(e->p, v_fma(rest, of_q, of_m));
    } else {
        result.loss = v_mul(e->p, m->are_whole ? r : result.p_log);
    }
    return result;
}

/* a b, and 0 where a is, whatever b is. */
INLINE vd product_or_zero(const struct shares *m, const struct pair *e, vd a, vd b)
{
    vd product = v_mul(a, b);
    return m->has_zeros ? v_select(v_eq(a, v_set(0)), e->zero, product) : product;
}

/* SMALL_REST: a share of q below which log(p / m), which is of its order, has too few digits as a difference of logarithms. */
#define SMALL_REST 0.0625

/* log(p / m) = -log1p(u), of a u that is small. */
INLINE vd log_of_small_rest(const struct shares *m, const struct pair *e, vd p_log)
{
    vd u = v_mul(v_set(m->rest), v_sub(v_div(e->q, e->p), v_set(1)));
    vm small = m_not(m_or(v_gt(v_abs(u), max_close(m->is_f64)), not_finite(u)));
    return v_select(small, v_sub(close_log_rest(m->is_f64, u), u), p_log);
}

INLINE struct pair_result mix_far(const struct shares *m, const struct pair *e)
{
    const vd zero = v_set(0), share = v_set(m->share), rest = v_set(m->rest);
    vd log_mean = m->is_f64 ? log_minus_f64(e->mean, zero) : log_minus_f32(e->mean, zero);
    if (m->has_zeros)
        log_mean = v_select(v_eq(e->mean, zero), v_set(-INFINITY), log_mean);
    struct pair_result result = {.p_log = v_sub(e->log_p, log_mean),
                                 .q_log = v_sub(e->log_q, log_mean)};
    if (m->has_zeros && m->rest == 0) /* m is p */
        result.p_log = e->zero;
    else if (m->rest < SMALL_REST)
        result.p_log = log_of_small_rest(m, e, result.p_log);
    if (m->is_js) {
        vd of_q = product_or_zero(m, e, e->q, v_mul(rest, result.q_log));
        result.loss = v_add(product_or_zero(m, e, e->p, v_mul(share, result.p_log)), of_q);
    } else {
        vd of_p = product_or_zero(m, e, e->p, result.p_log);
        result.loss = m->are_whole ? v_fma(rest, v_sub(e->q, e->p), of_p) : of_p;
    }
    return result;
}

INLINE struct pair_result mix(const struct shares *m, const struct pair *e, vm close)
{
    if (!m_any(m_not(close)))
        return mix_close(m, e);
    struct pair_result result = mix_far(m, e);
    if (m_any(close)) {
        struct pair_result near = mix_close(m, e);
        result.loss = v_select(close, near.loss, result.loss);
        result.p_log = v_select(close, near.p_log, result.p_log);
        result.q_log = v_select(close, near.q_log, result.q_log);
    }
    return result;
}

/* The derivatives by p and q, over the operand's probability. Where m is p, whatever q is, there is none by q. */
INLINE void find_pair_grads(const struct shares *m, const struct pair *e,
                            const struct pair_result *result, vd *by_p, vd *by_q)
{
    const vd share = v_set(m->share), rest = v_set(m->rest);
    *by_p = v_mul(share, result->p_log), *by_q = v_mul(rest, result->q_log);
    if (!m->is_js) {
        vd factor = m->rest == 0 ? v_set(0) : v_div(rest, e->mean);
        *by_p = v_fma(factor, e->q, result->p_log);
        *by_q = v_mul(v_mul(factor, e->p), v_set(-1));
    }
}

/* ---- Blocks of doubles: operands that hold anything */

/* True of a subnormal number: few digits are left of an exponential that is one. */
INLINE vm is_subnormal(vd v) { return both(v_gt(v_set(DBL_MIN), v), v_gt(v, v_set(0))); }

/* `sign` is 1, or -1 if the ratio is log(q / p). */
INLINE struct pair load_block_pair(const struct shares *m, bool p_is_prob, bool q_is_prob,
                                   const double *ps, const double *qs, const double *log_ratio,
                                   double sign, size_t i, size_t left)
{
    vd p = load_part(ps + i, left, p_is_prob), q = load_part(qs + i, left, q_is_prob);
    struct pair e = {.p = p_is_prob ? p : prob_of_log(m->is_f64, p),
                     .q = q_is_prob ? q : prob_of_log(m->is_f64, q)};
    e.log_p = p_is_prob ? log_of_prob(m->is_f64, p) : p;
    e.log_q = q_is_prob ? log_of_prob(m->is_f64, q) : q;
    e.mean = v_fma(v_set(m->share), e.p, v_mul(v_set(m->rest), e.q));
    e.zero = v_mul(e.mean, v_set(0));
    vm small = both(v_gt(v_set(DBL_MIN), e.mean), v_gt(v_add(e.p, e.q), v_set(0)));
    small = m_or(small, m_or(is_subnormal(e.p), is_subnormal(e.q)));
    e.special = m_or(m_or(v_special(e.p), v_special(e.q)), small);
    e.d = ratio_of(m->is_f64, p_is_prob, q_is_prob, &e);
    if (log_ratio)
        e.d = v_mul(load_part(log_ratio + i, left, 0), v_set(sign));
    return e;
}

/* specials: what operands held where elements are special. */
struct specials {
    double x[LANES], t[LANES], lanes[LANES]; /* 1 where they are */
};

/* Computes special elements by the definition; those beside them keep their bits. */
static __attribute__((noinline)) void define_pairs(const struct kl_mixture *mixture,
                                                   const struct specials *from, double *q,
                                                   double *p, const struct kl_mixture_results *to,
                                                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (from->lanes[i] == 0)
            continue;
        struct kl_mixture_element term = kl_mixture_element(mixture, from->x[i], from->t[i]);
        q[i] = term.probs[KL_INPUT], p[i] = term.probs[KL_TARGET];
        if (to->losses)
            to->losses[i] = term.loss;
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            if (to->grads[operand])
                to->grads[operand][i] = term.grads[operand];
    }
}

/* Defines the special ones of `left` elements from i on, once all are stored. */
INLINE void store_specials(const struct kl_mixture *mixture, const struct specials *from, double *x,
                           double *t, const struct kl_mixture_results *to, size_t i, size_t left)
{
    const struct kl_mixture_results at = {
        .losses = to->losses ? to->losses + i : NULL,
        .grads = {to->grads[KL_INPUT] ? to->grads[KL_INPUT] + i : NULL,
                  to->grads[KL_TARGET] ? to->grads[KL_TARGET] + i : NULL}};
    define_pairs(mixture, from, x + i, t + i, &at, left < LANES ? left : LANES);
}

/* Stores the derivatives by what an operand holds, and its probabilities. */
INLINE void store_block_pair(const struct shares *m, const struct pair *e, bool is_prob, vd by,
                             vd prob, double *grads, double *probs, size_t i, size_t left)
{
    if (grads)
        store_part(grads + i, is_prob ? by : product_or_zero(m, e, prob, by), left);
    store_part(probs + i, prob, left);
}

INLINE void mixture_of(bool is_f64, bool is_js, const struct kl_mixture *mixture, double *x,
                       double *t, const struct kl_mixture_results *to, size_t n)
{
    const struct shares m = shares_of(is_f64, is_js, mixture->are_whole, true, mixture);
    int p = swaps(mixture) ? KL_INPUT : KL_TARGET, q = !p;
    double *const v[KL_OPERANDS] = {x, t};
    const vd max = max_close(is_f64), zero = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        struct pair e = load_block_pair(&m, mixture->are_probs[p], mixture->are_probs[q], v[p],
                                        v[q], to->log_ratio, p == KL_TARGET ? 1 : -1, i, left);
        bool any_special = m_any(e.special);
        struct specials specials;
        if (__builtin_expect(any_special, 0)) {
            v_store_f64(specials.x, load_part(x + i, left, 1));
            v_store_f64(specials.t, load_part(t + i, left, 1));
            v_store_f64(specials.lanes, v_select(e.special, v_set(1), zero));
        }
        vm close = both(v_gt(max, v_abs(e.d)), both(v_gt(e.p, zero), v_gt(e.q, zero)));
        struct pair_result result = mix(&m, &e, close);
        vd by_p, by_q;
        find_pair_grads(&m, &e, &result, &by_p, &by_q);
        if (to->losses)
            store_part(to->losses + i, result.loss, left);
        store_block_pair(&m, &e, mixture->are_probs[p], by_p, e.p, to->grads[p], v[p], i, left);
        store_block_pair(&m, &e, mixture->are_probs[q], by_q, e.q, to->grads[q], v[q], i, left);
        if (__builtin_expect(any_special, 0))
            store_specials(mixture, &specials, x, t, to, i, left);
    }
}

TARGET_ATTR static void mixture(const struct kl_mixture *mixture, double *x, double *t,
                                const struct kl_mixture_results *to, size_t n)
{
    if (mixture->is_f64)
        mixture_of(true, mixture->is_js, mixture, x, t, to, n);
    else
        mixture_of(false, mixture->is_js, mixture, x, t, to, n);
}

/* ---- Rows of logits. Logarithms below -700 count as -700: so neither p nor q is 0, m is not either, and all is finite. */

/* row_operand: one operand of a row: the logarithm of a probability is (v - offset) scale - log_sum_exp. */
struct row_operand {
    const char *v;
    vd offset, scale, log_sum_exp, inverse_sum;
    double *grads, *probs; /* or NULL */
    bool has_exps;
};

INLINE struct row_operand row_operand_of(const struct kl_mixture_row *row, const char *v,
                                         double *const grads[KL_OPERANDS],
                                         double *const probs[KL_OPERANDS], int operand)
{
    return (struct row_operand){v,
                                v_set(row->shifts[operand].offset),
                                v_set(row->shifts[operand].scale),
                                v_set(row->log_sum_exp[operand]),
                                v_set(exp(-row->log_sum_exp[operand])),
                                grads[operand],
                                probs[operand],
                                row->has_exps};
}

INLINE vd row_log(const struct row_operand *row, vd v)
{
    vd scaled = v_mul(v_sub(v, row->offset), row->scale);
    return v_max_nan(v_set(-700), v_sub(scaled, row->log_sum_exp));
}

/* MIN_PROB: exp(-700). */
#define MIN_PROB 0x1.14f2b0fb9307fp-1010

INLINE vd row_prob(bool is_f64, const struct row_operand *row, vd log, size_t i, size_t left)
{
    if (row->has_exps)
        return v_max_nan(v_set(MIN_PROB),
                         v_mul(load_part(row->probs + i, left, 0), row->inverse_sum));
    return is_f64 ? exp_f64(log) : exp_f32(log);
}

/* log(p / q) from the logits, so that their difference has no other rounding error than its own. */
INLINE vd row_ratio(const struct row_operand *of_p, const struct row_operand *of_q, vd p, vd q,
                    vd rounded)
{
    vd low, offsets = v_two_sum(of_p->offset, v_mul(of_q->offset, v_set(-1)), &low);
    vd d = logit_difference(p, q, offsets, low);
    d = v_sub(v_mul(d, of_p->scale), v_sub(of_p->log_sum_exp, of_q->log_sum_exp));
    return v_select(not_finite(d), rounded, d);
}

INLINE struct pair load_row_pair(const struct shares *m, const struct row_operand *of_p,
                                 const struct row_operand *of_q, vd p, vd q, size_t i, size_t left)
{
    struct pair e = {.log_p = row_log(of_p, p), .log_q = row_log(of_q, q)};
    e.p = row_prob(m->is_f64, of_p, e.log_p, i, left);
    e.q = row_prob(m->is_f64, of_q, e.log_q, i, left);
    e.d = v_sub(e.log_p, e.log_q);
    if (m->is_f64)
        e.d = row_ratio(of_p, of_q, p, q, e.d);
    e.mean = v_fma(v_set(m->share), e.p, v_mul(v_set(m->rest), e.q));
    return e;
}

/* row_totals: sums of lanes. */
struct row_totals {
    vd losses, by_p, by_q;
};

/* Adds `left` elements from i on, a vector at most. */
INLINE struct row_totals add_row_pairs(struct row_totals sums, enum kl_dtype dtype,
                                       const struct shares *m, const struct row_operand *of_p,
                                       const struct row_operand *of_q, size_t i, size_t left)
{
    const char *ps = of_p->v + i * size_of(dtype), *qs = of_q->v + i * size_of(dtype);
    bool whole = left >= LANES;
    vd p = whole ? load(dtype, ps) : load_elements_part(dtype, ps, left);
    vd q = whole ? load(dtype, qs) : load_elements_part(dtype, qs, left);
    struct pair e = load_row_pair(m, of_p, of_q, p, q, i, left);
    vm close = m_not(v_gt(v_abs(e.d), max_close(m->is_f64)));
    struct pair_result result = mix(m, &e, close);
    vd by_p, by_q;
    find_pair_grads(m, &e, &result, &by_p, &by_q);
    by_p = v_mul(by_p, e.p), by_q = v_mul(by_q, e.q);
    if (of_p->grads) {
        store_part(of_p->grads + i, by_p, left);
        store_part(of_p->probs + i, e.p, left);
    }
    if (of_q->grads) {
        store_part(of_q->grads + i, by_q, left);
        store_part(of_q->probs + i, e.q, left);
    }
    if (!whole) {
        vm real = first_lanes(left);
        result.loss = v_select(real, result.loss, v_set(0));
        by_p = v_select(real, by_p, v_set(0));
        by_q = v_select(real, by_q, v_set(0));
    }
    return (struct row_totals){v_add(sums.losses, result.loss), v_add(sums.by_p, by_p),
                               v_add(sums.by_q, by_q)};
}

/* Sums by blocks, whose sums are compensated. */
INLINE struct kl_mixture_sums mixture_row_of(enum kl_dtype dtype, bool is_js,
                                             const struct kl_mixture_row *row, const char *x,
                                             const char *t, double *const grads[KL_OPERANDS],
                                             double *const probs[KL_OPERANDS], size_t n)
{
    enum { BLOCK_VECTORS = 16 };
    const struct shares m = shares_of(dtype == KL_FLOAT64, is_js, true, false, row->mixture);
    int p = swaps(row->mixture) ? KL_INPUT : KL_TARGET, q = !p;
    const struct row_operand of_p = row_operand_of(row, p == KL_INPUT ? x : t, grads, probs, p),
                             of_q = row_operand_of(row, q == KL_INPUT ? x : t, grads, probs, q);
    const struct running none = {v_set(0), v_set(0)};
    struct running losses = none, by_p = none, by_q = none;
    for (size_t i = 0; i < n;) {
        size_t end = n - i < BLOCK_VECTORS * LANES ? n : i + BLOCK_VECTORS * LANES;
        struct row_totals sums = {v_set(0), v_set(0), v_set(0)};
        for (; end - i >= LANES; i += LANES)
            sums = add_row_pairs(sums, dtype, &m, &of_p, &of_q, i, LANES);
        if (i < end)
            sums = add_row_pairs(sums, dtype, &m, &of_p, &of_q, i, end - i);
        i = end;
        losses = add_block(losses, sums.losses);
        by_p = add_block(by_p, sums.by_p);
        by_q = add_block(by_q, sums.by_q);
    }
    struct kl_mixture_sums sums = {.losses = total_from(0, losses)};
    sums.grads[p] = total_from(0, by_p);
    sums.grads[q] = total_from(0, by_q);
    return sums;
}

#define MIXTURES(dtype, suffix)                                                                    \
    TARGET_ATTR static struct kl_mixture_sums mixture_row_##suffix(                                \
        const struct kl_mixture_row *row, const void *input, const void *target,                   \
        double *const grads[KL_OPERANDS], double *const probs[KL_OPERANDS], size_t n)              \
    {                                                                                              \
        return row->mixture->is_js                                                                 \
                   ? mixture_row_of(dtype, true, row, input, target, grads, probs, n)              \
                   : mixture_row_of(dtype, false, row, input, target, grads, probs, n);            \
    }
