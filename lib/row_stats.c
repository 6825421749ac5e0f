#include "lib/row_stats.h"

#include <math.h>

static void merge(struct kl_rows_stats *stats, size_t i, struct kl_row_stats more)
{
    stats->least[i] = more.least < stats->least[i] ? more.least : stats->least[i];
    stats->greatest[i] = more.greatest > stats->greatest[i] ? more.greatest : stats->greatest[i];
    stats->sum[i] += more.sum;
    stats->exps[i] += more.exps;
}

static void mask_elements(const struct kl_look *look, const struct kl_tile *tile, double masked,
                          double *v, double *mask)
{
    kl_tile_load(look->kernel, &look->layout, tile, &look->mask, mask);
    look->kernel->apply_mask(v, mask, masked, tile->pitch * tile->length);
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

void kl_find_row_stats(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                       double masked, struct kl_look_scratch *scratch, struct kl_rows_stats *stats)
{
    double *v = scratch->v;
    size_t pitch = look->tile.pitch, most = look->tile.length, length = look->layout.along.volume;
    for (size_t i = 0; i < pitch; i++) {
        stats->least[i] = INFINITY;
        stats->greatest[i] = -(double)INFINITY;
        stats->sum[i] = stats->exps[i] = 0;
    }
    if (add_dense_row(look, operand, row, exps, stats))
        return;
    for (size_t start = 0; start < length; start += most) {
        struct kl_tile tile = {row, n, pitch, start, length - start < most ? length - start : most};
        kl_tile_load(look->kernel, &look->layout, &tile, &look->operands[operand], v);
        if (look->mask.data)
            mask_elements(look, &tile, masked, v, scratch->mask);
        if (pitch == 1)
            merge(stats, 0, look->kernel->row_stats[KL_FLOAT64](v, tile.length, exps));
        else
            for (size_t i = 0; i < tile.length; i++)
                look->kernel->each_row_stats(v + i * pitch, stats, pitch, exps);
    }
}
