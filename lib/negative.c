/* Finds the target that KL_MATH refuses. */
#include "lib/problem.h"
#include "lib/run.h"

/* Whether the mask leaves any of the losses that row `row`, element `element` counts in. */
static bool is_hidden(const struct kl_plan *plan, const struct kl_layout *layout, size_t row,
                      size_t element)
{
    size_t offset = kl_offset(&layout->across, KL_OF_MASK, row) +
                    kl_offset(&layout->along, KL_OF_MASK, element);
    return plan->mask.data && !plan->mask.data[offset];
}

bool kl_refuse_negative(const struct kl_plan *plan, struct kl_problem *problem)
{
    struct kl_layout layout;
    size_t first = plan->counts[1];
    kl_layout_of(&layout, plan);
    for (size_t row = 0; row < layout.across.volume; row++)
        for (size_t i = 0; i < layout.along.volume; i++) {
            size_t offset = kl_offset(&layout.across, KL_OF_TARGET, row) +
                            kl_offset(&layout.along, KL_OF_TARGET, i);
            if (offset < first && kl_load(plan->target.dtype, plan->target.data, offset) < 0 &&
                !is_hidden(plan, &layout, row, i))
                first = offset;
        }
    if (first == plan->counts[1])
        return true;
    if (problem && !problem->code) {
        problem->has_index = true;
        problem->index = first;
    }
    return kl_fail(problem, KL_TARGET, "target_negative",
                   "target holds %g, and a probability is never negative",
                   kl_load(plan->target.dtype, plan->target.data, first));
}
