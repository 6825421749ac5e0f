/* Finds losses that are infinite or NaN: by bounds that tell of most rows that they hold none, and
 * in other rows element by element. */
#include "lib/diagnose/diagnose.h"
#include "lib/simd/reference.h"

#include <float.h>
#include <math.h>

/* ---- Bounds */

/* MAX_LOG: no logarithm of a positive double is larger, in size. */
static const double MAX_LOG = 746;

double kl_largest(enum kl_dtype dtype)
{
    static const double largest[KL_DTYPES] = {[KL_FLOAT64] = DBL_MAX,
                                              [KL_FLOAT32] = 0x1.fffffep127,
                                              [KL_FLOAT16] = 65504,
                                              [KL_BFLOAT16] = 0x1.fep127};
    return largest[dtype];
}

/* The larger size, of numbers of which neither is NaN; rows with NaN are found by their sums. */
static double max_magnitude(double a, double b)
{
    double x = __builtin_fabs(a), y = __builtin_fabs(b);
    return x > y ? x : y;
}

/* The largest size of a log-probability of a row. */
static double log_size(const struct kl_diagnosis_context *context, int operand,
                       const struct kl_row_stats *row)
{
    switch (context->plan->spaces[operand]) {
    case KL_PROB:
        return MAX_LOG;
    case KL_LOGIT:
        return (row->max - row->min) / context->plan->temperature +
               log((double)context->layout.inner.volume);
    default:
        return max_magnitude(row->min, row->max);
    }
}

struct kl_bounds kl_bound_losses(const struct kl_diagnosis_context *context,
                                 const struct kl_row_stats operands[KL_OPERANDS])
{
    const struct kl_row_stats *target = &operands[KL_TARGET];
    double n = (double)context->layout.inner.volume, max = 1, sum_p = 1;
    double size =
        log_size(context, KL_INPUT, &operands[KL_INPUT]) + log_size(context, KL_TARGET, target);
    if (context->plan->spaces[KL_TARGET] == KL_PROB) {
        max = max_magnitude(target->min, target->max);
        sum_p = target->min >= 0 ? target->sum : n * max;
    } else if (context->plan->spaces[KL_TARGET] == KL_LOG_PROB) {
        max = exp(target->max);
        sum_p = target->max <= 0 ? target->exps * 1.001 : n * max;
    }
    return (struct kl_bounds){max * size * context->factor, sum_p * size * context->factor};
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
    double max, log_sum;
};

static size_t element_of(const struct kl_diagnosis_context *context, enum kl_array array,
                         size_t row, size_t i)
{
    return kl_offset(&context->layout.outer, array, row) +
           kl_offset(&context->layout.inner, array, i);
}

static double element(const struct kl_diagnosis_context *context, int operand, size_t row, size_t i)
{
    const struct kl_array_view *view = &context->operands[operand];
    return kl_load(view->dtype, view->data, element_of(context, view->array, row, i));
}

/* NaN where a logit is NaN or +inf, and where all are -inf. */
static struct softmax softmax_of(const struct kl_diagnosis_context *context, int operand,
                                 size_t row)
{
    struct softmax softmax = {0, 0};
    double sum = 0, scale = 1 / context->plan->temperature;
    size_t n = context->layout.inner.volume;
    if (context->plan->spaces[operand] != KL_LOGIT)
        return softmax;
    softmax.max = -(double)INFINITY;
    for (size_t i = 0; i < n; i++)
        if (!kl_is_masked(&context->layout, context->mask.data, row, i))
            softmax.max = fmax(softmax.max, element(context, operand, row, i));
    for (size_t i = 0; i < n; i++)
        if (!kl_is_masked(&context->layout, context->mask.data, row, i))
            sum += exp((element(context, operand, row, i) - softmax.max) * scale);
    softmax.log_sum = log(sum);
    return softmax;
}

