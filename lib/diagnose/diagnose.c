#include "lib/diagnose/diagnose.h"
#include "lib/reduction.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- One row */

static void note(struct kl_finding_counts *counts, enum kl_finding finding, size_t row,
                 double value, enum kl_kind kind)
{
    struct kl_finding_count *tally = &counts->of[finding];
    if (tally->count++ == 0) {
        tally->first = row;
        tally->min = tally->max = value;
    }
    tally->kinds[kind]++;
    tally->min = fmin(tally->min, value);
    tally->max = fmax(tally->max, value);
}

static bool is_one(const struct kl_diagnosing *d, int operand, double sum)
{
    return fabs(sum - 1) <= d->tolerance[operand];
}

static enum kl_kind kind_of(const struct kl_diagnosing *d, int operand,
                            const struct kl_rows_stats *s, size_t i)
{
    if (s->min[i] >= 0)
        return is_one(d, operand, s->sum[i]) ? KL_LIKE_PROBABILITIES : KL_LIKE_COUNTS;
    return s->max[i] <= 0 ? KL_LIKE_LOGARITHMS : KL_LIKE_LOGITS;
}

/* A sound row has probabilities that sum to 1 and no loss that is suspect. */
static bool is_sound(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                     size_t i)
{
    enum kl_space space = d->context.plan->spaces[operand];
    if (!isfinite(s->sum[i]) || (operand == KL_INPUT && space == KL_PROB && s->min[i] == 0))
        return false;
    return space == KL_LOG_PROB ? s->max[i] <= 0 && is_one(d, operand, s->exps[i])
           : space == KL_PROB   ? s->min[i] >= 0 && is_one(d, operand, s->sum[i])
                                : true;
}

/* The sum of a row's probabilities where it is wrong, else 1. The missing part of a sum below 1 may
 * be masked. */
static double wrong_sum(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                        size_t i)
{
    enum kl_space space = d->context.plan->spaces[operand];
    double sum = space == KL_PROB ? s->sum[i] : space == KL_LOG_PROB ? s->exps[i] : 1;
    bool fine =
        isnan(s->sum[i]) || is_one(d, operand, sum) || (kl_masks_elements(&d->context) && sum < 1);
    return fine ? 1 : sum;
}

static void check_operand(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                          size_t i, size_t row, struct kl_finding_counts *counts)
{
    enum kl_space space = d->context.plan->spaces[operand];
    enum kl_kind kind = kind_of(d, operand, s, i);
    double sum = wrong_sum(d, operand, s, i);
    if (operand == KL_INPUT && space == KL_LOG_PROB && s->max[i] > 0)
        note(counts, KL_INPUT_NOT_LOG_PROBABILITIES, row, s->max[i], kind);
    if (operand == KL_TARGET && space == KL_PROB && s->min[i] < 0)
        note(counts, KL_TARGET_NEGATIVE, row, s->min[i], kind);
    if (sum != 1)
        note(counts, operand == KL_INPUT ? KL_INPUT_NOT_NORMALIZED : KL_TARGET_NOT_NORMALIZED, row,
             sum, kind);
}

/* A row of target probabilities none of which is above 0: its exponentials are summed only then. */
static void check_logarithms(const struct kl_diagnosing *d, const struct kl_diagnosis_scratch *s,
                             size_t i, size_t row, struct kl_finding_counts *counts)
{
    double sum = s->exps.exps[i];
    if (kind_of(d, KL_TARGET, &s->stats[KL_TARGET], i) != KL_LIKE_LOGARITHMS ||
        !(is_one(d, KL_TARGET, sum) || (kl_masks_elements(&d->context) && sum < 1)))
        return;
    note(counts, KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, row, sum, KL_LIKE_LOGARITHMS);
    if (d->context.plan->spaces[KL_INPUT] == KL_LOG_PROB &&
        kind_of(d, KL_INPUT, &s->stats[KL_INPUT], i) == KL_LIKE_PROBABILITIES)
        note(counts, KL_ARGUMENTS_LOOK_SWAPPED, row, 1, KL_LIKE_PROBABILITIES);
}

