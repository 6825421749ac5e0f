/* Computes one group of rows, tile by tile: loads operands, converts them to log-probabilities,
 * computes losses and derivatives. */
#include "lib/scratch.h"

#include <math.h>
#include <stdint.h>

/* ---- Losses of a tile */

static void sum_each(struct kl_scratch *s, const struct kl_tile *tile)
{
    struct kl_lines lines = kl_lines_of(tile);
    size_t real = tile->pitch == 1 ? lines.length : tile->rows; /* and no padding */
    for (size_t i = 0; i < lines.n; i++)
        kl_sum_merge(s->group->sum, s->job->kernel->total(s->losses + i * lines.length, real));
}

static void compute_losses(struct kl_scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    size_t n = kl_tile_size(tile);
    job->kernel->map[KL_FLOAT64][kl_rule_is_log(job->rule)](job->rule, s->v[KL_INPUT],
                                                            s->v[KL_TARGET], s->losses, n);
    if (kl_has_quotients(job))
        job->kernel->multiply(s->losses, s->times, n);
    if (!job->layout->each) {
        kl_add_to_rows(s, tile, s->losses, s->high, s->low);
        return;
    }
    if (job->weight.data) {
        kl_load_numbers(s, tile, &job->weight, s->spare);
        job->kernel->multiply(s->losses, s->spare, n);
    }
    kl_apply_mask(s, tile, s->losses, 0);
    if (!job->losses) {
        sum_each(s, tile);
        return;
    }
    if (job->unit != 1)
        job->kernel->shift(s->losses, kl_zeros, kl_zeros, 0, job->unit, n);
    kl_tile_store(job->kernel, job->layout, tile, KL_OF_LOSS, job->plan->dtype, job->losses,
                  s->losses);
}

/* ---- A group */

static void store_sums(struct kl_scratch *s)
{
    if (s->job->layout->each)
        return;
    for (size_t i = 0; i < s->group->rows; i++)
        s->group->sums[i] = (struct kl_sum){s->high[i], s->low[i]};
}

/* Handles a group of one row that the mask hides: its derivatives are 0. */
static bool skip(struct kl_scratch *s)
{
    double counts = 1;
    if (s->job->layout->each || s->job->tile.pitch > 1 || !s->job->mask.data)
        return false;
    kl_line_load(s->job->kernel, &s->job->layout->across, &s->job->mask, s->group->row, 1, &counts);
    if (counts != 0)
        return false;
    kl_fill(s->grads, 0, KL_BLOCK);
    KL_FOR_EACH_TILE (s, tile)
        for (int i = 0; i < KL_OPERANDS; i++)
            if (kl_is_wanted(s->job, i))
                kl_store_grads(s, &tile, i);
    store_sums(s);
    return true;
}

/* The sum of one row of plain losses, straight from the operands. False if there is none, or if it
 * is NaN under KL_MATH, where the tiles look for what is negative. */
static bool sum_dense(struct kl_scratch *s)
{
    const struct kl_job *job = s->job;
    if (job->layout->each || job->tile.pitch > 1 || !job->wants_loss || !kl_is_plain(job->plan) ||
        !kl_rows_are_dense(job->layout, KL_OF_INPUT) ||
        !kl_rows_are_dense(job->layout, KL_OF_TARGET))
        return false;
    size_t row = s->group->row, start = s->group->start;
    struct kl_sum sum = kl_sum_elements(
        job, kl_offset(&job->layout->across, KL_OF_INPUT, row) + start,
        kl_offset(&job->layout->across, KL_OF_TARGET, row) + start, s->group->end - start);
    s->high[0] = sum.high, s->low[0] = sum.low;
    store_sums(s);
    return !(isnan(sum.high) && job->rule == KL_PROB_MATH); /* which looks for what is negative */
}

/* True if the derivatives by a row's losses are all equal, and of the losses only the sum is
 * wanted. */
static bool is_uniform(const struct kl_job *job)
{
    bool alone = !job->weight.data && !job->mask.data && !job->grad_output.data && !job->losses;
    return job->plan->spaces[KL_INPUT] != KL_PROB && (alone || !job->layout->each);
}

