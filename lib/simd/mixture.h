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

/* CLOSE_F64, CLOSE_F32: |d| up to which elements are close. Series are within 2^-50, and 2^-44, of themselves. */
#define CLOSE_F64 MAX_SERIES
#define CLOSE_F32 0.0625

INLINE vd close_exp_rest(bool is_f64, vd d)
{
    static const double inverse_factorials[] = {1 / 2.0,   1 / 6.0,    1 / 24.0,    1 / 120.0,
                                                1 / 720.0, 1 / 5040.0, 1 / 40320.0, 1 / 362880.0};
    if (is_f64)
        return close_series(d);
    return v_mul(v_mul(d, d), horner(inverse_factorials, 7, v_mul(d, v_set(-1))));
}

/* u - log1p(u) by the series of the inverse hyperbolic tangent: with z = u / (2 + u), log1p(u) is 2 (z + z^3 / 3 + ...), and u - 2 z
 * is u z. |u| is at most expm1(CLOSE), as is that of u / (1 + u). */
INLINE vd close_log_rest(bool is_f64, vd u)
{
    static const double odd[] = {2 / 3.0,  2 / 5.0,  2 / 7.0,  2 / 9.0,  2 / 11.0, 2 / 13.0,
                                 2 / 15.0, 2 / 17.0, 2 / 19.0, 2 / 21.0, 2 / 23.0, 2 / 25.0};
    vd z = v_div(u, v_add(u, v_set(2))), z2 = v_mul(z, z);
    vd tail = is_f64 ? horner(odd, 11, z2) : horner(odd, 4, z2);
    return v_mul(z, v_sub(u, v_mul(z2, tail)));
}

/* mixed: an element of both operands: p is of the one whose share is `share`. */
struct mixed {
    vd p, q, log_p, log_q, d, mean;
    vd zero; /* or NaN, if p or q is no number */
    vm special;
};

/* mixing: a call, and which operand p is. */
struct mixing {
    bool is_f64, is_js, are_whole;
    bool has_zeros; /* p or q may be 0 */
    int p, q;       /* operands */
    double share;
};

INLINE struct mixing mixing_of(bool is_f64, bool is_js, const struct kl_mixture *mixture)
{
    bool swaps = is_js && mixture->share < 0.5;
    return (struct mixing){.is_f64 = is_f64,
                           .is_js = is_js,
                           .are_whole = mixture->are_whole,
                           .p = swaps ? KL_INPUT : KL_TARGET,
                           .q = swaps ? KL_TARGET : KL_INPUT,
                           .share = swaps ? 1 - mixture->share : mixture->share};
}

INLINE vd mixed_exp(bool is_f64, vd v)
{
    const vd min = v_set(-700);
    return is_f64 ? row_exp(v) : v_select(v_gt(min, v), v_set(0), exp_f32(v_max_nan(min, v)));
}

INLINE vd mixed_log(vd v)
{
    const vd zero = v_set(0);
    return v_select(v_eq(v, zero), v_set(-INFINITY), log_minus_f64(v, zero));
}

INLINE vm both(vm a, vm b) { return m_not(m_or(m_not(a), m_not(b))); }