static struct kl_row_stats stats_at(const struct kl_rows_stats *s, size_t i)
{
    return (struct kl_row_stats){s->min[i], s->max[i], s->sum[i], s->exps[i]};
}

/* Looks by the element at rows that may hold a loss that is not finite. */
static void check_losses(const struct kl_diagnosing *d, const struct kl_diagnosis_scratch *s,
                         size_t i, size_t row, bool fit, struct kl_finding_counts *counts)
{
    const struct kl_rows_stats *input = &s->stats[KL_INPUT], *target = &s->stats[KL_TARGET];
    struct kl_reason reason;
    bool no_logarithm = d->context.plan->spaces[KL_INPUT] == KL_PROB && input->min[i] <= 0;
    bool negative = d->context.plan->spaces[KL_TARGET] == KL_PROB && target->min[i] < 0 &&
                    d->context.plan->options.compat != KL_ONEFLOW;
    bool suspect =
        !fit || no_logarithm || negative || !isfinite(input->sum[i]) || !isfinite(target->sum[i]);
    if (suspect && kl_find_not_finite(&d->context, row, &reason))
        note(counts, KL_LOSS_NOT_FINITE, row, 0, KL_LIKE_LOGITS);
}

/* ---- Some rows */

static bool any_like_logarithms(const struct kl_diagnosing *d, const struct kl_rows_stats *s,
                                size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (kind_of(d, KL_TARGET, s, i) == KL_LIKE_LOGARITHMS)
            return true;
    return false;
}

/* Extremes of n rows: bounds made of them hold for each row. */
static struct kl_row_stats extremes_of(const struct kl_rows_stats *s, size_t n)
{
    struct kl_row_stats all = stats_at(s, 0);
    for (size_t i = 1; i < n; i++) {
        all.min = s->min[i] < all.min ? s->min[i] : all.min;
        all.max = s->max[i] > all.max ? s->max[i] : all.max;
        all.sum = s->sum[i] > all.sum ? s->sum[i] : all.sum;
        all.exps = s->exps[i] > all.exps ? s->exps[i] : all.exps;
    }
    return all;
}

/* Checks one row that is not sound, or whose losses may overflow. */
static void check_row(const struct kl_diagnosing *d, size_t row, size_t i, bool all_fit,
                      struct kl_finding_counts *counts, const struct kl_diagnosis_scratch *s)
{
    const struct kl_diagnosis_context *context = &d->context;
    bool fits = all_fit;
    if (!all_fit) {
        struct kl_bounds bounds =
            kl_bound_losses(context, (struct kl_row_stats[]){stats_at(&s->stats[KL_INPUT], i),
                                                             stats_at(&s->stats[KL_TARGET], i)});
        fits = kl_fits_losses(context->plan, bounds);
        counts->bound += bounds.sum;
    }
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        check_operand(d, operand, &s->stats[operand], i, row + i, counts);
    check_losses(d, s, i, row + i, fits, counts);
    if (context->plan->spaces[KL_TARGET] == KL_PROB)
        check_logarithms(d, s, i, row + i, counts);
}

/* True if rows of these extremes and sums are all sound. */
static bool all_sound(const struct kl_diagnosing *d, int operand, double min, double max,
                      const double *sums, size_t n)
{
    enum kl_space space = d->context.plan->spaces[operand];
    struct kl_row_stats s = d->context.kernel->row_stats[KL_FLOAT64](sums, n, false);
    if (!isfinite(s.sum))
        return false;
    if (space == KL_LOGIT)
        return true;
    bool in_range = space == KL_LOG_PROB  ? max <= 0 && min > -(double)INFINITY
                    : operand == KL_INPUT ? min > 0
                                          : min >= 0;
    return in_range && is_one(d, operand, s.min) && is_one(d, operand, s.max);
}

/* Looks at rows that are short as a block, for most are sound. False if they are to be looked at one
 * by one. */
