#include "lib/kldiv.h"
#include "lib/plan/problem.h"
#include "lib/plan/shape.h"

#include <math.h>
#include <string.h>

/* The old options by the truth table of PyTorch's _Reduction.legacy_get_string. */
static void set_reduction(struct kl_plan *plan)
{
    const struct kl_options *options = &plan->options;
    plan->reduction = options->reduction;
    plan->warnings = 0;
    if (options->size_average != KL_ABSENT || options->reduce != KL_ABSENT) {
        plan->reduction = options->reduce == KL_FALSE         ? KL_NONE
                          : options->size_average == KL_FALSE ? KL_SUM
                                                              : KL_MEAN;
        plan->warnings = 1u << KL_SIZE_AVERAGE_REDUCE_DEPRECATED;
    } else if (options->reduction == KL_ELEMENTWISE_MEAN) {
        plan->reduction = KL_MEAN;
        plan->warnings = 1u << KL_ELEMENTWISE_MEAN_DEPRECATED;
    } else if (options->reduction == KL_MEAN && options->n_dim == 0 && !options->sparse) {
        plan->warnings = 1u << KL_MEAN_IS_NOT_KL_DIVERGENCE;
    }
}

/* Enums come from callers in C, where any number fits. */
static bool check_options(const struct kl_options *options, struct kl_problem *problem)
{
    if ((unsigned)options->reduction > KL_ELEMENTWISE_MEAN)
        return kl_fail(problem, KL_NO_OPERAND, "reduction_invalid",
                       "the reduction is not one of enum kl_reduction");
    if ((unsigned)options->size_average > KL_FALSE || (unsigned)options->reduce > KL_FALSE)
        return kl_fail(problem, KL_NO_OPERAND, "reduction_invalid",
                       "size_average or reduce is not one of enum kl_flag");
    if ((unsigned)options->compat > KL_MATH)
        return kl_fail(problem, KL_NO_OPERAND, "compat_invalid",
                       "compat is not one of enum kl_compat");
    if ((unsigned)options->base > KL_BITS)
        return kl_fail(problem, KL_NO_OPERAND, "base_invalid", "base is not one of enum kl_base");
    if ((unsigned)options->scale > KL_TEMPERATURE_SQUARED)
        return kl_fail(problem, KL_NO_OPERAND, "scale_invalid",
                       "scale is not one of enum kl_scale");
    return true;
}

static bool check_share(const char *name, const char *code, const char *unused, double share,
                        bool is_used, struct kl_problem *problem)
{
    if (!(share >= 0 && share <= 1))
        return kl_fail(problem, KL_NO_OPERAND, code, "%s must be a number from 0 to 1, not %g",
                       name, share);
    return share == 0 || is_used ||
           kl_fail(problem, KL_NO_OPERAND, unused, "%s is of divergence=%s alone", name,
                   strcmp(name, "beta") == 0 ? "js" : "skew");
}

/* A mixture of one operand alone is that operand: its divergence is the forward or the reverse one. */
static bool set_divergence(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_options *options = &plan->options;
    enum kl_divergence divergence = options->divergence;
    if ((unsigned)divergence > KL_SKEW)
        return kl_fail(problem, KL_NO_OPERAND, "divergence_invalid",
                       "the divergence is not one of enum kl_divergence");
    if (!check_share("beta", "beta_invalid", "beta_unused", options->beta, divergence == KL_JS,
                     problem) ||
        !check_share("alpha", "alpha_invalid", "alpha_unused", options->alpha,
                     divergence == KL_SKEW, problem))
        return false;
    plan->share = divergence == KL_JS ? options->beta : options->alpha;
    bool is_mixture = divergence >= KL_JS;
    plan->divergence = is_mixture && plan->share == 0            ? KL_FORWARD
                       : divergence == KL_JS && plan->share == 1 ? KL_REVERSE
                                                                 : divergence;
    return true;
}

