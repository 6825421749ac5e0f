/* Finds losses that are infinite or NaN: by bounds that tell of most rows that they hold none, and
 * in other rows by computing them, a tile of rows at a time. */
#include "lib/diagnose/diagnose.h"

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
        return (row->max - row->min) / context->plan->temperature + context->log_length;
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

/* True if a row with such minima may hold a loss that is not finite, whatever its bounds. */
static bool has_no_loss(const struct kl_plan *plan, double input, double target)
{
    return (plan->spaces[KL_INPUT] == KL_PROB && input <= 0) ||
           (plan->spaces[KL_TARGET] == KL_PROB && target < 0 && plan->options.compat != KL_ONEFLOW);
}

/* Extremes of n rows: bounds made of them hold for each row. */
static struct kl_row_stats extremes_of(const struct kl_diagnosis_context *context,
                                       const struct kl_rows_stats *s, size_t n)
{
    struct kl_row_stats (*stats)(const void *, size_t, bool) =
        context->kernel->row_stats[KL_FLOAT64];
    return (struct kl_row_stats){stats(s->min, n, false).min, stats(s->max, n, false).max,
                                 stats(s->sum, n, false).max, stats(s->exps, n, false).max};
}

/* Gives a row statistics that are fine. */
static void pass_row(const struct kl_diagnosis_context *context,
                     struct kl_rows_stats stats[KL_OPERANDS], size_t i)
{
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        double value = context->plan->spaces[operand] == KL_PROB;
        stats[operand].min[i] = stats[operand].max[i] = stats[operand].sum[i] = value;
        stats[operand].exps[i] = 1;
    }
}

static double find_suspects_one_by_one(const struct kl_diagnosis_context *context,
                                       const struct kl_rows_stats stats[KL_OPERANDS],
                                       const bool *looked_at, size_t n, bool *suspects)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct kl_row_stats row[KL_OPERANDS];
        if (!looked_at[i])
            continue;
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            const struct kl_rows_stats *s = &stats[operand];
            row[operand] = (struct kl_row_stats){s->min[i], s->max[i], s->sum[i], s->exps[i]};
        }
        struct kl_bounds bounds = kl_bound_losses(context, row);
        sum += bounds.sum;
        suspects[i] |= !kl_fits_losses(context->plan, bounds) ||
                       has_no_loss(context->plan, row[KL_INPUT].min, row[KL_TARGET].min);
    }
    return sum;
}

double kl_find_suspects(const struct kl_diagnosis_context *context,
                        struct kl_rows_stats stats[KL_OPERANDS], const bool *looked_at, size_t n,
                        bool *suspects)
{
    double sum = 0;
    memset(suspects, false, n);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(stats[KL_INPUT].sum[i] - stats[KL_TARGET].sum[i])) {
            suspects[i] = looked_at[i];
            pass_row(context, stats, i);
            sum = looked_at[i] ? INFINITY : sum;
        }
    struct kl_row_stats all[KL_OPERANDS] = {extremes_of(context, &stats[KL_INPUT], n),
                                            extremes_of(context, &stats[KL_TARGET], n)};
    struct kl_bounds bounds = kl_bound_losses(context, all);
    if (kl_fits_losses(context->plan, bounds) &&
        !has_no_loss(context->plan, all[KL_INPUT].min, all[KL_TARGET].min))
        return sum + bounds.sum * (double)n;
    return sum + find_suspects_one_by_one(context, stats, looked_at, n, suspects);
}

/* ---- Losses of a tile */

/* Loads a tile of an operand as doubles. */
static double *load_operand(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                            int operand, struct kl_diagnosis_scratch *s)
{
    double *v = s->operands[operand];
    kl_tile_load(context->kernel, &context->layout, tile, &context->operands[operand], KL_FLOAT64,
                 v);
    return v;
}

/* Sets masked elements to `value`. */
static void apply_mask(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                       struct kl_diagnosis_scratch *s, double *v, double value)
{
    if (!context->mask.data)
        return;
    kl_tile_load(context->kernel, &context->layout, tile, &context->mask, KL_FLOAT64, s->mask);
    context->kernel->apply_mask(v, s->mask, value, kl_tile_size(tile));
}

