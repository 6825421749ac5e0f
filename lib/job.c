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

struct kl_numbers kl_input_of(const struct kl_plan *plan)
{
    return (struct kl_numbers){KL_OF_INPUT, plan->input.dtype, false, plan->input.data};
}

struct kl_numbers kl_target_of(const struct kl_plan *plan)
{
    return (struct kl_numbers){KL_OF_TARGET, plan->target.dtype, false, plan->target.data};
}

bool kl_is_plain(const struct kl_plan *plan)
{
    return plan->spaces[KL_INPUT] == KL_LOG_PROB && plan->spaces[KL_TARGET] != KL_LOGIT;
}
