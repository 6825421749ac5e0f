#include "lib/rows/gradient.h"
#include "lib/rows/mixture.h"
#include "lib/rows/softmax.h"
#include "lib/rows/workspace.h"

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
        kl_add_to_rows(b->job->kernel, tile, b->losses, b->group->high, b->group->low);
        return;
    }
    if (!job->losses && !job->layout->single_rows) {
        kl_sum_merge(b->group->sum, job->kernel->total(b->losses, n));
        return;
    }
    if (job->unit != 1)
        job->kernel->scale(b->losses, job->unit, n);
    if (job->losses)
        store_losses(b, tile);
    else
        kl_exact_add_all(b->group->exact, b->losses, n);
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
    job->kernel->add(&sum.high, 1, b->group->high, b->group->low, 1);
    b->group->low[0] += sum.low;
}

/* Computes the losses of KL_REVERSE: those of KL_FORWARD with the operands exchanged. */
static void compute_reverse(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_kernel *kernel = b->job->kernel;
    size_t n = kl_tile_size(tile);
    kl_load_spaces(b, tile);
    if (b->job->plan->spaces[KL_TARGET] == KL_PROB)
        kernel->logs(b->v[KL_TARGET], b->v[KL_TARGET], n);
    kernel->losses[KL_FLOAT64][kl_rule_is_log(b->job->rule)](b->job->rule, b->v[KL_TARGET],
                                                             b->v[KL_INPUT], b->losses, n);
}

void kl_compute_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    bool is_log = kl_rule_is_log(job->rule), has_quotients = kl_has_quotients(job->plan);
    if (kl_is_mixture(job->plan)) {
        kl_compute_mixture(b, tile);
        memcpy(b->losses, b->mixture_losses, kl_tile_size(tile) * sizeof *b->losses);
        return;
    }
    if (job->plan->divergence ==
        KL_REVERSE) { /* of a diagnosis: other calls exchange the operands of their plan */
        compute_reverse(b, tile);
        return;
    }
    if (kl_is_direct(job->plan) || has_quotients) {
        job->kernel->losses[job->plan->dtype][has_quotients ? KL_FORM_QUOTIENT : is_log](
            job->rule, kl_operand(b, tile, KL_INPUT), kl_operand(b, tile, KL_TARGET), b->losses,
            kl_tile_size(tile));
        return;
    }
    kl_load_log_probs(b, tile);
    job->kernel->losses[KL_FLOAT64][is_log](job->rule, b->v[KL_INPUT], b->v[KL_TARGET], b->losses,
                                            kl_tile_size(tile));
}

/* Sums or stores the losses of a tile. */
static void add_losses(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    bool summed = kl_sums_rows(job) ? kl_are_rows_alone(job->layout) && !job->tile.columns
                                    : !job->losses && !job->layout->single_rows;
    if (kl_is_direct(job->plan) && summed) {
        sum_losses(b, tile);
        return;
    }
    kl_compute_losses(b, tile);
    finish_losses(b, tile);
}

/* Computes losses and derivatives from log-probabilities. */
static void compute_tile(struct kl_workspace *b, const struct kl_tile *tile, bool wants_loss)
{
    if (wants_loss)
        add_losses(b, tile);
    else if (!kl_is_mixture(b->job->plan))
        kl_load_log_probs(b, tile);
    if (kl_any_wanted(b->job))
        kl_compute_grads(b, tile);
}

/* ---- Groups */

static void run_without_softmaxes(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    bool is_direct = kl_is_direct(job->plan), has_form = is_direct || kl_has_quotients(job->plan);
    KL_FOR_EACH_TILE (b, tile) {
        if (has_form && job->wants_loss)
            add_losses(b, &tile);
        if (is_direct && kl_any_wanted(job))
            kl_compute_direct_grads(b, &tile);
        else if (!has_form || kl_any_wanted(job))
            compute_tile(b, &tile, !has_form && job->wants_loss);
    }
}

/* True if one pass over a row gives its sums, and a second one the derivatives. */
static bool can_fuse(const struct kl_job *job)
{
    return !kl_is_mixture(job->plan) && job->plan->spaces[KL_INPUT] != KL_PROB &&
           kl_are_losses_alike(job);
}

/* True if rows are not masked in part, and their sums can be found in one pass. The sums of exponentials of rows without a
 * finite loss of KL_FORWARD have less than 53 bits, which is too few for a mixture's. */
static bool has_row_sums(const struct kl_job *job)
{
    bool exact = kl_is_mixture(job->plan) && job->plan->dtype == KL_FLOAT64;
    return !exact && job->plan->spaces[KL_INPUT] != KL_PROB && (job->masks_rows || !job->mask.data);
}

/* Finds the sums of rows; where elements are weighed, their own losses are not of use. */
static bool find_row_sums(struct kl_workspace *b, bool caches, struct kl_summed_rows *rows)
{
    bool all = kl_find_row_sums(b, caches, rows);
    if (can_fuse(b->job))
        kl_sum_near_equal(b, rows->losses);
    return all;
}

/* True if a target of -inf makes a derivative NaN; the loss is still the one computed without
 * derivatives. */
static bool has_nan_grads(const struct kl_job *job)
{
    return job->rule == KL_LOGIT_PYTORCH && kl_is_wanted(job, KL_TARGET);
}

/* Gives known rows their losses in place of those of their elements. */
static void set_losses(struct kl_workspace *b, const struct kl_summed_rows *rows)
{
    for (size_t i = 0; i < b->group->rows; i++)
        if (rows->known[i])
            b->group->high[i] = rows->losses[i], b->group->low[i] = 0;
}

