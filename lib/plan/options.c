#include "lib/kldiv.h"
#include "lib/plan/problem.h"

#include <string.h>

/* option: the words of an enumeration, by their values. */
struct option {
    const char *name, *code, *words[5];
};

static const struct option
    reduction_words = {"reduction",
                       "reduction_invalid",
                       {[KL_MEAN] = "mean",
                        [KL_BATCHMEAN] = "batchmean",
                        [KL_SUM] = "sum",
                        [KL_NONE] = "none",
                        [KL_ELEMENTWISE_MEAN] = "elementwise_mean"}},
    compat_words = {"compat",
                    "compat_invalid",
                    {[KL_PYTORCH] = "pytorch", [KL_ONEFLOW] = "oneflow", [KL_MATH] = "math"}},
    divergence_words =
        {"divergence",
         "divergence_invalid",
         {[KL_FORWARD] = "forward", [KL_REVERSE] = "reverse", [KL_JS] = "js", [KL_SKEW] = "skew"}},
    tail_words = {"tail",
                  "tail_invalid",
                  {[KL_TAIL_BIN] = "bin", [KL_TAIL_DROP] = "drop", [KL_TAIL_IGNORE] = "ignore"}},
    scale_words = {"scale",
                   "scale_invalid",
                   {[KL_UNSCALED] = "none", [KL_TEMPERATURE_SQUARED] = "temperature_squared"}},
    base_words = {"base", "base_invalid", {[KL_NATS] = "e", [KL_BITS] = "2"}},
    space_words = {"space",
                   "space_invalid",
                   {[KL_LOG_PROB] = "log_prob", [KL_PROB] = "prob", [KL_LOGIT] = "logit"}};

static bool find(const struct option *option, const char *word, size_t *value,
                 struct kl_problem *problem)
{
    for (*value = 0; *value < sizeof option->words / sizeof *option->words; ++*value)
        if (option->words[*value] && strcmp(word, option->words[*value]) == 0)
            return true;
    return kl_fail(problem, KL_NO_OPERAND, option->code, "%.100s is not a valid value for %s", word,
                   option->name);
}

/* Defines kl_reduction_parse and its like, which leave *to as it is if they fail. */
#define PARSE(kind)                                                                                \
    bool kl_##kind##_parse(const char *name, enum kl_##kind *to, struct kl_problem *problem)       \
    {                                                                                              \
        size_t value;                                                                              \
        bool is_found = find(&kind##_words, name, &value, problem);                                \
        if (is_found)                                                                              \
            *to = (enum kl_##kind)value;                                                           \
        return is_found;                                                                           \
    }

PARSE(reduction)
PARSE(compat)
PARSE(divergence)
PARSE(tail)
PARSE(scale)
PARSE(base)
PARSE(space)

const char *kl_reduction_name(enum kl_reduction reduction)
{
    return (unsigned)reduction <= KL_ELEMENTWISE_MEAN ? reduction_words.words[reduction] : NULL;
}
