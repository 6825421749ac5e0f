/* Estimates the time of a planned call, which decides on the thread that runs it. */
#include "api/call.h"

/* Time per element, in ns, on one thread of the slower kernels, as `make bench` prints it. An
 * error by a factor of two does no harm. */
static const double plain_ns = 1, logits_ns = 1.5, prob_input_ns = 2, weight_ns = 2, mask_ns = 2,
                    rows_ns = 2, gradient_ns = 2, diagnose_ns = 4, broadcast_ns = 1;

/* Nanoseconds a row more, which rows of few elements show. */
static const double short_row_ns = 20, short_broadcast_ns = 60;

/* Elements of a row that is soft-maxed or summed as a whole. */
static double row_length(const struct kl_plan *plan)
{
    double length = 1;
    bool is_named = plan->options.n_dim > 0;
    for (size_t i = 0; i < plan->joint_ndim; i++)
        if (is_named ? plan->summed[i] : i + 1 == plan->joint_ndim)
            length *= (double)plan->joint_shape[i];
    return length > 1 ? length : 1;
}

static double ns_per_joint_element(const struct api_call *call)
{
    const struct kl_plan *plan = &call->plan;
    double ns = plain_ns, row_ns = 0;
    for (int i = 0; i < KL_OPERANDS; i++) {
        ns += plan->spaces[i] == KL_LOGIT ? logits_ns : 0;
        ns += call->options.gradient >> i & 1 ? gradient_ns : 0;
        ns += plan->counts[i] < plan->count ? broadcast_ns : 0;
        row_ns += plan->spaces[i] == KL_LOGIT ? short_row_ns : 0;
        row_ns += plan->counts[i] < plan->count ? short_broadcast_ns : 0;
    }
    ns += plan->spaces[KL_INPUT] == KL_PROB ? prob_input_ns : 0;
    ns += plan->weight.data ? weight_ns : 0;
    ns += plan->mask.data ? mask_ns : 0;
    ns += plan->options.n_dim > 0 ? rows_ns : 0;
    ns += call->options.diagnose ? diagnose_ns : 0;
    row_ns += call->options.diagnose ? short_row_ns : 0;
    return ns + row_ns / row_length(plan);
}

double api_call_cost(const struct api_call *call, double ns_per_element)
{
    const struct kl_plan *plan = &call->plan;
    double outputs = plan->reduction == KL_NONE ? (double)plan->places : 1;
    for (int i = 0; i < KL_OPERANDS; i++)
        outputs += call->options.gradient >> i & 1 ? (double)plan->counts[i] : 0;
    return (double)plan->count * ns_per_joint_element(call) + outputs * ns_per_element;
}
