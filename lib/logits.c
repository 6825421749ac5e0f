/* The softmax of rows of logits, never written out. */
#include "lib/group.h"

#include <math.h>

static void raise_tops(const struct kl_scratch *s, const struct kl_tile *tile, const double *v,
                       double *tops)
{
    const struct kl_kernel *kernel = s->job->kernel;
    if (tile->pitch == 1) {
        double top = kernel->top(v, tile->length);
        tops[0] = top > tops[0] ? top : tops[0];
        return;
    }
    for (size_t i = 0; i < tile->length; i++)
        kernel->each_top(v + i * tile->pitch, tops, tile->pitch);
}

void kl_find_greatest(struct kl_scratch *s, int operand)
{
    kl_fill(s->tops[operand], -(double)INFINITY, s->rows);
    KL_FOR_EACH_TILE(s, tile)
    {
        kl_load_operand(s, &tile, operand);
        raise_tops(s, &tile, s->v[operand], s->tops[operand]);
    }
    kl_make_steady(s, s->tops[operand]);
}

static double scale_of(const struct kl_scratch *s) { return 1 / s->job->plan->temperature; }

/* Logits less the greatest of their row, over the temperature. */
static void load_shifted(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    if (s->single && s->form[operand] == KL_SHIFTED)
        return;
    kl_load_operand(s, tile, operand);
    kl_shift_rows(s, tile, s->v[operand], s->tops[operand], kl_zeros, scale_of(s));
    s->form[operand] = KL_SHIFTED;
}

void kl_sum_exponentials(struct kl_scratch *s, int operand)
{
    kl_fill(s->high, 0, s->rows);
    kl_fill(s->low, 0, s->rows);
    KL_FOR_EACH_TILE(s, tile)
    {
        load_shifted(s, &tile, operand);
        s->job->kernel->exps(s->v[operand], s->e, kl_tile_size(&tile));
        kl_add_to_rows(s, &tile, s->e, s->high, s->low);
    }
    for (size_t i = 0; i < s->job->rows; i++)
        s->logs[operand][i] = log(s->high[i] + s->low[i]);
    kl_make_steady(s, s->logs[operand]);
}

/* ---- Parts. With P and Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P)
 * (log(P/sum(P)) - log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q);
 * likewise where one operand is no logits, and its logarithm is not taken of a sum. */

struct row_parts {
    struct kl_shift shifts[2];
    struct kl_sum losses, masses, exps;
};

static void scale_sum(struct kl_sum *sum, double by)
{
    sum->high *= by;
    sum->low *= by;
}

/* A tile whose greatest logit is more than all before makes these less. */
static void raise_shift(struct row_parts *parts, int operand, double top)
{
    struct kl_shift *shift = &parts->shifts[operand];
    double less = (shift->by - top) * shift->scale, factor = exp(less);
    bool any = isfinite(shift->by);
    if (!(top > shift->by))
        return;
    shift->by = top;
    if (!any)
        return;
    kl_sum_add(&parts->losses, (operand == KL_T ? less : -less) * kl_sum_value(parts->masses));
    if (operand == KL_X) {
        scale_sum(&parts->exps, factor);
    } else {
        scale_sum(&parts->losses, factor);
        scale_sum(&parts->masses, factor);
    }
}

static void add_tile(struct kl_scratch *s, const struct kl_tile *tile, struct row_parts *parts)
{
    const struct kl_job *job = s->job;
    bool wide = job->operands[KL_X].dtype == KL_FLOAT64 || job->operands[KL_T].dtype == KL_FLOAT64;
    for (int i = KL_X; i <= KL_T; i++) {
        kl_load_operand(s, tile, i);
        if (kl_is_logit(job, i))
            raise_shift(parts, i, job->kernel->top(s->v[i], tile->length));
    }
    struct kl_parts more = job->kernel->parts[kl_rule_is_log(job->rule)](
        wide, kl_is_logit(job, KL_X), s->v[KL_X], s->v[KL_T], parts->shifts[KL_X],
        parts->shifts[KL_T], tile->length);
    kl_sum_add(&parts->losses, more.losses);
    kl_sum_add(&parts->masses, more.masses);
    kl_sum_add(&parts->exps, more.exps);
}

bool kl_sum_parts(struct kl_scratch *s, double *loss, double *mass)
{
    bool logits[2] = {kl_is_logit(s->job, KL_X), kl_is_logit(s->job, KL_T)};
    struct row_parts parts = {.losses = {0, 0}, .masses = {0, 0}, .exps = {0, 0}};
    for (int i = KL_X; i <= KL_T; i++)
        parts.shifts[i] =
            logits[i] ? (struct kl_shift){-(double)INFINITY, scale_of(s)} : (struct kl_shift){0, 1};
    KL_FOR_EACH_TILE(s, tile)
    add_tile(s, &tile, &parts);
    double masses = kl_sum_value(parts.masses), total = logits[KL_T] ? masses : 1;
    s->logs[KL_X][0] = logits[KL_X] ? log(kl_sum_value(parts.exps)) : 0;
    s->logs[KL_T][0] = log(total);
    *mass = masses / total;
    *loss = kl_sum_value(parts.losses) / total - *mass * (s->logs[KL_T][0] - s->logs[KL_X][0]);
    for (int i = KL_X; i <= KL_T; i++) {
        s->tops[i][0] = parts.shifts[i].by;
        kl_make_steady(s, s->tops[i]);
        kl_make_steady(s, s->logs[i]);
    }
    return isfinite(*loss);
}

void kl_load_logarithms(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    if (s->single && s->form[operand] == KL_SHIFTED) {
        kl_shift_rows(s, tile, s->v[operand], kl_zeros, s->logs[operand], 1);
    } else {
        kl_load_operand(s, tile, operand);
        kl_shift_rows(s, tile, s->v[operand], s->tops[operand], s->logs[operand], scale_of(s));
    }
    s->form[operand] = KL_LOGARITHMS;
}
