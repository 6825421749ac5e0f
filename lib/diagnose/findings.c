#include "lib/diagnose/diagnose.h"

#include <math.h>
#include <stdio.h>

static const char *const codes[KL_FINDINGS] = {
    [KL_ARGUMENTS_LOOK_SWAPPED] = "arguments_look_swapped",
    [KL_INPUT_NOT_LOG_PROBABILITIES] = "input_not_log_probabilities",
    [KL_INPUT_NOT_NORMALIZED] = "input_not_normalized",
    [KL_TARGET_NOT_NORMALIZED] = "target_not_normalized",
    [KL_TARGET_NEGATIVE] = "target_negative",
    [KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES] = "target_looks_like_log_probabilities",
    [KL_LOSS_NOT_FINITE] = "loss_not_finite",
};

const char *kl_finding_code(enum kl_finding finding)
{
    return (unsigned)finding < KL_FINDINGS ? codes[finding] : NULL;
}

/* hints: advice by operand, space and the kind of most rows with the finding. */
#define INPUT_LOGITS ": if input holds logits, use input_space=logit"
#define TARGET_LOGITS ": if target holds logits, use target_space=logit"
#define DIVIDE ": divide each row by its sum"

static const char *const hints[KL_OPERANDS][KL_LOGIT + 1][KL_KINDS] = {
    [KL_INPUT] = {[KL_LOG_PROB] = {": did you pass probabilities? Use input_space=prob",
                                   INPUT_LOGITS, INPUT_LOGITS, INPUT_LOGITS},
                  [KL_PROB] = {"", DIVIDE,
                               ": did you pass log-probabilities? Use input_space=log_prob",
                               INPUT_LOGITS}},
    [KL_TARGET] = {[KL_LOG_PROB] = {": did you pass probabilities? Use target_space=prob, and no "
                                    "log_target",
                                    TARGET_LOGITS, TARGET_LOGITS, TARGET_LOGITS},
                   [KL_PROB] = {"", DIVIDE, ": did you pass log-probabilities? Use log_target=true",
                                TARGET_LOGITS}},
};

/* The hint for the most frequent kind. Operands that look swapped are the first thing to mend, and
 * get no other hint. */
static const char *hint_of(const struct kl_job *job, int operand,
                           const struct kl_finding_count *counted, bool swapped)
{
    size_t kind = 0;
    for (size_t i = 1; i < KL_KINDS; i++)
        kind = counted->kinds[i] > counted->kinds[kind] ? i : kind;
    return swapped ? "" : hints[operand][job->plan->spaces[operand]][kind];
}

static void format_sums(const struct kl_job *job, int operand,
                        const struct kl_finding_count *counted, size_t rows, const char *hint,
                        char *to, size_t size)
{
    static const char *const names[KL_OPERANDS][2] = {{"exp(input)", "input"},
                                                      {"exp(target)", "target"}};
    char min[30], max[30];
    snprintf(min, sizeof min, "%.4g", counted->min);
    snprintf(max, sizeof max, " to %.4g", counted->max);
    bool same = fabs(counted->max - counted->min) <= 1e-4 * fabs(counted->min);
    snprintf(to, size, "the row sums of %s are %s%s in %zu of %zu rows, not 1%s",
             names[operand][job->plan->spaces[operand] == KL_PROB], min, same ? "" : max,
             counted->count, rows, hint);
}

/* `reason` is NULL if no row's losses give one. */
static void format_reason(const struct kl_job *job, const struct kl_finding_count *counted,
                          size_t rows, const struct kl_reason *reason, char *to, size_t size)
{
    if (reason)
        snprintf(to, size,
                 "%zu of %zu rows have a loss that is infinite or NaN, first where input holds %g "
                 "and target %g: %s",
                 counted->count, rows, reason->x, reason->t, reason->words);
    else
        snprintf(to, size, "the loss is too large for %s, though that of each row is not",
                 kl_dtype_name(job->plan->dtype));
}

