/* Some rows at a time: from what the operands hold to logarithms and probabilities, to losses, to
 * derivatives, a tile after the other. Rows of logits are passed over three times, for their
 * greatest, for the sum of their exponentials, and for what is wanted of them. */
#include "lib/run.h"

#include <math.h>
#include <string.h>

enum { INPUT, TARGET };

/* What a group needs of memory: tiles, and numbers of rows (KL_STEADY copies where there is one
 * row). */
struct scratch {
    struct kl_job *job;
    const struct kl_group *group;
    double v[2][KL_BLOCK]; /* the operands, as the kernels' rule takes them */
    double times[KL_BLOCK], slope_times[KL_BLOCK];
    double keep[KL_BLOCK], g[KL_BLOCK], losses[KL_BLOCK], slopes[KL_BLOCK], e[KL_BLOCK];
    double tops[2][KL_ROWS], logs[2][KL_ROWS]; /* of logits: greatest, log of the sum of e */
    double high[KL_ROWS], low[KL_ROWS];
    double slope_sums[2][KL_ROWS];
};

/* Calls `body` with each tile of the group. */
#define FOR_EACH_TILE(s, tile)                                                                     \
    for (struct kl_tile tile = first_tile(s); tile.length > 0; tile = next_tile(s, tile))

static struct kl_tile tile_at(const struct scratch *s, size_t start)
{
    const struct kl_job *job = s->job;
    size_t left = s->group->end - start;
    return (struct kl_tile){.row = s->group->row,
                            .rows = s->group->rows,
                            .pitch = job->rows,
                            .start = start,
                            .length = left < job->chunk ? left : job->chunk};
}

static struct kl_tile first_tile(const struct scratch *s) { return tile_at(s, s->group->start); }

static struct kl_tile next_tile(const struct scratch *s, struct kl_tile tile)
{
    return tile_at(s, tile.start + tile.length);
}

static size_t size_of(const struct kl_tile *tile) { return tile->pitch * tile->length; }

/* ---- A tile's numbers and those of its rows */

