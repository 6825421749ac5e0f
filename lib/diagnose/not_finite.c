/* Finds losses that are infinite or NaN: by bounds that tell of most rows that they hold none, and
 * in other rows by computing them, a tile of rows at a time. */
#include "lib/diagnose/diagnose.h"
#include "lib/rows/softmax.h"

#include <float.h>

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
static double log_size(const struct kl_diagnosing *d, int operand, const struct kl_row_stats *row)
{
    const struct kl_plan *plan = d->sound.plan;
    return plan->spaces[operand] == KL_PROB ? MAX_LOG
           : plan->spaces[operand] == KL_LOGIT
               ? (row->max - row->min) / plan->temperature + d->log_length
               : max_magnitude(row->min, row->max);
}

/* Upper bounds of the sizes of an operand's probabilities, and of their sum. */
static struct kl_bounds bound_probs(const struct kl_diagnosing *d, int operand,
                                    const struct kl_row_stats *row)
{
    enum kl_space space = d->sound.plan->spaces[operand];
    struct kl_bounds bounds = {1, 1};
    double n = (double)d->layout.inner.volume;
    if (space == KL_PROB) {
        bounds.each = max_magnitude(row->min, row->max);
        bounds.sum = row->min >= 0 ? row->sum : n * bounds.each;
    } else if (space == KL_LOG_PROB) {
        bounds.each = row->max <= 0 ? 1 : exp(row->max);
        bounds.sum = row->max <= 0 ? row->exps * 1.001 : n * bounds.each;
    }
    return bounds;
}

struct kl_bounds kl_bound_losses(const struct kl_diagnosing *d,
                                 const struct kl_row_stats row[KL_OPERANDS])
{
    const struct kl_plan *plan = d->sound.plan;
    double size = log_size(d, KL_INPUT, &row[KL_INPUT]) + log_size(d, KL_TARGET, &row[KL_TARGET]);
    struct kl_bounds input = bound_probs(d, KL_INPUT, &row[KL_INPUT]),
                     target = bound_probs(d, KL_TARGET, &row[KL_TARGET]), probs = target;
    if (plan->divergence == KL_REVERSE)
        probs = input;
    if (kl_is_mixture(plan)) { /* m is at least share p, and p log(m / p) at most m */
        size = 1 - log(plan->share) - (plan->divergence == KL_JS ? log1p(-plan->share) : 0);
        probs = (struct kl_bounds){input.each + target.each, input.sum + target.sum};
    }
    return (struct kl_bounds){probs.each * size * d->factor, probs.sum * size * d->factor};
}

bool kl_fits_losses(const struct kl_plan *plan, struct kl_bounds bounds)
{
    bool stored = plan->reduction == KL_NONE, each = plan->options.n_dim == 0;
    return (stored && each ? bounds.each : bounds.sum) <=
           (stored ? kl_largest(plan->dtype) : DBL_MAX);
}

/* ---- Losses of a tile */

void kl_start_rows(struct kl_workspace *b, struct kl_job *job, struct kl_group *group, size_t row,
                   size_t n)
{
    *group = (struct kl_group){.row = row, .rows = n, .end = job->layout->inner.volume};
    kl_start_chunk(job, b);
    kl_start_group(b, group);
}

/* Multiplies losses by weights, sets masked ones to 0, and rounds them as they are stored. */
static void weigh(struct kl_workspace *b, double *losses, const double *weights,
                  const unsigned char *mask, size_t n)
{
    const struct kl_job *job = b->job;
    kl_weigh_losses(job, losses, weights, mask, n);
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, n);
    if (job->plan->reduction != KL_NONE)
        return;
    job->kernel->narrow[job->plan->dtype](losses, b->scratch, n);
    job->kernel->widen[job->plan->dtype](b->scratch, losses, n);
}

/* Computes the losses of a tile to b->losses, weighed if elements' are. */
static void compute_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    kl_compute_losses(b, tile);
    if (job->layout->elementwise)
        weigh(b, b->losses,
              kl_tile_doubles(job->kernel, job->layout, tile, &job->weight, b->weight),
              kl_unmasked(b, tile), kl_tile_size(tile));
    else
        kl_apply_mask(b, tile, b->losses, 0);
}

