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
                          double *v)
{
    double keep[KL_BLOCK];
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
                    struct kl_surveys *surveys)
{
    double v[KL_BLOCK];
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
            hide_elements(look, &tile, operand, v);
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
        double v[2];
        size_t at[2];
        for (int operand = 0; operand < 2; operand++) {
            const struct kl_numbers *numbers = &look->operands[operand];
            at[operand] = kl_offset(&look->layout.across, numbers->array, row) +
                          kl_offset(along, numbers->array, i);
            v[operand] = kl_load(numbers->dtype, numbers->data, at[operand]);
        }
        bool ordinary = isfinite(v[0]) && isfinite(v[1]) &&
                        (v[0] > 0 || plan->spaces[0] != KL_PROB) &&
                        (v[1] >= 0 || plan->spaces[1] != KL_PROB);
        if (ordinary || kl_is_hidden(&look->layout, look->mask.data, row, i))
            continue;
        double x = as_logarithm(plan->spaces[0], v[0]);
        double t = plan->spaces[1] == KL_PROB ? v[1] : as_logarithm(plan->spaces[1], v[1]);
        if (isfinite(kl_term(rule, x, t)))
            continue;
        *reason = (struct kl_reason){at[0], v[0], v[1], words_for(rule, x, t)};
        return true;
    }
    return false;
}
