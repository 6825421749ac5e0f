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
    vd p, q, log_p, log_q, d;
    vm special;
};

/* mixing: a call, and which operand p is. */
struct mixing {
    const struct kl_mixture *mixture;
    bool is_f64;
    int p, q; /* operands */
    double share;
};

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

INLINE struct mixed load_mixed(const struct mixing *m, const double *const v[KL_OPERANDS],
                               const double *log_ratio, size_t i, size_t left)
{
    const bool p_is_prob = m->mixture->are_probs[m->p], q_is_prob = m->mixture->are_probs[m->q];
    vd p = load_part(v[m->p] + i, left, p_is_prob), q = load_part(v[m->q] + i, left, q_is_prob);
    struct mixed e = {.special = v_gt(v_set(0), v_set(0))};
    e.p = p_is_prob ? p : mixed_exp(m->is_f64, p);
    e.q = q_is_prob ? q : mixed_exp(m->is_f64, q);
    e.log_p = p_is_prob ? mixed_log(p) : p;
    e.log_q = q_is_prob ? mixed_log(q) : q;
    e.special = m_or(v_special(e.p), v_special(e.q));
    e.d = ratio_of(p_is_prob, q_is_prob, &e);
    if (log_ratio) {
        vd sign = v_set(m->p == KL_TARGET ? 1 : -1);
        e.d = v_mul(load_part(log_ratio + i, left, 0), sign);
    }
    return e;
}

/* mixed_result: a loss, log(p / m) and log(q / m). */
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
    if (m->mixture->is_js) {
        vd of_q = v_sub(v_mul(e->d, e->d), v_mul(h, v_add(one, e->d)));
        vd of_m = v_sub(v_mul(r, v_add(one, u)), v_mul(u, u));
        result.loss = v_mul(e->p, v_fma(rest, of_q, of_m));
    } else {
        result.loss = v_mul(e->p, m->mixture->are_whole ? r : result.p_log);
    }
    return result;
}

/* a b, and 0 where a is, whatever b is. */
INLINE vd mixed_product(vd a, vd b, vd zero)
{
    return v_select(v_eq(a, v_set(0)), zero, v_mul(a, b));
}

INLINE struct mixed_result mix_far(const struct mixing *m, const struct mixed *e, vd mean, vd zero)
{
    const vd share = v_set(m->share), rest = v_set(1 - m->share);
    vd log_mean =
        m->is_f64 ? mixed_log(mean)
                  : v_select(v_eq(mean, v_set(0)), v_set(-INFINITY), log_minus_f32(mean, v_set(0)));
    struct mixed_result result = {.p_log = v_sub(e->log_p, log_mean),
                                  .q_log = v_sub(e->log_q, log_mean)};
    if (m->share == 1) /* m is p */
        result.p_log = zero;
    vd of_p = mixed_product(e->p, result.p_log, zero);
    if (m->mixture->is_js)
        result.loss = v_fma(share, of_p, v_mul(rest, mixed_product(e->q, result.q_log, zero)));
    else
        result.loss = m->mixture->are_whole ? v_fma(rest, v_sub(e->q, e->p), of_p) : of_p;
    return result;
}

/* The derivatives by p and q, or by their logarithms. */
INLINE void store_mixed_grads(const struct mixing *m, const struct mixed *e,
                              const struct mixed_result *result, vd mean, vd zero,
                              double *const to[KL_OPERANDS], size_t i, size_t left)
{
    const vd share = v_set(m->share), rest = v_set(1 - m->share);
    const struct kl_mixture *mixture = m->mixture;
    vd by_p = v_mul(share, result->p_log), by_q = v_mul(rest, result->q_log);
    if (!mixture->is_js) {
        by_p = v_add(result->p_log, v_mul(rest, v_div(e->q, mean)));
        by_q = v_mul(v_mul(rest, v_set(-1)), v_div(e->p, mean));
    }
    if (to[m->p])
        store_part(to[m->p] + i, mixture->are_probs[m->p] ? by_p : mixed_product(e->p, by_p, zero),
                   left);
    if (to[m->q])
        store_part(to[m->q] + i, mixture->are_probs[m->q] ? by_q : mixed_product(e->q, by_q, zero),
                   left);
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

INLINE void mix(bool is_f64, const struct kl_mixture *mixture, double *x, double *t,
                const struct kl_mixed *to, size_t n)
{
    bool swaps = mixture->is_js && mixture->share < 0.5;
    const struct mixing m = {.mixture = mixture,
                             .is_f64 = is_f64,
                             .p = swaps ? KL_INPUT : KL_TARGET,
                             .q = swaps ? KL_TARGET : KL_INPUT,
                             .share = swaps ? 1 - mixture->share : mixture->share};
    double *const v[KL_OPERANDS] = {x, t};
    const double *const from[KL_OPERANDS] = {x, t};
    const vd max = v_set(is_f64 ? CLOSE_F64 : CLOSE_F32), none = v_set(0);
    for (size_t i = 0; i < n; i += LANES) {
        size_t left = n - i;
        struct mixed e = load_mixed(&m, from, to->log_ratio, i, left);
        vd mean = v_fma(v_set(m.share), e.p, v_mul(v_set(1 - m.share), e.q));
        vd zero = v_mul(mean, none); /* NaN if an operand is */
        vm close = both(m_not(v_gt(v_abs(e.d), max)), both(v_gt(e.p, none), v_gt(e.q, none)));
        vm special = m_or(e.special, v_special(mean));
        if (__builtin_expect(m_any(special), 0)) {
            double xs[LANES], ts[LANES];
            store_part(xs, load_part(x + i, left, 1), LANES);
            store_part(ts, load_part(t + i, left, 1), LANES);
            define_mixed(mixture, xs, ts, x, t, to, i, left < LANES ? left : LANES);
            continue;
        }
        struct mixed_result result;
        if (!m_any(m_not(close))) {
            result = mix_close(&m, &e);
        } else {
            result = mix_far(&m, &e, mean, zero);
            if (m_any(close)) {
                struct mixed_result near = mix_close(&m, &e);
                result.loss = v_select(close, near.loss, result.loss);
                result.p_log = v_select(close, near.p_log, result.p_log);
                result.q_log = v_select(close, near.q_log, result.q_log);
            }
        }
        if (to->losses)
            store_part(to->losses + i, result.loss, left);
        if (to->grads[KL_INPUT] || to->grads[KL_TARGET])
            store_mixed_grads(&m, &e, &result, mean, zero, to->grads, i, left);
        store_part(v[m.p] + i, e.p, left);
        store_part(v[m.q] + i, e.q, left);
    }
}

TARGET_ATTR static void mixture(const struct kl_mixture *mixture, double *x, double *t,
                                const struct kl_mixed *to, size_t n)
{
    if (mixture->is_f64)
        mix(true, mixture, x, t, to, n);
    else
        mix(false, mixture, x, t, to, n);
}
