/* Derivatives of losses, over the vocabulary of template.h, which includes this. */

/* a - b + 1 with the errors of both steps, which show where it cancels. */
INLINE vd difference_and_one(vd a, vd b)
{
    vd difference = v_sub(a, b), from_a = v_add(difference, b), last;
    vd error = v_sub(v_sub(a, from_a), v_sub(b, v_sub(from_a, difference)));
    vd sum = v_two_sum(v_set(1), difference, &last);
    error = v_add(error, last);
    return v_select(not_finite(error), sum, v_add(sum, error));
}

/* log t - x + 1. By log_minus_f32 it errs by 2^-53 of x, or of 8; where it is small, it is computed again
 * by log_minus_f64. */
INLINE vd log_grad_by_target(enum kl_dtype dtype, vd x, vd t)
{
    const vd one = v_set(1), small = v_set(0x1p-9);
    if (dtype == KL_FLOAT64)
        return v_add(log_minus_f64(t, x), one);
    vd grad = v_add(log_minus_f32(t, x), one);
    vm cancels = v_gt(small, v_abs(grad));
    if (__builtin_expect(m_any(cancels), 0))
        grad = v_select(cancels, v_add(log_minus_f64(t, x), one), grad);
    return grad;
}

/* The derivatives of a loss by the operands that are wanted; special lanes hold
 * nothing of use. */
struct derivatives {
    vd by[KL_OPERANDS];
    vm special;
};

INLINE struct derivatives prob_derivatives(enum kl_dtype dtype, const bool *wanted,
                                           enum kl_rule rule, vd x, vd t)
{
    const vd zero = v_set(0);
    struct derivatives d = {{v_mul(t, v_set(-1)), zero}, v_gt(zero, zero)};
    if (rule == KL_PROB_ONEFLOW)
        d.by[KL_INPUT] = v_select(v_gt(t, zero), d.by[KL_INPUT], v_set(-0.0));
    if (wanted[KL_TARGET]) {
        vd at_zero = v_set(rule == KL_PROB_PYTORCH ? NAN : -INFINITY);
        d.by[KL_TARGET] = v_select(v_eq(t, zero), at_zero, log_grad_by_target(dtype, x, t));
        d.special = v_special(t);
    }
    return d;
}

INLINE struct derivatives log_derivatives(enum kl_dtype dtype, const bool *wanted,
                                          enum kl_rule rule, vd x, vd t)
{
    const vd zero = v_set(0), minus_one = v_set(-1), max = v_set(DBL_MAX);
    bool is_f64 = dtype == KL_FLOAT64;
    struct derivatives d = {{zero, zero}, v_gt(zero, zero)};
    vd difference = !wanted[KL_TARGET] ? zero
                    : is_f64           ? difference_and_one(t, x)
                                       : v_add(v_sub(t, x), v_set(1));
    vd far = v_mul(difference, difference);
    vm normal = v_gt(v_set(700), v_abs(t));
    if (!m_any(m_or(m_not(normal), m_not(v_gt(max, far))))) {
        vd p = is_f64 ? exp_f64(t) : exp_f32(t);
        return (struct derivatives){{v_mul(p, minus_one), v_mul(p, difference)}, d.special};
    }
    if (wanted[KL_INPUT])
        d.by[KL_INPUT] = is_f64 ? exp_times_low(t, minus_one) : exp_times_full_range(t, minus_one);
    if (!wanted[KL_TARGET])
        return d;
    bool vanishes = rule == KL_LOG_MATH || rule == KL_LOGIT_ONEFLOW;
    d.special = v_gt(far, max); /* an infinite difference of finite numbers */
    d.by[KL_TARGET] =
        v_select(v_eq(t, v_set(-INFINITY)), v_set(vanishes ? 0 : NAN),
                 is_f64 ? exp_times_low(t, difference) : exp_times_full_range(t, difference));
    return d;
}

static double grad_by_input(enum kl_rule rule, double x, double t)
{
    return kl_grad_term(rule, KL_INPUT, x, t);
}

static double grad_by_target(enum kl_rule rule, double x, double t)
{
    return kl_grad_term(rule, KL_TARGET, x, t);
}