/* target_space as log_target and itself have it. */
static bool set_spaces(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_options *options = &plan->options;
    if ((unsigned)options->input_space > KL_LOGIT || (unsigned)options->target_space > KL_LOGIT)
        return kl_fail(problem, KL_NO_OPERAND, "space_invalid",
                       "input_space or target_space is not one of enum kl_space");
    if (options->log_target && options->target_space != KL_DEFAULT_SPACE &&
        options->target_space != KL_LOG_PROB)
        return kl_fail(
            problem, KL_NO_OPERAND, "space_conflict",
            "log_target says that target holds log-probabilities, but target_space says otherwise");
    plan->spaces[KL_INPUT] = options->input_space ? options->input_space : KL_LOG_PROB;
    plan->spaces[KL_TARGET] = options->target_space ? options->target_space
                              : options->log_target ? KL_LOG_PROB
                                                    : KL_PROB;
    plan->temperature = options->temperature == 0 ? 1 : options->temperature;
    double factor = options->scale == KL_TEMPERATURE_SQUARED ? plan->temperature : 1;
    if (!(plan->temperature > 0) || !isfinite(plan->temperature) ||
        !isfinite(1 / plan->temperature))
        return kl_fail(problem, KL_NO_OPERAND, "temperature_invalid",
                       "temperature must be a finite number above 0");
    if (!isnormal(plan->temperature * factor))
        return kl_fail(problem, KL_NO_OPERAND, "temperature_invalid",
                       "the square of the temperature is beyond the range of float64");
    bool has_logits = plan->spaces[KL_INPUT] == KL_LOGIT || plan->spaces[KL_TARGET] == KL_LOGIT;
    if (options->scale == KL_TEMPERATURE_SQUARED && !has_logits)
        return kl_fail(problem, KL_NO_OPERAND, "temperature_unused",
                       "scale=temperature_squared is of logits, but neither input nor target holds "
                       "any: set input_space=logit or target_space=logit if one does");
    if (plan->temperature != 1 && plan->spaces[KL_INPUT] != KL_LOGIT &&
        plan->spaces[KL_TARGET] != KL_LOGIT)
        return kl_fail(problem, KL_NO_OPERAND, "temperature_unused",
                       "a temperature divides logits, but neither input nor target holds any: set "
                       "input_space=logit or target_space=logit if one does");
    return true;
}

static bool check_dtype(const struct kl_tensor *tensor, enum kl_operand operand,
                        struct kl_problem *problem)
{
    return (unsigned)tensor->dtype < KL_DTYPES ||
           kl_fail(problem, operand, "dtype_invalid", "the dtype is not one of enum kl_dtype");
}

static bool mark_axes(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_options *options = &plan->options;
    int ndim = (int)plan->joint_ndim, min = ndim ? -ndim : -1, max = ndim ? ndim - 1 : 0;
    if (options->sparse)
        return true; /* it is the last axis */
    for (size_t i = 0; i < options->n_dim; i++) {
        int dim = options->dim[i];
        if (dim < min || dim > max)
            return kl_fail(problem, KL_NO_OPERAND, "dim_invalid",
                           "Dimension out of range (expected to be in range of [%d, %d], but got "
                           "%d)",
                           min, max, dim);
        dim += dim < 0 ? max + 1 : 0;
        if (plan->summed[dim])
            return kl_fail(problem, KL_NO_OPERAND, "dim_invalid",
                           "dim %d appears multiple times in the list of dims", dim);
        plan->summed[dim] = true;
    }
    return true;
}

/* Sets the shape that is left of the joint shape once losses are summed over the axes of dim. */
static bool set_axes(struct kl_plan *plan, struct kl_problem *problem)
{
    if (!mark_axes(plan, problem))
        return false;
    for (size_t i = 0; i < plan->joint_ndim; i++)
        if (!plan->summed[i])
            plan->kept_shape[plan->kept_ndim++] = plan->joint_shape[i];
    plan->batch = plan->kept_ndim > 0 ? plan->kept_shape[0] : 1;
    size_t size = plan->reduction == KL_NONE ? kl_dtype_size(plan->dtype) : 1;
    /* Only empty operands can have more losses than memory has bytes. */
    return kl_shape_count(plan->kept_ndim, plan->kept_shape, size, &plan->kept_count) ||
           kl_fail(problem, KL_INPUT, "shape_invalid",
                   "the loss would have more elements than memory can hold");
}

