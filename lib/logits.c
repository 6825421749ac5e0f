/* The softmax of rows of logits, without writing it out. */
#include "lib/scratch.h"

#include <math.h>

static double scale_of(const struct kl_scratch *s, int operand)
{
    return kl_is_logit(s->job, operand) ? 1 / s->job->plan->temperature : 1;
}

/* True if an operand has more than 24 bits. */
static bool is_wide(const struct kl_scratch *s, int operand)
{
    return s->job->operands[operand].dtype == KL_FLOAT64;
}

static void scale_sum(struct kl_sum *sum, double by)
{
    sum->high *= by;
    sum->low *= by;
}

/* ---- The log-sum-exp of a row, in two numbers: row_max, and the log of the sum of exp(v -
 * row_max). */

/* Finds the log-sum-exp of one row in one pass: a tile with a new maximum scales the sum down. */
static void find_log_sum_exp(struct kl_scratch *s, int operand)
{
    const struct kl_kernel *kernel = s->job->kernel;
    struct kl_shift shift = {-(double)INFINITY, scale_of(s, operand)};
    struct kl_sum sum = {0, 0};
    KL_FOR_EACH_TILE (s, tile) {
        kl_load_operand(s, &tile, operand);
        double most = kernel->row_max(s->v[operand], tile.length);
        if (most > shift.by) {
            if (isfinite(shift.by))
                scale_sum(&sum, exp((shift.by - most) * shift.scale));
            shift.by = most;
        }
        struct kl_shift finite = {shift.by == -(double)INFINITY ? 0 : shift.by, shift.scale};
        kl_sum_add(&sum, kernel->sum_exps(is_wide(s, operand), s->v[operand], finite, tile.length));
    }
    s->row_max[operand][0] = shift.by;
    s->log_sum_exp[operand][0] = log(kl_sum_value(sum));
    kl_broadcast(s, s->row_max[operand]);
    kl_broadcast(s, s->log_sum_exp[operand]);
}

/* Finds the maxima of several rows. */
static void find_row_max(struct kl_scratch *s, int operand)
{
    kl_fill(s->row_max[operand], -(double)INFINITY, s->rows);
    KL_FOR_EACH_TILE (s, tile) {
        kl_load_operand(s, &tile, operand);
        for (size_t i = 0; i < tile.length; i++)
            s->job->kernel->each_max(s->v[operand] + i * tile.pitch, s->row_max[operand],
                                     tile.pitch);
    }
}

static void find_log_sum_exps(struct kl_scratch *s, int operand)
{
    kl_clear_sums(s);
    find_row_max(s, operand);
    KL_FOR_EACH_TILE (s, tile) {
        kl_load_operand(s, &tile, operand);
        kl_shift_rows(s, &tile, s->v[operand], s->row_max[operand], kl_zeros, scale_of(s, operand));
        s->stage[operand] = KL_SHIFTED;
        s->job->kernel->exps(s->v[operand], s->spare, kl_tile_size(&tile));
        kl_add_to_rows(s, &tile, s->spare, s->high, s->low);
    }
    for (size_t i = 0; i < s->rows; i++)
        s->log_sum_exp[operand][i] = log(kl_sum_value((struct kl_sum){s->high[i], s->low[i]}));
}

void kl_find_softmax(struct kl_scratch *s, int operand)
{
    (s->job->tile.pitch == 1 ? find_log_sum_exp : find_log_sum_exps)(s, operand);
}

void kl_load_log_softmax(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    if (s->single && s->stage[operand] == KL_SHIFTED) {
        kl_shift_rows(s, tile, s->v[operand], kl_zeros, s->log_sum_exp[operand], 1);
    } else {
        kl_load_operand(s, tile, operand);
        kl_shift_rows(s, tile, s->v[operand], s->row_max[operand], s->log_sum_exp[operand],
                      scale_of(s, operand));
    }
    s->stage[operand] = KL_LOG_PROBS;
}

/* ---- Parts. With P and Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P)
 * (log(P/sum(P)) - log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q);
 * likewise where one operand is no logits, and its logarithm is not taken of a sum. */

struct running_sums {
    struct kl_shift shifts[KL_OPERANDS];
    struct kl_sum losses, sum_p, exps;
};

/* Moves to a new maximum, which scales the sums down. */
static void raise_shift(struct running_sums *running, int operand, double most)
{
    struct kl_shift *shift = &running->shifts[operand];
    double before = shift->by;
    if (!(most > before))
        return;
    shift->by = most;
    if (!isfinite(before))
        return;
    double less = (before - most) * shift->scale, factor = exp(less);
    kl_sum_add(&running->losses,
               (operand == KL_TARGET ? less : -less) * kl_sum_value(running->sum_p));
    if (operand == KL_INPUT) {
        scale_sum(&running->exps, factor);
    } else {
        scale_sum(&running->losses, factor);
        scale_sum(&running->sum_p, factor);
    }
}

static void add_tile(struct kl_scratch *s, const struct kl_tile *tile, struct running_sums *running)
{
    const struct kl_job *job = s->job;
    for (int i = 0; i < KL_OPERANDS; i++) {
        kl_load_operand(s, tile, i);
        if (kl_is_logit(job, i))
            raise_shift(running, i, job->kernel->row_max(s->v[i], tile->length));
    }
    struct kl_row_sums more = job->kernel->row_sums[kl_rule_is_log(job->rule)](
        is_wide(s, KL_INPUT) || is_wide(s, KL_TARGET), kl_is_logit(job, KL_INPUT), s->refused,
        s->v[KL_INPUT], s->v[KL_TARGET], running->shifts[KL_INPUT], running->shifts[KL_TARGET],
        tile->length);
    kl_sum_add(&running->losses, more.losses);
    kl_sum_add(&running->sum_p, more.sum_p);
    kl_sum_add(&running->exps, more.exps);
}

