#include "lib/diagnose/diagnose.h"

#include <math.h>
#include <string.h>

/* A tile of an operand as a block of its dtype: where it is, or gathered. */
static const char *block_of(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                            int operand, struct kl_diagnosis_scratch *scratch)
{
    const struct kl_array_view *view = &context->operands[operand];
    const void *in_place = kl_tile_in_place(&context->layout, tile, view);
    if (!in_place)
        kl_tile_load(context->kernel, &context->layout, tile, view, view->dtype, scratch->gathered);
    return in_place ? in_place : scratch->gathered;
}

static void merge(struct kl_rows_stats *stats, size_t i, struct kl_row_stats more)
{
    stats->min[i] = more.min < stats->min[i] ? more.min : stats->min[i];
    stats->max[i] = more.max > stats->max[i] ? more.max : stats->max[i];
    stats->sum[i] += more.sum;
    stats->exps[i] += more.exps;
}

/* Sets the masked elements of a block to a number that changes nothing. */
static void set_masked(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                       struct kl_diagnosis_scratch *scratch, double value)
{
    if (context->mask.data)
        context->kernel->apply_mask(scratch->v, scratch->mask, value, kl_tile_size(tile));
}

/* Adds the sums of a block's rows. */
static void add_sums(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                     struct kl_diagnosis_scratch *scratch, double *to)
{
    set_masked(context, tile, scratch, 0);
    memset(scratch->low, 0, tile->rows * sizeof *scratch->low);
    kl_add_to_rows(context->kernel, tile, scratch->v, to, scratch->low);
}

/* Raises the maxima of rows. */
static void add_maxima(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                       struct kl_diagnosis_scratch *scratch, double *maxima)
{
    set_masked(context, tile, scratch, -(double)INFINITY);
    kl_row_maxima(context->kernel, tile, scratch->v, maxima);
}

/* Adds a tile of several rows, or under a mask, as a block. `least` is negated. */
static void add_block(const struct kl_diagnosis_context *context, const struct kl_tile *tile,
                      int operand, bool exps, struct kl_diagnosis_scratch *scratch,
                      struct kl_rows_stats *stats)
{
    enum kl_dtype dtype = context->operands[operand].dtype;
    const char *block = block_of(context, tile, operand, scratch);
    size_t n = kl_tile_size(tile);
    double min, max;
    if (context->mask.data)
        kl_tile_load(context->kernel, &context->layout, tile, &context->mask, KL_FLOAT64,
                     scratch->mask);
    if (exps) {
        context->kernel->scan[dtype](block, true, scratch->v, n, &min, &max);
        add_sums(context, tile, scratch, stats->exps);
    }
    context->kernel->widen[dtype](block, scratch->v, n);
    add_sums(context, tile, scratch, stats->sum);
    add_maxima(context, tile, scratch, stats->max);
    context->kernel->scale(scratch->v, -1, n);
    add_maxima(context, tile, scratch, stats->min);
}

void kl_find_row_stats(const struct kl_diagnosis_context *context, int operand, size_t row,
                       size_t n, bool exps, struct kl_diagnosis_scratch *scratch,
                       struct kl_rows_stats *stats)
{
    bool alone = n == 1 && !context->mask.data;
    kl_fill(stats->min, alone ? (double)INFINITY : -(double)INFINITY, n);
    kl_fill(stats->max, -(double)INFINITY, n);
    memset(stats->sum, 0, n * sizeof *stats->sum);
    memset(stats->exps, 0, n * sizeof *stats->exps);
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)
    {
        if (alone)
            merge(stats, 0,
                  context->kernel->row_stats[context->operands[operand].dtype](
                      block_of(context, &tile, operand, scratch), tile.length, exps));
        else
            add_block(context, &tile, operand, exps, scratch, stats);
    }
    if (!alone)
        context->kernel->scale(stats->min, -1, n);
}

void kl_scan_rows(const struct kl_diagnosis_context *context, int operand, size_t row, size_t n,
                  struct kl_diagnosis_scratch *scratch, double *min, double *max, double *sums)
{
    enum kl_dtype dtype = context->operands[operand].dtype;
    bool exps = context->plan->spaces[operand] == KL_LOG_PROB;
    memset(sums, 0, n * sizeof *sums);
    memset(scratch->low, 0, n * sizeof *scratch->low);
    *min = INFINITY, *max = -(double)INFINITY;
    KL_FOR_EACH_DIAGNOSED_TILE(context, row, n, tile)
    {
        double low, high;
        context->kernel->scan[dtype](block_of(context, &tile, operand, scratch), exps, scratch->v,
                                     kl_tile_size(&tile), &low, &high);
        kl_add_to_rows(context->kernel, &tile, scratch->v, sums, scratch->low);
        *min = low < *min ? low : *min;
        *max = high > *max ? high : *max;
    }
}
