#include "lib/survey.h"

#include <math.h>

static void merge(struct kl_surveys *surveys, size_t i, struct kl_survey more)
{
    surveys->least[i] = more.least < surveys->least[i] ? more.least : surveys->least[i];
    surveys->greatest[i] =
        more.greatest > surveys->greatest[i] ? more.greatest : surveys->greatest[i];
    surveys->sum[i] += more.sum;
    surveys->exps[i] += more.exps;
}

static void hide_elements(const struct kl_look *look, const struct kl_tile *tile, double hidden,
                          double *v, double *keep)
{
    kl_tile_load(look->kernel, &look->layout, tile, &look->mask, keep);
    look->kernel->hide(v, keep, hidden, tile->pitch * tile->length);
}

/* Straight from where the row lies. */
static bool survey_dense_row(const struct kl_look *look, int operand, size_t row, bool exps,
                             struct kl_surveys *surveys)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    size_t at = kl_offset(&look->layout.across, numbers->array, row);
    if (look->tile.pitch > 1 || look->mask.data ||
        !kl_rows_are_dense(&look->layout, numbers->array))
        return false;
    merge(surveys, 0,
          look->kernel->survey[numbers->dtype]((const char *)numbers->data +
                                                   at * kl_dtype_size(numbers->dtype),
                                               look->layout.along.volume, exps));
    return true;
}

void kl_survey_rows(const struct kl_look *look, int operand, size_t row, size_t n, bool exps,
                    double hidden, struct kl_look_scratch *scratch, struct kl_surveys *surveys)
{
    double *v = scratch->v;
    size_t pitch = look->tile.pitch, chunk = look->tile.length, length = look->layout.along.volume;
    for (size_t i = 0; i < pitch; i++) {
        surveys->least[i] = INFINITY;
        surveys->greatest[i] = -(double)INFINITY;
        surveys->sum[i] = surveys->exps[i] = 0;
    }
    if (survey_dense_row(look, operand, row, exps, surveys))
        return;
    for (size_t start = 0; start < length; start += chunk) {
        struct kl_tile tile = {row, n, pitch, start,
                               length - start < chunk ? length - start : chunk};
        kl_tile_load(look->kernel, &look->layout, &tile, &look->operands[operand], v);
        if (look->mask.data)
            hide_elements(look, &tile, hidden, v, scratch->keep);
        if (pitch == 1)
            merge(surveys, 0, look->kernel->survey[KL_FLOAT64](v, tile.length, exps));
        else
            for (size_t i = 0; i < tile.length; i++)
                look->kernel->each_survey(v + i * pitch, surveys, pitch, exps);
    }
}
