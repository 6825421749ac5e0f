/* Checks of rows: those that are short as a block, for most are sound, and others one by one. */
#include "lib/diagnose/diagnose.h"

/* ---- A row whose statistics are known */

static void note(struct kl_finding_counts *counts, enum kl_finding finding, size_t row,
                 double value, enum kl_kind kind)
{
    struct kl_finding_count *of = &counts->of[finding];
    if (of->count++ == 0) {
        of->first = row;
        of->min = of->max = value;
    }
    of->kinds[kind]++;
    of->min = value < of->min ? value : of->min;
    of->max = value > of->max ? value : of->max;
}

static bool is_one(const struct kl_diagnosing *d, int operand, double sum)
{
    return fabs(sum - 1) <= d->tolerance[operand];
}

static enum kl_kind kind_of(const struct kl_diagnosing *d, int operand,
                            const struct kl_row_stats *row)
{
    if (row->min >= 0)
        return is_one(d, operand, row->sum) ? KL_LIKE_PROBABILITIES : KL_LIKE_COUNTS;
    return row->max <= 0 ? KL_LIKE_LOGARITHMS : KL_LIKE_LOGITS;
}

/* Checks a row of an operand. The missing part of a sum of probabilities below 1 may be masked. */
static void check_operand(const struct kl_diagnosing *d, int operand, size_t index,
                          const struct kl_row_stats *row, struct kl_finding_counts *counts)
{
    enum kl_space space = d->sound.plan->spaces[operand];
    bool is_input = operand == KL_INPUT;
    double sum = space == KL_PROB ? row->sum : row->exps;
    bool normalized = !(fabs(sum - 1) > d->tolerance[operand]) ||
                      (kl_masks_elements(&d->sound) && sum < 1) || isnan(row->sum);
    if (space == KL_LOGIT)
        return;
    enum kl_kind kind = kind_of(d, operand, row);
    if (is_input && space == KL_LOG_PROB && row->max > 0)
        note(counts, KL_INPUT_NOT_LOG_PROBABILITIES, index, row->max, kind);
    if (!is_input && space == KL_PROB && row->min < 0)
        note(counts, KL_TARGET_NEGATIVE, index, row->min, kind);
    if (!normalized)
        note(counts, is_input ? KL_INPUT_NOT_NORMALIZED : KL_TARGET_NOT_NORMALIZED, index, sum,
             kind);
}

/* True if target should hold probabilities, and a row of it has none above 0: its exponentials are summed only then. */
static bool is_like_logarithms(const struct kl_diagnosing *d, const struct kl_row_stats *target)
{
    return d->sound.plan->spaces[KL_TARGET] == KL_PROB &&
           kind_of(d, KL_TARGET, target) == KL_LIKE_LOGARITHMS;
}

static void check_logarithms(const struct kl_diagnosing *d, size_t index,
                             const struct kl_row_stats row[KL_OPERANDS],
                             struct kl_finding_counts *counts)
{
    double sum = row[KL_TARGET].exps;
    bool is_less = kl_masks_elements(&d->sound) && sum < 1;
    if (isnan(row[KL_TARGET].sum) || (!is_one(d, KL_TARGET, sum) && !is_less))
        return;
    note(counts, KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, index, sum, KL_LIKE_LOGARITHMS);
    if (d->sound.plan->spaces[KL_INPUT] == KL_LOG_PROB &&
        kind_of(d, KL_INPUT, &row[KL_INPUT]) == KL_LIKE_PROBABILITIES)
        note(counts, KL_ARGUMENTS_LOOK_SWAPPED, index, 1, KL_LIKE_PROBABILITIES);
}

/* True if a row may hold a loss that is not finite. */
static bool is_suspect(const struct kl_diagnosing *d, const struct kl_row_stats row[KL_OPERANDS],
                       struct kl_finding_counts *counts)
{
    const struct kl_plan *plan = d->sound.plan;
    struct kl_bounds bounds = kl_bound_losses(d, row);
    counts->bound += bounds.sum;
    return !isfinite(row[KL_INPUT].sum - row[KL_TARGET].sum) || !kl_fits_losses(plan, bounds) ||
           (plan->spaces[KL_INPUT] == KL_PROB && row[KL_INPUT].min <= 0) ||
           (plan->spaces[KL_TARGET] == KL_PROB &&
            (plan->divergence != KL_FORWARD
                 ? row[KL_TARGET].min <= 0
                 : row[KL_TARGET].min < 0 && plan->options.compat != KL_ONEFLOW));
}