/* The derivatives by one operand, times factors, and 0 of masked elements; those of special lanes by the
 * definition. Lanes are special where derivatives by the target are wanted. */
INLINE void store_grads(enum kl_dtype dtype, enum kl_rule rule, int operand, bool by_target,
                        const struct derivatives *d, vd x, vd t, vd factor, const vm *unmasked,
                        const struct kl_grads *grads, size_t i, size_t left)
{
    enum kl_dtype to_dtype = grads->is_f64[operand] ? KL_FLOAT64 : dtype;
    char *to = grads->by[operand];
    vd grad = v_mul(d->by[operand], factor);
    if (by_target && __builtin_expect(m_any(d->special), 0)) {
        vd defined = define_special(d->special, x, x, t,
                                    operand == KL_INPUT ? grad_by_input : grad_by_target, rule);
        grad = v_select(d->special, v_mul(defined, factor), grad);
    }
    if (unmasked)
        grad = v_select(*unmasked, grad, v_set(0));
    store_elements_part(to_dtype, to + i * size_of(to_dtype), grad, left);
}

/* Computes `left` derivatives from i on, a vector at most. */
INLINE void grads_block(enum kl_dtype dtype, bool log_target, const bool *wanted, enum kl_rule rule,
                        const struct kl_elements *e, const struct kl_grads *grads, size_t i,
                        size_t left)
{
    const char *xs = e->input, *ts = e->target;
    vd x = load_elements_part(dtype, xs + i * size_of(dtype), left);
    vd t = load_elements_part(dtype, ts + i * size_of(dtype), left);
    vd factor = grads->factors ? load_part(grads->factors + i, left, 0) : v_set(grads->factor);
    vm unmasked;
    if (e->mask) { /* masked elements have no part in the choice of a formula */
        unmasked = load_mask_part(e->mask + i, left);
        x = v_select(unmasked, x, v_set(0));
        t = v_select(unmasked, t, v_set(log_target ? 0 : 1));
    }
    struct derivatives d = log_target ? log_derivatives(dtype, wanted, rule, x, t)
                                      : prob_derivatives(dtype, wanted, rule, x, t);
    /* Not a loop, for which gcc keeps the derivatives in memory: those by the input took 1.4 times as long. */
    const vm *counted = e->mask ? &unmasked : NULL;
    const bool by_target = wanted[KL_TARGET];
    if (wanted[KL_INPUT])
        store_grads(dtype, rule, KL_INPUT, by_target, &d, x, t, factor, counted, grads, i, left);
    if (by_target)
        store_grads(dtype, rule, KL_TARGET, by_target, &d, x, t, factor, counted, grads, i, left);
}

INLINE void grads_of(enum kl_dtype dtype, bool log_target, bool by_input, bool by_target,
                     enum kl_rule rule, const struct kl_elements *elements,
                     const struct kl_grads *to, size_t n)
{
    const struct kl_elements e = *elements; /* copies, which no store may change */
    const struct kl_grads grads = *to;
    const bool wanted[KL_OPERANDS] = {by_input, by_target};
    size_t i = 0;
    for (; n - i >= LANES; i += LANES)
        grads_block(dtype, log_target, wanted, rule, &e, &grads, i, LANES);
    if (i < n)
        grads_block(dtype, log_target, wanted, rule, &e, &grads, i, n - i);
}

#define GRADS_FORM(dtype, suffix, form, log_target)                                                \
    TARGET_ATTR static void grads_##suffix##_##form(                                               \
        enum kl_rule rule, const struct kl_elements *e, const struct kl_grads *grads, size_t n)    \
    {                                                                                              \
        if (grads->by[KL_INPUT] && grads->by[KL_TARGET])                                           \
            grads_of(dtype, log_target, true, true, rule, e, grads, n);                            \
        else if (grads->by[KL_INPUT])                                                              \
            grads_of(dtype, log_target, true, false, rule, e, grads, n);                           \
        else                                                                                       \
            grads_of(dtype, log_target, false, true, rule, e, grads, n);                           \
    }

#define GRADS(dtype, suffix)                                                                       \
    GRADS_FORM(dtype, suffix, prob, false)                                                         \
    GRADS_FORM(dtype, suffix, log, true)
