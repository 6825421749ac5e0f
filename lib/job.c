#include "lib/job.h"

enum kl_rule kl_rule_of(const struct kl_plan *plan)
{
    static const enum kl_rule rules[][3] = {
        [KL_PROB] = {KL_PROB_PYTORCH, KL_PROB_ONEFLOW, KL_PROB_MATH},
        [KL_LOG_PROB] = {KL_LOG_PYTORCH, KL_LOG_PYTORCH, KL_LOG_MATH},
        [KL_LOGIT] = {KL_LOGIT_PYTORCH, KL_LOGIT_ONEFLOW, KL_LOG_MATH},
    };
    return rules[plan->spaces[KL_TARGET]][plan->options.compat];
}

/* Padding of 1 for probabilities, which no kernel takes longer for. */
struct kl_numbers kl_input_of(const struct kl_plan *plan)
{
    return (struct kl_numbers){KL_OF_INPUT, plan->input.dtype, false, plan->input.data,
                               plan->spaces[KL_INPUT] == KL_PROB};
}

struct kl_numbers kl_target_of(const struct kl_plan *plan)
{
    return (struct kl_numbers){KL_OF_TARGET, plan->target.dtype, false, plan->target.data,
                               plan->spaces[KL_TARGET] == KL_PROB};
}

bool kl_is_plain(const struct kl_plan *plan)
{
    return plan->spaces[KL_INPUT] == KL_LOG_PROB && plan->spaces[KL_TARGET] != KL_LOGIT;
}

const void *kl_at(const struct kl_numbers *numbers, size_t index)
{
    return (const char *)numbers->data + index * kl_dtype_size(numbers->dtype);
}

/* Widens operands of different dtypes, in blocks that stay in the first-level cache. */
static void widen(const struct kl_job *job, int operand, size_t start, size_t n, double *to)
{
    const struct kl_numbers *numbers = &job->operands[operand];
    job->kernel->widen[numbers->dtype](kl_at(numbers, start), to, n);
}

struct kl_sum kl_sum_elements(const struct kl_job *job, size_t input_at, size_t target_at, size_t n)
{
    const struct kl_numbers *input = &job->operands[KL_INPUT], *target = &job->operands[KL_TARGET];
    bool is_log = kl_rule_is_log(job->rule);
    if (input->dtype == target->dtype)
        return job->kernel->sum[input->dtype][is_log](job->rule, kl_at(input, input_at),
                                                      kl_at(target, target_at), n);
    double x[KL_BLOCK], t[KL_BLOCK];
    struct kl_sum total = {0, 0};
    for (size_t i = 0; i < n; i += KL_BLOCK) {
        size_t length = n - i < KL_BLOCK ? n - i : KL_BLOCK;
        widen(job, 0, input_at + i, length, x);
        widen(job, 1, target_at + i, length, t);
        kl_sum_merge(&total, job->kernel->sum[KL_FLOAT64][is_log](job->rule, x, t, length));
    }
    return total;
}