/* Replaces logits by what they are less their row's maximum, over the temperature, less `minus`. */
static void shift_rows(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                       struct kl_diagnosis_scratch *s, int operand, const double *minus)
{
    kl_broadcast(context->kernel, tile, s->max[operand], s->row_values[0]);
    kl_broadcast(context->kernel, tile, minus, s->row_values[1]);
    context->kernel->shift(s->operands[operand], s->row_values[0], s->row_values[1],
                           1 / context->plan->temperature, kl_tile_size(tile));
}

/* Finds log_sum of n rows of logits: NaN where a logit is NaN or +inf, and where all are -inf. A row alone, which
 * may be long, is left where that is seen. */
static void find_softmaxes(const struct kl_diagnosis_context *context, int operand, size_t row,
                           size_t n, struct kl_diagnosis_scratch *s)
{
    static const double zeros[KL_ROWS];
    const struct kl_kernel *kernel = context->kernel;
    kl_fill(s->max[operand], -(double)INFINITY, n);
    kl_fill(s->sums, 0, n);
    kl_fill(s->low, 0, n);
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)
    {
        double *v = load_operand(context, &tile, operand, s);
        apply_mask(context, &tile, s, v, -(double)INFINITY);
        kl_row_maxima(kernel, &tile, v, s->max[operand]);
        if (n == 1 && s->max[operand][0] == (double)INFINITY)
            break;
    }
    if (n == 1 && !isfinite(s->max[operand][0])) {
        s->log_sum[operand][0] = (double)NAN;
        return;
    }
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)
    {
        double *v = load_operand(context, &tile, operand, s);
        apply_mask(context, &tile, s, v, -(double)INFINITY);
        shift_rows(context, &tile, s, operand, zeros);
        kernel->exps(v, v, kl_tile_size(&tile));
        kl_add_to_rows(kernel, &tile, v, s->sums, s->low);
        if (n == 1 && isnan(s->sums[0]))
            break;
    }
    kernel->logs(s->sums, s->log_sum[operand], n);
}

/* Loads a tile of both operands as the rule takes them. */
static void load_operands(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                          struct kl_diagnosis_scratch *s)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        enum kl_space space = context->plan->spaces[i];
        double *v = load_operand(context, tile, i, s);
        if (space == KL_LOGIT)
            shift_rows(context, tile, s, i, s->log_sum[i]);
        else if (space == KL_PROB && i == KL_INPUT)
            context->kernel->logs(v, v, kl_tile_size(tile));
    }
}

/* Multiplies n losses by their weights, or by 1 if that is NULL, and rounds them as they are stored. */
static void weigh(const struct kl_diagnosis_context *context, struct kl_diagnosis_scratch *s,
                  double *losses, const double *weights, size_t n)
{
    const struct kl_plan *plan = context->plan;
    if (weights)
        context->kernel->multiply(losses, weights, n);
    if (plan->options.base == KL_BITS)
        context->kernel->scale(losses, 1 / M_LN2, n);
    if (plan->reduction != KL_NONE)
        return;
    context->kernel->narrow[plan->dtype](losses, s->gathered, n);
    context->kernel->widen[plan->dtype](s->gathered, losses, n);
}

/* Computes the losses of a tile to s->v, weighed if elements' are. */
static void compute_losses(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                           struct kl_diagnosis_scratch *s)
{
    enum kl_rule rule = kl_rule_of(context->plan);
    size_t n = kl_tile_size(tile);
    load_operands(context, tile, s);
    context->kernel->losses[KL_FLOAT64][kl_rule_is_log(rule)](rule, s->operands[KL_INPUT],
                                                              s->operands[KL_TARGET], s->v, n);
    if (context->layout.elementwise)
        weigh(context, s, s->v,
              kl_tile_doubles(context->kernel, &context->layout, tile, &context->weight,
                              s->row_values[0]),
              n);
    apply_mask(context, tile, s, s->v, 0);
}

/* Sums the losses of rows as they are reduced: elements that are stored have no sum, so 0 for each that is
 * finite, and NaN for others. */
static void add_losses(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                       struct kl_diagnosis_scratch *s)
{
    if (context->layout.elementwise && context->plan->reduction == KL_NONE)
        context->kernel->scale(s->v, 0, kl_tile_size(tile));
    kl_add_to_rows(context->kernel, tile, s->v, s->sums, s->low);
}

