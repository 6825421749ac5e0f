#include "lib/diagnose/row_stats.h"

#include <math.h>
#include <string.h>

/* The tile of n rows that begins with element `start` of each. */
static struct kl_tile tile_at(const struct kl_look *look, size_t row, size_t n, size_t start)
{
    size_t left = look->layout.along.volume - start;
    return (struct kl_tile){
        .row = row, .rows = n, .start = start, .length = kl_smaller(look->tile.length, left)};
}

/* A tile of an operand as a block of its dtype: where it is, or gathered. */
static const char *block_of(const struct kl_look *look, const struct kl_tile *tile, int operand,
                            struct kl_look_scratch *scratch)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    const void *in_place = kl_tile_in_place(&look->layout, tile, numbers);
    if (!in_place)
        kl_tile_load(look->kernel, &look->layout, tile, numbers, numbers->dtype, scratch->gathered);
    return in_place ? in_place : scratch->gathered;
}

static void merge(struct kl_rows_stats *stats, size_t i, struct kl_row_stats more)
{
    stats->least[i] = more.least < stats->least[i] ? more.least : stats->least[i];
    stats->greatest[i] = more.greatest > stats->greatest[i] ? more.greatest : stats->greatest[i];
    stats->sum[i] += more.sum;
    stats->exps[i] += more.exps;
}

/* Sets the hidden elements of a block to a number that changes nothing. */
static void hide(const struct kl_look *look, const struct kl_tile *tile,
                 struct kl_look_scratch *scratch, double value)
{
    if (look->mask.data)
        look->kernel->apply_mask(scratch->v, scratch->mask, value, kl_tile_size(tile));
}

/* Adds the sums of a block's rows. */
static void add_sums(const struct kl_look *look, const struct kl_tile *tile,
                     struct kl_look_scratch *scratch, double *to)
{
    hide(look, tile, scratch, 0);
    memset(scratch->low, 0, sizeof scratch->low);
    look->kernel->row_totals(scratch->v, tile->rows, tile->length, to, scratch->low);
}

/* Raises the maxima of rows. */
static void add_maxima(const struct kl_look *look, const struct kl_tile *tile,
                       struct kl_look_scratch *scratch, double *maxima)
{
    hide(look, tile, scratch, -(double)INFINITY);
    look->kernel->row_maxima(scratch->v, tile->rows, tile->length, maxima);
}

/* Adds a tile of several rows, or under a mask, as a block. `least` is negated. */
static void add_block(const struct kl_look *look, const struct kl_tile *tile, int operand,
                      bool exps, struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    enum kl_dtype dtype = look->operands[operand].dtype;
    const char *block = block_of(look, tile, operand, scratch);
    size_t n = kl_tile_size(tile);
    double least, greatest;
    if (look->mask.data)
        kl_tile_load(look->kernel, &look->layout, tile, &look->mask, KL_FLOAT64, scratch->mask);
    if (exps) {
        look->kernel->scan[dtype](block, true, scratch->v, n, &least, &greatest);
        add_sums(look, tile, scratch, stats->exps);
    }
    look->kernel->widen[dtype](block, scratch->v, n);
    add_maxima(look, tile, scratch, stats->greatest);
    add_sums(look, tile, scratch, stats->sum);
    look->kernel->widen[dtype](block, scratch->v, n);
    look->kernel->scale(scratch->v, -1, n);
    add_maxima(look, tile, scratch, stats->least);
}

void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    bool alone = n == 1 && !look->mask.data;
    for (size_t i = 0; i < n; i++) {
        stats->least[i] = alone ? (double)INFINITY : -(double)INFINITY;
        stats->greatest[i] = -(double)INFINITY;
        stats->sum[i] = stats->exps[i] = 0;
    }
    for (size_t start = 0; start < look->layout.along.volume; start += look->tile.length) {
        struct kl_tile tile = tile_at(look, row, n, start);
        if (alone)
            merge(stats, 0,
                  look->kernel->row_stats[look->operands[operand].dtype](
                      block_of(look, &tile, operand, scratch), tile.length, exps));
        else
            add_block(look, &tile, operand, exps, scratch, stats);
    }
    for (size_t i = 0; i < n && !alone; i++)
        stats->least[i] = -stats->least[i];
}

void kl_scan_rows(const struct kl_look *look, int operand, size_t row, size_t n,
                  struct kl_look_scratch *scratch, double *least, double *greatest, double *sums)
{
    enum kl_dtype dtype = look->operands[operand].dtype;
    bool exps = look->plan->spaces[operand] == KL_LOG_PROB;
    memset(sums, 0, n * sizeof *sums);
    memset(scratch->low, 0, n * sizeof *scratch->low);
    *least = INFINITY, *greatest = -(double)INFINITY;
    for (size_t start = 0; start < look->layout.along.volume; start += look->tile.length) {
        struct kl_tile tile = tile_at(look, row, n, start);
        double low, high;
        look->kernel->scan[dtype](block_of(look, &tile, operand, scratch), exps, scratch->v,
                                  kl_tile_size(&tile), &low, &high);
        look->kernel->row_totals(scratch->v, n, tile.length, sums, scratch->low);
        *least = low < *least ? low : *least;
        *greatest = high > *greatest ? high : *greatest;
    }
}
