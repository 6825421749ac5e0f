#include "lib/kldiv.h"
#include "lib/problem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool kl_tensor_count(const struct kl_tensor *tensor, size_t *count)
{
    size_t n = 1, bytes;
    bool empty = false, overflow = false;
    for (size_t i = 0; i < tensor->ndim; i++) {
        empty |= tensor->shape[i] == 0;
        overflow |= __builtin_mul_overflow(n, tensor->shape[i], &n);
    }
    *count = empty ? 0 : n;
    overflow |= __builtin_mul_overflow(n, kl_dtype_size(tensor->dtype), &bytes);
    return empty || !overflow;
}

static void print_shape(const struct kl_tensor *tensor, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < tensor->ndim && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%zu", i ? ", " : "", tensor->shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    else
        memcpy(text + size - 5, "...]", 5);
}

static bool same_shape(const struct kl_tensor *a, const struct kl_tensor *b)
{
    return a->ndim == b->ndim &&
           (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

/* The truth table of PyTorch's _Reduction.legacy_get_string. */
static enum kl_reduction legacy_reduction(const struct kl_options *options)
{
    if (options->reduce == KL_FALSE)
        return KL_NONE;
    return options->size_average == KL_FALSE ? KL_SUM : KL_MEAN;
}

static void settle_reduction(struct kl_plan *plan)
{
    const struct kl_options *options = &plan->options;
    plan->reduction = options->reduction;
    plan->warnings = 0;
    if (options->size_average != KL_ABSENT || options->reduce != KL_ABSENT) {
        plan->reduction = legacy_reduction(options);
        plan->warnings = 1u << KL_SIZE_AVERAGE_REDUCE_DEPRECATED;
    } else if (options->reduction == KL_ELEMENTWISE_MEAN) {
        plan->reduction = KL_MEAN;
        plan->warnings = 1u << KL_ELEMENTWISE_MEAN_DEPRECATED;
    } else if (options->reduction == KL_MEAN) {
        plan->warnings = 1u << KL_MEAN_IS_NOT_KL_DIVERGENCE;
    }
}

/* Enums come from callers in C, where any number fits. */
static bool check_options(const struct kl_options *options, struct kl_problem *problem)
{
    if ((unsigned)options->reduction > KL_ELEMENTWISE_MEAN)
        return kl_fail(problem, KL_NO_OPERAND, "reduction_invalid",
                       "the reduction is none of enum kl_reduction");
    if ((unsigned)options->size_average > KL_FALSE || (unsigned)options->reduce > KL_FALSE)
        return kl_fail(problem, KL_NO_OPERAND, "reduction_invalid",
                       "size_average or reduce is none of enum kl_flag");
    if ((unsigned)options->compat > KL_MATH)
        return kl_fail(problem, KL_NO_OPERAND, "compat_invalid",
                       "compat is none of enum kl_compat");
    if ((unsigned)options->base > KL_BITS)
        return kl_fail(problem, KL_NO_OPERAND, "base_invalid", "base is none of enum kl_base");
    return true;
}

static bool check_dtypes(const struct kl_tensor *input, const struct kl_tensor *target,
                         struct kl_problem *problem)
{
    if ((unsigned)input->dtype >= KL_DTYPES || (unsigned)target->dtype >= KL_DTYPES)
        return kl_fail(problem, (unsigned)input->dtype >= KL_DTYPES ? KL_INPUT : KL_TARGET,
                       "dtype_invalid", "the dtype is none of enum kl_dtype");
    return true;
}

static bool mark_axes(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_options *options = &plan->options;
    int ndim = (int)plan->input.ndim, least = ndim ? -ndim : -1, most = ndim ? ndim - 1 : 0;
    for (size_t i = 0; i < options->n_dim; i++) {
        int dim = options->dim[i];
        if (dim < least || dim > most)
            return kl_fail(problem, KL_NO_OPERAND, "dim_invalid",
                           "Dimension out of range (expected to be in range of [%d, %d], but got "
                           "%d)",
                           least, most, dim);
        dim += dim < 0 ? most + 1 : 0;
        if (plan->summed[dim])
            return kl_fail(problem, KL_NO_OPERAND, "dim_invalid",
                           "dim %d appears multiple times in the list of dims", dim);
        plan->summed[dim] = true;
    }
    return true;
}

/* Settles what is left of the operands' shape when losses are summed over the axes of dim. */
static bool settle_axes(struct kl_plan *plan, struct kl_problem *problem)
{
    if (!mark_axes(plan, problem))
        return false;
    plan->ndim = 0;
    for (size_t i = 0; i < plan->input.ndim; i++)
        if (!plan->summed[i])
            plan->shape[plan->ndim++] = plan->input.shape[i];
    plan->batch = plan->ndim > 0 ? plan->shape[0] : 1;
    const struct kl_tensor left = {plan->dtype, plan->ndim, plan->shape, NULL};
    if (!kl_tensor_count(&left, &plan->places)) /* which only empty operands can have */
        return kl_fail(problem, KL_INPUT, "out_of_memory",
                       "the loss would have more elements than memory can hold");
    return true;
}

bool kl_plan(struct kl_plan *plan, const struct kl_tensor *input, const struct kl_tensor *target,
             const struct kl_options *options, struct kl_problem *problem)
{
    *plan = (struct kl_plan){.input = *input, .target = *target, .options = *options};
    if (!check_options(options, problem))
        return false;
    settle_reduction(plan);
    if (!check_dtypes(input, target, problem))
        return false;
    plan->dtype = kl_dtype_promote(input->dtype, target->dtype);

    if (input->ndim > KL_MAX_DIMS)
        return kl_fail(problem, KL_INPUT, "ndim_invalid", "more than 64 dimensions");
    if (!same_shape(input, target)) {
        char a[96], b[96];
        print_shape(input, a, sizeof a);
        print_shape(target, b, sizeof b);
        return kl_fail(problem, KL_TARGET, "shape_mismatch",
                       "input has shape %s but target has shape %s", a, b);
    }
    if (!kl_tensor_count(input, &plan->count) || !kl_tensor_count(target, &plan->count))
        return kl_fail(problem, KL_INPUT, "out_of_memory",
                       "the shape stands for more elements than memory can hold");
    if (plan->options.compat == KL_ONEFLOW && plan->reduction == KL_BATCHMEAN && input->ndim == 0)
        return kl_fail(problem, KL_INPUT, "batchmean_scalar",
                       "batchmean needs a batch: under compat=oneflow a 0-dim input has none");

    if (!settle_axes(plan, problem))
        return false;
    bool none = plan->reduction == KL_NONE;
    plan->ndim = none ? plan->ndim : 0;
    plan->loss_size = (none ? plan->places : 1) * kl_dtype_size(plan->dtype);
    return true;
}
