#include "lib/kldiv.h"
#include "lib/plan/problem.h"

#include <string.h>

static const char *const reductions[] = {
    [KL_MEAN] = "mean",
    [KL_BATCHMEAN] = "batchmean",
    [KL_SUM] = "sum",
    [KL_NONE] = "none",
    [KL_ELEMENTWISE_MEAN] = "elementwise_mean",
};

static const char *const compats[] = {
    [KL_PYTORCH] = "pytorch",
    [KL_ONEFLOW] = "oneflow",
    [KL_MATH] = "math",
};

static bool find(const char *name, const char *const *names, size_t n, size_t *index)
{
    for (*index = 0; *index < n; ++*index)
        if (strcmp(name, names[*index]) == 0)
            return true;
    return false;
}

bool kl_reduction_parse(const char *name, enum kl_reduction *reduction, struct kl_problem *problem)
{
    size_t i;
    if (!find(name, reductions, sizeof reductions / sizeof *reductions, &i))
        return kl_fail(problem, KL_NO_OPERAND, "reduction_invalid",
                       "%.100s is not a valid value for reduction", name);
    *reduction = (enum kl_reduction)i;
    return true;
}

const char *kl_reduction_name(enum kl_reduction reduction)
{
    return (unsigned)reduction <= KL_ELEMENTWISE_MEAN ? reductions[reduction] : NULL;
}

bool kl_compat_parse(const char *name, enum kl_compat *compat, struct kl_problem *problem)
{
    size_t i;
    if (!find(name, compats, sizeof compats / sizeof *compats, &i))
        return kl_fail(problem, KL_NO_OPERAND, "compat_invalid",
                       "%.100s is not a valid value for compat: pytorch, oneflow or math", name);
    *compat = (enum kl_compat)i;
    return true;
}

bool kl_divergence_parse(const char *name, enum kl_divergence *divergence,
                         struct kl_problem *problem)
{
    static const char *const divergences[] = {"forward", "reverse", "js", "skew"};
    size_t i;
    if (!find(name, divergences, sizeof divergences / sizeof *divergences, &i))
        return kl_fail(problem, KL_NO_OPERAND, "divergence_invalid",
                       "'%.40s' is not a divergence: forward, reverse, js or skew", name);
    *divergence = (enum kl_divergence)i;
    return true;
}

bool kl_tail_parse(const char *name, enum kl_tail *tail, struct kl_problem *problem)
{
    static const char *const tails[] = {"bin", "drop", "ignore"};
    size_t i;
    if (!find(name, tails, sizeof tails / sizeof *tails, &i))
        return kl_fail(problem, KL_NO_OPERAND, "tail_invalid",
                       "'%.40s' is not a tail: bin, drop or ignore", name);
    *tail = (enum kl_tail)i;
    return true;
}

bool kl_scale_parse(const char *name, enum kl_scale *scale, struct kl_problem *problem)
{
    *scale = strcmp(name, "none") == 0 ? KL_UNSCALED : KL_TEMPERATURE_SQUARED;
    return *scale == KL_UNSCALED || strcmp(name, "temperature_squared") == 0 ||
           kl_fail(problem, KL_NO_OPERAND, "scale_invalid",
                   "scale must be none or temperature_squared, not '%.40s'", name);
}

bool kl_base_parse(const char *name, enum kl_base *base, struct kl_problem *problem)
{
    *base = strcmp(name, "2") == 0 ? KL_BITS : KL_NATS;
    return *base == KL_BITS || strcmp(name, "e") == 0 ||
           kl_fail(problem, KL_NO_OPERAND, "base_invalid", "base must be e or 2, not '%.40s'",
                   name);
}

bool kl_space_parse(const char *name, enum kl_space *space, struct kl_problem *problem)
{
    static const char *const spaces[] = {"log_prob", "prob", "logit"};
    size_t i;
    if (!find(name, spaces, sizeof spaces / sizeof *spaces, &i))
        return kl_fail(problem, KL_NO_OPERAND, "space_invalid",
                       "'%.40s' is not a space: log_prob, prob or logit", name);
    *space = (enum kl_space)(KL_LOG_PROB + i);
    return true;
}
