/* Finds losses that are infinite or NaN: by bounds that tell of most rows that they hold none, and
 * in other rows element by element. */
#include "lib/diagnose/diagnose.h"
#include "lib/simd/reference.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

/* part: PART elements of a row as doubles, from `start` on: few, for they are on the stack. */
enum { PART = 256 };
struct part {
    size_t start, n;
    bool holds_row; /* there is no other part */
    double v[KL_OPERANDS][PART];
    unsigned char unmasked[PART];
};

static void rewind_part(struct part *part) { part->start = part->n = 0; }

/* Loads the elements after a part, or the first ones of a rewound part; false at the end of the row. */
static bool load_next(const struct kl_diagnosis_context *context, size_t row, struct part *part)
{
    const struct kl_layout *layout = &context->layout;
    part->start += part->n;
    part->n = kl_min(PART, layout->inner.volume - part->start);
    struct kl_tile tile = {.row = row, .rows = 1, .start = part->start, .length = part->n};
    if (part->n == 0 || part->holds_row)
        return part->n > 0;
    part->holds_row = part->n == layout->inner.volume;
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_tile_load(context->kernel, layout, &tile, &context->operands[i], KL_FLOAT64, part->v[i]);
    if (context->mask.data)
        kl_tile_load(context->kernel, layout, &tile, &context->mask, KL_FLOAT64, part->unmasked);
    else
        memset(part->unmasked, 1, part->n);
    return true;
}

/* Adds the sum of the exponentials of a part. */
static void add_exps(const struct kl_diagnosis_context *context, const struct part *part,
                     int operand, struct softmax *softmax)
{
    const double *v = part->v[operand], scale = 1 / context->plan->temperature;
    double exps[PART];
    for (size_t i = 0; i < part->n; i++)
        exps[i] = part->unmasked[i] ? (v[i] - softmax->max) * scale : -(double)INFINITY;
    context->kernel->exps(exps, exps, part->n);
    for (size_t i = 0; i < part->n; i++)
        softmax->log_sum += exps[i];
}

/* NaN where a logit is NaN or +inf, and where all are -inf. */
static struct softmax softmax_of(const struct kl_diagnosis_context *context, int operand,
                                 size_t row, struct part *part)
{
    struct softmax softmax = {0, 0};
    if (context->plan->spaces[operand] != KL_LOGIT)
        return softmax;
    softmax.max = -(double)INFINITY;
    rewind_part(part);
    while (load_next(context, row, part))
        for (size_t i = 0; i < part->n; i++)
            if (part->unmasked[i] && part->v[operand][i] > softmax.max)
                softmax.max = part->v[operand][i];
    if (isinf(softmax.max)) {
        softmax.log_sum = (double)NAN;
        return softmax;
    }
    rewind_part(part);
    while (load_next(context, row, part))
        add_exps(context, part, operand, &softmax);
    softmax.log_sum = log(softmax.log_sum);
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
static struct kl_bounds bound_row(const struct kl_diagnosis_context *context, size_t row,
                                  struct part *part)
{
    const struct kl_row_stats none = {INFINITY, -(double)INFINITY, 0, 0};
    struct kl_row_stats s[KL_OPERANDS] = {none, none};
    rewind_part(part);
    while (load_next(context, row, part))
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            for (size_t i = 0; i < part->n; i++) {
                double v = part->v[operand][i];
                if (!isfinite(v) || !part->unmasked[i])
                    continue;
                s[operand].min = v < s[operand].min ? v : s[operand].min;
                s[operand].max = v > s[operand].max ? v : s[operand].max;
                s[operand].sum += v;
            }
    s[KL_TARGET].exps = (double)context->layout.inner.volume * exp(s[KL_TARGET].max);
    return kl_bound_losses(context, s);
}

/* search: the search of a row for a loss that is not finite. */
struct search {
    const struct kl_diagnosis_context *context;
    size_t row;
    bool skips_ordinary; /* elements whose loss is finite by the bounds */
    struct softmax softmax[KL_OPERANDS];
    double sum; /* of the losses that were computed */
};

/* True if the loss of element i of a part is not finite. */
static bool check_element(struct search *search, const struct part *part, size_t i,
                          struct kl_reason *reason)
{
    const struct kl_diagnosis_context *context = search->context;
    enum kl_rule rule = kl_rule_of(context->plan);
    double x = part->v[KL_INPUT][i], t = part->v[KL_TARGET][i];
    double a = to_log_prob(context, KL_INPUT, &search->softmax[KL_INPUT], x);
    double b = to_log_prob(context, KL_TARGET, &search->softmax[KL_TARGET], t);
    double loss = kl_term(rule, a, b);
    size_t at = part->start + i;
    search->sum += loss;
    if (context->layout.elementwise ? isfinite(weighed(context, search->row, at, loss))
                                    : isfinite(loss))
        return false;
    *reason = (struct kl_reason){element_of(context, KL_OF_INPUT, search->row, at), x, t,
                                 reason_text(rule, a, b)};
    return true;
}

static bool check_part(struct search *search, const struct part *part, struct kl_reason *reason)
{
    const struct kl_plan *plan = search->context->plan;
    for (size_t i = 0; i < part->n; i++) {
        bool ordinary = search->skips_ordinary &&
                        has_finite_loss(plan, part->v[KL_INPUT][i], part->v[KL_TARGET][i]);
        if (!ordinary && part->unmasked[i] && check_element(search, part, i, reason))
            return true;
    }
    return false;
}

bool kl_find_not_finite(const struct kl_diagnosis_context *context, size_t row,
                        struct kl_reason *reason)
{
    struct search search = {.context = context, .row = row};
    struct part part;
    part.holds_row = false;
    search.skips_ordinary = kl_fits_losses(context->plan, bound_row(context, row, &part));
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        search.softmax[operand] = softmax_of(context, operand, row, &part);
        search.skips_ordinary &= !isnan(search.softmax[operand].log_sum);
    }
    rewind_part(&part);
    while (load_next(context, row, &part))
        if (check_part(&search, &part, reason))
            return true;
    bool fits =
        isfinite(context->layout.elementwise ? search.sum : weighed(context, row, 0, search.sum));
    if (fits)
        return false;
    rewind_part(&part);
    load_next(context, row, &part);
    *reason = (struct kl_reason){element_of(context, KL_OF_INPUT, row, 0), part.v[KL_INPUT][0],
                                 part.v[KL_TARGET][0],
                                 "the sum of the row's losses is too large for its dtype"};
    return true;
}