/* Computes the derivatives of a group all of whose rows have them by their sums. */
static void compute_fused_grads(struct kl_workspace *b)
{
    if (kl_any_wanted(b->job) && !kl_compute_row_grads(b, &b->fused))
        KL_FOR_EACH_TILE (b, tile)
            compute_tile(b, &tile, false);
}

/* True if the group is a row whose loss is NaN, which more elements do not change. */
static bool is_nan(const struct kl_workspace *b)
{
    return b->group->rows == 1 && isnan(b->group->high[0]);
}

/* Computes a group element by element, but for what is known of its rows once their softmaxes are. */
static void run_by_elements(struct kl_workspace *b, bool wants_loss)
{
    if (kl_any_wanted(b->job))
        kl_sum_grads(b);
    if (kl_any_wanted(b->job) && can_fuse(b->job))
        kl_set_grad_sums(b, &b->fused);
    KL_FOR_EACH_TILE (b, tile) {
        compute_tile(b, &tile, wants_loss && !is_nan(b));
        if (is_nan(b) && !kl_any_wanted(b->job))
            break;
    }
}

static void run_with_logits(struct kl_workspace *b);

/* Computes runs of rows of one kind, each apart, for the bits of a row must not depend on those beside it. */
static void run_in_parts(struct kl_workspace *b, const bool *kinds)
{
    const struct kl_group *whole = b->group;
    bool kind[KL_ROWS];
    memcpy(kind, kinds, whole->rows * sizeof *kind);
    kl_fill(whole->high, 0, whole->rows);
    kl_fill(whole->low, 0, whole->rows);
    for (size_t i = 0, n; i < whole->rows; i += n) {
        for (n = 1; i + n < whole->rows && kind[i + n] == kind[i]; n++)
            ;
        struct kl_group part = *whole;
        part.row += i, part.rows = n;
        part.high += i, part.low += i;
        kl_start_group(b, &part);
        run_with_logits(b);
    }
}

/* Sums the losses of rows by their elements. */
static void sum_elements(struct kl_workspace *b)
{
    b->has_exps = false;
    KL_FOR_EACH_TILE (b, tile) {
        add_losses(b, &tile);
        if (is_nan(b))
            break;
    }
}

/* Finds the losses of all rows, and the rows whose derivatives follow from it. Where target is logits, these are also rows whose
 * loss is not finite: the formula gives their derivatives; if the sentinel was found, they are all NaN. Under KL_MATH a NaN of
 * the input where the target's probability is 0 makes the loss NaN and not the derivatives. True if all rows have
 * derivatives. */
static bool find_losses(struct kl_workspace *b)
{
    const struct kl_summed_rows *plain = &b->plain;
    struct kl_summed_rows *fused = &b->fused;
    size_t n = b->group->rows;
    bool all = true;
    if (memchr(plain->known, 0, n))
        sum_elements(b);
    set_losses(b, plain);
    for (size_t i = 0; i < n; i++) {
        bool special = has_nan_grads(b->job) && isnan(fused->losses[i]);
        double loss = special && !isnan(plain->losses[i]) ? (double)NAN : b->group->high[i];
        bool is_nan_alone = isnan(loss) && b->job->rule == KL_LOG_MATH;
        bool follows = (isnan(loss) && !is_nan_alone) || (isinf(loss) && !special);
        if (!fused->has_grads[i] && kl_is_logit(b->job, KL_TARGET) && follows) {
            fused->losses[i] = loss;
            fused->has_grads[i] = true;
        }
        all &= fused->has_grads[i];
    }
    return all;
}

/* Computes a group some of whose rows are not known with their derivatives. */
static __attribute__((noinline)) void run_special(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    bool fuses = can_fuse(job);
    if (fuses && !has_nan_grads(job)) {
        b->plain = b->fused;
    } else if (has_row_sums(job)) {
        b->sentinel = (double)NAN;
        find_row_sums(b, false, &b->plain);
    } else {
        kl_find_softmaxes(b);
    }
    if (!fuses)
        run_by_elements(b, job->wants_loss);
    else if (find_losses(b))
        compute_fused_grads(b);
    else if (memchr(b->fused.has_grads, 1, b->group->rows) && !kl_sums_blocks(job))
        run_in_parts(b, b->fused.has_grads);
    else
        run_by_elements(b, false);
}

static void run_with_logits(struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    bool has_sentinel = job->rule == KL_LOG_PYTORCH || has_nan_grads(job);
    b->sentinel = has_sentinel ? -(double)INFINITY : (double)NAN;
    if (kl_sums_mixture_rows(job)) {
        if (!kl_sum_mixture_rows(b))
            run_in_parts(b, b->plain.known);
        else if (kl_any_wanted(job))
            kl_compute_row_grads(b, &b->fused);
    } else if (can_fuse(job) && find_row_sums(b, true, &b->fused)) {
        set_losses(b, &b->fused);
        compute_fused_grads(b);
    } else {
        run_special(b);
    }
}

/* Stores 0 for the losses and derivatives of a masked row. */
static void clear_row(struct kl_workspace *b)
{
    bool stores = b->job->losses && b->job->layout->elementwise;
    KL_FOR_EACH_TILE (b, tile) {
        kl_clear_grads(b, &tile);
        kl_fill(b->losses, 0, kl_tile_size(&tile));
        if (stores)
            store_losses(b, &tile);
    }
}

void kl_run_group(const struct kl_group *group, void *scratch)
{
    struct kl_workspace *b = kl_workspace_of(scratch);
    kl_start_group(b, group);
    if (group->rows == 1 && kl_is_row_masked(b, 0)) {
        clear_row(b);
        return;
    }
    bool softmaxes = kl_has_logits(b->job) && !b->job->layout->single_rows;
    (softmaxes ? run_with_logits : run_without_softmaxes)(b);
}
