#include "lib/row_block.h"
#include "lib/gradient.h"
#include "lib/softmax.h"

/* ---- Loading */

void kl_start_chunk(struct kl_job *job, void *scratch)
{
    struct kl_row_block *b = kl_aligned(scratch);
    b->job = job;
    b->mask_tile.length = 0;
    for (int i = 0; i < KL_OPERANDS; i++)
        b->gathered_tile[i].length = 0;
}

struct kl_tile kl_tile_at(const struct kl_row_block *b, size_t start)
{
    size_t left = b->group->end - start, most = b->job->tile.length;
    return (struct kl_tile){.row = b->group->row,
                            .rows = b->group->rows,
                            .start = start,
                            .length = left < most ? left : most,
                            .columns = b->job->tile.columns};
}

/* True if a block that was gathered for a tile holds that of another: where all rows are the same, also
 * of fewer rows, unless these lie side by side. */
static bool holds(const struct kl_layout *layout, enum kl_array array, const struct kl_tile *have,
                  const struct kl_tile *tile)
{
    bool fixed = layout->fixed[array];
    return have->length == tile->length && have->start == tile->start &&
           (fixed && !tile->columns ? have->rows >= tile->rows : have->rows == tile->rows) &&
           (fixed || have->row == tile->row);
}

const void *kl_operand(struct kl_row_block *b, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = b->job;
    const struct kl_numbers *numbers = &job->operands[operand];
    enum kl_dtype dtype = job->plan->dtype;
    const void *in_place =
        numbers->dtype == dtype ? kl_tile_in_place(job->layout, tile, numbers) : NULL;
    if (in_place)
        return in_place;
    if (!holds(job->layout, numbers->array, &b->gathered_tile[operand], tile)) {
        kl_tile_load(job->kernel, job->layout, tile, numbers, dtype, b->gathered[operand]);
        b->gathered_tile[operand] = *tile;
    }
    return b->gathered[operand];
}

const unsigned char *kl_shown(struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    bool of_rows = !job->layout->each && job->tile.rows == 1; /* kl_run_group looks at these */
    if (!job->mask.data || of_rows)
        return NULL;
    if (holds(job->layout, KL_OF_MASK, &b->mask_tile, tile))
        return b->shown;
    b->mask_tile = *tile;
    b->shown = kl_tile_in_place(job->layout, tile, &job->mask);
    if (b->shown) {
        b->mask_tile.length = 0;
        return b->shown;
    }
    kl_tile_load(job->kernel, job->layout, tile, &job->mask, KL_FLOAT64, b->mask);
    return b->shown = b->mask;
}

bool kl_is_hidden(const struct kl_row_block *b, size_t row)
{
    return !b->job->layout->each &&
           kl_is_masked(b->job->layout, b->job->mask.data, b->group->row + row, 0);
}

void kl_load_operand(struct kl_row_block *b, const struct kl_tile *tile, int operand)
{
    if (b->single && b->stage[operand] == KL_LOADED)
        return;
    b->job->kernel->widen[b->job->plan->dtype](kl_operand(b, tile, operand), b->v[operand],
                                               kl_tile_size(tile));
    if (kl_is_logit(b->job, operand))
        kl_apply_mask(b, tile, b->v[operand], -(double)INFINITY);
    b->stage[operand] = KL_LOADED;
}

/* ---- Arithmetic along rows */

void kl_apply_mask(struct kl_row_block *b, const struct kl_tile *tile, double *v, double value)
{
    const unsigned char *shown = kl_shown(b, tile);
    if (shown)
        b->job->kernel->apply_mask(v, shown, value, kl_tile_size(tile));
}

void kl_add_to_rows(const struct kl_row_block *b, const struct kl_tile *tile, const double *v,
                    double *high, double *low)
{
    const struct kl_kernel *kernel = b->job->kernel;
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            kernel->add(v + i * tile->rows, high, low, tile->rows);
    else
        kernel->row_totals(v, tile->rows, tile->length, high, low);
}

void kl_find_maxima(const struct kl_row_block *b, const struct kl_tile *tile, const double *v,
                    double *maxima)
{
    const struct kl_kernel *kernel = b->job->kernel;
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            kernel->greater(v + i * tile->rows, maxima, tile->rows);
    else
        kernel->row_maxima(v, tile->rows, tile->length, maxima);
}

