/* A group's tiles: loading them, and arithmetic along their rows. */
#include "lib/scratch.h"

#include <math.h>

const double kl_zeros[KL_ROWS];

struct kl_tile kl_tile_at(const struct kl_scratch *s, size_t start)
{
    const struct kl_job *job = s->job;
    size_t left = s->group->end - start;
    return (struct kl_tile){.row = s->group->row,
                            .rows = s->group->rows,
                            .pitch = job->tile.pitch,
                            .start = start,
                            .length = left < job->tile.length ? left : job->tile.length};
}

void kl_apply_mask(const struct kl_scratch *s, const struct kl_tile *tile, double *v, double value)
{
    if (s->job->mask.data)
        s->job->kernel->apply_mask(v, s->mask, value, kl_tile_size(tile));
}

void kl_load_operand(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    if (s->single && s->stage[operand] == KL_LOADED)
        return;
    if (s->job->mask.data && s->mask_start != tile->start) {
        kl_load_numbers(s, tile, &s->job->mask, s->mask);
        s->mask_start = tile->start;
    }
    kl_load_numbers(s, tile, &s->job->operands[operand], s->v[operand]);
    if (kl_is_logit(s->job, operand))
        kl_apply_mask(s, tile, s->v[operand], -(double)INFINITY);
    s->stage[operand] = KL_LOADED;
}

void kl_add_to_rows(const struct kl_scratch *s, const struct kl_tile *tile, const double *v,
                    double *high, double *low)
{
    const struct kl_kernel *kernel = s->job->kernel;
    if (tile->pitch == 1) {
        struct kl_sum sum = {high[0], low[0]};
        kl_sum_merge(&sum, kernel->total(v, tile->length));
        high[0] = sum.high, low[0] = sum.low;
        return;
    }
    for (size_t i = 0; i < tile->length; i++)
        kernel->each_add(v + i * tile->pitch, high, low, tile->pitch);
}

void kl_shift_rows(const struct kl_scratch *s, const struct kl_tile *tile, double *v,
                   const double *by, const double *minus, double scale)
{
    struct kl_lines lines = kl_lines_of(tile);
    for (size_t i = 0; i < lines.n; i++)
        s->job->kernel->shift(v + i * lines.length, by, minus, lines.step, scale, lines.length);
}

void kl_clear_sums(struct kl_scratch *s)
{
    kl_fill(s->high, 0, s->rows);
    kl_fill(s->low, 0, s->rows);
}