static bool check_rows_at_once(const struct kl_diagnosing *d, size_t row, size_t n,
                               struct kl_finding_counts *counts, struct kl_diagnosis_scratch *s)
{
    struct kl_row_stats all[KL_OPERANDS];
    if (n == 1 || d->context.mask.data)
        return false;
    for (int i = 0; i < KL_OPERANDS; i++) {
        kl_scan_rows(&d->context, i, row, n, s, &all[i].min, &all[i].max, s->sums);
        if (!all_sound(d, i, all[i].min, all[i].max, s->sums, n))
            return false;
        all[i].sum = all[i].exps = 1 + d->tolerance[i];
    }
    struct kl_bounds bounds = kl_bound_losses(&d->context, all);
    if (!kl_fits_losses(d->context.plan, bounds))
        return false;
    counts->rows += n;
    counts->bound += bounds.sum * (double)n;
    return true;
}

/* True of a row whose elements are all masked. */
static bool is_empty(const struct kl_rows_stats *s, size_t i)
{
    return s->min[i] > s->max[i] && s->sum[i] == 0;
}

static void check_rows(const struct kl_diagnosing *d, size_t row, size_t n,
                       struct kl_finding_counts *counts, struct kl_diagnosis_scratch *s)
{
    const struct kl_diagnosis_context *context = &d->context;
    const enum kl_space *spaces = context->plan->spaces;
    if (check_rows_at_once(d, row, n, counts, s))
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_find_row_stats(context, i, row, n, spaces[i] == KL_LOG_PROB, s, &s->stats[i]);
    if (spaces[KL_TARGET] == KL_PROB && any_like_logarithms(d, &s->stats[KL_TARGET], n))
        kl_find_row_stats(context, KL_TARGET, row, n, true, s, &s->exps);
    struct kl_bounds bounds =
        kl_bound_losses(context, (struct kl_row_stats[]){extremes_of(&s->stats[KL_INPUT], n),
                                                         extremes_of(&s->stats[KL_TARGET], n)});
    bool all_fit = kl_fits_losses(context->plan, bounds);
    if (all_fit)
        counts->bound += bounds.sum * (double)n;
    for (size_t i = 0; i < n; i++) {
        if (!context->layout.elementwise &&
            kl_is_masked(&context->layout, context->mask.data, row + i, 0))
            continue;
        counts->rows++;
        if (is_empty(&s->stats[KL_INPUT], i) && is_empty(&s->stats[KL_TARGET], i))
            continue;
        if (!all_fit || !is_sound(d, KL_INPUT, &s->stats[KL_INPUT], i) ||
            !is_sound(d, KL_TARGET, &s->stats[KL_TARGET], i))
            check_row(d, row, i, all_fit, counts, s);
    }
}

/* Adds counts of some rows to those of others, in any order. */
static void join(struct kl_finding_counts *all, const struct kl_finding_counts *chunk)
{
    all->rows += chunk->rows;
    all->bound += chunk->bound;
    for (int i = 0; i < KL_FINDINGS; i++) {
        struct kl_finding_count *to = &all->of[i];
        const struct kl_finding_count *from = &chunk->of[i];
        if (from->count == 0)
            continue;
        bool first = to->count == 0;
        to->first = first || from->first < to->first ? from->first : to->first;
        to->min = first ? from->min : fmin(to->min, from->min);
        to->max = first ? from->max : fmax(to->max, from->max);
        to->count += from->count;
        for (int kind = 0; kind < KL_KINDS; kind++)
            to->kinds[kind] += from->kinds[kind];
    }
}

_Static_assert(sizeof(struct kl_diagnosis_scratch) <= KL_THREAD_SCRATCH,
               "what a thread holds is enough for a look");
_Static_assert(sizeof(struct kl_diagnosis_scratch) + sizeof(struct kl_diagnosing) <=
                   KL_DIAGNOSIS_SCRATCH,
               "a call allocates no more than kldiv.h says");