void kl_spread(const struct kl_row_block *b, const struct kl_tile *tile, const double *of_rows,
               double *to)
{
    if (tile->columns)
        for (size_t i = 0; i < tile->length; i++)
            memcpy(to + i * tile->rows, of_rows, tile->rows * sizeof *of_rows);
    else
        b->job->kernel->spread(of_rows, tile->rows, tile->length, to);
}

void kl_shift_rows(struct kl_row_block *b, const struct kl_tile *tile, double *v, const double *by,
                   const double *minus, double scale)
{
    static const double zeros[KL_BLOCK];
    const double *const numbers[] = {by, minus};
    const double *elements[] = {zeros, zeros};
    for (int i = 0; i < 2; i++)
        if (numbers[i]) {
            kl_spread(b, tile, numbers[i], b->of_rows[i]);
            elements[i] = b->of_rows[i];
        }
    b->job->kernel->shift(v, elements[0], elements[1], scale, kl_tile_size(tile));
}

/* ---- Losses of a tile */

/* The weights of a tile's elements, where they are or widened; NULL if there are none. */
static const double *weights_of(struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    const void *in_place = NULL;
    if (!job->weight.data || !job->layout->each)
        return NULL;
    if (job->weight.dtype == KL_FLOAT64)
        in_place = kl_tile_in_place(job->layout, tile, &job->weight);
    if (in_place)
        return in_place;
    kl_tile_load(job->kernel, job->layout, tile, &job->weight, KL_FLOAT64, b->weight);
    return b->weight;
}

/* The address of the losses of a tile; NULL if they are not side by side there. */
static void *losses_in_place(const struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_numbers losses = {KL_OF_LOSS, b->job->plan->dtype, false, b->job->losses};
    return (void *)kl_tile_in_place(b->job->layout, tile, &losses);
}

static void store_losses(struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    enum kl_dtype dtype = job->plan->dtype;
    void *in_place = losses_in_place(b, tile);
    job->kernel->narrow[dtype](b->losses, in_place ? in_place : b->spare, kl_tile_size(tile));
    if (!in_place)
        kl_tile_store(job->layout, tile, KL_OF_LOSS, dtype, b->spare, job->losses);
}

