/* Finds losses that are infinite or NaN: by bounds that tell of most rows that they hold none, and
 * in other rows element by element. */
#include "lib/diagnose/not_finite.h"

#include <float.h>
#include <math.h>

/* ---- Bounds */

/* MOST_LOG: no logarithm of a positive double is larger, in size. */
static const double MOST_LOG = 746;

double kl_largest(enum kl_dtype dtype)
{
    static const double largest[KL_DTYPES] = {[KL_FLOAT64] = DBL_MAX,
                                              [KL_FLOAT32] = 0x1.fffffep127,
                                              [KL_FLOAT16] = 65504,
                                              [KL_BFLOAT16] = 0x1.fep127};
    return largest[dtype];
}

/* The larger size, of numbers of which neither is NaN; rows with NaN are found by their sums. */
static double larger_size(double a, double b)
{
    double x = __builtin_fabs(a), y = __builtin_fabs(b);
    return x > y ? x : y;
}

/* The largest size of a log-probability of a row. */
static double log_size(const struct kl_look *look, int operand, const struct kl_row_stats *row)
{
    switch (look->plan->spaces[operand]) {
    case KL_PROB:
        return MOST_LOG;
    case KL_LOGIT:
        return (row->greatest - row->least) / look->plan->temperature +
               log((double)look->layout.along.volume);
    default:
        return larger_size(row->least, row->greatest);
    }
}

struct kl_bounds kl_bound_losses(const struct kl_look *look,
                                 const struct kl_row_stats operands[KL_OPERANDS])
{
    const struct kl_row_stats *target = &operands[KL_TARGET];
    double n = (double)look->layout.along.volume, most = 1, sum_p = 1;
    double size = log_size(look, KL_INPUT, &operands[KL_INPUT]) + log_size(look, KL_TARGET, target);
    if (look->plan->spaces[KL_TARGET] == KL_PROB) {
        most = larger_size(target->least, target->greatest);
        sum_p = target->least >= 0 ? target->sum : n * most;
    } else if (look->plan->spaces[KL_TARGET] == KL_LOG_PROB) {
        most = exp(target->greatest);
        sum_p = target->greatest <= 0 ? target->exps * 1.001 : n * most;
    }
    return (struct kl_bounds){most * size * look->factor, sum_p * size * look->factor};
}

bool kl_fits_losses(const struct kl_plan *plan, struct kl_bounds bounds)
{
    bool stored = plan->reduction == KL_NONE, each = plan->options.n_dim == 0;
    return (stored && each ? bounds.each : bounds.sum) <=
           (stored ? kl_largest(plan->dtype) : DBL_MAX);
}

/* ---- One row */

/* A row's logits: the greatest, and the log of the sum of the exponentials of what others are less
 * than that. Of other operands 0. */
struct softmax {
    double greatest, log_sum;
};

static size_t element_of(const struct kl_look *look, enum kl_array array, size_t row, size_t i)
{
    return kl_offset(&look->layout.across, array, row) + kl_offset(&look->layout.along, array, i);
}

static double element(const struct kl_look *look, int operand, size_t row, size_t i)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    return kl_load(numbers->dtype, numbers->data, element_of(look, numbers->array, row, i));
}

/* NaN where a logit is NaN or +inf, and where all are -inf. */
static struct softmax softmax_of(const struct kl_look *look, int operand, size_t row)
{
    struct softmax softmax = {0, 0};
    double sum = 0, scale = 1 / look->plan->temperature;
    size_t n = look->layout.along.volume;
    if (look->plan->spaces[operand] != KL_LOGIT)
        return softmax;
    softmax.greatest = -(double)INFINITY;
    for (size_t i = 0; i < n; i++)
        if (!kl_is_masked(&look->layout, look->mask.data, row, i))
            softmax.greatest = fmax(softmax.greatest, element(look, operand, row, i));
    for (size_t i = 0; i < n; i++)
        if (!kl_is_masked(&look->layout, look->mask.data, row, i))
            sum += exp((element(look, operand, row, i) - softmax.greatest) * scale);
    softmax.log_sum = log(sum);
    return softmax;
}

/* An element as the rule takes it. */
static double as_taken(const struct kl_look *look, int operand, const struct softmax *softmax,
                       double v)
{
    enum kl_space space = look->plan->spaces[operand];
    if (space == KL_LOGIT)
        return (v - softmax->greatest) / look->plan->temperature - softmax->log_sum;
    return space == KL_PROB && operand == KL_INPUT ? log(v) : v;
}