/* An element as the rule takes it. */
static double to_log_prob(const struct kl_diagnosis_context *context, int operand,
                          const struct softmax *softmax, double v)
{
    enum kl_space space = context->plan->spaces[operand];
    if (space == KL_LOGIT)
        return (v - softmax->max) / context->plan->temperature - softmax->log_sum;
    return space == KL_PROB && operand == KL_INPUT ? log(v) : v;
}

/* A loss as it is weighed, and stored if it is. */
static double weighed(const struct kl_diagnosis_context *context, size_t row, size_t i, double loss)
{
    const struct kl_plan *plan = context->plan;
    double cell;
    if (plan->weight.data)
        loss *= kl_load(plan->weight.dtype, plan->weight.data,
                        element_of(context, KL_OF_WEIGHT, row, i));
    if (plan->options.base == KL_BITS)
        loss /= M_LN2;
    if (plan->reduction != KL_NONE)
        return loss;
    kl_store(plan->dtype, &cell, 0, loss);
    return kl_load(plan->dtype, &cell, 0);
}

static const char *reason_text(enum kl_rule rule, double x, double t)
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
static bool has_finite_loss(const struct kl_plan *plan, double x, double t)
{
    return isfinite(x) && isfinite(t) && (x > 0 || plan->spaces[KL_INPUT] != KL_PROB) &&
           (t >= 0 || plan->spaces[KL_TARGET] != KL_PROB);
}

/* Extremes of the elements that the mask leaves. */
static struct kl_bounds bound_row(const struct kl_diagnosis_context *context, size_t row)
{
    const struct kl_row_stats none = {INFINITY, -(double)INFINITY, 0, 0};
    struct kl_row_stats s[KL_OPERANDS] = {none, none};
    size_t n = context->layout.inner.volume;
    for (size_t i = 0; i < n; i++)
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            double v = element(context, operand, row, i);
            if (!isfinite(v) || kl_is_masked(&context->layout, context->mask.data, row, i))
                continue;
            s[operand].min = fmin(s[operand].min, v);
            s[operand].max = fmax(s[operand].max, v);
            s[operand].sum += v;
        }
    s[KL_TARGET].exps = (double)n * exp(s[KL_TARGET].max);
    return kl_bound_losses(context, s);
}

bool kl_find_not_finite(const struct kl_diagnosis_context *context, size_t row,
                        struct kl_reason *reason)
{
    const struct kl_plan *plan = context->plan;
    enum kl_rule rule = kl_rule_of(plan);
    struct softmax softmax[KL_OPERANDS];
    double sum = 0, x = 0, t = 0;
    bool skip_ordinary = kl_fits_losses(plan, bound_row(context, row));
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        softmax[operand] = softmax_of(context, operand, row);
    bool no_softmax = isnan(softmax[KL_INPUT].log_sum) || isnan(softmax[KL_TARGET].log_sum);
    for (size_t i = 0; i < context->layout.inner.volume; i++) {
        x = element(context, KL_INPUT, row, i), t = element(context, KL_TARGET, row, i);
        if ((skip_ordinary && !no_softmax && has_finite_loss(plan, x, t)) ||
            kl_is_masked(&context->layout, context->mask.data, row, i))
            continue;
        double a = to_log_prob(context, KL_INPUT, &softmax[KL_INPUT], x);
        double b = to_log_prob(context, KL_TARGET, &softmax[KL_TARGET], t);
        double loss = kl_term(rule, a, b);
        sum += loss;
        if (context->layout.elementwise ? isfinite(weighed(context, row, i, loss)) : isfinite(loss))
            continue;
        *reason = (struct kl_reason){element_of(context, KL_OF_INPUT, row, i), x, t,
                                     reason_text(rule, a, b)};
        return true;
    }
    if (context->layout.elementwise ? isfinite(sum) : isfinite(weighed(context, row, 0, sum)))
        return false;
    *reason =
        (struct kl_reason){element_of(context, KL_OF_INPUT, row, 0),
                           element(context, KL_INPUT, row, 0), element(context, KL_TARGET, row, 0),
                           "the sum of the row's losses is too large for its dtype"};
    return true;
}