/* True if a row is masked, or all of its elements are. Only a row that is masked as a whole is not counted. */
static bool is_masked(const struct kl_diagnosing *d, size_t index,
                      const struct kl_row_stats row[KL_OPERANDS], struct kl_finding_counts *counts)
{
    const struct kl_job *job = &d->sound;
    bool masked = job->mask.data && !job->layout->elementwise &&
                  kl_is_masked(job->layout, job->mask.data, index, 0);
    counts->rows += !masked;
    return masked || (row[KL_INPUT].min > row[KL_INPUT].max && row[KL_INPUT].sum == 0 &&
                      row[KL_TARGET].sum == 0);
}

/* Checks a row; true if it may hold a loss that is not finite. */
static bool check_row(const struct kl_diagnosing *d, size_t index,
                      const struct kl_row_stats row[KL_OPERANDS], struct kl_finding_counts *counts)
{
    if (is_masked(d, index, row, counts))
        return false;
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        check_operand(d, operand, index, &row[operand], counts);
    if (is_like_logarithms(d, &row[KL_TARGET]))
        check_logarithms(d, index, row, counts);
    return is_suspect(d, row, counts);
}

/* ---- Rows one by one */

/* A tile of an operand as a block of its dtype: where it is, or gathered. */
static const char *block_of(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = b->job;
    const struct kl_array_view *view = &job->operands[operand];
    const void *in_place = kl_tile_in_place(job->layout, tile, view);
    if (!in_place)
        kl_tile_load(job->kernel, job->layout, tile, view, view->dtype, b->gathered[operand]);
    return in_place ? in_place : b->gathered[operand];
}

/* FEW: elements that take less time in a loop than by a kernel's function. */
enum { FEW = 16 };

/* The statistics of n elements but for those that are masked. */
static struct kl_row_stats stats_of(const double *v, const double *exps, const unsigned char *mask,
                                    size_t n)
{
    struct kl_row_stats s = {(double)INFINITY, -(double)INFINITY, 0, 0};
    for (size_t i = 0; i < n; i++) {
        if (mask && !mask[i])
            continue;
        s.min = v[i] < s.min ? v[i] : s.min;
        s.max = v[i] > s.max ? v[i] : s.max;
        s.sum += v[i];
        s.exps += exps[i];
    }
    return s;
}

static void merge(struct kl_row_stats *row, struct kl_row_stats more)
{
    row->min = more.min < row->min ? more.min : row->min;
    row->max = more.max > row->max ? more.max : row->max;
    row->sum += more.sum;
    row->exps += more.exps;
}

/* Finds the statistics of the group's n rows of an operand. */
static void find_stats(struct kl_workspace *b, int operand, bool exps, struct kl_row_stats *rows,
                       size_t n)
{
    const struct kl_kernel *kernel = b->job->kernel;
    enum kl_dtype dtype = b->job->operands[operand].dtype;
    double *v = b->v[0], *e = exps ? b->v[1] : v, min, max;
    for (size_t i = 0; i < n; i++)
        rows[i] = stats_of(NULL, NULL, NULL, 0);
    KL_FOR_EACH_TILE (b, tile) {
        const char *block = block_of(b, &tile, operand);
        const unsigned char *mask = kl_masks_elements(b->job) ? kl_unmasked(b, &tile) : NULL;
        bool loops = mask || tile.length < FEW;
        if (loops)
            kernel->scan[dtype](block, false, v, kl_tile_size(&tile), &min, &max);
        if (loops && exps)
            kernel->scan[dtype](block, true, e, kl_tile_size(&tile), &min, &max);
        for (size_t i = 0, at = 0; i < n; i++, at += tile.length)
            merge(&rows[i], loops ? stats_of(v + at, e + at, mask ? mask + at : NULL, tile.length)
                                  : kernel->row_stats[dtype](block + at * kl_dtype_size(dtype),
                                                             tile.length, exps));
    }
}

/* ALONE: checking a row by itself takes as much longer as so many elements take. */
enum { ALONE = 16 };

/* Looks at rows that may hold a loss that is not finite: few of them one by one. */
static void check_losses(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                         const bool *suspects, struct kl_finding_counts *counts)
{
    bool not_finite[KL_ROWS];
    size_t some = 0, length = d->layout.inner.volume;
    for (size_t i = 0; i < n; i++)
        some += suspects[i];
    bool are_few = some * (length + ALONE) < n * length;
    if (!are_few)
        kl_find_rows_not_finite(d, b, row, n, not_finite);
    for (size_t i = 0; i < n; i++) {
        if (suspects[i] && are_few)
            kl_find_rows_not_finite(d, b, row + i, 1, &not_finite[i]);
        if (suspects[i] && not_finite[i])
            note(counts, KL_LOSS_NOT_FINITE, row + i, 0, KL_LIKE_LOGITS);
    }
}