/* Weighs the sums of n rows, if elements have not been weighed. */
static void weigh_sums(const struct kl_diagnosis_context *context, size_t row, size_t n,
                       struct kl_diagnosis_scratch *s)
{
    double weights[KL_ROWS];
    if (context->layout.elementwise)
        return;
    if (context->weight.data)
        kl_gather(context->kernel, &context->layout.outer, &context->weight, row, n, KL_FLOAT64,
                  weights);
    weigh(context, s, s->sums, context->weight.data ? weights : NULL, n);
}

/* Prepares n rows: the softmaxes of logits, and sums of 0. */
static void start_rows(const struct kl_diagnosis_context *context, size_t row, size_t n,
                       struct kl_diagnosis_scratch *s)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        if (context->plan->spaces[i] == KL_LOGIT)
            find_softmaxes(context, i, row, n, s);
    kl_fill(s->sums, 0, n);
    kl_fill(s->low, 0, n);
}

/* True if a row holds a probability of 0 in input, as a logarithm or a logit, where target has one above 0: its
 * loss is infinite, or NaN for want of a softmax. By oneflow it may be 0 then. */
static bool has_infinite_loss(const struct kl_diagnosis_context *context, size_t row,
                              struct kl_diagnosis_scratch *s)
{
    const enum kl_space *spaces = context->plan->spaces;
    double nothing = spaces[KL_TARGET] == KL_PROB ? 0 : -(double)INFINITY;
    if (spaces[KL_INPUT] == KL_PROB || context->plan->options.compat == KL_ONEFLOW)
        return false;
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, 1, tile)
    {
        const double *x = load_operand(context, &tile, KL_INPUT, s);
        double *t = load_operand(context, &tile, KL_TARGET, s);
        apply_mask(context, &tile, s, t, nothing);
        for (size_t i = 0; i < tile.length; i++)
            if (x[i] == -(double)INFINITY && t[i] > nothing)
                return true;
    }
    return false;
}

void kl_find_rows_not_finite(const struct kl_diagnosis_context *context, size_t row, size_t n,
                             struct kl_diagnosis_scratch *s, bool *not_finite)
{
    if (n == 1 && has_infinite_loss(context, row, s)) {
        not_finite[0] = true;
        return;
    }
    start_rows(context, row, n, s);
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)
    {
        compute_losses(context, &tile, s);
        add_losses(context, &tile, s);
        if (n == 1 && !isfinite(s->sums[0]))
            break;
    }
    weigh_sums(context, row, n, s);
    for (size_t i = 0; i < n; i++)
        not_finite[i] = !isfinite(s->sums[i]);
}

/* ---- The first loss of a row */

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

static size_t element_of(const struct kl_diagnosis_context *context, enum kl_array array,
                         size_t row, size_t i)
{
    return kl_offset(&context->layout.outer, array, row) +
           kl_offset(&context->layout.inner, array, i);
}

static struct kl_reason reason_at(const struct kl_diagnosis_context *context, size_t row, size_t i,
                                  const char *words)
{
    size_t at[KL_OPERANDS];
    double v[KL_OPERANDS];
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        const struct kl_array_view *view = &context->operands[operand];
        at[operand] = element_of(context, view->array, row, i);
        v[operand] = kl_load(view->dtype, view->data, at[operand]);
    }
    return (struct kl_reason){at[KL_INPUT], v[KL_INPUT], v[KL_TARGET], words};
}

bool kl_find_not_finite(const struct kl_diagnosis_context *context, size_t row,
                        struct kl_diagnosis_scratch *s, struct kl_reason *reason)
{
    enum kl_rule rule = kl_rule_of(context->plan);
    start_rows(context, row, 1, s);
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, 1, tile)
    {
        compute_losses(context, &tile, s);
        for (size_t i = 0; i < tile.length; i++)
            if (!isfinite(s->v[i])) {
                *reason = reason_at(
                    context, row, tile.start + i,
                    reason_text(rule, s->operands[KL_INPUT][i], s->operands[KL_TARGET][i]));
                return true;
            }
        add_losses(context, &tile, s);
    }
    weigh_sums(context, row, 1, s);
    if (isfinite(s->sums[0]))
        return false;
    *reason = reason_at(context, row, 0, "the sum of the row's losses is too large for its dtype");
    return true;
}