static bool mismatch(const struct kl_plan *plan, struct kl_problem *problem)
{
    char a[96], b[96];
    const struct kl_tensor *input = &plan->input, *target = &plan->target;
    size_t last = input->ndim - 1;
    bool is_shorter = input->ndim > 0 && target->ndim > 0 &&
                      kl_shape_same(last, input->shape, target->ndim - 1, target->shape) &&
                      target->shape[last] < input->shape[last];
    const char *rule = plan->options.broadcast ? ", which do not broadcast"
                       : plan->options.sparse
                           ? ": beside indices they are [..., n] and [..., k], with k from 1 to n"
                       : is_shorter
                           ? ": if target names a part of each row, its indices are missing"
                           : "";
    kl_shape_print(input->ndim, input->shape, a, sizeof a);
    kl_shape_print(target->ndim, target->shape, b, sizeof b);
    return kl_fail(problem, KL_TARGET, "shape_mismatch",
                   "input has shape %s but target has shape %s%s", a, b, rule);
}

static bool set_shape(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_tensor *input = &plan->input, *target = &plan->target;
    if (input->ndim > KL_MAX_DIMS || target->ndim > KL_MAX_DIMS)
        return kl_fail(problem, input->ndim > KL_MAX_DIMS ? KL_INPUT : KL_TARGET, "ndim_invalid",
                       "more than 64 dimensions");
    if (!(plan->options.broadcast ||
          kl_shape_same(input->ndim, input->shape, target->ndim, target->shape)) ||
        !kl_shape_broadcast(input->ndim, input->shape, target->ndim, target->shape,
                            &plan->joint_ndim, plan->joint_shape))
        return mismatch(plan, problem);
    const struct kl_tensor joint = {plan->dtype, plan->joint_ndim, plan->joint_shape, NULL};
    if (!kl_tensor_count(&joint, &plan->count) ||
        !kl_tensor_count(input, &plan->counts[KL_INPUT]) ||
        !kl_tensor_count(target, &plan->counts[KL_TARGET]))
        return kl_fail(problem, KL_INPUT, "out_of_memory",
                       "the shape has more elements than memory can hold");
    return true;
}

/* Sets the shapes of a call with a sparse target: rows along the last axis, of which its own are shorter. */
static bool set_sparse_shape(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_tensor *input = &plan->input, *target = &plan->target;
    size_t ndim = input->ndim;
    if (plan->options.broadcast || plan->options.n_dim > 1 ||
        (plan->options.n_dim == 1 && plan->options.dim[0] != -1 &&
         plan->options.dim[0] != (int)ndim - 1))
        return kl_fail(problem, KL_NO_OPERAND, "sparse_unsupported",
                       "a sparse target is of the last axis, and does not broadcast");
    if (ndim > KL_MAX_DIMS)
        return kl_fail(problem, KL_INPUT, "ndim_invalid", "more than 64 dimensions");
    if (ndim == 0 || !kl_shape_same(ndim - 1, input->shape, target->ndim - 1, target->shape) ||
        target->shape[ndim - 1] == 0 || target->shape[ndim - 1] > input->shape[ndim - 1])
        return mismatch(plan, problem);
    plan->joint_ndim = ndim;
    memcpy(plan->joint_shape, input->shape, ndim * sizeof *input->shape);
    plan->summed[ndim - 1] = true;
    if (kl_tensor_count(input, &plan->counts[KL_INPUT]) &&
        kl_tensor_count(target, &plan->counts[KL_TARGET])) {
        plan->count = plan->counts[KL_INPUT];
        return true;
    }
    return kl_fail(problem, KL_INPUT, "out_of_memory",
                   "the shape has more elements than memory can hold");
}

