#include "lib/gradient.h"
#include "lib/softmax.h"
#include "lib/workspace.h"

/* ---- Losses of a tile */

/* The weights of a tile's elements; NULL if they have none of their own. */
static const double *weights_of(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    return job->layout->elementwise
               ? kl_tile_doubles(job->kernel, job->layout, tile, &job->weight, b->weight)
               : NULL;
}

static void store_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    enum kl_dtype dtype = job->plan->dtype;
    const struct kl_array_view losses = {KL_OF_LOSS, dtype, false, job->losses};
    void *in_place = (void *)kl_tile_in_place(job->layout, tile, &losses);
    job->kernel->narrow[dtype](b->losses, in_place ? in_place : b->scratch, kl_tile_size(tile));
    if (!in_place)
        kl_tile_store(job->layout, tile, KL_OF_LOSS, dtype, b->scratch, job->losses);
}

/* Sums or stores the losses that b->losses holds. */
static void finish_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    size_t n = kl_tile_size(tile);
    if (job->layout->elementwise)
        kl_weigh_losses(job, b->losses, weights_of(b, tile), kl_unmasked(b, tile), n);
    if (kl_sums_rows(job)) {
        kl_add_to_rows(b, tile, b->losses, b->group->high, b->group->low);
        return;
    }
    if (!job->losses) {
        kl_sum_merge(b->group->sum, job->kernel->total(b->losses, n));
        return;
    }
    if (job->unit != 1)
        job->kernel->scale(b->losses, job->unit, n);
    store_losses(b, tile);
}

static void sum_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    struct kl_elements e = {kl_operand(b, tile, KL_INPUT), kl_operand(b, tile, KL_TARGET),
                            kl_unmasked(b, tile), weights_of(b, tile)};
    struct kl_sum sum = job->kernel->sum[job->plan->dtype][kl_rule_is_log(job->rule)](
        job->rule, &e, kl_tile_size(tile));
    if (job->layout->elementwise) {
        kl_sum_merge(b->group->sum, sum);
        return;
    }
    job->kernel->add(&sum.high, b->group->high, b->group->low, 1);
    b->group->low[0] += sum.low;
}

/* Computes losses from the operands as they are, where the kernel has a formula for that. */
static void compute_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    enum kl_form form = kl_has_quotients(job->plan) ? KL_FORM_QUOTIENT
                        : kl_rule_is_log(job->rule) ? KL_FORM_LOG
                                                    : KL_FORM_PROB;
    bool summed =
        kl_sums_rows(job) ? kl_are_rows_alone(job->layout) && !job->tile.columns : !job->losses;
    if (form != KL_FORM_QUOTIENT && summed) {
        sum_losses(b, tile);
        return;
    }
    job->kernel->losses[job->plan->dtype][form](job->rule, kl_operand(b, tile, KL_INPUT),
                                                kl_operand(b, tile, KL_TARGET), b->losses,
                                                kl_tile_size(tile));
    finish_losses(b, tile);
}

/* Computes losses and derivatives from log-probabilities. */
static void compute_tile(struct kl_workspace *b, const struct kl_tile *tile, bool wants_loss)
{
    const struct kl_job *job = b->job;
    kl_load_log_probs(b, tile);
    if (wants_loss) {
        job->kernel->losses[KL_FLOAT64][kl_rule_is_log(job->rule)](
            job->rule, b->v[KL_INPUT], b->v[KL_TARGET], b->losses, kl_tile_size(tile));
        finish_losses(b, tile);
    }
    if (kl_any_wanted(job))
        kl_compute_grads(b, tile);
}

/* ---- Groups */

static void run_without_logits(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    bool is_direct = kl_is_direct(job->plan), has_form = is_direct || kl_has_quotients(job->plan);
    KL_FOR_EACH_TILE (b, tile) {
        if (has_form && job->wants_loss)
            compute_losses(b, &tile);
        if (is_direct && kl_any_wanted(job))
            kl_compute_direct_grads(b, &tile);
        else if (!has_form || kl_any_wanted(job))
            compute_tile(b, &tile, !has_form && job->wants_loss);
    }
}

