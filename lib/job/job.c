#include "lib/job/job.h"

#include "lib/plan/problem.h"

bool kl_check_stopped(const struct kl_plan *plan, struct kl_problem *problem)
{
    return !kl_is_stopped(plan) ||
           kl_fail(problem, KL_NO_OPERAND, "stopped", "the call was stopped");
}

struct kl_array_view kl_array_of(const struct kl_plan *plan, enum kl_array array)
{
    const struct kl_tensor *tensor = array == KL_OF_INPUT    ? &plan->input
                                     : array == KL_OF_TARGET ? &plan->target
                                                             : &plan->weight;
    if (array == KL_OF_MASK)
        return (struct kl_array_view){KL_OF_MASK, KL_FLOAT64, true, plan->mask.data};
    return (struct kl_array_view){array, tensor->dtype, false, tensor->data};
}

struct kl_job kl_job_of(const struct kl_plan *plan, struct kl_layout *layout)
{
    static const enum kl_rule rules[][3] = {
        [KL_PROB] = {KL_PROB_PYTORCH, KL_PROB_ONEFLOW, KL_PROB_MATH},
        [KL_LOG_PROB] = {KL_LOG_PYTORCH, KL_LOG_PYTORCH, KL_LOG_MATH},
        [KL_LOGIT] = {KL_LOGIT_PYTORCH, KL_LOGIT_ONEFLOW, KL_LOG_MATH},
    };
    double of_base = plan->options.base == KL_BITS ? 0x1.71547652b82fep+0 : 1; /* 1 / ln 2 */
    bool is_scaled = plan->options.scale == KL_TEMPERATURE_SQUARED;
    enum kl_compat compat = kl_is_mixture(plan) ? KL_MATH : plan->options.compat;
    return (struct kl_job){
        .plan = plan,
        .kernel = kl_kernel(),
        .rule = rules[plan->spaces[plan->divergence == KL_REVERSE ? KL_INPUT : KL_TARGET]][compat],
        .layout = layout,
        .operands = {kl_array_of(plan, KL_OF_INPUT), kl_array_of(plan, KL_OF_TARGET)},
        .weight = kl_array_of(plan, KL_OF_WEIGHT),
        .mask = kl_array_of(plan, KL_OF_MASK),
        .unit = is_scaled ? of_base * (plan->temperature * plan->temperature) : of_base,
        .total = {.lock = PTHREAD_MUTEX_INITIALIZER, .base = plan->options.base},
        .divisor = 1,
    };
}

bool kl_is_direct(const struct kl_plan *plan)
{
    return plan->divergence == KL_FORWARD && plan->spaces[KL_INPUT] == KL_LOG_PROB &&
           plan->spaces[KL_TARGET] != KL_LOGIT;
}

void kl_set_factors(const struct kl_job *job, const struct kl_tile *tile, double *factors,
                    double *block, struct kl_grads *grads)
{
    const struct kl_array_view *const arrays[] = {&job->grad_output, &job->weight};
    struct kl_tile loaded = *tile;
    bool one_factor = true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i]->data)
            one_factor &=
                tile->rows == 1 && kl_is_constant_along_rows(job->layout, arrays[i]->array);
    if (one_factor)
        loaded.rows = loaded.length = 1;
    size_t n = kl_tile_size(&loaded);
    kl_fill(factors, job->factor, n);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i]->data)
            job->kernel->multiply(
                factors, kl_tile_doubles(job->kernel, job->layout, &loaded, arrays[i], block), n);
    grads->factor = factors[0];
    grads->factors = one_factor ? NULL : factors;
}

void kl_weigh_losses(const struct kl_job *job, double *losses, const double *weights,
                     const unsigned char *mask, size_t n)
{
    if (weights)
        job->kernel->multiply(losses, weights, n);
    if (mask)
        job->kernel->apply_mask(losses, mask, 0, n);
}
