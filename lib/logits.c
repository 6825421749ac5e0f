/* The softmax of rows of logits, never written out. */
#include "lib/scratch.h"

#include <math.h>

static double scale_of(const struct kl_scratch *s, int operand)
{
    return kl_is_logit(s->job, operand) ? 1 / s->job->plan->temperature : 1;
}

/* Whether an operand has more than 24 bits. */
static bool is_wide(const struct kl_scratch *s, int operand)
{
    return s->job->operands[operand].dtype == KL_FLOAT64;
}

static void scale_sum(struct kl_sum *sum, double by)
{
    sum->high *= by;
    sum->low *= by;
}

/* ---- What is known of a row's logits: the greatest, and the log of the sum of the exponentials
 * of what they are less than that. */

/* One row, in one reading: a tile whose greatest is more than all before makes the sum less. */
static void find_log_sum(struct kl_scratch *s, int operand)
{
    const struct kl_kernel *kernel = s->job->kernel;
    struct kl_shift shift = {-(double)INFINITY, scale_of(s, operand)};
    struct kl_sum sum = {0, 0};
    KL_FOR_EACH_TILE(s, tile)
    {
        kl_load_operand(s, &tile, operand);
        double top = kernel->top(s->v[operand], tile.length);
        if (top > shift.by) {
            if (isfinite(shift.by))
                scale_sum(&sum, exp((shift.by - top) * shift.scale));
            shift.by = top;
        }
        struct kl_shift finite = {shift.by == -(double)INFINITY ? 0 : shift.by, shift.scale};
        kl_sum_add(&sum, kernel->sum_exps(is_wide(s, operand), s->v[operand], finite, tile.length));
    }
    s->tops[operand][0] = shift.by;
    s->logs[operand][0] = log(kl_sum_value(sum));
    kl_make_steady(s, s->tops[operand]);
    kl_make_steady(s, s->logs[operand]);
}

/* Several rows. */
static void find_tops(struct kl_scratch *s, int operand)
{
    kl_fill(s->tops[operand], -(double)INFINITY, s->rows);
    KL_FOR_EACH_TILE(s, tile)
    {
        kl_load_operand(s, &tile, operand);
        for (size_t i = 0; i < tile.length; i++)
            s->job->kernel->each_top(s->v[operand] + i * tile.pitch, s->tops[operand], tile.pitch);
    }
}

static void find_log_sums(struct kl_scratch *s, int operand)
{
    kl_clear_sums(s);
    find_tops(s, operand);
    KL_FOR_EACH_TILE(s, tile)
    {
        kl_load_operand(s, &tile, operand);
        kl_shift_rows(s, &tile, s->v[operand], s->tops[operand], kl_zeros, scale_of(s, operand));
        s->form[operand] = KL_SHIFTED;
        s->job->kernel->exps(s->v[operand], s->spare, kl_tile_size(&tile));
        kl_add_to_rows(s, &tile, s->spare, s->high, s->low);
    }
    for (size_t i = 0; i < s->rows; i++)
        s->logs[operand][i] = log(kl_sum_value((struct kl_sum){s->high[i], s->low[i]}));
}

void kl_survey_logits(struct kl_scratch *s, int operand)
{
    (s->job->tile.pitch == 1 ? find_log_sum : find_log_sums)(s, operand);
}

void kl_load_logarithms(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    if (s->single && s->form[operand] == KL_SHIFTED) {
        kl_shift_rows(s, tile, s->v[operand], kl_zeros, s->logs[operand], 1);
    } else {
        kl_load_operand(s, tile, operand);
        kl_shift_rows(s, tile, s->v[operand], s->tops[operand], s->logs[operand],
                      scale_of(s, operand));
    }
    s->form[operand] = KL_LOGARITHMS;
}

/* ---- Parts. With P and Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P)
 * (log(P/sum(P)) - log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q);
 * likewise where one operand is no logits, and its logarithm is not taken of a sum. */

struct row_parts {
    struct kl_shift shifts[KL_OPERANDS];
    struct kl_sum losses, masses, exps;
};

/* A tile whose greatest logit is more than all before makes these less. */
static void raise_shift(struct row_parts *parts, int operand, double top)
{
    struct kl_shift *shift = &parts->shifts[operand];
    double before = shift->by;
    if (!(top > before))
        return;
    shift->by = top;
    if (!isfinite(before))
        return;
    double less = (before - top) * shift->scale, factor = exp(less);
    kl_sum_add(&parts->losses, (operand == KL_TARGET ? less : -less) * kl_sum_value(parts->masses));
    if (operand == KL_INPUT) {
        scale_sum(&parts->exps, factor);
    } else {
        scale_sum(&parts->losses, factor);
        scale_sum(&parts->masses, factor);
    }
}

