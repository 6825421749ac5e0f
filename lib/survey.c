#include "lib/survey.h"

#include <math.h>

static void merge(struct kl_surveys *surveys, size_t i, struct kl_survey more)
{
    surveys->least[i] = more.least < surveys->least[i] ? more.least : surveys->least[i];
    surveys->greatest[i] =
        more.greatest > surveys->greatest[i] ? more.greatest : surveys->greatest[i];
    surveys->sum[i] += more.sum;
    surveys->exps[i] += more.exps;
}

static void hide_elements(const struct kl_look *look, const struct kl_tile *tile, int operand,
                          double *v, double *keep)
{
    bool is_prob = look->plan->spaces[operand] == KL_PROB;
    kl_tile_load(look->kernel, &look->layout, tile, &look->mask, keep);
    look->kernel->hide(v, keep, is_prob ? 0 : -(double)INFINITY, tile->pitch * tile->length);
}

/* Straight from where the row lies. */
static bool survey_dense_row(const struct kl_look *look, int operand, size_t row, bool exps,
                             struct kl_surveys *surveys)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    size_t at = kl_offset(&look->layout.across, numbers->array, row);
    if (look->tile.pitch > 1 || look->mask.data ||
        !kl_rows_are_dense(&look->layout, numbers->array))
        return false;
    merge(surveys, 0,
          look->kernel->survey[numbers->dtype]((const char *)numbers->data +
                                                   at * kl_dtype_size(numbers->dtype),
                                               look->layout.along.volume, exps));
    return true;
}

void kl_survey_rows(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                    struct kl_look_scratch *scratch, struct kl_surveys *surveys)
{
    double *v = scratch->v;
    size_t pitch = look->tile.pitch, chunk = look->tile.length, length = look->layout.along.volume;
    for (size_t i = 0; i < pitch; i++) {
        surveys->least[i] = INFINITY;
        surveys->greatest[i] = -(double)INFINITY;
        surveys->sum[i] = surveys->exps[i] = 0;
    }
    if (survey_dense_row(look, operand, row, exps, surveys))
        return;
    for (size_t start = 0; start < length; start += chunk) {
        struct kl_tile tile = {row, n, pitch, start,
                               length - start < chunk ? length - start : chunk};
        kl_tile_load(look->kernel, &look->layout, &tile, &look->operands[operand], v);
        if (look->mask.data)
            hide_elements(look, &tile, operand, v, scratch->keep);
        if (pitch == 1)
            merge(surveys, 0, look->kernel->survey[KL_FLOAT64](v, tile.length, exps));
        else
            for (size_t i = 0; i < tile.length; i++)
                look->kernel->each_survey(v + i * pitch, surveys, pitch, exps);
    }
}

/* An element as the rule takes it: of logits as much as matters here, and of ordinary numbers any
 * ordinary one. */
static double as_logarithm(enum kl_space space, double v)
{
    if (space == KL_PROB)
        return log(v);
    if (space == KL_LOG_PROB || isfinite(v) || v < 0)
        return v;
    return (double)NAN; /* so is the softmax of a row with such a logit */
}

static const char *words_for(enum kl_rule rule, double x, double t)
{
    bool nothing = kl_rule_is_log(rule) ? t == -(double)INFINITY : t == 0;
    if (isnan(x) || isnan(t))
        return "an operand is NaN there, or has no logarithm";
    if (nothing)
        return "target is a probability of 0 there, and input one of 0 or infinite: under "
               "compat=math the product is 0";
    if (x == -(double)INFINITY)
        return "input is a probability of 0 there, and target is not";
    return t < 0 && !kl_rule_is_log(rule) ? "target is negative there"
                                          : "an operand is infinite there";
}

bool kl_find_not_finite(const struct kl_look *look, size_t row, struct kl_reason *reason)
{
    const struct kl_plan *plan = look->plan;
    const struct kl_axes *along = &look->layout.along;
    enum kl_rule rule = kl_rule_of(plan);
    for (size_t i = 0; i < along->volume; i++) {
        double v[KL_OPERANDS];
        size_t at[KL_OPERANDS];
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            const struct kl_numbers *numbers = &look->operands[operand];
            at[operand] = kl_offset(&look->layout.across, numbers->array, row) +
                          kl_offset(along, numbers->array, i);
            v[operand] = kl_load(numbers->dtype, numbers->data, at[operand]);
        }
        bool ordinary = isfinite(v[KL_INPUT]) && isfinite(v[KL_TARGET]) &&
                        (v[KL_INPUT] > 0 || plan->spaces[KL_INPUT] != KL_PROB) &&
                        (v[KL_TARGET] >= 0 || plan->spaces[KL_TARGET] != KL_PROB);
        if (ordinary || kl_is_hidden(&look->layout, look->mask.data, row, i))
            continue;
        double x = as_logarithm(plan->spaces[KL_INPUT], v[KL_INPUT]);
        double t = plan->spaces[KL_TARGET] == KL_PROB
                       ? v[KL_TARGET]
                       : as_logarithm(plan->spaces[KL_TARGET], v[KL_TARGET]);
        if (isfinite(kl_term(rule, x, t)))
            continue;
        *reason =
            (struct kl_reason){at[KL_INPUT], v[KL_INPUT], v[KL_TARGET], words_for(rule, x, t)};
        return true;
    }
    return false;
}