static bool set_sparse(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_sparse *sparse = plan->options.sparse;
    const struct kl_tensor *normalizer = sparse->log_normalizer;
    bool needs = plan->spaces[KL_TARGET] == KL_LOGIT && sparse->tail != KL_TAIL_DROP;
    if ((unsigned)sparse->tail > KL_TAIL_IGNORE)
        return kl_fail(problem, KL_NO_OPERAND, "tail_invalid", "tail is not one of enum kl_tail");
    if (!set_sparse_shape(plan, problem))
        return false;
    if (normalizer && plan->spaces[KL_TARGET] != KL_LOGIT)
        return kl_fail(problem, KL_LOG_NORMALIZER, "normalizer_unused",
                       "log_normalizer is of logits, and target holds none");
    if (needs && !normalizer)
        return kl_fail(
            problem, KL_TARGET, "normalizer_missing",
            "log_normalizer is missing: logsumexp(logits / temperature) of all logits of "
            "each row, which only tail=drop does without");
    if (normalizer && (!check_dtype(normalizer, KL_LOG_NORMALIZER, problem) ||
                       !kl_shape_same(normalizer->ndim, normalizer->shape, plan->joint_ndim - 1,
                                      plan->joint_shape)))
        return kl_fail(problem, KL_LOG_NORMALIZER, "shape_mismatch",
                       "log_normalizer must have a number for each row, and the shape of input "
                       "without its last axis");
    plan->sparse = *sparse;
    return sparse->indices || plan->counts[KL_TARGET] == 0 ||
           kl_fail(problem, KL_INDICES, "indices_missing",
                   "a sparse target has indices, and they are NULL");
}

static bool extends_to_loss(const struct kl_plan *plan, enum kl_operand operand, size_t ndim,
                            const size_t *shape, struct kl_problem *problem)
{
    char a[96], b[96];
    if (kl_shape_extends(ndim, shape, plan->kept_ndim, plan->kept_shape))
        return true;
    kl_shape_print(ndim, shape, a, sizeof a);
    kl_shape_print(plan->kept_ndim, plan->kept_shape, b, sizeof b);
    return kl_fail(problem, operand, "shape_mismatch",
                   "%s has shape %s, which does not broadcast to that of the losses, %s (%s)",
                   operand == KL_MASK ? "mask" : "weight", a, b,
                   plan->options.sparse      ? "one for each row of a sparse target"
                   : plan->options.n_dim > 0 ? "the axes that remain after dim"
                                             : "one for each element, since dim is not given");
}

static bool set_weights(struct kl_plan *plan, struct kl_problem *problem)
{
    const struct kl_options *options = &plan->options;
    if (options->weight) {
        plan->weight = *options->weight;
        if (!check_dtype(&plan->weight, KL_WEIGHT, problem) ||
            !extends_to_loss(plan, KL_WEIGHT, plan->weight.ndim, plan->weight.shape, problem))
            return false;
    }
    if (options->mask) {
        plan->mask = *options->mask;
        return extends_to_loss(plan, KL_MASK, plan->mask.ndim, plan->mask.shape, problem);
    }
    return true;
}

static void set_loss(struct kl_plan *plan)
{
    size_t n = 1;
    if (plan->reduction == KL_NONE) {
        n = plan->kept_count;
        plan->ndim = plan->kept_ndim;
        for (size_t i = 0; i < plan->ndim; i++)
            plan->shape[i] = plan->kept_shape[i];
    }
    plan->loss_size = n * kl_dtype_size(plan->dtype);
}

bool kl_plan(struct kl_plan *plan, const struct kl_tensor *input, const struct kl_tensor *target,
             const struct kl_options *options, struct kl_problem *problem)
{
    *plan = (struct kl_plan){.input = *input,
                             .target = *target,
                             .options = *options,
                             .zero_if_empty = options->compat == KL_ONEFLOW};
    if (!check_options(options, problem))
        return false;
    set_reduction(plan);
    if (!check_dtype(input, KL_INPUT, problem) || !check_dtype(target, KL_TARGET, problem))
        return false;
    plan->dtype = kl_dtype_promote(input->dtype, target->dtype);
    if (!set_divergence(plan, problem) || !set_spaces(plan, problem) ||
        !(options->sparse ? set_sparse : set_shape)(plan, problem))
        return false;
    if (options->compat == KL_ONEFLOW && plan->reduction == KL_BATCHMEAN && plan->joint_ndim == 0)
        return kl_fail(
            problem, KL_INPUT, "batchmean_scalar",
            "batchmean needs a batch, which a 0-dim input does not have with compat=oneflow");
    if (!set_axes(plan, problem) || !set_weights(plan, problem))
        return false;
    set_loss(plan);
    return true;
}
