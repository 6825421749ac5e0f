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
FN vd slope_of(bool log_target, enum kl_rule rule, enum kl_operand by, vd x, vd t, vm *rare)
{
    vd zero = v_set(0), one = v_set(1);
    *rare = v_gt(zero, zero);
    if (!log_target && by == KL_INPUT) {
        vd slope = v_mul(t, v_set(-1));
        return rule == KL_PROB_ONEFLOW ? v_select(v_gt(t, zero), slope, v_set(-0.0)) : slope;
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
    vd slope = exp_times_anywhere(t, d);
    if (by == KL_INPUT)
        return slope;
    bool vanishes = rule == KL_LOG_MATH || rule == KL_LOGIT_ONEFLOW;
    vd at_minus_infinity = v_set(vanishes ? 0 : NAN);
    return v_select(v_eq(t, v_set(-INFINITY)), at_minus_infinity, slope);
}

/* One vector of each; the rare lanes by the definition. */
FN void slope_block(bool log_target, enum kl_rule rule, enum kl_operand by, const double *input,
                    const double *target, const double *grad_output, double *slopes)
{
    vd x = v_load_f64(input), t = v_load_f64(target);
    vm rare;
    v_store_f64(slopes,
                v_mul(slope_of(log_target, rule, by, x, t, &rare), v_load_f64(grad_output)));
    if (!m_any(rare))
        return;
    for (size_t lane = 0; lane < LANES; lane++)
        slopes[lane] = kl_slope(rule, by, input[lane], target[lane]) * grad_output[lane];
}

FN void slopes_of(bool log_target, enum kl_rule rule, enum kl_operand by, const double *input,
                  const double *target, const double *grad_output, double *slopes, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        slope_block(log_target, rule, by, input + i, target + i, grad_output + i, slopes + i);
    if (i == n)
        return;
    double rest[4][LANES] = {{0}};
    memcpy(rest[0], input + i, (n - i) * sizeof *input);
    memcpy(rest[1], target + i, (n - i) * sizeof *target);
    memcpy(rest[2], grad_output + i, (n - i) * sizeof *grad_output);
    slope_block(log_target, rule, by, rest[0], rest[1], rest[2], rest[3]);
    memcpy(slopes + i, rest[3], (n - i) * sizeof *slopes);
}

#define SLOPE(form, log_target)                                                                    \
    TARGET static void slope_##form(enum kl_rule rule, enum kl_operand by, const double *input,    \
                                    const double *target, const double *grad_output,               \
                                    double *slopes, size_t n)                                      \
    {                                                                                              \
        slopes_of(log_target, rule, by, input, target, grad_output, slopes, n);                    \
    }
