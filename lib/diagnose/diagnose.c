#include "lib/diagnose/diagnose.h"
#include "lib/job/reduction.h"

#include <float.h>
#include <stdlib.h>

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

/* BACKOFF_TILES: so many tiles after one whose rows are not all sound are looked at row by row at once. */
enum { BACKOFF_TILES = 8 };

void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch)
{
    struct kl_workspace *b = kl_workspace_of(scratch);
    struct kl_finding_counts counts = {0};
    size_t max = d->sound.tile.rows, backoff = 0;
    for (; row < end; row += max) {
        size_t n = kl_min(end - row, max), rows = d->other.tile.rows;
        if (backoff == 0 && kl_are_sound(d, b, row, n, &counts))
            continue;
        backoff = backoff > 0 ? backoff - 1 : BACKOFF_TILES;
        for (size_t i = 0; i < n; i += rows)
            kl_check_rows(d, b, row + i, kl_min(n - i, rows), &counts);
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
static double factor_of(const struct kl_job *job)
{
    double max = job->weight.data ? 0 : 1;
    size_t n = 0;
    if (job->weight.data)
        kl_tensor_count(&job->plan->weight, &n);
    for (size_t i = 0; i < n && !kl_is_stopped(job->plan); i += KL_CHUNK) {
        struct kl_row_stats s = job->kernel->row_stats[job->weight.dtype](
            kl_at(&job->weight, i), kl_min(n - i, KL_CHUNK), false);
        max = fmax(max, fmax(fabs(s.min), fabs(s.max)));
    }
    return max * job->unit;
}

size_t kl_diagnosis_scratch(void) { return sizeof(struct kl_diagnosing); }

struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan)
{
    struct kl_diagnosing *d = malloc(sizeof *d);
    if (!d)
        return NULL;
    d->sound = kl_job_of(plan, &d->layout);
    d->factor = factor_of(&d->sound);
    d->tolerance[KL_INPUT] = tolerance_of(plan->input.dtype);
    d->tolerance[KL_TARGET] = tolerance_of(plan->target.dtype);
    d->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    d->all = (struct kl_finding_counts){0};
    if (plan->count == 0) /* there are no rows */
        return d;
    kl_layout_of(&d->layout, plan, true);
    d->log_length = log((double)d->layout.inner.volume);
    d->other = d->sound;
    d->sound.tile = kl_choose_tile(&d->layout, true);
    d->other.tile.length = kl_min(d->layout.inner.volume, KL_BLOCK);
    d->other.tile.rows = kl_min(KL_BLOCK / d->other.tile.length, KL_ROWS);
    return d;
}

/* Rows of a task: whole tiles of them. */
static size_t rows_per_task(const struct kl_diagnosing *d)
{
    size_t tile = d->layout.inner.volume * d->sound.tile.rows;
    return (tile < KL_CHUNK ? KL_CHUNK / tile : 1) * d->sound.tile.rows;
}

static void run_task(void *context, size_t task, void *scratch)
{
    struct kl_diagnosing *d = context;
    size_t all = d->layout.outer.volume, n = rows_per_task(d), row = task * n;
    if (!kl_is_stopped(d->sound.plan))
        kl_diagnose_rows(d, row, row + kl_min(all - row, n), scratch);
}

void kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool)
{
    if (d->sound.plan->count == 0)
        return;
    size_t rows = d->layout.outer.volume, n = rows_per_task(d);
    kl_pool_run(pool, rows / n + (rows % n != 0), run_task, d, d->scratch);
}

/* The sum of losses may overflow although each row's are finite. */
bool kl_diagnosing_needs_loss(const struct kl_diagnosing *d)
{
    const struct kl_plan *plan = d->sound.plan;
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
        kl_report(d, diagnosis);
    free(d);
}