/* log(p / q) of probabilities or logarithms, each without a rounding error of its own. */
INLINE vd ratio_of(bool p_is_prob, bool q_is_prob, const struct mixed *e)
{
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

/* mixed_result: a loss, and log(p / m) and log(q / m). */
struct mixed_result {
    vd loss, p_log, q_log;
};

INLINE struct mixed_result mix_close(const struct mixing *m, const struct mixed *e)
{
    const vd one = v_set(1), rest = v_set(1 - m->share);
    vd h = close_exp_rest(m->is_f64, e->d), u = v_mul(rest, v_sub(h, e->d));
    vd r = close_log_rest(m->is_f64, u);
    struct mixed_result result = {.p_log = v_sub(r, u)};
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
INLINE vd mixed_product(const struct mixing *m, const struct mixed *e, vd a, vd b)
{
    vd product = v_mul(a, b);
    return m->has_zeros ? v_select(v_eq(a, v_set(0)), e->zero, product) : product;
}

INLINE struct mixed_result mix_far(const struct mixing *m, const struct mixed *e)
{
    const vd zero = v_set(0), share = v_set(m->share), rest = v_set(1 - m->share);
    vd log_mean = m->is_f64 ? log_minus_f64(e->mean, zero) : log_minus_f32(e->mean, zero);
    if (m->has_zeros)
        log_mean = v_select(v_eq(e->mean, zero), v_set(-INFINITY), log_mean);
    struct mixed_result result = {.p_log = v_sub(e->log_p, log_mean),
                                  .q_log = v_sub(e->log_q, log_mean)};
    if (m->share == 1) /* m is p */
        result.p_log = e->zero;
    vd of_p = mixed_product(m, e, e->p, result.p_log);
    if (m->is_js)
        result.loss = v_fma(share, of_p, v_mul(rest, mixed_product(m, e, e->q, result.q_log)));
    else
        result.loss = m->are_whole ? v_fma(rest, v_sub(e->q, e->p), of_p) : of_p;
    return result;
}

INLINE struct mixed_result mix(const struct mixing *m, const struct mixed *e, vm close)
{
    if (!m_any(m_not(close)))
        return mix_close(m, e);
    struct mixed_result result = mix_far(m, e);
    if (m_any(close)) {
        struct mixed_result near = mix_close(m, e);
        result.loss = v_select(close, near.loss, result.loss);
        result.p_log = v_select(close, near.p_log, result.p_log);
        result.q_log = v_select(close, near.q_log, result.q_log);
    }
    return result;
}

/* The derivatives by q and p, over the operand's probability. */
INLINE void find_mixed_grads(const struct mixing *m, const struct mixed *e,
                             const struct mixed_result *result, vd *by_p, vd *by_q)
{
    const vd share = v_set(m->share), rest = v_set(1 - m->share);
    *by_p = v_mul(share, result->p_log), *by_q = v_mul(rest, result->q_log);
    if (!m->is_js) {
        vd factor = v_div(rest, e->mean);
        *by_p = v_fma(factor, e->q, result->p_log);
        *by_q = v_mul(v_mul(factor, e->p), v_set(-1));
    }
}

/* ---- Blocks of doubles: operands that hold anything */

INLINE struct mixed load_mixed(const struct mixing *m, const bool *are_probs,
                               const double *const v[KL_OPERANDS], const double *log_ratio,
                               size_t i, size_t left)
{
    const bool p_is_prob = are_probs[m->p], q_is_prob = are_probs[m->q];
    vd p = load_part(v[m->p] + i, left, p_is_prob), q = load_part(v[m->q] + i, left, q_is_prob);
    struct mixed e = {.p = p_is_prob ? p : mixed_exp(m->is_f64, p),
                      .q = q_is_prob ? q : mixed_exp(m->is_f64, q)};
    e.log_p = p_is_prob ? mixed_log(p) : p;
    e.log_q = q_is_prob ? mixed_log(q) : q;
    e.mean = v_fma(v_set(m->share), e.p, v_mul(v_set(1 - m->share), e.q));
    e.zero = v_mul(e.mean, v_set(0));
    e.special = m_or(m_or(v_special(e.p), v_special(e.q)), v_special(e.mean));
    e.d = ratio_of(p_is_prob, q_is_prob, &e);
    if (log_ratio) {
        vd sign = v_set(m->p == KL_TARGET ? 1 : -1);
        e.d = v_mul(load_part(log_ratio + i, left, 0), sign);
    }
    return e;
}

/* Computes special elements by the definition, from copies of what the operands held. */
static __attribute__((noinline)) void define_mixed(const struct kl_mixture *mixture,
                                                   const double *x, const double *t, double *q,
                                                   double *p, const struct kl_mixed *to, size_t i,
                                                   size_t n)
{
    for (size_t j = 0; j < n; j++) {
        struct kl_mixed_term term = kl_mixed_term(mixture, x[j], t[j]);
        q[i + j] = term.probs[KL_INPUT], p[i + j] = term.probs[KL_TARGET];
        if (to->losses)
            to->losses[i + j] = term.loss;
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            if (to->grads[operand])
                to->grads[operand][i + j] = term.grads[operand];
    }
}

INLINE void mixture_of(bool is_f64, bool is_js, const struct kl_mixture *mixture, double *x,
                       double *t, const struct kl_mixed *to, size_t n)
{
    struct mixing m = mixing_of(is_f64, is_js, mixture);
    double *const v[KL_OPERANDS] = {x, t};
    const double *const from[KL_OPERANDS] = {x, t};
    const vd max = v_set(is_f64 ? CLOSE_F64 : CLOSE_F32), zero = v_set(0);
    m.has_zeros = true;
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        struct mixed e = load_mixed(&m, mixture->are_probs, from, to->log_ratio, i, left);
        if (__builtin_expect(m_any(e.special), 0)) {
            double xs[LANES], ts[LANES];
            store_part(xs, load_part(x + i, left, 1), LANES);
            store_part(ts, load_part(t + i, left, 1), LANES);
            define_mixed(mixture, xs, ts, x, t, to, i, left < LANES ? left : LANES);
            continue;
        }
        vm close = both(m_not(v_gt(v_abs(e.d), max)), both(v_gt(e.p, zero), v_gt(e.q, zero)));
        struct mixed_result result = mix(&m, &e, close);
        vd by[KL_OPERANDS], probs[KL_OPERANDS];
        probs[m.p] = e.p, probs[m.q] = e.q;
        find_mixed_grads(&m, &e, &result, &by[m.p], &by[m.q]);
        if (to->losses)
            store_part(to->losses + i, result.loss, left);
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            if (to->grads[operand])
                store_part(to->grads[operand] + i,
                           mixture->are_probs[operand]
                               ? by[operand]
                               : mixed_product(&m, &e, probs[operand], by[operand]),
                           left);
            store_part(v[operand] + i, probs[operand], left);
        }
    }
}

