#include "api/partial.h"

#include <string.h>

bool api_partial_check(const struct api_options *options, enum kl_reduction reduction,
                       struct api_problem *problem)
{
    if (reduction == KL_NONE)
        return api_option_fail(options, API_PARTIAL, problem, "partial_none",
                               "a partial result needs a reduction, and reduction is none: the "
                               "losses of shards are those of the whole");
    return !options->gradient ||
           api_option_fail(options, API_PARTIAL, problem, "partial_gradient",
                           "a gradient is divided by the divisor of all shards: request it with "
                           "reduction=sum and without partial, and divide");
}

bool api_partial_run(const struct kl_plan *plan, struct kl_pool *pool,
                     struct kl_diagnosis *diagnosis, struct api_buffer pairs[2],
                     struct kl_problem *problem)
{
    struct kl_partial partial;
    double pair[2];
    if (!kl_run_partial(plan, pool, &partial, problem))
        return false;
    kl_partial_sum(&partial, pair);
    memcpy(pairs[0].data, pair, sizeof pair);
    kl_partial_divisor(&partial, plan->reduction, pair);
    memcpy(pairs[1].data, pair, sizeof pair);
    return !diagnosis || kl_diagnose(plan, pool, diagnosis, problem);
}