/* Adds the losses of rows as they are reduced: elements that are stored have no sum, so 0 for each that is
 * finite, and NaN for others. */
static void add_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    if (job->layout->elementwise && job->plan->reduction == KL_NONE)
        job->kernel->scale(b->losses, 0, kl_tile_size(tile));
    kl_add_to_rows(job->kernel, tile, b->losses, b->high, b->low);
}

/* Weighs the sums of the group's rows, if elements have not been weighed. */
static void weigh_sums(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    double weights[KL_ROWS];
    if (job->layout->elementwise)
        return;
    if (job->weight.data)
        kl_gather(job->kernel, &job->layout->outer, &job->weight, b->group->row, b->group->rows,
                  weights);
    weigh(b, b->high, job->weight.data ? weights : NULL, NULL, b->group->rows);
}

/* Finds the softmaxes of a group of n rows, and clears its sums. */
static void start_losses(struct kl_workspace *b, struct kl_job *job, struct kl_group *group,
                         size_t row, size_t n)
{
    kl_start_rows(b, job, group, row, n);
    kl_find_softmaxes(b);
    kl_fill(b->high, 0, n);
    kl_fill(b->low, 0, n);
}

void kl_find_rows_not_finite(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                             bool *not_finite)
{
    struct kl_group group;
    start_losses(b, n > 1 ? &d->sound : &d->other, &group, row, n);
    KL_FOR_EACH_TILE (b, tile) {
        compute_losses(b, &tile);
        add_losses(b, &tile);
        if (n == 1 && !isfinite(b->high[0]))
            break;
    }
    weigh_sums(b);
    for (size_t i = 0; i < n; i++)
        not_finite[i] = !isfinite(b->high[i]);
}

/* ---- The first loss of a row */

static const char *reason_text(const struct kl_plan *plan, enum kl_rule rule, double x, double t)
{
    bool is_prob = plan->spaces[KL_TARGET] == KL_PROB;
    if (plan->divergence != KL_FORWARD && (x > MAX_LOG || t > MAX_LOG))
        return "an operand is infinite there, or its exponential";
    if (plan->divergence != KL_FORWARD)
        return isnan(x) || isnan(t) || (is_prob && t < 0)
                   ? "an operand is NaN or negative there, or its row has no softmax"
               : t == (is_prob ? 0 : -(double)INFINITY)
                   ? "target is a probability of 0 there, and input is not"
               : isinf(x) || isinf(t) ? "an operand is infinite there"
                                      : "the loss is too large for its dtype";
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

static struct kl_reason reason_at(const struct kl_job *job, size_t row, size_t i, const char *words)
{
    size_t at[KL_OPERANDS];
    double v[KL_OPERANDS];
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        const struct kl_array_view *view = &job->operands[operand];
        at[operand] = kl_offset(&job->layout->outer, view->array, row) +
                      kl_offset(&job->layout->inner, view->array, i);
        v[operand] = kl_load(view->dtype, view->data, at[operand]);
    }
    return (struct kl_reason){at[KL_INPUT], v[KL_INPUT], v[KL_TARGET], words};
}

bool kl_find_not_finite(struct kl_diagnosing *d, size_t row, struct kl_reason *reason)
{
    const struct kl_job *job = &d->other;
    struct kl_workspace *b = kl_workspace_of(d->scratch);
    struct kl_group group;
    start_losses(b, &d->other, &group, row, 1);
    KL_FOR_EACH_TILE (b, tile) {
        size_t i = 0;
        compute_losses(b, &tile);
        while (i < tile.length && isfinite(b->losses[i]))
            i++;
        if (i < tile.length) {
            kl_load_log_probs(b, &tile);
            *reason =
                reason_at(job, row, tile.start + i,
                          reason_text(job->plan, job->rule, b->v[KL_INPUT][i], b->v[KL_TARGET][i]));
            return true;
        }
        add_losses(b, &tile);
    }
    weigh_sums(b);
    if (isfinite(b->high[0]))
        return false;
    *reason = reason_at(job, row, 0, "the sum of the row's losses is too large for its dtype");
    return true;
}