TARGET_ATTR static void mixture(const struct kl_mixture *mixture, double *x, double *t,
                                const struct kl_mixed *to, size_t n)
{
    if (mixture->is_f64)
        mixture_of(true, mixture->is_js, mixture, x, t, to, n);
    else
        mixture_of(false, mixture->is_js, mixture, x, t, to, n);
}

/* ---- Rows of logits. Logarithms below -700 count as -700: so neither p nor q is 0, m is not either, and all is finite. */

INLINE vd row_log(const struct kl_mixture_row *row, int operand, vd v)
{
    vd log = v_sub(shifted(v, row->shifts[operand]), v_set(row->log_sum_exp[operand]));
    return v_max_nan(v_set(-700), log);
}

/* log(p / q) from the logits, so that their difference has no other rounding error than its own. */
INLINE vd row_ratio(const struct mixing *m, const struct kl_mixture_row *row, vd p, vd q,
                    vd rounded)
{
    const struct kl_shift *of_p = &row->shifts[m->p], *of_q = &row->shifts[m->q];
    vd d = v_sub(v_sub(p, q), v_set(of_p->offset - of_q->offset));
    d = v_sub(v_mul(d, v_set(of_p->scale)), v_set(row->log_sum_exp[m->p] - row->log_sum_exp[m->q]));
    return v_select(not_finite(d), rounded, d);
}

