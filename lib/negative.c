/* Finds the target that KL_MATH refuses. */
#include "lib/job.h"
#include "lib/problem.h"

static bool is_negative(const struct kl_plan *plan, size_t i)
{
    return kl_load(plan->target.dtype, plan->target.data, i) < 0;
}

/* The first that the mask leaves in any of the losses it counts in, or the number of them. */
static size_t find_visible(const struct kl_plan *plan)
{
    struct kl_layout layout;
    size_t first = plan->counts[KL_TARGET];
    kl_layout_of(&layout, plan);
    for (size_t row = 0; row < layout.across.volume; row++)
        for (size_t i = 0; i < layout.along.volume; i++) {
            size_t offset = kl_offset(&layout.across, KL_OF_TARGET, row) +
                            kl_offset(&layout.along, KL_OF_TARGET, i);
            if (offset < first && is_negative(plan, offset) &&
                !kl_is_hidden(&layout, plan->mask.data, row, i))
                first = offset;
        }
    return first;
}

static size_t find(const struct kl_plan *plan)
{
    size_t first = 0;
    while (first < plan->counts[KL_TARGET] && !is_negative(plan, first))
        first++;
    return first;
}

bool kl_refuse_negative(const struct kl_plan *plan, struct kl_problem *problem)
{
    size_t first = plan->mask.data ? find_visible(plan) : find(plan);
    if (first == plan->counts[KL_TARGET])
        return true;
    if (problem && !problem->code) {
        problem->has_index = true;
        problem->index = first;
    }
    return kl_fail(problem, KL_TARGET, "target_negative",
                   "target holds %g, and a probability is never negative",
                   kl_load(plan->target.dtype, plan->target.data, first));
}
