/* Derivatives of a tile's losses, by what the operands hold. */
#include "lib/scratch.h"

static void soften_rows(const struct kl_scratch *s, const struct kl_tile *tile, double *slopes,
                        const double *e, const double *sums)
{
    struct kl_lines lines = kl_lines_of(tile);
    double scale = 1 / s->job->plan->temperature;
    for (size_t i = 0; i < lines.n; i++)
        s->job->kernel->soften(slopes + i * lines.length, e + i * lines.length, sums, lines.step,
                               scale, lines.length);
}

void kl_load_factors(struct kl_scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    const struct kl_numbers *const factors[] = {&job->grad_output, &job->weight};
    size_t n = kl_tile_size(tile);
    if (job->grad_output.data || job->weight.data)
        kl_fill(s->g, job->factor, n);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i]->data) {
            kl_load_numbers(s, tile, factors[i], s->spare);
            job->kernel->multiply(s->g, s->spare, n);
        }
}

/* By the operand as the rule takes it, or by the probability that it was. */
static void find_slopes(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    size_t n = kl_tile_size(tile);
    job->kernel->slope[kl_rule_is_log(job->rule)](
        job->rule, (enum kl_operand)operand, s->v[KL_INPUT], s->v[KL_TARGET], s->g, s->slopes, n);
    if (operand == KL_INPUT && job->plan->spaces[KL_INPUT] == KL_PROB) {
        bool nothing_stays = job->plan->options.compat != KL_PYTORCH;
        for (size_t i = 0; i < n; i++)
            s->slopes[i] /= nothing_stays && s->slopes[i] == 0 ? 1 : s->over[i];
    }
    kl_hide(s, tile, s->slopes, 0);
}

void kl_write_slopes(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    const struct kl_sink *sink = &s->group->sinks[operand];
    const struct kl_numbers *numbers = &job->operands[operand];
    if (sink->sums)
        kl_tile_add(job->layout, tile, numbers->array, sink->sums, s->slopes);
    else
        kl_tile_store(job->kernel, job->layout, tile, numbers->array, numbers->dtype,
                      sink->gradient, s->slopes);
}

void kl_sum_slopes(struct kl_scratch *s)
{
    double low[KL_OPERANDS][KL_ROWS] = {{0}};
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_fill(s->slope_sums[i], 0, s->rows);
    KL_FOR_EACH_TILE(s, tile)
    {
        kl_load_forms(s, &tile);
        kl_load_factors(s, &tile);
        for (int i = 0; i < KL_OPERANDS; i++)
            if (kl_is_wanted(s->job, i) && kl_is_logit(s->job, i)) {
                find_slopes(s, &tile, i);
                kl_add_to_rows(s, &tile, s->slopes, s->slope_sums[i], low[i]);
            }
    }
    for (int i = 0; i < KL_OPERANDS; i++) {
        for (size_t j = 0; j < s->rows; j++)
            s->slope_sums[i][j] = kl_sum_value((struct kl_sum){s->slope_sums[i][j], low[i][j]});
        kl_make_steady(s, s->slope_sums[i]);
    }
}

void kl_take_slopes(struct kl_scratch *s, const struct kl_tile *tile)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (!kl_is_wanted(s->job, i))
            continue;
        find_slopes(s, tile, i);
        if (kl_is_logit(s->job, i)) {
            s->job->kernel->exps(s->v[i], s->spare, kl_tile_size(tile));
            soften_rows(s, tile, s->slopes, s->spare, s->slope_sums[i]);
            kl_hide(s, tile, s->slopes, 0);
        }
        kl_write_slopes(s, tile, i);
    }
}
