#include "lib/diagnose/diagnose.h"
#include "lib/divisor.h"
#include "lib/pool.h"
#include "lib/problem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- One row */

static void note(struct kl_tallies *tallies, enum kl_finding finding, size_t row, double value,
                 enum kl_kind kind)
{
    struct kl_tally *tally = &tallies->of[finding];
    if (tally->count++ == 0) {
        tally->first = row;
        tally->least = tally->greatest = value;
    }
    tally->kinds[kind]++;
    tally->least = fmin(tally->least, value);
    tally->greatest = fmax(tally->greatest, value);
}

static bool is_one(const struct kl_diagnosing *d, int operand, double sum)
{
    return fabs(sum - 1) <= d->slack[operand];
}

static enum kl_kind kind_of(const struct kl_diagnosing *d, int operand,
                            const struct kl_rows_stats *s, size_t i)
{
    if (s->least[i] >= 0)
        return is_one(d, operand, s->sum[i]) ? KL_LIKE_PROBABILITIES : KL_LIKE_COUNTS;
    return s->greatest[i] <= 0 ? KL_LIKE_LOGARITHMS : KL_LIKE_LOGITS;
}

/* A sound row has probabilities that sum to 1 and no loss that is suspect. */
static bool is_sound(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                     size_t i)
{
    enum kl_space space = d->look.plan->spaces[operand];
    if (!isfinite(s->sum[i]) || (operand == KL_INPUT && space == KL_PROB && s->least[i] == 0))
        return false;
    return space == KL_LOG_PROB ? s->greatest[i] <= 0 && is_one(d, operand, s->exps[i])
           : space == KL_PROB   ? s->least[i] >= 0 && is_one(d, operand, s->sum[i])
                                : true;
}

/* True if the mask may leave some elements of a row and not others. */
static bool has_masked(const struct kl_diagnosing *d)
{
    return d->look.mask.data && d->look.layout.each;
}

/* The sum of a row's probabilities where it is wrong, else 1. The missing part of a sum below 1 may
 * be masked. */
static double wrong_sum(const struct kl_diagnosing *d, int operand, const struct kl_rows_stats *s,
                        size_t i)
{
    enum kl_space space = d->look.plan->spaces[operand];
    double sum = space == KL_PROB ? s->sum[i] : space == KL_LOG_PROB ? s->exps[i] : 1;
    bool fine = isnan(s->sum[i]) || is_one(d, operand, sum) || (has_masked(d) && sum < 1);
    return fine ? 1 : sum;
}

static void check_input(const struct kl_diagnosing *d, const struct kl_rows_stats *s, size_t i,
                        size_t row, struct kl_tallies *tallies)
{
    enum kl_kind kind = kind_of(d, KL_INPUT, s, i);
    double sum = wrong_sum(d, KL_INPUT, s, i);
    if (d->look.plan->spaces[KL_INPUT] == KL_LOG_PROB && s->greatest[i] > 0)
        note(tallies, KL_INPUT_NOT_LOG_PROBABILITIES, row, s->greatest[i], kind);
    if (sum != 1)
        note(tallies, KL_INPUT_NOT_NORMALIZED, row, sum, kind);
}

static void check_target(const struct kl_diagnosing *d, const struct kl_rows_stats *s, size_t i,
                         size_t row, struct kl_tallies *tallies)
{
    enum kl_kind kind = kind_of(d, KL_TARGET, s, i);
    double sum = wrong_sum(d, KL_TARGET, s, i);
    if (d->look.plan->spaces[KL_TARGET] == KL_PROB && s->least[i] < 0)
        note(tallies, KL_TARGET_NEGATIVE, row, s->least[i], kind);
    if (sum != 1)
        note(tallies, KL_TARGET_NOT_NORMALIZED, row, sum, kind);
}