/* Sums or stores the losses that b->losses holds. */
static void finish_losses(struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    size_t n = kl_tile_size(tile);
    const double *weights = weights_of(b, tile);
    if (weights)
        job->kernel->multiply(b->losses, weights, n);
    if (job->layout->each)
        kl_apply_mask(b, tile, b->losses, 0);
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

static void sum_losses(struct kl_row_block *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    struct kl_elements e = {kl_operand(b, tile, KL_INPUT), kl_operand(b, tile, KL_TARGET),
                            kl_shown(b, tile), weights_of(b, tile)};
    struct kl_sum sum = job->kernel->sum[job->plan->dtype][kl_rule_is_log(job->rule)](
        job->rule, &e, kl_tile_size(tile));
    if (job->layout->each) {
        kl_sum_merge(b->group->sum, sum);
        return;
    }
    job->kernel->add(&sum.high, b->group->high, b->group->low, 1);
    b->group->low[0] += sum.low;
}

/* Losses straight from the operands: plain ones, or those of probabilities against probabilities. */
static void compute_losses(struct kl_row_block *b, const struct kl_tile *tile)
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

/* ---- Operands as the rule takes them */

/* Replaces probabilities of input by their logarithms, and sets what derivatives by them are divided
 * by. */
static void replace_probs(struct kl_row_block *b, size_t n)
{
    const struct kl_kernel *kernel = b->job->kernel;
    if (kl_has_quotients(b->job->plan)) {
        kernel->quotients(b->job->rule, b->v[KL_INPUT], b->v[KL_TARGET], b->over, n);
        return;
    }
    memcpy(b->over, b->v[KL_INPUT], n * sizeof *b->over);
    kernel->logs(b->v[KL_INPUT], b->v[KL_INPUT], n);
}

void kl_load_log_probs(struct kl_row_block *b, const struct kl_tile *tile)
{
    if (b->single && b->stage[KL_INPUT] == KL_LOG_PROBS)
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        (kl_is_logit(b->job, i) ? kl_load_log_softmax : kl_load_operand)(b, tile, i);
    if (b->job->plan->spaces[KL_INPUT] == KL_PROB) {
        kl_apply_mask(b, tile, b->v[KL_INPUT], 1);
        kl_apply_mask(b, tile, b->v[KL_TARGET], 1);
        replace_probs(b, kl_tile_size(tile));
    }
    kl_apply_mask(b, tile, b->v[KL_INPUT], 0);
    kl_apply_mask(b, tile, b->v[KL_TARGET], 0);
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_LOG_PROBS;
}

/* Losses and derivatives by way of log-probabilities. */
static void compute_tile(struct kl_row_block *b, const struct kl_tile *tile, bool wants_loss)
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

static void run_without_logits(struct kl_row_block *b)
{
    const struct kl_job *job = b->job;
    bool plain = kl_is_plain(job->plan), direct = plain || kl_has_quotients(job->plan);
    KL_FOR_EACH_TILE (b, tile) {
        if (direct && job->wants_loss)
            compute_losses(b, &tile);
        if (plain && kl_any_wanted(job))
            kl_compute_plain_grads(b, &tile);
        else if (!direct || kl_any_wanted(job))
            compute_tile(b, &tile, !direct && job->wants_loss);
    }
}

/* True if the derivatives by a row's losses are all equal, and of the losses only the sum is
 * wanted. */
static bool is_uniform(const struct kl_job *job)
{
    bool alone = !job->weight.data && !job->mask.data && !job->grad_output.data && !job->losses;
    return job->plan->spaces[KL_INPUT] != KL_PROB && (alone || !job->layout->each);
}

/* True if no part of a row is hidden, and its sums may be found in one reading. */
static bool has_row_sums(const struct kl_job *job)
{
    return job->plan->spaces[KL_INPUT] != KL_PROB && !(job->layout->each && job->mask.data);
}

static void set_losses(struct kl_row_block *b, const double *losses)
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

/* Rows of logits whose sums give all that is wanted, in one reading, and derivatives in a second. */
static bool run_uniform(struct kl_row_block *b)
{
    const struct kl_job *job = b->job;
    double losses[KL_ROWS], sum_p[KL_ROWS];
    bool refuses = job->rule == KL_LOG_PYTORCH || has_nan_grads(job);
    b->refused = refuses ? -(double)INFINITY : (double)NAN;
    if (!is_uniform(job) || !kl_find_row_sums(b, true, losses, sum_p))
        return false;
    set_losses(b, losses);
    if (kl_any_wanted(job) && !kl_compute_row_grads(b, losses, sum_p))
        KL_FOR_EACH_TILE (b, tile)
            compute_tile(b, &tile, false);
    return true;
}

static void begin_group(struct kl_row_block *b, const struct kl_group *group)
{
    b->group = group;
    b->single = group->end - group->start <= b->job->tile.length;
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED;
}

/* False, and nothing is done, of several rows of which one has sums that are of no use. */
static __attribute__((noinline)) bool run_with_logits(struct kl_row_block *b)
{
    const struct kl_job *job = b->job;
    double losses[KL_ROWS], sum_p[KL_ROWS];
    if (run_uniform(b))
        return true;
    b->refused = (double)NAN;
    bool has_sums = has_row_sums(job) && kl_find_row_sums(b, false, losses, sum_p);
    if (has_row_sums(job) && !has_sums && b->group->rows > 1)
        return false;
    bool has_losses = has_sums && has_nan_grads(job) && is_uniform(job);
    for (int i = 0; i < KL_OPERANDS && !has_sums; i++)
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
static void run_one_by_one(struct kl_row_block *b)
{
    const struct kl_group *group = b->group;
    for (size_t i = 0; i < group->rows; i++) {
        struct kl_group row = *group;
        row.row += i, row.rows = 1;
        row.high += i, row.low += i;
        begin_group(b, &row);
        run_with_logits(b);
    }
}

_Static_assert(sizeof(struct kl_row_block) + KL_SCRATCH_ALIGNMENT <= KL_THREAD_SCRATCH,
               "what a thread holds is enough for a group");

void kl_run_group(const struct kl_group *group, void *scratch)
{
    struct kl_row_block *b = kl_aligned(scratch);
    begin_group(b, group);
    if (group->rows == 1 && kl_is_hidden(b, 0)) {
        KL_FOR_EACH_TILE (b, tile)
            kl_clear_grads(b, &tile);
        return;
    }
    if (!kl_has_logits(b->job))
        run_without_logits(b);
    else if (!run_with_logits(b))
        run_one_by_one(b);
}
