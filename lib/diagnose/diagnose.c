#include "lib/diagnose/diagnose.h"
#include "lib/job/reduction.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows whose statistics are known */

static void note(struct kl_finding_counts *counts, enum kl_finding finding, size_t row,
                 double value, enum kl_kind kind)
{
    struct kl_finding_count *tally = &counts->of[finding];
    if (tally->count++ == 0) {
        tally->first = row;
        tally->min = tally->max = value;
    }
    tally->kinds[kind]++;
    tally->min = value < tally->min ? value : tally->min;
    tally->max = value > tally->max ? value : tally->max;
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

/* checked_rows: some rows, and which of them are looked at: those that are not masked. */
struct checked_rows {
    size_t row, n;
    bool looked_at[KL_ROWS];
};

/* Checks the rows of an operand. The missing part of a sum of probabilities below 1 may be masked. */
static void check_operand(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                          const struct checked_rows *rows, struct kl_finding_counts *counts)
{
    enum kl_space space = d->context.plan->spaces[operand];
    bool masks = kl_masks_elements(&d->context), is_input = operand == KL_INPUT;
    const double *sums = space == KL_PROB ? s->sum : s->exps;
    if (space == KL_LOGIT)
        return;
    for (size_t i = 0; i < rows->n; i++) {
        size_t row = rows->row + i;
        double sum = sums[i];
        bool fine =
            !(fabs(sum - 1) > d->tolerance[operand]) || (masks && sum < 1) || isnan(s->sum[i]);
        bool above = is_input && space == KL_LOG_PROB && s->max[i] > 0;
        bool below = !is_input && space == KL_PROB && s->min[i] < 0;
        if (!rows->looked_at[i] || (fine && !above && !below))
            continue;
        enum kl_kind kind = kind_of(d, operand, s, i);
        if (above)
            note(counts, KL_INPUT_NOT_LOG_PROBABILITIES, row, s->max[i], kind);
        if (below)
            note(counts, KL_TARGET_NEGATIVE, row, s->min[i], kind);
        if (!fine)
            note(counts, is_input ? KL_INPUT_NOT_NORMALIZED : KL_TARGET_NOT_NORMALIZED, row, sum,
                 kind);
    }
}

/* Checks rows of target probabilities none of which is above 0, whose exponentials are summed only then. */
static void check_logarithms(const struct kl_diagnosing *d, const struct kl_diagnosis_scratch *s,
                             const struct checked_rows *rows, struct kl_finding_counts *counts)
{
    for (size_t i = 0; i < rows->n; i++) {
        double sum = s->exps.exps[i];
        if (!rows->looked_at[i] ||
            kind_of(d, KL_TARGET, &s->stats[KL_TARGET], i) != KL_LIKE_LOGARITHMS ||
            !(is_one(d, KL_TARGET, sum) || (kl_masks_elements(&d->context) && sum < 1)))
            continue;
        note(counts, KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, rows->row + i, sum,
             KL_LIKE_LOGARITHMS);
        if (d->context.plan->spaces[KL_INPUT] == KL_LOG_PROB &&
            kind_of(d, KL_INPUT, &s->stats[KL_INPUT], i) == KL_LIKE_PROBABILITIES)
            note(counts, KL_ARGUMENTS_LOOK_SWAPPED, rows->row + i, 1, KL_LIKE_PROBABILITIES);
    }
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

/* ALONE: a row looked at alone takes so many elements' time more. */
enum { ALONE = 16 };

/* Looks at rows that may hold a loss that is not finite: few of them one by one. */
static void check_losses(const struct kl_diagnosing *d, struct kl_diagnosis_scratch *s,
                         const struct checked_rows *rows, struct kl_finding_counts *counts)
{
    bool suspects[KL_ROWS], not_finite[KL_ROWS];
    size_t n = 0, length = d->context.layout.inner.volume;
    counts->bound += kl_find_suspects(&d->context, s->stats, rows->looked_at, rows->n, suspects);
    if (!memchr(suspects, 1, rows->n))
        return;
    for (size_t i = 0; i < rows->n; i++)
        n += suspects[i];
    bool are_few = n * (length + ALONE) < rows->n * length;
    if (!are_few)
        kl_find_rows_not_finite(&d->context, rows->row, rows->n, s, not_finite);
    for (size_t i = 0; i < rows->n; i++) {
        if (suspects[i] && are_few)
            kl_find_rows_not_finite(&d->context, rows->row + i, 1, s, &not_finite[i]);
        if (suspects[i] && not_finite[i])
            note(counts, KL_LOSS_NOT_FINITE, rows->row + i, 0, KL_LIKE_LOGITS);
    }
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

/* The rows of n that the mask, of a byte each, leaves. */
static size_t count_unmasked(const struct kl_diagnosing *d, size_t row, size_t n,
                             struct kl_diagnosis_scratch *s)
{
    const struct kl_diagnosis_context *context = &d->context;
    if (!context->mask.data || context->layout.elementwise)
        return n;
    kl_gather(context->kernel, &context->layout.outer, &context->mask, row, n, KL_FLOAT64, s->mask);
    return context->kernel->count(s->mask, n);
}

/* Looks at rows that are short as a block, for most are sound. Those that are sound are so under any mask. False
 * if they are to be looked at one by one. */
static bool check_rows_at_once(const struct kl_diagnosing *d, size_t row, size_t n,
                               struct kl_finding_counts *counts, struct kl_diagnosis_scratch *s)
{
    struct kl_row_stats all[KL_OPERANDS];
    if (n == 1)
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
    n = count_unmasked(d, row, n, s);
    counts->rows += n;
    counts->bound += bounds.sum * (double)n;
    return true;
}

/* Finds the rows that are looked at: those that are not masked. Counts also those of which each element is. */
static void choose_rows(const struct kl_diagnosing *d, struct kl_diagnosis_scratch *s,
                        struct checked_rows *rows, struct kl_finding_counts *counts)
{
    const struct kl_diagnosis_context *context = &d->context;
    const struct kl_rows_stats *input = &s->stats[KL_INPUT], *target = &s->stats[KL_TARGET];
    bool masks_rows = context->mask.data && !context->layout.elementwise;
    if (!context->mask.data) {
        memset(rows->looked_at, true, rows->n);
        counts->rows += rows->n;
        return;
    }
    if (masks_rows)
        kl_gather(context->kernel, &context->layout.outer, &context->mask, rows->row, rows->n,
                  KL_FLOAT64, s->mask);
    for (size_t i = 0; i < rows->n; i++) {
        bool masked = masks_rows && !s->mask[i];
        bool empty = input->min[i] > input->max[i] && input->sum[i] == 0 &&
                     target->min[i] > target->max[i] && target->sum[i] == 0;
        rows->looked_at[i] = !masked && !empty;
        counts->rows += !masked;
    }
}

static void check_rows(const struct kl_diagnosing *d, size_t row, size_t n,
                       struct kl_finding_counts *counts, struct kl_diagnosis_scratch *s)
{
    const enum kl_space *spaces = d->context.plan->spaces;
    struct checked_rows rows;
    rows.row = row, rows.n = n;
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_find_row_stats(&d->context, i, row, n, spaces[i] == KL_LOG_PROB, s, &s->stats[i]);
    choose_rows(d, s, &rows, counts);
    if (!memchr(rows.looked_at, 1, n))
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        check_operand(d, i, &s->stats[i], &rows, counts);
    if (spaces[KL_TARGET] == KL_PROB && any_like_logarithms(d, &s->stats[KL_TARGET], n)) {
        kl_find_row_stats(&d->context, KL_TARGET, row, n, true, s, &s->exps);
        check_logarithms(d, s, &rows, counts);
    }
    check_losses(d, s, &rows, counts);
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

/* BACKOFF_TILES: so many tiles after one whose rows are not all sound are looked at row by row at once. */
enum { BACKOFF_TILES = 8 };

void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch)
{
    struct kl_finding_counts counts = {0};
    size_t max = d->context.tile.rows, backoff = 0;
    for (; row < end; row += max) {
        size_t n = kl_min(end - row, max);
        if (backoff == 0 && check_rows_at_once(d, row, n, &counts, scratch))
            continue;
        backoff = backoff > 0 ? backoff - 1 : BACKOFF_TILES;
        check_rows(d, row, n, &counts, scratch);
    }
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
    const struct kl_array_view weight = kl_array_of(plan, KL_OF_WEIGHT);
    for (size_t i = 0; i < n && !kl_is_stopped(plan); i += KL_CHUNK) {
        struct kl_row_stats s =
            kl_kernel()->row_stats[weight.dtype](kl_at(&weight, i), kl_min(n - i, KL_CHUNK), false);
        max = fmax(max, fmax(fabs(s.min), fabs(s.max)));
    }
    return plan->options.base == KL_BITS ? max / M_LN2 : max;
}

size_t kl_diagnosis_scratch(void) { return sizeof(struct kl_diagnosing); }

struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan)
{
    struct kl_diagnosing *d = malloc(sizeof *d);
    if (!d)
        return NULL;
    d->context = (struct kl_diagnosis_context){
        .plan = plan,
        .kernel = kl_kernel(),
        .operands = {kl_array_of(plan, KL_OF_INPUT), kl_array_of(plan, KL_OF_TARGET)},
        .mask = kl_array_of(plan, KL_OF_MASK),
        .weight = kl_array_of(plan, KL_OF_WEIGHT),
        .factor = factor_of(plan)};
    d->tolerance[KL_INPUT] = tolerance_of(plan->input.dtype);
    d->tolerance[KL_TARGET] = tolerance_of(plan->target.dtype);
    d->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    d->all = (struct kl_finding_counts){0};
    if (plan->count == 0) /* there are no rows */
        return d;
    kl_layout_of(&d->context.layout, plan, true);
    d->context.tile = kl_choose_tile(&d->context.layout, true);
    d->context.log_length = log((double)d->context.layout.inner.volume);
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

void kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool)
{
    if (d->context.plan->count == 0)
        return;
    size_t rows = d->context.layout.outer.volume, n = rows_per_task(&d->context);
    kl_pool_run(pool, rows / n + (rows % n != 0), run_task, d, &d->scratch);
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
        kl_report(&d->context, &d->all, &d->scratch, diagnosis);
    free(d);
}