/* A row of target probabilities none of which is above 0: its exponentials are summed only then. */
static void check_logarithms(const struct kl_diagnosing *d, const struct kl_look_scratch *s,
                             size_t i, size_t row, struct kl_tallies *tallies)
{
    const struct kl_rows_stats *input = &s->input, *exps = &s->exps;
    if (kind_of(d, KL_TARGET, &s->target, i) != KL_LIKE_LOGARITHMS)
        return;
    bool less = has_masked(d) && exps->exps[i] < 1;
    if (!less && !is_one(d, KL_TARGET, exps->exps[i]))
        return;
    note(tallies, KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, row, exps->exps[i], KL_LIKE_LOGARITHMS);
    if (d->look.plan->spaces[KL_INPUT] == KL_LOG_PROB &&
        kind_of(d, KL_INPUT, input, i) == KL_LIKE_PROBABILITIES)
        note(tallies, KL_ARGUMENTS_LOOK_SWAPPED, row, 1, KL_LIKE_PROBABILITIES);
}

static struct kl_row_stats stats_at(const struct kl_rows_stats *s, size_t i)
{
    return (struct kl_row_stats){s->least[i], s->greatest[i], s->sum[i], s->exps[i]};
}

/* Looks by the element at rows that may hold a loss that is not finite. */
static void check_losses(const struct kl_diagnosing *d, const struct kl_rows_stats *input,
                         const struct kl_rows_stats *target, size_t i, size_t row, bool fit,
                         struct kl_tallies *tallies)
{
    struct kl_reason reason;
    bool no_logarithm = d->look.plan->spaces[KL_INPUT] == KL_PROB && input->least[i] <= 0;
    bool negative = d->look.plan->spaces[KL_TARGET] == KL_PROB && target->least[i] < 0 &&
                    d->look.plan->options.compat != KL_ONEFLOW;
    bool suspect =
        !fit || no_logarithm || negative || !isfinite(input->sum[i]) || !isfinite(target->sum[i]);
    if (suspect && kl_find_not_finite(&d->look, row, &reason))
        note(tallies, KL_LOSS_NOT_FINITE, row, 0, KL_LIKE_LOGITS);
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
        all.least = s->least[i] < all.least ? s->least[i] : all.least;
        all.greatest = s->greatest[i] > all.greatest ? s->greatest[i] : all.greatest;
        all.sum = s->sum[i] > all.sum ? s->sum[i] : all.sum;
        all.exps = s->exps[i] > all.exps ? s->exps[i] : all.exps;
    }
    return all;
}

/* Checks one row that is not sound, or whose losses may overflow. */
static void check_row(const struct kl_diagnosing *d, size_t row, size_t i, bool all_fit,
                      struct kl_tallies *tallies, const struct kl_look_scratch *s)
{
    const struct kl_look *look = &d->look;
    bool fits = all_fit;
    if (!all_fit) {
        struct kl_bounds bounds = kl_bound_losses(
            look, (struct kl_row_stats[]){stats_at(&s->input, i), stats_at(&s->target, i)});
        fits = kl_fits_losses(look->plan, bounds);
        tallies->bound += bounds.sum;
    }
    check_input(d, &s->input, i, row + i, tallies);
    check_target(d, &s->target, i, row + i, tallies);
    check_losses(d, &s->input, &s->target, i, row + i, fits, tallies);
    if (look->plan->spaces[KL_TARGET] == KL_PROB)
        check_logarithms(d, s, i, row + i, tallies);
}

/* True if rows of these extremes and sums are all sound. */
static bool all_sound(const struct kl_diagnosing *d, int operand, double least, double greatest,
                      const double *sums, size_t n)
{
    enum kl_space space = d->look.plan->spaces[operand];
    struct kl_row_stats s = d->look.kernel->row_stats[KL_FLOAT64](sums, n, false);
    if (!isfinite(s.sum))
        return false;
    if (space == KL_LOGIT)
        return true;
    bool in_range = space == KL_LOG_PROB  ? greatest <= 0 && least > -(double)INFINITY
                    : operand == KL_INPUT ? least > 0
                                          : least >= 0;
    return in_range && is_one(d, operand, s.least) && is_one(d, operand, s.greatest);
}

/* Looks at rows that are short as a block, for most are sound. False if they are to be looked at one
 * by one. */
