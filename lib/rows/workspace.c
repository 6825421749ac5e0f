#include "lib/rows/workspace.h"
#include "lib/threads/pool.h"

_Static_assert(sizeof(struct kl_workspace) + KL_ALIGNMENT <= KL_THREAD_SCRATCH,
               "a thread's scratch has room for a workspace");

struct kl_workspace *kl_workspace_of(void *scratch)
{
    return (void *)((char *)scratch + -(uintptr_t)scratch % KL_ALIGNMENT);
}

void kl_start_chunk(struct kl_job *job, void *scratch)
{
    struct kl_workspace *b = kl_workspace_of(scratch);
    b->job = job;
    b->mask_tile.length = 0;
    for (int i = 0; i < KL_OPERANDS; i++)
        b->gathered_tile[i].length = 0;
}

void kl_start_group(struct kl_workspace *b, const struct kl_group *group)
{
    const struct kl_job *job = b->job;
    b->group = group;
    b->single = group->end - group->start <= job->tile.length;
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED;
    b->in_grads = -1;
    b->has_mixture = false;
    if (job->masks_rows && group->rows == 1)
        b->row_mask[0] = !kl_is_masked(job->layout, job->mask.data, group->row, 0);
    else if (job->masks_rows && kl_has_logits(job))
        kl_gather(job->kernel, &job->layout->outer, &job->mask, group->row, group->rows,
                  b->row_mask);
}

/* ---- Loading */

/* True if the block gathered for tile `have` also holds `tile`. Where the array is broadcast over rows, all rows are
 * the same: a block of more rows then begins with a block of fewer, unless the tile is of columns. */
static bool holds(const struct kl_layout *layout, enum kl_array array, const struct kl_tile *have,
                  const struct kl_tile *tile)
{
    bool same_rows = layout->broadcast[array];
    return have->length == tile->length && have->start == tile->start &&
           (same_rows && !tile->columns ? have->rows >= tile->rows : have->rows == tile->rows) &&
           (same_rows || have->row == tile->row);
}

const void *kl_operand(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = b->job;
    const struct kl_array_view *view = &job->operands[operand];
    enum kl_dtype dtype = job->plan->dtype;
    const void *in_place = view->dtype == dtype ? kl_tile_in_place(job->layout, tile, view) : NULL;
    if (in_place)
        return in_place;
    if (!holds(job->layout, view->array, &b->gathered_tile[operand], tile)) {
        kl_tile_load(job->kernel, job->layout, tile, view, dtype, b->gathered[operand]);
        b->gathered_tile[operand] = *tile;
    }
    return b->gathered[operand];
}

const unsigned char *kl_unmasked(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    bool of_single_row = job->masks_rows && job->tile.rows == 1; /* kl_run_group's part */
    if (!job->mask.data || of_single_row)
        return NULL;
    if (holds(job->layout, KL_OF_MASK, &b->mask_tile, tile))
        return b->unmasked;
    b->mask_tile = *tile;
    b->unmasked = kl_tile_in_place(job->layout, tile, &job->mask);
    if (b->unmasked) {
        b->mask_tile.length = 0;
        return b->unmasked;
    }
    if (job->masks_rows && tile->columns && kl_has_logits(job))
        for (size_t i = 0; i < tile->length; i++)
            memcpy(b->mask + i * tile->rows, b->row_mask, tile->rows);
    else
        kl_tile_load(job->kernel, job->layout, tile, &job->mask, KL_FLOAT64, b->mask);
    return b->unmasked = b->mask;
}

void kl_load_operand(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    if (b->single && b->stage[operand] == KL_LOADED)
        return;
    b->job->kernel->widen[b->job->plan->dtype](kl_operand(b, tile, operand), b->v[operand],
                                               kl_tile_size(tile));
    if (kl_is_logit(b->job, operand) && !b->job->masks_rows)
        kl_apply_mask(b, tile, b->v[operand], -(double)INFINITY);
    b->stage[operand] = KL_LOADED;
}

/* ---- Arithmetic along rows */

void kl_apply_mask(struct kl_workspace *b, const struct kl_tile *tile, double *v, double value)
{
    const unsigned char *unmasked = kl_unmasked(b, tile);
    if (unmasked)
        b->job->kernel->apply_mask(v, unmasked, value, kl_tile_size(tile));
}

void kl_shift_rows(struct kl_workspace *b, const struct kl_tile *tile, double *v,
                   const double *offset, const double *minus, double scale)
{
    static const double zeros[KL_BLOCK];
    const double *const rows[] = {offset, minus};
    const double *elements[] = {zeros, zeros};
    for (int i = 0; i < 2; i++)
        if (rows[i] && tile->length == 1) {
            elements[i] = rows[i];
        } else if (rows[i]) {
            kl_broadcast(b->job->kernel, tile, rows[i], b->row_values[i]);
            elements[i] = b->row_values[i];
        }
    b->job->kernel->shift(v, elements[0], elements[1], scale, kl_tile_size(tile));
}

struct kl_log_ratios kl_log_ratios_of(struct kl_workspace *b, const struct kl_tile *tile,
                                      double (*row_max)[KL_ROWS], double (*log_sum_exp)[KL_ROWS],
                                      double *shift)
{
    const struct kl_kernel *kernel = b->job->kernel;
    double high[KL_ROWS], low[KL_ROWS], by_sum[KL_ROWS];
    for (size_t i = 0; i < tile->rows; i++) {
        struct kl_sum of_max = kl_two_sum(row_max[KL_TARGET][i], -row_max[KL_INPUT][i]);
        high[i] = of_max.high, low[i] = of_max.low;
        by_sum[i] = log_sum_exp[KL_TARGET][i] - log_sum_exp[KL_INPUT][i];
    }
    kl_broadcast(kernel, tile, high, b->row_values[0]);
    kl_broadcast(kernel, tile, low, b->row_values[1]);
    kl_broadcast(kernel, tile, by_sum, shift);
    return (struct kl_log_ratios){.target = b->v[KL_TARGET],
                                  .input = b->v[KL_INPUT],
                                  .maxima = {b->row_values[0], b->row_values[1]},
                                  .shift = shift,
                                  .scale = 1 / b->job->plan->temperature};
}