void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch)
{
    struct kl_finding_counts counts = {0};
    size_t max = d->context.tile.rows;
    for (; row < end; row += max)
        check_rows(d, row, kl_min(end - row, max), &counts, scratch);
    pthread_mutex_lock(&d->lock);
    join(&d->all, &counts);
    pthread_mutex_unlock(&d->lock);
}

static double tolerance_of(enum kl_dtype dtype)
{
    return dtype == KL_BFLOAT16 ? 5e-2 : dtype == KL_FLOAT16 ? 1e-2 : 1e-3;
}

/* The largest factor that weight and base multiply a loss by. */
static double factor_of(const struct kl_plan *plan)
{
    double max = plan->weight.data ? 0 : 1;
    size_t n = 0;
    if (plan->weight.data)
        kl_tensor_count(&plan->weight, &n);
    for (size_t i = 0; i < n; i++)
        max = fmax(max, fabs(kl_load(plan->weight.dtype, plan->weight.data, i)));
    return plan->options.base == KL_BITS ? max / M_LN2 : max;
}

struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan)
{
    struct kl_diagnosing *d = malloc(sizeof *d);
    if (!d)
        return NULL;
    *d = (struct kl_diagnosing){
        .context = {.plan = plan,
                    .kernel = kl_kernel(),
                    .operands = {kl_array_of(plan, KL_OF_INPUT), kl_array_of(plan, KL_OF_TARGET)},
                    .mask = kl_array_of(plan, KL_OF_MASK),
                    .factor = factor_of(plan)},
        .tolerance = {tolerance_of(plan->input.dtype), tolerance_of(plan->target.dtype)},
        .lock = PTHREAD_MUTEX_INITIALIZER};
    if (plan->count == 0) /* there are no rows */
        return d;
    kl_layout_of(&d->context.layout, plan, true);
    d->context.tile = kl_choose_tile(&d->context.layout, false);
    d->context.tile.columns = false; /* statistics are those of rows */
    return d;
}

/* Rows of a task: whole tiles of them. */
static size_t rows_per_task(const struct kl_diagnosis_context *context)
{
    size_t tile = context->layout.inner.volume * context->tile.rows;
    return (tile < KL_CHUNK ? KL_CHUNK / tile : 1) * context->tile.rows;
}

static void run_task(void *context, size_t task, void *scratch)
{
    struct kl_diagnosing *d = context;
    size_t all = d->context.layout.outer.volume, n = rows_per_task(&d->context), row = task * n;
    if (!kl_is_stopped(d->context.plan))
        kl_diagnose_rows(d, row, row + kl_min(all - row, n), scratch);
}

bool kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool)
{
    if (d->context.plan->count == 0)
        return true;
    void *scratch = malloc(sizeof(struct kl_diagnosis_scratch));
    size_t rows = d->context.layout.outer.volume, n = rows_per_task(&d->context);
    if (scratch)
        kl_pool_run(pool, rows / n + (rows % n != 0), run_task, d, scratch);
    free(scratch);
    return scratch != NULL;
}

/* The sum of losses may overflow although each row's are finite. */
bool kl_diagnosing_needs_loss(const struct kl_diagnosing *d)
{
    const struct kl_plan *plan = d->context.plan;
    if (plan->count == 0 || plan->reduction == KL_NONE || d->all.rows == 0 ||
        d->all.of[KL_LOSS_NOT_FINITE].count > 0)
        return false;
    double divisor = kl_divisor_of(plan);
    bool fits = d->all.bound <= DBL_MAX && d->all.bound / divisor <= kl_largest(plan->dtype);
    return !fits && divisor > 0;
}

void kl_diagnosing_end(struct kl_diagnosing *d, double loss, struct kl_diagnosis *diagnosis)
{
    if (!isfinite(loss))
        d->all.of[KL_LOSS_NOT_FINITE].count = d->all.rows;
    if (diagnosis)
        kl_report(&d->context, &d->all, diagnosis);
    free(d);
}