static bool pass_rows(const struct kl_diagnosing *d, size_t row, size_t n,
                      struct kl_tallies *tallies, struct kl_look_scratch *s)
{
    struct kl_row_stats all[KL_OPERANDS];
    if (n == 1 || d->look.mask.data)
        return false;
    for (int i = 0; i < KL_OPERANDS; i++) {
        kl_scan_rows(&d->look, i, row, n, s, &all[i].least, &all[i].greatest, s->sums);
        if (!all_sound(d, i, all[i].least, all[i].greatest, s->sums, n))
            return false;
        all[i].sum = all[i].exps = 1 + d->slack[i];
    }
    struct kl_bounds bounds = kl_bound_losses(&d->look, all);
    if (!kl_fits_losses(d->look.plan, bounds))
        return false;
    tallies->rows += n;
    tallies->bound += bounds.sum * (double)n;
    return true;
}

static void check_rows(const struct kl_diagnosing *d, size_t row, size_t n,
                       struct kl_tallies *tallies, struct kl_look_scratch *s)
{
    const struct kl_look *look = &d->look;
    const enum kl_space *spaces = look->plan->spaces;
    struct kl_rows_stats *stats[KL_OPERANDS] = {&s->input, &s->target};
    if (pass_rows(d, row, n, tallies, s))
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_find_row_stats(look, i, row, n, spaces[i] == KL_LOG_PROB, s, stats[i]);
    if (spaces[KL_TARGET] == KL_PROB && any_like_logarithms(d, &s->target, n))
        kl_find_row_stats(look, KL_TARGET, row, n, true, s, &s->exps);
    struct kl_bounds bounds = kl_bound_losses(
        look, (struct kl_row_stats[]){extremes_of(&s->input, n), extremes_of(&s->target, n)});
    bool all_fit = kl_fits_losses(look->plan, bounds);
    if (all_fit)
        tallies->bound += bounds.sum * (double)n;
    for (size_t i = 0; i < n; i++) {
        if (!look->layout.each && kl_is_masked(&look->layout, look->mask.data, row + i, 0))
            continue;
        tallies->rows++;
        if (!all_fit || !is_sound(d, KL_INPUT, &s->input, i) ||
            !is_sound(d, KL_TARGET, &s->target, i))
            check_row(d, row, i, all_fit, tallies, s);
    }
}

/* Adds tallies of some rows to those of others, in any order. */
static void join(struct kl_tallies *all, const struct kl_tallies *chunk)
{
    all->rows += chunk->rows;
    all->bound += chunk->bound;
    for (int i = 0; i < KL_FINDINGS; i++) {
        struct kl_tally *to = &all->of[i];
        const struct kl_tally *from = &chunk->of[i];
        if (from->count == 0)
            continue;
        bool first = to->count == 0;
        to->first = first || from->first < to->first ? from->first : to->first;
        to->least = first ? from->least : fmin(to->least, from->least);
        to->greatest = first ? from->greatest : fmax(to->greatest, from->greatest);
        to->count += from->count;
        for (int kind = 0; kind < KL_KINDS; kind++)
            to->kinds[kind] += from->kinds[kind];
    }
}

_Static_assert(sizeof(struct kl_look_scratch) <= KL_THREAD_SCRATCH,
               "what a thread holds is enough for a look");
_Static_assert(sizeof(struct kl_look_scratch) + sizeof(struct kl_diagnosing) <=
                   KL_DIAGNOSIS_SCRATCH,
               "a call allocates no more than kldiv.h says");

void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch)
{
    struct kl_tallies tallies = {0};
    size_t most = d->look.tile.rows;
    for (; row < end; row += most)
        check_rows(d, row, end - row < most ? end - row : most, &tallies, scratch);
    pthread_mutex_lock(&d->lock);
    join(&d->all, &tallies);
    pthread_mutex_unlock(&d->lock);
}

static double slack_of(enum kl_dtype dtype)
{
    return dtype == KL_BFLOAT16 ? 5e-2 : dtype == KL_FLOAT16 ? 1e-2 : 1e-3;
}