static void fill(double *to, double value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* So that one row's number can stand for a vector of them. */
static void make_steady(const struct scratch *s, double *of_rows)
{
    if (s->job->rows == 1)
        fill(of_rows, of_rows[0], KL_STEADY);
}

static void find_tops(const struct scratch *s, const struct kl_tile *tile, const double *v,
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

static void add_to_rows(const struct scratch *s, const struct kl_tile *tile, const double *v,
                        double *high, double *low)
{
    const struct kl_kernel *kernel = s->job->kernel;
    if (tile->pitch == 1) {
        struct kl_sum sum = {high[0], low[0]};
        kl_sum_merge(&sum, kernel->total(v, tile->length));
        high[0] = sum.high, low[0] = sum.low;
        return;
    }
    for (size_t i = 0; i < tile->length; i++)
        kernel->each_add(v + i * tile->pitch, high, low, tile->pitch);
}

static void shift_rows(const struct scratch *s, const struct kl_tile *tile, double *v,
                       const double *by, const double *minus)
{
    const struct kl_kernel *kernel = s->job->kernel;
    double scale = 1 / s->job->plan->temperature;
    if (tile->pitch == 1)
        kernel->shift(v, by, minus, 0, scale, tile->length);
    else
        for (size_t i = 0; i < tile->length; i++)
            kernel->shift(v + i * tile->pitch, by, minus, 1, scale, tile->pitch);
}

static void soften_rows(const struct scratch *s, const struct kl_tile *tile, double *slopes,
                        const double *e, const double *sums)
{
    const struct kl_kernel *kernel = s->job->kernel;
    double scale = 1 / s->job->plan->temperature;
    if (tile->pitch == 1)
        kernel->soften(slopes, e, sums, 0, scale, tile->length);
    else
        for (size_t i = 0; i < tile->length; i++)
            kernel->soften(slopes + i * tile->pitch, e + i * tile->pitch, sums, 1, scale,
                           tile->pitch);
}

static void load(const struct scratch *s, const struct kl_tile *tile,
                 const struct kl_numbers *numbers, double *to)
{
    kl_tile_load(s->job->kernel, s->job->layout, tile, numbers, to);
}

static void hide(const struct scratch *s, const struct kl_tile *tile, double *v, double value)
{
    if (!s->job->mask.data)
        return;
    for (size_t i = 0, n = size_of(tile); i < n; i++)
        v[i] = s->keep[i] != 0 ? v[i] : value;
}

static void load_operand(struct scratch *s, const struct kl_tile *tile, int operand)
{
    load(s, tile, &s->job->operands[operand], s->v[operand]);
    if (kl_is_logit(s->job, operand))
        hide(s, tile, s->v[operand], -(double)INFINITY);
}

static void load_mask(struct scratch *s, const struct kl_tile *tile)
{
    if (s->job->mask.data)
        load(s, tile, &s->job->mask, s->keep);
}

/* ---- Logits: the first two passes */

static void find_greatest_logits(struct scratch *s, int operand)
{
    fill(s->tops[operand], -(double)INFINITY, KL_ROWS);
    FOR_EACH_TILE(s, tile)
    {
        load_mask(s, &tile);
        load_operand(s, &tile, operand);
        find_tops(s, &tile, s->v[operand], s->tops[operand]);
    }
    make_steady(s, s->tops[operand]);
}

static void sum_exponentials(struct scratch *s, int operand)
{
    static const double zeros[KL_ROWS];
    fill(s->high, 0, KL_ROWS);
    fill(s->low, 0, KL_ROWS);
    FOR_EACH_TILE(s, tile)
    {
        load_mask(s, &tile);
        load_operand(s, &tile, operand);
        shift_rows(s, &tile, s->v[operand], s->tops[operand], zeros);
        s->job->kernel->exps(s->v[operand], s->e, size_of(&tile));
        add_to_rows(s, &tile, s->e, s->high, s->low);
    }
    for (size_t i = 0; i < s->job->rows; i++)
        s->logs[operand][i] = log(s->high[i] + s->low[i]);
    make_steady(s, s->logs[operand]);
}

/* ---- One row whose losses' sum is all that is wanted: in the second pass, from parts. With P and
 * Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P) (log(P/sum(P)) -
 * log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q); likewise where
 * one operand is not logits. */

/* False if something is not ordinary. */
static bool sum_parts(struct scratch *s, double *loss, double *mass)
{
    static const double zeros[KL_STEADY];
    const struct kl_job *job = s->job;
    bool wide = job->operands[INPUT].dtype == KL_FLOAT64 || job->operands[TARGET].dtype == KL_FLOAT64;
    bool logits[2] = {kl_is_logit(job, INPUT), kl_is_logit(job, TARGET)};
    struct kl_sum losses = {0, 0}, masses = {0, 0}, exps = {0, 0};
    FOR_EACH_TILE(s, tile)
    {
        for (int i = INPUT; i <= TARGET; i++) {
            load_operand(s, &tile, i);
            if (logits[i])
                shift_rows(s, &tile, s->v[i], s->tops[i], zeros);
        }
        struct kl_parts parts = job->kernel->parts[kl_rule_is_log(job->rule)](
            wide, logits[INPUT], s->v[INPUT], s->v[TARGET], tile.length);
        kl_sum_add(&losses, parts.losses);
        kl_sum_add(&masses, parts.masses);
        kl_sum_add(&exps, parts.exps);
    }
    double total = logits[TARGET] ? kl_sum_value(masses) : 1;
    s->logs[INPUT][0] = log(kl_sum_value(exps));
    s->logs[TARGET][0] = log(total);
    *mass = kl_sum_value(masses) / total;
    *loss = kl_sum_value(losses) / total;
    if (logits[INPUT])
        *loss += *mass * s->logs[INPUT][0];
    *loss -= *mass * s->logs[TARGET][0];
    make_steady(s, s->logs[INPUT]);
    make_steady(s, s->logs[TARGET]);
    return isfinite(*loss);
}

/* ---- A tile as logarithms and probabilities */

static bool has_quotients(const struct kl_job *job)
{
    return job->plan->spaces[INPUT] == KL_PROB && job->plan->spaces[TARGET] == KL_PROB;
}

/* Of an input that holds probabilities: what the rule takes instead, and what its losses and
 * derivatives are multiplied by. */
static void take_logarithms(struct scratch *s, size_t n)
{
    const struct kl_kernel *kernel = s->job->kernel;
    if (has_quotients(s->job)) {
        kernel->quotients(s->job->rule, s->v[INPUT], s->v[TARGET], s->times, s->slope_times, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        s->slope_times[i] = 1 / s->v[INPUT][i];
    kernel->logs(s->v[INPUT], s->v[INPUT], n);
}

static void load_forms(struct scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    load_mask(s, tile);
    for (int i = INPUT; i <= TARGET; i++) {
        load_operand(s, tile, i);
        if (kl_is_logit(job, i))
            shift_rows(s, tile, s->v[i], s->tops[i], s->logs[i]);
    }
    if (job->plan->spaces[INPUT] == KL_PROB)
        take_logarithms(s, size_of(tile));
    hide(s, tile, s->v[INPUT], 0);
    hide(s, tile, s->v[TARGET], 0);
}

static void look_for_negative(struct scratch *s, const struct kl_tile *tile)
{
    for (size_t i = 0, n = size_of(tile); i < n; i++)
        if (s->v[TARGET][i] < 0)
            atomic_store_explicit(&s->job->negative, true, memory_order_relaxed);
}

/* ---- Losses of a tile */

static void multiply(double *v, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] *= by[i];
}

static void sum_each(struct scratch *s, const struct kl_tile *tile)
{
    for (size_t i = 0; i < (tile->pitch == 1 ? 1 : tile->length); i++)
        kl_sum_merge(s->group->sum,
                     s->job->kernel->total(s->losses + i * tile->pitch,
                                           tile->pitch == 1 ? tile->length : tile->rows));
}

static void take_losses(struct scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    size_t n = size_of(tile);
    job->kernel->map[KL_FLOAT64][kl_rule_is_log(job->rule)](job->rule, s->v[INPUT], s->v[TARGET],
                                                            s->losses, n);
    if (has_quotients(job))
        multiply(s->losses, s->times, n);
    if (!job->layout->each) {
        add_to_rows(s, tile, s->losses, s->high, s->low);
        return;
    }
    if (job->weight.data) {
        load(s, tile, &job->weight, s->e);
        multiply(s->losses, s->e, n);
    }
    hide(s, tile, s->losses, 0);
    if (!job->losses) {
        sum_each(s, tile);
        return;
    }
    for (size_t i = 0; i < n; i++)
        s->losses[i] *= job->unit;
    kl_tile_store(job->kernel, job->layout, tile, KL_OF_LOSS, job->plan->dtype, job->losses,
                  s->losses);
}

/* ---- Derivatives of a tile */

static bool is_wanted(const struct kl_job *job, int operand)
{
    return job->sinks[operand].gradient != NULL;
}

static void load_factors(struct scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    size_t n = size_of(tile);
    fill(s->g, job->factor, n);
    const struct kl_numbers *const factors[] = {&job->upstream, &job->weight};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i]->data) {
            load(s, tile, factors[i], s->e);
            multiply(s->g, s->e, n);
        }
}

/* By the operand as the rule takes it, or by the probability that it was. */
static void find_slopes(struct scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    size_t n = size_of(tile);
    job->kernel->slope[kl_rule_is_log(job->rule)](job->rule,
                                                  operand == INPUT ? KL_INPUT : KL_TARGET,
                                                  s->v[INPUT], s->v[TARGET], s->g, s->slopes, n);
    if (operand == INPUT && job->plan->spaces[INPUT] == KL_PROB) {
        bool nothing_stays = job->plan->options.compat != KL_PYTORCH;
        for (size_t i = 0; i < n; i++)
            s->slopes[i] *= nothing_stays && s->slopes[i] == 0 ? 1 : s->slope_times[i];
    }
    hide(s, tile, s->slopes, 0);
}

static void write_slopes(struct scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    const struct kl_sink *sink = &s->group->sinks[operand];
    const struct kl_numbers *numbers = &job->operands[operand];
    if (sink->sums)
        kl_tile_add(job->layout, tile, numbers->array, sink->sums, s->slopes);
    else
        kl_tile_store(job->kernel, job->layout, tile, numbers->array, numbers->dtype,
                      sink->gradient, s->slopes);
}

/* The sums that the softmax's derivative takes. */
static void sum_slopes(struct scratch *s)
{
    double low[2][KL_ROWS] = {{0}};
    for (int i = INPUT; i <= TARGET; i++)
        fill(s->slope_sums[i], 0, KL_ROWS);
    FOR_EACH_TILE(s, tile)
    {
        load_forms(s, &tile);
        load_factors(s, &tile);
        for (int i = INPUT; i <= TARGET; i++)
            if (is_wanted(s->job, i) && kl_is_logit(s->job, i)) {
                find_slopes(s, &tile, i);
                add_to_rows(s, &tile, s->slopes, s->slope_sums[i], low[i]);
            }
    }
    for (int i = INPUT; i <= TARGET; i++) {
        for (size_t j = 0; j < s->job->rows; j++)
            s->slope_sums[i][j] += low[i][j];
        make_steady(s, s->slope_sums[i]);
    }
}

static void take_slopes(struct scratch *s, const struct kl_tile *tile)
{
    for (int i = INPUT; i <= TARGET; i++) {
        if (!is_wanted(s->job, i))
            continue;
        find_slopes(s, tile, i);
        if (kl_is_logit(s->job, i)) {
            s->job->kernel->exps(s->v[i], s->e, size_of(tile));
            soften_rows(s, tile, s->slopes, s->e, s->slope_sums[i]);
            hide(s, tile, s->slopes, 0);
        }
        write_slopes(s, tile, i);
    }
}

/* ---- A group */

static bool any_wanted(const struct kl_job *job)
{
    return is_wanted(job, INPUT) || is_wanted(job, TARGET);
}

static void give_sums(struct scratch *s)
{
    if (s->job->layout->each)
        return;
    for (size_t i = 0; i < s->group->rows; i++)
        s->group->sums[i] = (struct kl_sum){s->high[i], s->low[i]};
}

/* Nothing of the group's one row counts. */
static bool skip(struct scratch *s)
{
    double keep = 1;
    if (s->job->layout->each || s->job->rows > 1 || !s->job->mask.data)
        return false;
    kl_line_load(s->job->kernel, &s->job->layout->across, &s->job->mask, s->group->row, 1, &keep);
    if (keep != 0)
        return false;
    fill(s->slopes, 0, KL_BLOCK);
    FOR_EACH_TILE(s, tile)
    for (int i = INPUT; i <= TARGET; i++)
        if (is_wanted(s->job, i))
            write_slopes(s, &tile, i);
    give_sums(s);
    return true;
}

/* One row, long enough, of a sum of plain losses. */
static bool sum_dense(struct scratch *s)
{
    const struct kl_job *job = s->job;
    if (job->layout->each || job->rows > 1 || any_wanted(job) || !kl_is_plain(job->plan) ||
        !kl_rows_are_dense(job->layout, KL_OF_INPUT) ||
        !kl_rows_are_dense(job->layout, KL_OF_TARGET))
        return false;
    size_t row = s->group->row, start = s->group->start;
    struct kl_sum sum =
        kl_sum_elements(job, kl_offset(&job->layout->across, KL_OF_INPUT, row) + start,
                        kl_offset(&job->layout->across, KL_OF_TARGET, row) + start,
                        s->group->end - start);
    s->high[0] = sum.high, s->low[0] = sum.low;
    give_sums(s);
    return !(isnan(sum.high) && job->rule == KL_PROB_MATH); /* which looks for what is negative */
}

/* Whether a row's derivatives by its losses are all the same and its losses' sum is all there is
 * to them. */
static bool is_uniform(const struct kl_job *job)
{
    bool alone = !job->weight.data && !job->mask.data && !job->upstream.data && !job->losses;
    return job->rows == 1 && job->plan->spaces[INPUT] != KL_PROB && (alone || !job->layout->each);
}

/* The loss of a uniform row, and the sums of its derivatives, which follow from it. */
static bool take_parts(struct scratch *s)
{
    double loss, mass;
    if (!is_uniform(s->job) || !sum_parts(s, &loss, &mass))
        return false;
    struct kl_tile one = first_tile(s);
    one.length = 1;
    if (any_wanted(s->job))
        load_factors(s, &one);
    s->slope_sums[INPUT][0] = -s->g[0] * mass;
    s->slope_sums[TARGET][0] = s->g[0] * (loss + 1);
    make_steady(s, s->slope_sums[INPUT]);
    make_steady(s, s->slope_sums[TARGET]);
    if (s->job->layout->each)
        kl_sum_add(s->group->sum, loss);
    s->high[0] = loss, s->low[0] = 0;
    return true;
}

/* Logits are read to their end before anything is known of one of them. */
static bool prepare_logits(struct scratch *s)
{
    bool any = false;
    for (int i = INPUT; i <= TARGET; i++)
        if (kl_is_logit(s->job, i)) {
            find_greatest_logits(s, i);
            any = true;
        }
    if (!any || take_parts(s))
        return any;
    for (int i = INPUT; i <= TARGET; i++)
        if (kl_is_logit(s->job, i))
            sum_exponentials(s, i);
    if (any_wanted(s->job))
        sum_slopes(s);
    return false;
}

void kl_run_group(struct kl_job *job, const struct kl_group *group)
{
    struct scratch scratch, *s = &scratch;
    s->job = job;
    s->group = group;
    fill(s->high, 0, KL_ROWS);
    fill(s->low, 0, KL_ROWS);
    if (skip(s) || sum_dense(s))
        return;
    bool has_losses = prepare_logits(s);
    if (!has_losses) {
        fill(s->high, 0, KL_ROWS);
        fill(s->low, 0, KL_ROWS);
    }
    if (!has_losses || any_wanted(job))
        FOR_EACH_TILE(s, tile)
        {
            load_forms(s, &tile);
            if (job->rule == KL_PROB_MATH)
                look_for_negative(s, &tile);
            if (any_wanted(job))
                load_factors(s, &tile);
            if (!has_losses)
                take_losses(s, &tile);
            if (any_wanted(job))
                take_slopes(s, &tile);
        }
    give_sums(s);
}
