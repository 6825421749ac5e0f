#include "api/partial.h"

#include <string.h>

bool api_partial_check(const struct api_call *call, struct api_problem *problem)
{
    const struct api_options *options = &call->options;
    if (!options->partial)
        return true;
    if (call->plan.reduction == KL_NONE)
        return api_option_fail(options, API_PARTIAL, problem, "partial_none",
                               "a partial result needs a reduction, and reduction is none: the "
                               "losses of shards are those of the whole");
    return !options->gradient ||
           api_option_fail(options, API_PARTIAL, problem, "partial_gradient",
                           "a gradient is divided by the divisor of all shards: request it with "
                           "reduction=sum and without partial, and divide");
}

bool api_partial_run(struct api_call *call, struct kl_problem *problem)
{
    const struct kl_plan *plan = &call->plan;
    struct kl_partial partial;
    double pair[2];
    if (!kl_run_partial(plan, call->service->pool, &partial, problem))
        return false;
    kl_partial_sum(&partial, pair);
    memcpy(call->pairs[0].data, pair, sizeof pair);
    kl_partial_divisor(&partial, plan->reduction, pair);
    memcpy(call->pairs[1].data, pair, sizeof pair);
    return !call->options.diagnose ||
           kl_diagnose(plan, call->service->pool, &call->diagnosis, problem);
}

struct api_buffer *api_partial_output(struct api_call *call, size_t output, struct kl_tensor *view)
{
    static const size_t two = 2;
    struct api_buffer *pair = &call->pairs[output - API_SUM];
    if (!call->options.partial)
        return NULL;
    *view = (struct kl_tensor){KL_FLOAT64, 1, &two, pair->data};
    return pair;
}