static void format(const struct kl_job *job, enum kl_finding finding, int operand,
                   const struct kl_finding_counts *all, const struct kl_reason *reason, char *to,
                   size_t size)
{
    const struct kl_finding_count *counted = &all->of[finding];
    bool swapped = all->of[KL_ARGUMENTS_LOOK_SWAPPED].count > 0;
    const char *hint = hint_of(job, operand, counted, swapped);
    switch (finding) {
    case KL_ARGUMENTS_LOOK_SWAPPED:
        snprintf(to, size,
                 "in %zu of %zu rows input looks like probabilities, and target like "
                 "log-probabilities: input is for the model's log-probabilities, target for the "
                 "observed distribution",
                 counted->count, all->rows);
        break;
    case KL_INPUT_NOT_LOG_PROBABILITIES:
    case KL_TARGET_NEGATIVE:
        snprintf(to, size, "%zu of %zu rows of %s %.4g, which %s never are%s", counted->count,
                 all->rows,
                 operand == KL_INPUT ? "input have values above 0, up to"
                                     : "target have negative values, down to",
                 operand == KL_INPUT ? counted->max : counted->min,
                 operand == KL_INPUT ? "log-probabilities" : "probabilities", hint);
        break;
    case KL_INPUT_NOT_NORMALIZED:
    case KL_TARGET_NOT_NORMALIZED:
        format_sums(job, operand, counted, all->rows, hint, to, size);
        break;
    case KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES:
        snprintf(to, size,
                 "%zu of %zu rows of target have no value above 0, and their exponentials sum to "
                 "1%s%s",
                 counted->count, all->rows,
                 kl_masks_elements(job) ? ", or less where some are masked" : "",
                 swapped ? "" : ": does it hold log-probabilities? Use log_target=true");
        break;
    case KL_LOSS_NOT_FINITE:
        format_reason(job, counted, all->rows, reason, to, size);
        break;
    }
}

/* The first element of a row that is above 0, or below with `negative`. */
static size_t find_element(const struct kl_job *job, int operand, size_t row, bool negative)
{
    const struct kl_array_view *view = &job->operands[operand];
    size_t base = kl_offset(&job->layout->outer, view->array, row), at = base;
    for (size_t i = 0; i < job->layout->inner.volume; i++) {
        at = base + kl_offset(&job->layout->inner, view->array, i);
        double v = kl_load(view->dtype, view->data, at);
        if ((negative ? v < 0 : v > 0) && !kl_is_masked(job->layout, job->mask.data, row, i))
            break;
    }
    return at;
}

static size_t index_of(const struct kl_job *job, enum kl_finding finding, size_t row, int operand,
                       const struct kl_reason *reason)
{
    if (finding == KL_INPUT_NOT_LOG_PROBABILITIES || finding == KL_TARGET_NEGATIVE)
        return find_element(job, operand, row, finding == KL_TARGET_NEGATIVE);
    if (reason)
        return reason->index;
    return kl_offset(&job->layout->outer, job->operands[operand].array, row);
}

void kl_report(struct kl_diagnosing *d, struct kl_diagnosis *diagnosis)
{
    const struct kl_finding_counts *counts = &d->all;
    diagnosis->rows = counts->rows;
    for (int i = 0; i < KL_FINDINGS; i++) {
        enum kl_finding finding = (enum kl_finding)i;
        size_t first = counts->of[i].first;
        int operand = finding == KL_TARGET_NOT_NORMALIZED || finding == KL_TARGET_NEGATIVE ||
                      finding == KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES;
        diagnosis->findings[i].count = counts->of[i].count;
        if (counts->of[i].count == 0)
            continue;
        struct kl_reason found, *reason = NULL;
        if (finding == KL_LOSS_NOT_FINITE && kl_find_not_finite(d, first, &found))
            reason = &found;
        diagnosis->findings[i].operand = (enum kl_operand)operand;
        diagnosis->findings[i].index = index_of(&d->sound, finding, first, operand, reason);
        format(&d->sound, finding, operand, counts, reason, diagnosis->findings[i].message,
               sizeof diagnosis->findings[i].message);
    }
}
