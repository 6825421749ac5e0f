#include "lib/kldiv.h"

/* MAX_NEGATIVE: the loss above which nothing is told. max_rounding: how far rounding of a row's operands brings its divergence below
 * 0. */
static const double MAX_NEGATIVE = 1e-6;
static const double max_rounding[KL_DTYPES] = {
    [KL_FLOAT64] = 1e-6, [KL_FLOAT32] = 1e-5, [KL_FLOAT16] = 1e-2, [KL_BFLOAT16] = 5e-2};

#define MEAN_IS_NOT_KL_DIVERGENCE                                                                  \
    "reduction: 'mean' divides the total loss by both the batch size and the support size."        \
    "'batchmean' divides only by the batch size, and aligns with the KL div math definition."      \
    "'mean' will be changed to behave the same as 'batchmean' in the next major release."

#define SIZE_AVERAGE_REDUCE(reduction)                                                             \
    {                                                                                              \
        "size_average_reduce_deprecated", "UserWarning",                                           \
            "size_average and reduce args will be deprecated, please use reduction='" reduction    \
            "' instead."                                                                           \
    }

static const struct kl_warning_text mean_is_not_kl_divergence = {
    "mean_is_not_kl_divergence", "UserWarning", MEAN_IS_NOT_KL_DIVERGENCE};

static const struct kl_warning_text elementwise_mean_deprecated = {
    "elementwise_mean_deprecated", "UserWarning",
    "reduction='elementwise_mean' is deprecated, please use reduction='mean' instead."};

static const struct kl_warning_text size_average_reduce_deprecated[] = {
    [KL_MEAN] = SIZE_AVERAGE_REDUCE("mean"),
    [KL_SUM] = SIZE_AVERAGE_REDUCE("sum"),
    [KL_NONE] = SIZE_AVERAGE_REDUCE("none"),
};

static const struct kl_warning_text loss_negative = {
    "loss_negative", "UserWarning",
    "the loss is negative, and a Kullback-Leibler divergence is not: does input hold "
    "probabilities? "
    "input_space=prob says so; the default is log-probabilities"};

const struct kl_warning_text *kl_warning_text(enum kl_warning warning, enum kl_reduction applied)
{
    switch (warning) {
    case KL_MEAN_IS_NOT_KL_DIVERGENCE:
        return &mean_is_not_kl_divergence;
    case KL_ELEMENTWISE_MEAN_DEPRECATED:
        return &elementwise_mean_deprecated;
    case KL_SIZE_AVERAGE_REDUCE_DEPRECATED:
        break;
    case KL_LOSS_NEGATIVE:
        return &loss_negative;
    default:
        return NULL;
    }
    if ((unsigned)applied > KL_NONE)
        return NULL;
    const struct kl_warning_text *text = &size_average_reduce_deprecated[applied];
    return text->code ? text : NULL;
}

/* True if losses are divergences of whole rows, or of all, which are not negative if operands are distributions along the last
 * axis. */
static bool are_divergences(const struct kl_plan *plan)
{
    bool has_rows = plan->sparse.indices || plan->options.n_dim > 0;
    bool is_whole = has_rows ? plan->joint_ndim > 0 && plan->summed[plan->joint_ndim - 1]
                             : plan->reduction != KL_NONE && !plan->mask.data;
    return plan->divergence == KL_FORWARD && plan->spaces[KL_INPUT] == KL_LOG_PROB && is_whole &&
           !plan->weight.data && !(plan->sparse.indices && plan->sparse.tail == KL_TAIL_IGNORE);
}

/* The rows along the last axis whose divergences a loss sums, or its part of one. */
static double rows_of_loss(const struct kl_plan *plan)
{
    double length = plan->joint_ndim > 0 ? (double)plan->joint_shape[plan->joint_ndim - 1] : 1;
    double rows = length > 0 ? (double)plan->count / length : 1;
    double losses = plan->reduction == KL_SUM         ? 1
                    : plan->reduction == KL_BATCHMEAN ? (double)plan->batch
                                                      : (double)plan->kept_count;
    return rows / losses;
}

/* How far rounding may bring a loss below 0: by the coarser operand. */
static double rounding_of(const struct kl_plan *plan)
{
    double a = max_rounding[plan->input.dtype], b = max_rounding[plan->target.dtype];
    double scale = plan->options.scale ? plan->temperature * plan->temperature : 1;
    double rounding = rows_of_loss(plan) * scale * (a > b ? a : b);
    return rounding > MAX_NEGATIVE ? rounding : MAX_NEGATIVE;
}

unsigned kl_loss_warnings(const struct kl_plan *plan, const void *loss)
{
    size_t n = plan->loss_size / kl_dtype_size(plan->dtype);
    if (!are_divergences(plan))
        return 0;
    double max = rounding_of(plan);
    for (size_t i = 0; i < n; i++)
        if (kl_load(plan->dtype, loss, i) < -max)
            return 1u << KL_LOSS_NEGATIVE;
    return 0;
}