INLINE struct mixed load_row(const struct mixing *m, const struct kl_mixture_row *row, vd x, vd t)
{
    const vd v[KL_OPERANDS] = {x, t};
    struct mixed e = {.log_p = row_log(row, m->p, v[m->p]), .log_q = row_log(row, m->q, v[m->q])};
    e.p = m->is_f64 ? exp_f64(e.log_p) : exp_f32(e.log_p);
    e.q = m->is_f64 ? exp_f64(e.log_q) : exp_f32(e.log_q);
    e.d = v_sub(e.log_p, e.log_q);
    if (m->is_f64)
        e.d = row_ratio(m, row, v[m->p], v[m->q], e.d);
    e.mean = v_fma(v_set(m->share), e.p, v_mul(v_set(1 - m->share), e.q));
    e.zero = v_mul(e.mean, v_set(0));
    return e;
}

/* mixed_sums: sums of lanes. */
struct mixed_sums {
    vd losses, by[KL_OPERANDS];
};

/* Adds `left` elements from i on, a vector at most. */
INLINE struct mixed_sums add_mixed(struct mixed_sums sums, enum kl_dtype dtype,
                                   const struct mixing *m, const struct kl_mixture_row *row,
                                   const char *x, const char *t, double *const grads[KL_OPERANDS],
                                   double *const probs[KL_OPERANDS], size_t i, size_t left)
{
    size_t at = i * size_of(dtype);
    bool whole = left >= LANES;
    vd xs = whole ? load(dtype, x + at) : load_elements_part(dtype, x + at, left);
    vd ts = whole ? load(dtype, t + at) : load_elements_part(dtype, t + at, left);
    struct mixed e = load_row(m, row, xs, ts);
    vm close = m_not(v_gt(v_abs(e.d), v_set(m->is_f64 ? CLOSE_F64 : CLOSE_F32)));
    struct mixed_result result = mix(m, &e, close);
    vd by[KL_OPERANDS], ps[KL_OPERANDS];
    find_mixed_grads(m, &e, &result, &by[m->p], &by[m->q]);
    ps[m->p] = e.p, ps[m->q] = e.q;
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        by[operand] = v_mul(by[operand], ps[operand]);
        if (grads[operand]) {
            store_part(grads[operand] + i, by[operand], left);
            store_part(probs[operand] + i, ps[operand], left);
        }
    }
    if (!whole) {
        vm real = first_lanes(left);
        result.loss = v_select(real, result.loss, v_set(0));
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            by[operand] = v_select(real, by[operand], v_set(0));
    }
    return (struct mixed_sums){
        v_add(sums.losses, result.loss),
        {v_add(sums.by[KL_INPUT], by[KL_INPUT]), v_add(sums.by[KL_TARGET], by[KL_TARGET])}};
}

/* Sums by blocks, whose sums are compensated. */
INLINE struct kl_mixture_sums mixture_row_of(enum kl_dtype dtype, bool is_js,
                                             const struct kl_mixture_row *row, const char *x,
                                             const char *t, double *const grads[KL_OPERANDS],
                                             double *const probs[KL_OPERANDS], size_t n)
{
    enum { BLOCK_VECTORS = 16 };
    const struct mixing m = mixing_of(dtype == KL_FLOAT64, is_js, row->mixture);
    const vd zero = v_set(0);
    struct running losses = {zero, zero}, by[KL_OPERANDS] = {{zero, zero}, {zero, zero}};
    for (size_t i = 0; i < n;) {
        size_t end = n - i < BLOCK_VECTORS * LANES ? n : i + BLOCK_VECTORS * LANES;
        struct mixed_sums sums = {zero, {zero, zero}};
        for (; i < end; i += LANES)
            sums = add_mixed(sums, dtype, &m, row, x, t, grads, probs, i, end - i);
        i = end;
        losses = add_block(losses, sums.losses);
        by[KL_INPUT] = add_block(by[KL_INPUT], sums.by[KL_INPUT]);
        by[KL_TARGET] = add_block(by[KL_TARGET], sums.by[KL_TARGET]);
    }
    return (struct kl_mixture_sums){total_of(losses),
                                    {total_of(by[KL_INPUT]), total_of(by[KL_TARGET])}};
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
