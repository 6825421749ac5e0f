/* Derivatives of a tile's losses, by what the operands hold. */
#include "lib/scratch.h"

static void softmax_backward_rows(const struct kl_scratch *s, const struct kl_tile *tile,
                                  double *grads, const double *e, const double *sums)
{
    struct kl_lines lines = kl_lines_of(tile);
    double scale = 1 / s->job->plan->temperature;
    for (size_t i = 0; i < lines.n; i++)
        s->job->kernel->softmax_backward(grads + i * lines.length, e + i * lines.length, sums,
                                         lines.step, scale, lines.length);
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

/* Computes derivatives by an operand as the rule takes it; by a probability of input, those by its
 * logarithm are divided by it. */
static void compute_grads(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    size_t n = kl_tile_size(tile);
    job->kernel->grad[kl_rule_is_log(job->rule)](
        job->rule, (enum kl_operand)operand, s->v[KL_INPUT], s->v[KL_TARGET], s->g, s->grads, n);
    if (operand == KL_INPUT && job->plan->spaces[KL_INPUT] == KL_PROB) {
        bool nothing_stays = job->plan->options.compat != KL_PYTORCH;
        for (size_t i = 0; i < n; i++)
            s->grads[i] /= nothing_stays && s->grads[i] == 0 ? 1 : s->over[i];
    }
    kl_apply_mask(s, tile, s->grads, 0);
}

void kl_store_grads(struct kl_scratch *s, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = s->job;
    const struct kl_sink *sink = &s->group->sinks[operand];
    const struct kl_numbers *numbers = &job->operands[operand];
    if (sink->sums)
        kl_tile_add(job->layout, tile, numbers->array, sink->sums, s->grads);
    else
        kl_tile_store(job->kernel, job->layout, tile, numbers->array, numbers->dtype,
                      sink->gradient, s->grads);
}

void kl_sum_grads(struct kl_scratch *s)
{
    double low[KL_OPERANDS][KL_ROWS] = {{0}};
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_fill(s->grad_sums[i], 0, s->rows);
    KL_FOR_EACH_TILE (s, tile) {
        kl_load_log_probs(s, &tile);
        kl_load_factors(s, &tile);
        for (int i = 0; i < KL_OPERANDS; i++)
            if (kl_is_wanted(s->job, i) && kl_is_logit(s->job, i)) {
                compute_grads(s, &tile, i);
                kl_add_to_rows(s, &tile, s->grads, s->grad_sums[i], low[i]);
            }
    }
    for (int i = 0; i < KL_OPERANDS; i++) {
        for (size_t j = 0; j < s->rows; j++)
            s->grad_sums[i][j] = kl_sum_value((struct kl_sum){s->grad_sums[i][j], low[i][j]});
        kl_broadcast(s, s->grad_sums[i]);
    }
}

void kl_compute_grads(struct kl_scratch *s, const struct kl_tile *tile)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (!kl_is_wanted(s->job, i))
            continue;
        compute_grads(s, tile, i);
        if (kl_is_logit(s->job, i)) {
            s->job->kernel->exps(s->v[i], s->spare, kl_tile_size(tile));
            softmax_backward_rows(s, tile, s->grads, s->spare, s->grad_sums[i]);
            kl_apply_mask(s, tile, s->grads, 0);
        }
        kl_store_grads(s, tile, i);
    }
}