/* A loss as it is weighed, and stored if it is. */
static double weighed(const struct kl_look *look, size_t row, size_t i, double loss)
{
    const struct kl_plan *plan = look->plan;
    double cell;
    if (plan->weight.data)
        loss *=
            kl_load(plan->weight.dtype, plan->weight.data, element_of(look, KL_OF_WEIGHT, row, i));
    if (plan->options.base == KL_BITS)
        loss /= M_LN2;
    if (plan->reduction != KL_NONE)
        return loss;
    kl_store(plan->dtype, &cell, 0, loss);
    return kl_load(plan->dtype, &cell, 0);
}

static const char *words_for(enum kl_rule rule, double x, double t)
{
    bool nothing = kl_rule_is_log(rule) ? t == -(double)INFINITY : t == 0;
    if (isnan(x) || isnan(t))
        return "an operand is NaN there, or has no logarithm, or its row no softmax";
    if (!kl_rule_is_log(rule) && t < 0)
        return "target is negative there";
    if (nothing)
        return "target is a probability of 0 there, and input is 0 or infinite: with compat=math "
               "the product is 0";
    if (x == -(double)INFINITY)
        return "input is a probability of 0 there, and target is not";
    return isinf(x) || isinf(t) ? "an operand is infinite there"
                                : "the loss is too large for its dtype";
}

/* True if an element's loss is finite, where bounds fit. */
static bool is_ordinary(const struct kl_plan *plan, double x, double t)
{
    return isfinite(x) && isfinite(t) && (x > 0 || plan->spaces[KL_INPUT] != KL_PROB) &&
           (t >= 0 || plan->spaces[KL_TARGET] != KL_PROB);
}

/* Extremes of the elements that the mask leaves. */
static struct kl_bounds bound_row(const struct kl_look *look, size_t row)
{
    const struct kl_row_stats none = {INFINITY, -(double)INFINITY, 0, 0};
    struct kl_row_stats s[KL_OPERANDS] = {none, none};
    size_t n = look->layout.along.volume;
    for (size_t i = 0; i < n; i++)
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            double v = element(look, operand, row, i);
            if (!isfinite(v) || kl_is_masked(&look->layout, look->mask.data, row, i))
                continue;
            s[operand].least = fmin(s[operand].least, v);
            s[operand].greatest = fmax(s[operand].greatest, v);
            s[operand].sum += v;
        }
    s[KL_TARGET].exps = (double)n * exp(s[KL_TARGET].greatest);
    return kl_bound_losses(look, s);
}

bool kl_find_not_finite(const struct kl_look *look, size_t row, struct kl_reason *reason)
{
    const struct kl_plan *plan = look->plan;
    enum kl_rule rule = kl_rule_of(plan);
    struct softmax softmax[KL_OPERANDS];
    double sum = 0, x = 0, t = 0;
    bool skip_ordinary = kl_fits_losses(plan, bound_row(look, row));
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        softmax[operand] = softmax_of(look, operand, row);
    bool no_softmax = isnan(softmax[KL_INPUT].log_sum) || isnan(softmax[KL_TARGET].log_sum);
    for (size_t i = 0; i < look->layout.along.volume; i++) {
        x = element(look, KL_INPUT, row, i), t = element(look, KL_TARGET, row, i);
        if ((skip_ordinary && !no_softmax && is_ordinary(plan, x, t)) ||
            kl_is_masked(&look->layout, look->mask.data, row, i))
            continue;
        double a = as_taken(look, KL_INPUT, &softmax[KL_INPUT], x);
        double b = as_taken(look, KL_TARGET, &softmax[KL_TARGET], t);
        double loss = kl_term(rule, a, b);
        sum += loss;
        if (look->layout.each ? isfinite(weighed(look, row, i, loss)) : isfinite(loss))
            continue;
        *reason =
            (struct kl_reason){element_of(look, KL_OF_INPUT, row, i), x, t, words_for(rule, a, b)};
        return true;
    }
    if (look->layout.each ? isfinite(sum) : isfinite(weighed(look, row, 0, sum)))
        return false;
    *reason = (struct kl_reason){element_of(look, KL_OF_INPUT, row, 0),
                                 element(look, KL_INPUT, row, 0), element(look, KL_TARGET, row, 0),
                                 "the sum of the row's losses is too large for its dtype"};
    return true;
}
