#include "lib/diagnose/row_stats.h"

#include <math.h>
#include <string.h>

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* Loops over the tiles of n rows. */
#define FOR_EACH_TILE(look, first, n, tile)                                                        \
    for (struct kl_tile tile = {first, n, 0, least_of((look)->tile.length, volume_of(look))};      \
         tile.start < volume_of(look); tile.start += tile.length,                                  \
                        tile.length = least_of((look)->tile.length, volume_of(look) - tile.start))

static size_t volume_of(const struct kl_look *look) { return look->layout.along.volume; }

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

/* Adds the elements of a row that the mask leaves. */
static void add_shown(const struct kl_look *look, const double *v, const unsigned char *mask,
                      size_t n, bool exps, struct kl_rows_stats *stats, size_t row)
{
    double shown[KL_BLOCK];
    size_t n_shown = 0;
    for (size_t i = 0; i < n; i++)
        if (mask[i])
            shown[n_shown++] = v[i];
    merge(stats, row, look->kernel->row_stats[KL_FLOAT64](shown, n_shown, exps));
}

static void add_tile(const struct kl_look *look, const struct kl_tile *tile, int operand, bool exps,
                     struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    enum kl_dtype dtype = look->operands[operand].dtype;
    const char *block = block_of(look, tile, operand, scratch);
    size_t row_size = tile->length * kl_dtype_size(dtype);
    if (!look->mask.data) {
        for (size_t i = 0; i < tile->rows; i++)
            merge(stats, i,
                  look->kernel->row_stats[dtype](block + i * row_size, tile->length, exps));
        return;
    }
    look->kernel->widen[dtype](block, scratch->v, kl_tile_size(tile));
    kl_tile_load(look->kernel, &look->layout, tile, &look->mask, KL_FLOAT64, scratch->mask);
    for (size_t i = 0; i < tile->rows; i++)
        add_shown(look, scratch->v + i * tile->length, scratch->mask + i * tile->length,
                  tile->length, exps, stats, i);
}

void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    for (size_t i = 0; i < n; i++) {
        stats->least[i] = INFINITY;
        stats->greatest[i] = -(double)INFINITY;
        stats->sum[i] = stats->exps[i] = 0;
    }
    FOR_EACH_TILE(look, row, n, tile)
    add_tile(look, &tile, operand, exps, scratch, stats);
}

void kl_scan_rows(const struct kl_look *look, int operand, size_t row, size_t n,
                  struct kl_look_scratch *scratch, double *least, double *greatest, double *sums)
{
    enum kl_dtype dtype = look->operands[operand].dtype;
    bool exps = look->plan->spaces[operand] == KL_LOG_PROB;
    memset(sums, 0, n * sizeof *sums);
    memset(scratch->low, 0, n * sizeof *scratch->low);
    *least = INFINITY, *greatest = -(double)INFINITY;
    FOR_EACH_TILE(look, row, n, tile)
    {
        double low, high;
        look->kernel->scan[dtype](block_of(look, &tile, operand, scratch), exps, scratch->v,
                                  kl_tile_size(&tile), &low, &high);
        look->kernel->row_totals(scratch->v, n, tile.length, sums, scratch->low);
        *least = low < *least ? low : *least;
        *greatest = high > *greatest ? high : *greatest;
    }
}