/* The largest factor that weight and base multiply a loss by. */
static double factor_of(const struct kl_plan *plan)
{
    double most = plan->weight.data ? 0 : 1;
    size_t n = 0;
    if (plan->weight.data)
        kl_tensor_count(&plan->weight, &n);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(kl_load(plan->weight.dtype, plan->weight.data, i)));
    return plan->options.base == KL_BITS ? most / M_LN2 : most;
}

/* Finds a sum that overflows although each row's losses are finite. */
static void check_sum(const struct kl_diagnosing *d, struct kl_pool *pool, struct kl_tallies *all)
{
    const struct kl_plan *plan = d->look.plan;
    struct kl_tally *tally = &all->of[KL_LOSS_NOT_FINITE];
    double divisor = kl_divisor_of(plan), cell;
    bool fits = all->bound <= DBL_MAX && all->bound / divisor <= kl_largest(plan->dtype);
    if (fits || tally->count > 0 || plan->reduction == KL_NONE || !(divisor > 0) || all->rows == 0)
        return;
    if (kl_run(plan, pool, &cell, NULL) && !isfinite(kl_load(plan->dtype, &cell, 0)))
        tally->count = all->rows;
}

struct kl_diagnosing *kl_diagnosing_begin(const struct kl_plan *plan)
{
    struct kl_diagnosing *d = malloc(sizeof *d);
    if (!d)
        return NULL;
    *d =
        (struct kl_diagnosing){.look = {.plan = plan,
                                        .kernel = kl_kernel(),
                                        .operands = {kl_input_of(plan), kl_target_of(plan)},
                                        .mask = {KL_OF_MASK, KL_FLOAT64, true, plan->mask.data},
                                        .factor = factor_of(plan)},
                               .slack = {slack_of(plan->input.dtype), slack_of(plan->target.dtype)},
                               .lock = PTHREAD_MUTEX_INITIALIZER};
    if (plan->count == 0) /* there are no rows */
        return d;
    kl_layout_of_rows(&d->look.layout, plan);
    d->look.tile = kl_choose_tile(&d->look.layout);
    d->look.tile.columns = false; /* statistics are those of rows */
    return d;
}

void kl_diagnosing_end(struct kl_diagnosing *d, struct kl_pool *pool,
                       struct kl_diagnosis *diagnosis)
{
    if (diagnosis && d->look.plan->count > 0)
        check_sum(d, pool, &d->all);
    if (diagnosis)
        kl_report(&d->look, &d->all, diagnosis);
    free(d);
}

/* Rows that a task looks at: whole tiles of them. */
static size_t rows_at_once(const struct kl_look *look)
{
    size_t tile = look->layout.along.volume * look->tile.rows;
    return (tile < KL_CHUNK ? KL_CHUNK / tile : 1) * look->tile.rows;
}

static void run_chunk(void *context, size_t chunk, void *scratch)
{
    struct kl_diagnosing *d = context;
    size_t all = d->look.layout.across.volume, n = rows_at_once(&d->look), row = chunk * n;
    if (!kl_is_stopped(d->look.plan))
        kl_diagnose_rows(d, row, all - row < n ? all : row + n, scratch);
}

bool kl_diagnose(const struct kl_plan *plan, struct kl_pool *pool, struct kl_diagnosis *diagnosis,
                 struct kl_problem *problem)
{
    struct kl_diagnosing *d = kl_diagnosing_begin(plan);
    void *scratch = malloc(sizeof(struct kl_look_scratch));
    bool good = d && scratch;
    if (good && plan->count > 0) {
        size_t rows = d->look.layout.across.volume, n = rows_at_once(&d->look);
        kl_pool_run(pool, rows / n + (rows % n != 0), run_chunk, d, scratch);
    }
    free(scratch);
    bool stopped = kl_is_stopped(plan);
    if (d)
        kl_diagnosing_end(d, pool, good && !stopped ? diagnosis : NULL);
    if (!good)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    return !stopped || kl_fail(problem, KL_NO_OPERAND, "stopped", "the call was stopped");
}
