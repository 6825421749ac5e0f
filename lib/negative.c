/* Finds the probability that KL_MATH refuses. */
#include "lib/negative.h"
#include "lib/job.h"
#include "lib/problem.h"

static bool is_negative(const struct kl_tensor *tensor, size_t i)
{
    return kl_load(tensor->dtype, tensor->data, i) < 0;
}

/* The first that the mask leaves in any of the losses it counts in, or the number of elements. */
static size_t find_visible(const struct kl_plan *plan, const struct kl_tensor *tensor,
                           enum kl_array array, size_t count)
{
    struct kl_layout layout;
    size_t first = count;
    kl_layout_of(&layout, plan);
    for (size_t row = 0; row < layout.across.volume; row++)
        for (size_t i = 0; i < layout.along.volume; i++) {
            size_t offset =
                kl_offset(&layout.across, array, row) + kl_offset(&layout.along, array, i);
            if (offset < first && is_negative(tensor, offset) &&
                !kl_is_masked(&layout, plan->mask.data, row, i))
                first = offset;
        }
    return first;
}

static size_t find(const struct kl_tensor *tensor, size_t count)
{
    size_t first = 0;
    while (first < count && !is_negative(tensor, first))
        first++;
    return first;
}

static bool check_operand(const struct kl_plan *plan, enum kl_operand operand,
                          struct kl_problem *problem)
{
    static const enum kl_array arrays[] = {KL_OF_INPUT, KL_OF_TARGET};
    const struct kl_tensor *tensor = operand == KL_INPUT ? &plan->input : &plan->target;
    size_t count = plan->counts[operand];
    size_t first =
        plan->mask.data ? find_visible(plan, tensor, arrays[operand], count) : find(tensor, count);
    if (first == count)
        return true;
    if (problem && !problem->code) {
        problem->has_index = true;
        problem->index = first;
    }
    return kl_fail(problem, operand, operand == KL_INPUT ? "input_negative" : "target_negative",
                   "%s holds %g, but a probability is never negative",
                   operand == KL_INPUT ? "input" : "target",
                   kl_load(tensor->dtype, tensor->data, first));
}

bool kl_check_negative(const struct kl_plan *plan, struct kl_problem *problem)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        if (plan->spaces[i] == KL_PROB && !check_operand(plan, (enum kl_operand)i, problem))
            return false;
    return true;
}