/* True if the derivatives by a row's losses are all equal, and of the losses only the sum is
 * wanted: then one pass over the row gives its sums, and a second one the derivatives. */
static bool can_fuse(const struct kl_job *job)
{
    bool equal = !job->weight.data && !job->mask.data && !job->grad_output.data && !job->losses;
    return job->plan->spaces[KL_INPUT] != KL_PROB && (equal || !job->layout->elementwise);
}

/* True if rows are not masked in part, and their sums can be found in one pass. */
static bool has_row_sums(const struct kl_job *job)
{
    return job->plan->spaces[KL_INPUT] != KL_PROB && !(job->layout->elementwise && job->mask.data);
}

static void set_losses(struct kl_workspace *b, const double *losses)
{
    if (!b->job->wants_loss)
        return;
    for (size_t i = 0; i < b->group->rows; i++)
        b->group->high[i] = losses[i], b->group->low[i] = 0;
}

/* True if a target of -inf makes a derivative NaN; the loss is still the one computed without
 * derivatives. */
static bool has_nan_grads(const struct kl_job *job)
{
    return job->rule == KL_LOGIT_PYTORCH && kl_is_wanted(job, KL_TARGET);
}

static bool run_fused(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    double losses[KL_ROWS], sum_p[KL_ROWS];
    bool has_sentinel = job->rule == KL_LOG_PYTORCH || has_nan_grads(job);
    b->sentinel = has_sentinel ? -(double)INFINITY : (double)NAN;
    if (!can_fuse(job) || !kl_find_row_sums(b, true, losses, sum_p))
        return false;
    set_losses(b, losses);
    if (kl_any_wanted(job) && !kl_compute_row_grads(b, losses, sum_p))
        KL_FOR_EACH_TILE (b, tile)
            compute_tile(b, &tile, false);
    return true;
}

/* False, and nothing is done, of several rows of which one has sums that are of no use. */
static __attribute__((noinline)) bool run_with_logits(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    double losses[KL_ROWS], sum_p[KL_ROWS];
    if (run_fused(b))
        return true;
    b->sentinel = (double)NAN;
    bool has_sums = has_row_sums(job) && kl_find_row_sums(b, false, losses, sum_p);
    if (has_row_sums(job) && !has_sums && b->group->rows > 1)
        return false;
    bool has_losses = has_sums && has_nan_grads(job) && can_fuse(job);
    if (!has_sums)
        for (int i = 0; i < KL_OPERANDS; i++)
            if (kl_is_logit(job, i))
                kl_find_softmax(b, i);
    if (kl_any_wanted(job))
        kl_sum_grads(b);
    if (has_losses)
        set_losses(b, losses);
    KL_FOR_EACH_TILE (b, tile)
        compute_tile(b, &tile, job->wants_loss && !has_losses);
    return true;
}

/* Computes rows one by one, for the bits of a row must not depend on those beside it. */
static void run_one_by_one(struct kl_workspace *b)
{
    const struct kl_group *group = b->group;
    for (size_t i = 0; i < group->rows; i++) {
        struct kl_group row = *group;
        row.row += i, row.rows = 1;
        row.high += i, row.low += i;
        kl_start_group(b, &row);
        run_with_logits(b);
    }
}

void kl_run_group(const struct kl_group *group, void *scratch)
{
    struct kl_workspace *b = kl_workspace_of(scratch);
    kl_start_group(b, group);
    if (group->rows == 1 && kl_is_row_masked(b, 0)) {
        KL_FOR_EACH_TILE (b, tile)
            kl_clear_grads(b, &tile);
        return;
    }
    if (!kl_has_logits(b->job))
        run_without_logits(b);
    else if (!run_with_logits(b))
        run_one_by_one(b);
}
