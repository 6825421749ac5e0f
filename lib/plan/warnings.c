#include "lib/kldiv.h"

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

const struct kl_warning_text *kl_warning_text(enum kl_warning warning, enum kl_reduction applied)
{
    switch (warning) {
    case KL_MEAN_IS_NOT_KL_DIVERGENCE:
        return &mean_is_not_kl_divergence;
    case KL_ELEMENTWISE_MEAN_DEPRECATED:
        return &elementwise_mean_deprecated;
    case KL_SIZE_AVERAGE_REDUCE_DEPRECATED:
        break;
    default:
        return NULL;
    }
    if ((unsigned)applied > KL_NONE)
        return NULL;
    const struct kl_warning_text *text = &size_average_reduce_deprecated[applied];
    return text->code ? text : NULL;
}