/* Divides the sums of n rows by those of their exponentials. */
static bool normalize_sums(struct kl_scratch *s, const struct kl_rows_sums *running, size_t n,
                           double *losses, double *sum_p)
{
    const struct kl_kernel *kernel = s->job->kernel;
    bool logits[KL_OPERANDS] = {kl_is_logit(s->job, KL_INPUT), kl_is_logit(s->job, KL_TARGET)},
         good = true;
    const double *const sums[] = {running->exps, running->sum_p};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (!logits[i])
            kl_fill(s->log_sum_exp[i], 0, n);
        else if (n == 1)
            s->log_sum_exp[i][0] = log(sums[i][0]);
        else
            kernel->logs(sums[i], s->log_sum_exp[i], n);
    for (size_t i = 0; i < n; i++) {
        double total = logits[KL_TARGET] ? running->sum_p[i] : 1;
        sum_p[i] = running->sum_p[i] / total;
        losses[i] = running->losses[i] / total -
                    sum_p[i] * (s->log_sum_exp[KL_TARGET][i] - s->log_sum_exp[KL_INPUT][i]);
        good &= isfinite(losses[i]) || (s->job->mask.data && s->mask[i] == 0);
    }
    return good;
}

static bool sum_row(struct kl_scratch *s, double *losses, double *sum_p)
{
    struct running_sums running = {.losses = {0, 0}, .sum_p = {0, 0}, .exps = {0, 0}};
    for (int i = 0; i < KL_OPERANDS; i++) {
        double by = kl_is_logit(s->job, i) ? -(double)INFINITY : 0;
        running.shifts[i] = (struct kl_shift){by, scale_of(s, i)};
    }
    KL_FOR_EACH_TILE (s, tile)
        add_tile(s, &tile, &running);
    struct kl_rows_sums sums; /* of one row */
    sums.losses[0] = kl_sum_value(running.losses);
    sums.sum_p[0] = kl_sum_value(running.sum_p);
    sums.exps[0] = kl_sum_value(running.exps);
    bool good = normalize_sums(s, &sums, 1, losses, sum_p);
    for (int i = 0; i < KL_OPERANDS; i++) {
        s->row_max[i][0] = running.shifts[i].by;
        kl_broadcast(s, s->row_max[i]);
        kl_broadcast(s, s->log_sum_exp[i]);
    }
    return good;
}

/* compensated_sums: sums along several rows, with the errors of their additions. */
struct compensated_sums {
    struct kl_rows_sums high, low;
};

static void add_tile_of_rows(struct kl_scratch *s, const struct kl_tile *tile,
                             struct compensated_sums *running)
{
    const struct kl_kernel *kernel = s->job->kernel;
    const struct kl_row_shifts shifts = {s->row_max[KL_INPUT], s->row_max[KL_TARGET],
                                         scale_of(s, KL_INPUT), scale_of(s, KL_TARGET)};
    struct kl_rows_sums more;
    kl_fill(more.losses, 0, s->rows);
    kl_fill(more.sum_p, 0, s->rows);
    kl_fill(more.exps, 0, s->rows);
    kl_load_operand(s, tile, KL_INPUT);
    kl_load_operand(s, tile, KL_TARGET);
    for (size_t i = 0; i < tile->length; i++)
        kernel->each_row_sums[kl_rule_is_log(s->job->rule)](
            is_wide(s, KL_INPUT) || is_wide(s, KL_TARGET), kl_is_logit(s->job, KL_INPUT),
            s->refused, s->v[KL_INPUT] + i * tile->pitch, s->v[KL_TARGET] + i * tile->pitch,
            &shifts, &more, tile->pitch);
    kernel->each_add(more.losses, running->high.losses, running->low.losses, s->rows);
    kernel->each_add(more.sum_p, running->high.sum_p, running->low.sum_p, s->rows);
    kernel->each_add(more.exps, running->high.exps, running->low.exps, s->rows);
}

static bool sum_rows(struct kl_scratch *s, double *losses, double *sum_p)
{
    struct compensated_sums running = {.high = {.losses = {0}}};
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (kl_is_logit(s->job, i))
            find_row_max(s, i);
        else
            kl_fill(s->row_max[i], 0, s->rows);
        kl_fill(s->log_sum_exp[i], 0, s->rows); /* also of the lanes that pad the rows */
    }
    KL_FOR_EACH_TILE (s, tile)
        add_tile_of_rows(s, &tile, &running);
    for (size_t i = 0; i < s->group->rows; i++) {
        running.high.losses[i] += running.low.losses[i]; /* what is not finite is of no use */
        running.high.sum_p[i] += running.low.sum_p[i];
        running.high.exps[i] += running.low.exps[i];
    }
    return normalize_sums(s, &running.high, s->group->rows, losses, sum_p);
}

bool kl_find_row_sums(struct kl_scratch *s, double *losses, double *sum_p)
{
    bool good = (s->job->tile.pitch == 1 ? sum_row : sum_rows)(s, losses, sum_p);
    if (good)
        kl_sum_close_rows(s, losses);
    return good;
}
