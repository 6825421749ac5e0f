#include "lib/row_stats.h"

#include <math.h>

static void merge(struct kl_rows_stats *stats, size_t i, struct kl_row_stats more)
{
    stats->least[i] = more.least < stats->least[i] ? more.least : stats->least[i];
    stats->greatest[i] = more.greatest > stats->greatest[i] ? more.greatest : stats->greatest[i];
    stats->sum[i] += more.sum;
    stats->exps[i] += more.exps;
}

/* Adds a contiguous row straight from its array. */
static bool add_dense_row(const struct kl_look *look, int operand, size_t row, bool exps,
                          struct kl_rows_stats *stats)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    size_t at = kl_offset(&look->layout.across, numbers->array, row);
    if (look->tile.pitch > 1 || look->mask.data ||
        !kl_rows_are_dense(&look->layout, numbers->array))
        return false;
    merge(stats, 0,
          look->kernel->row_stats[numbers->dtype]((const char *)numbers->data +
                                                      at * kl_dtype_size(numbers->dtype),
                                                  look->layout.along.volume, exps));
    return true;
}

static void clear(struct kl_rows_stats *stats, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        stats->least[i] = INFINITY;
        stats->greatest[i] = -(double)INFINITY;
        stats->sum[i] = stats->exps[i] = 0;
    }
}

static void add_tile(const struct kl_look *look, const struct kl_tile *tile, const double *v,
                     bool exps, struct kl_rows_stats *stats)
{
    if (tile->pitch == 1)
        merge(stats, 0, look->kernel->row_stats[KL_FLOAT64](v, tile->length, exps));
    else
        for (size_t i = 0; i < tile->length; i++)
            look->kernel->each_row_stats(v + i * tile->pitch, stats, tile->pitch, exps);
}

/* Adds the elements that the mask leaves. Each statistic has a number that changes nothing of it in
 * the place of masked elements. */
static void add_masked_tile(const struct kl_look *look, const struct kl_tile *tile, bool exps,
                            struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    struct kl_rows_stats *leasts = &scratch->leasts, *sums = &scratch->sums;
    size_t n = tile->pitch * tile->length;
    double *v = scratch->v;
    kl_tile_load(look->kernel, &look->layout, tile, &look->mask, scratch->mask);
    look->kernel->apply_mask(v, scratch->mask, -(double)INFINITY, n);
    add_tile(look, tile, v, exps, stats);
    look->kernel->apply_mask(v, scratch->mask, (double)INFINITY, n);
    add_tile(look, tile, v, false, leasts);
    look->kernel->apply_mask(v, scratch->mask, 0, n);
    add_tile(look, tile, v, false, sums);
}

void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    size_t pitch = look->tile.pitch, most = look->tile.length, length = look->layout.along.volume;
    clear(stats, pitch);
    if (add_dense_row(look, operand, row, exps, stats))
        return;
    clear(&scratch->leasts, pitch);
    clear(&scratch->sums, pitch);
    for (size_t start = 0; start < length; start += most) {
        struct kl_tile tile = {row, n, pitch, start, length - start < most ? length - start : most};
        kl_tile_load(look->kernel, &look->layout, &tile, &look->operands[operand], scratch->v);
        if (look->mask.data)
            add_masked_tile(look, &tile, exps, scratch, stats);
        else
            add_tile(look, &tile, scratch->v, exps, stats);
    }
    for (size_t i = 0; look->mask.data && i < pitch; i++) {
        stats->least[i] = scratch->leasts.least[i];
        stats->sum[i] = scratch->sums.sum[i];
    }
}