static void set_losses(struct kl_scratch *s, const double *losses)
{
    for (size_t i = 0; i < s->group->rows; i++) {
        if (s->job->layout->each)
            kl_sum_add(s->group->sum, losses[i]);
        s->high[i] = losses[i], s->low[i] = 0;
    }
}

/* Sets the losses of uniform rows from their row sums, and the sums of derivatives that
 * softmax_backward takes. */
static bool set_row_sums(struct kl_scratch *s)
{
    double losses[KL_ROWS], sum_p[KL_ROWS];
    bool nan_grad = s->job->rule == KL_LOGIT_PYTORCH && kl_is_wanted(s->job, KL_TARGET);
    s->refused = s->job->rule == KL_LOG_PYTORCH || nan_grad ? -(double)INFINITY : (double)NAN;
    if (!is_uniform(s->job) || !kl_find_row_sums(s, losses, sum_p))
        return false;
    struct kl_tile one = kl_tile_at(s, s->group->start);
    one.length = 1;
    if (kl_any_wanted(s->job))
        kl_load_factors(s, &one);
    for (size_t i = 0; i < s->group->rows; i++) {
        s->grad_sums[KL_INPUT][i] = -s->g[i] * sum_p[i];
        s->grad_sums[KL_TARGET][i] = s->g[i] * (losses[i] + 1);
    }
    set_losses(s, losses);
    kl_broadcast(s, s->grad_sums[KL_INPUT]);
    kl_broadcast(s, s->grad_sums[KL_TARGET]);
    return true;
}

/* Computes the softmax's sums of rows of logits; true if the losses came with them. */
static bool prepare_logits(struct kl_scratch *s)
{
    bool logits[KL_OPERANDS] = {kl_is_logit(s->job, KL_INPUT), kl_is_logit(s->job, KL_TARGET)};
    if (!logits[KL_INPUT] && !logits[KL_TARGET])
        return false;
    double losses[KL_ROWS], sum_p[KL_ROWS];
    if (set_row_sums(s))
        return true;
    /* A target of -inf makes a derivative NaN; the loss is still the one computed without
     * derivatives. */
    bool nan_grad = s->job->rule == KL_LOGIT_PYTORCH && kl_is_wanted(s->job, KL_TARGET);
    s->refused = (double)NAN;
    bool has_losses = nan_grad && is_uniform(s->job) && kl_find_row_sums(s, losses, sum_p);
    for (int i = 0; i < KL_OPERANDS; i++)
        if (logits[i])
            kl_find_softmax(s, i);
    if (kl_any_wanted(s->job))
        kl_sum_grads(s);
    kl_clear_sums(s);
    if (has_losses)
        set_losses(s, losses);
    return has_losses;
}

static void compute_tile(struct kl_scratch *s, const struct kl_tile *tile, bool has_losses)
{
    kl_load_log_probs(s, tile);
    if (kl_any_wanted(s->job))
        kl_load_factors(s, tile);
    if (!has_losses)
        compute_losses(s, tile);
    kl_compute_grads(s, tile);
}

_Static_assert(sizeof(struct kl_scratch) + KL_SCRATCH_ALIGNMENT <= KL_THREAD_SCRATCH,
               "what a thread holds is enough for a group");

void kl_run_group(struct kl_job *job, const struct kl_group *group, void *scratch)
{
    struct kl_scratch *s = kl_aligned(scratch);
    s->job = job;
    s->group = group;
    s->mask_start = SIZE_MAX;
    s->single = group->end - group->start <= job->tile.length;
    s->rows = job->tile.pitch == 1 ? KL_BROADCAST_LANES : job->tile.pitch;
    s->stage[KL_INPUT] = s->stage[KL_TARGET] = KL_NOT_LOADED;
    kl_clear_sums(s);
    if (skip(s))
        return;
    bool has_losses = !job->wants_loss || sum_dense(s);
    if (has_losses && !kl_any_wanted(job))
        return;
    if (kl_any_wanted(job))
        kl_fill(s->g, job->factor,
                s->single ? job->tile.pitch * (group->end - group->start) : KL_BLOCK);
    has_losses |= prepare_logits(s);
    if (!has_losses || kl_any_wanted(job))
        KL_FOR_EACH_TILE (s, tile)
            compute_tile(s, &tile, has_losses);
    store_sums(s);
}