static void add_tile(struct kl_scratch *s, const struct kl_tile *tile, struct row_parts *parts)
{
    const struct kl_job *job = s->job;
    for (int i = 0; i < KL_OPERANDS; i++) {
        kl_load_operand(s, tile, i);
        if (kl_is_logit(job, i))
            raise_shift(parts, i, job->kernel->top(s->v[i], tile->length));
    }
    struct kl_parts more = job->kernel->parts[kl_rule_is_log(job->rule)](
        is_wide(s, KL_INPUT) || is_wide(s, KL_TARGET), kl_is_logit(job, KL_INPUT), s->refused,
        s->v[KL_INPUT], s->v[KL_TARGET], parts->shifts[KL_INPUT], parts->shifts[KL_TARGET],
        tile->length);
    kl_sum_add(&parts->losses, more.losses);
    kl_sum_add(&parts->masses, more.masses);
    kl_sum_add(&parts->exps, more.exps);
}

/* What the parts of n rows make. */
static bool weigh_parts(struct kl_scratch *s, const struct kl_row_parts *parts, size_t n,
                        double *losses, double *masses)
{
    const struct kl_kernel *kernel = s->job->kernel;
    bool logits[KL_OPERANDS] = {kl_is_logit(s->job, KL_INPUT), kl_is_logit(s->job, KL_TARGET)},
         good = true;
    const double *const sums[] = {parts->exps, parts->masses};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (!logits[i])
            kl_fill(s->logs[i], 0, n);
        else if (n == 1)
            s->logs[i][0] = log(sums[i][0]);
        else
            kernel->logs(sums[i], s->logs[i], n);
    for (size_t i = 0; i < n; i++) {
        double total = logits[KL_TARGET] ? parts->masses[i] : 1;
        masses[i] = parts->masses[i] / total;
        losses[i] =
            parts->losses[i] / total - masses[i] * (s->logs[KL_TARGET][i] - s->logs[KL_INPUT][i]);
        good &= isfinite(losses[i]) || (s->job->mask.data && s->keep[i] == 0);
    }
    return good;
}

static bool sum_row(struct kl_scratch *s, double *losses, double *masses)
{
    struct row_parts parts = {.losses = {0, 0}, .masses = {0, 0}, .exps = {0, 0}};
    for (int i = 0; i < KL_OPERANDS; i++) {
        double by = kl_is_logit(s->job, i) ? -(double)INFINITY : 0;
        parts.shifts[i] = (struct kl_shift){by, scale_of(s, i)};
    }
    KL_FOR_EACH_TILE(s, tile)
    add_tile(s, &tile, &parts);
    struct kl_row_parts sums; /* of one row */
    sums.losses[0] = kl_sum_value(parts.losses);
    sums.masses[0] = kl_sum_value(parts.masses);
    sums.exps[0] = kl_sum_value(parts.exps);
    bool good = weigh_parts(s, &sums, 1, losses, masses);
    for (int i = 0; i < KL_OPERANDS; i++) {
        s->tops[i][0] = parts.shifts[i].by;
        kl_make_steady(s, s->tops[i]);
        kl_make_steady(s, s->logs[i]);
    }
    return good;
}

/* Sums along several rows, with what their additions lost. */
struct rows_parts {
    struct kl_row_parts high, low;
};

static void add_tile_of_rows(struct kl_scratch *s, const struct kl_tile *tile,
                             struct rows_parts *parts)
{
    const struct kl_kernel *kernel = s->job->kernel;
    const struct kl_row_shifts shifts = {s->tops[KL_INPUT], s->tops[KL_TARGET],
                                         scale_of(s, KL_INPUT), scale_of(s, KL_TARGET)};
    struct kl_row_parts more;
    kl_fill(more.losses, 0, s->rows);
    kl_fill(more.masses, 0, s->rows);
    kl_fill(more.exps, 0, s->rows);
    kl_load_operand(s, tile, KL_INPUT);
    kl_load_operand(s, tile, KL_TARGET);
    for (size_t i = 0; i < tile->length; i++)
        kernel->each_parts[kl_rule_is_log(s->job->rule)](
            is_wide(s, KL_INPUT) || is_wide(s, KL_TARGET), kl_is_logit(s->job, KL_INPUT),
            s->refused, s->v[KL_INPUT] + i * tile->pitch, s->v[KL_TARGET] + i * tile->pitch,
            &shifts, &more, tile->pitch);
    kernel->each_add(more.losses, parts->high.losses, parts->low.losses, s->rows);
    kernel->each_add(more.masses, parts->high.masses, parts->low.masses, s->rows);
    kernel->each_add(more.exps, parts->high.exps, parts->low.exps, s->rows);
}

static bool sum_rows(struct kl_scratch *s, double *losses, double *masses)
{
    struct rows_parts parts = {.high = {.losses = {0}}};
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (kl_is_logit(s->job, i))
            find_tops(s, i);
        else
            kl_fill(s->tops[i], 0, s->rows);
    }
    KL_FOR_EACH_TILE(s, tile)
    add_tile_of_rows(s, &tile, &parts);
    for (size_t i = 0; i < s->group->rows; i++) {
        parts.high.losses[i] += parts.low.losses[i]; /* what is not finite is of no use */
        parts.high.masses[i] += parts.low.masses[i];
        parts.high.exps[i] += parts.low.exps[i];
    }
    return weigh_parts(s, &parts.high, s->group->rows, losses, masses);
}

bool kl_sum_parts(struct kl_scratch *s, double *losses, double *masses)
{
    return (s->job->tile.pitch == 1 ? sum_row : sum_rows)(s, losses, masses);
}
