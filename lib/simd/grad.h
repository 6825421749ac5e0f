/* Derivatives of losses, over the vocabulary of template.h, which includes this. */

/* a - b + 1 with the errors of both steps, which show where it cancels. */
FN vd difference_and_one(vd a, vd b)
{
    vd one = v_set(1), difference = v_sub(a, b), sum = v_add(difference, one);
    vd from_a = v_add(difference, b), back = v_sub(sum, one);
    vd error = v_sub(v_sub(a, from_a), v_sub(b, v_sub(from_a, difference)));
    error = v_add(error, v_add(v_sub(difference, back), v_sub(one, v_sub(sum, back))));
    return v_select(not_finite(error), sum, v_add(sum, error));
}

/* The derivative of a loss by one operand; what `rare` lanes hold is of no meaning. */
FN vd grad_of(bool log_target, enum kl_rule rule, enum kl_operand by, vd x, vd t, vm *rare)
{
    vd zero = v_set(0), one = v_set(1);
    *rare = v_gt(zero, zero);
    if (!log_target && by == KL_INPUT) {
        vd grad = v_mul(t, v_set(-1));
        return rule == KL_PROB_ONEFLOW ? v_select(v_gt(t, zero), grad, v_set(-0.0)) : grad;
    }
    if (!log_target) {
        vd at_zero = v_set(rule == KL_PROB_PYTORCH ? NAN : -INFINITY);
        *rare = v_rare(t);
        return v_select(v_eq(t, zero), at_zero, v_add(log_minus_wide(t, x), one));
    }
    vd d = by == KL_INPUT ? v_set(-1) : difference_and_one(t, x);
    vd far = v_mul(d, d);
    vm near = v_gt(v_set(700), v_abs(t));
    if (!m_any(m_or(m_not(near), m_not(v_gt(v_set(DBL_MAX), far)))))
        return v_mul(exp_wide(t), d);
    *rare = v_gt(far, v_set(DBL_MAX)); /* an infinite difference of finite numbers */
    vd grad = exp_times_anywhere(t, d);
    if (by == KL_INPUT)
        return grad;
    bool vanishes = rule == KL_LOG_MATH || rule == KL_LOGIT_ONEFLOW;
    vd at_minus_infinity = v_set(vanishes ? 0 : NAN);
    return v_select(v_eq(t, v_set(-INFINITY)), at_minus_infinity, grad);
}

/* One vector of each; the rare lanes by the definition. */
FN void grad_block(bool log_target, enum kl_rule rule, enum kl_operand by, const double *input,
                   const double *target, const double *grad_output, double *grads)
{
    vd x = v_load_f64(input), t = v_load_f64(target);
    vm rare;
    v_store_f64(grads, v_mul(grad_of(log_target, rule, by, x, t, &rare), v_load_f64(grad_output)));
    if (!m_any(rare))
        return;
    for (size_t lane = 0; lane < LANES; lane++)
        grads[lane] = kl_grad_term(rule, by, input[lane], target[lane]) * grad_output[lane];
}

FN void grads_of(bool log_target, enum kl_rule rule, enum kl_operand by, const double *input,
                 const double *target, const double *grad_output, double *grads, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        grad_block(log_target, rule, by, input + i, target + i, grad_output + i, grads + i);
    if (i == n)
        return;
    double rest[4][LANES] = {{0}};
    memcpy(rest[0], input + i, (n - i) * sizeof *input);
    memcpy(rest[1], target + i, (n - i) * sizeof *target);
    memcpy(rest[2], grad_output + i, (n - i) * sizeof *grad_output);
    grad_block(log_target, rule, by, rest[0], rest[1], rest[2], rest[3]);
    memcpy(grads + i, rest[3], (n - i) * sizeof *grads);
}

#define GRAD(form, log_target)                                                                     \
    TARGET static void grad_##form(enum kl_rule rule, enum kl_operand by, const double *input,     \
                                   const double *target, const double *grad_output, double *grads, \
                                   size_t n)                                                       \
    {                                                                                              \
        grads_of(log_target, rule, by, input, target, grad_output, grads, n);                      \
    }