void kl_check_rows(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                   struct kl_finding_counts *counts)
{
    struct kl_row_stats stats[KL_OPERANDS][KL_ROWS];
    struct kl_group group;
    bool suspects[KL_ROWS], any = false;
    kl_start_rows(b, &d->other, &group, row, n);
    for (int i = 0; i < KL_OPERANDS; i++)
        find_stats(b, i, d->other.plan->spaces[i] == KL_LOG_PROB, stats[i], n);
    for (size_t i = 0; i < n; i++)
        any |= is_like_logarithms(d, &stats[KL_TARGET][i]);
    if (any)
        find_stats(b, KL_TARGET, true, stats[KL_TARGET], n);
    for (size_t i = 0; i < n; i++) {
        const struct kl_row_stats s[] = {stats[KL_INPUT][i], stats[KL_TARGET][i]};
        suspects[i] = check_row(d, row + i, s, counts);
    }
    if (memchr(suspects, true, n))
        check_losses(d, b, row, n, suspects, counts);
}

/* ---- Rows that are likely sound, as a block */

/* True if rows of these extremes and sums are all sound. */
static bool all_sound(const struct kl_diagnosing *d, int operand, double min, double max,
                      const double *sums, size_t n)
{
    enum kl_space space = d->sound.plan->spaces[operand];
    struct kl_row_stats s = d->sound.kernel->row_stats[KL_FLOAT64](sums, n, false);
    bool in_range = space == KL_LOG_PROB ? max <= 0 && min > -(double)INFINITY
                    : operand == KL_INPUT || d->sound.plan->divergence != KL_FORWARD ? min > 0
                                                                                     : min >= 0;
    return isfinite(s.sum) && (space == KL_LOGIT || (in_range && is_one(d, operand, s.min) &&
                                                     is_one(d, operand, s.max)));
}

/* Finds the extremes of the elements of the group's rows, and the sum of each row's probabilities, or of its elements
 * if it holds logits. Without a mask. */
static void scan_rows(struct kl_workspace *b, int operand, struct kl_row_stats *all)
{
    const struct kl_job *job = b->job;
    bool exps = job->plan->spaces[operand] == KL_LOG_PROB;
    kl_fill(b->high, 0, b->group->rows);
    kl_fill(b->low, 0, b->group->rows);
    all->min = (double)INFINITY, all->max = -(double)INFINITY;
    KL_FOR_EACH_TILE (b, tile) {
        double min, max;
        job->kernel->scan[job->operands[operand].dtype](block_of(b, &tile, operand), exps, b->v[0],
                                                        kl_tile_size(&tile), &min, &max);
        kl_add_to_rows(job->kernel, &tile, b->v[0], b->high, b->low);
        all->min = min < all->min ? min : all->min;
        all->max = max > all->max ? max : all->max;
    }
}

/* The rows of n that the mask, of a byte each, leaves. */
static size_t count_unmasked(const struct kl_job *job, size_t row, size_t n)
{
    unsigned char mask[KL_ROWS];
    if (!job->mask.data || job->layout->elementwise)
        return n;
    kl_gather(job->kernel, &job->layout->outer, &job->mask, row, n, mask);
    return job->kernel->count(mask, n);
}

bool kl_are_sound(struct kl_diagnosing *d, struct kl_workspace *b, size_t row, size_t n,
                  struct kl_finding_counts *counts)
{
    struct kl_row_stats all[KL_OPERANDS];
    struct kl_group group;
    if (n == 1)
        return false;
    kl_start_rows(b, &d->sound, &group, row, n);
    for (int i = 0; i < KL_OPERANDS; i++) {
        scan_rows(b, i, &all[i]);
        if (!all_sound(d, i, all[i].min, all[i].max, b->high, n))
            return false;
        all[i].sum = all[i].exps = 1 + d->tolerance[i];
    }
    struct kl_bounds bounds = kl_bound_losses(d, all);
    if (!kl_fits_losses(d->sound.plan, bounds))
        return false;
    n = count_unmasked(&d->sound, row, n);
    counts->rows += n;
    counts->bound += bounds.sum * (double)n;
    return true;
}
