#include "lib/rows/mixture.h"
#include "lib/rows/softmax.h"

/* True if the elements of each row of logits are summed whole: then p and q both sum to 1 in the sum. */
static bool are_rows_whole(const struct kl_job *job)
{
    bool by_element = job->layout->elementwise && (job->weight.data || job->mask.data);
    return kl_is_logit(job, KL_INPUT) && kl_is_logit(job, KL_TARGET) && kl_sums_rows(job) &&
           !by_element;
}

/* True if log(p / q) is to be found from the logits themselves: the rounding of the logarithms of a softmax is more than
 * float64 operands that are close may differ by. */
static bool needs_ratios(const struct kl_job *job)
{
    return job->plan->dtype == KL_FLOAT64 && kl_is_logit(job, KL_INPUT) &&
           kl_is_logit(job, KL_TARGET) && !job->layout->single_rows;
}

/* Finds log(p / q) of a tile of logits. The differences of maxima and of log-sum-exps err by the same for all of a row, which
 * changes its loss by the square of that. */
static void find_ratios(struct kl_workspace *b, const struct kl_tile *tile, double *ratios)
{
    const struct kl_kernel *kernel = b->job->kernel;
    double by_max[KL_ROWS], by_sum[KL_ROWS];
    size_t n = kl_tile_size(tile);
    for (int i = 0; i < KL_OPERANDS; i++) {
        b->stage[i] = KL_NOT_LOADED; /* not the shifted ones */
        kl_load_operand(b, tile, i);
    }
    for (size_t i = 0; i < tile->rows; i++) {
        by_max[i] = b->row_max[KL_TARGET][i] - b->row_max[KL_INPUT][i];
        by_sum[i] = b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i];
    }
    memcpy(ratios, b->v[KL_TARGET], n * sizeof *ratios);
    kernel->subtract(ratios, b->v[KL_INPUT], n);
    kl_shift_rows(b, tile, ratios, by_max, by_sum, 1 / b->job->plan->temperature);
}

void kl_compute_mixture(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    const struct kl_plan *plan = job->plan;
    if (b->has_mixture && b->mixed_start == tile->start)
        return;
    const struct kl_mixture mixture = {
        .is_js = plan->divergence == KL_JS,
        .is_f64 = plan->dtype == KL_FLOAT64,
        .are_whole = are_rows_whole(job),
        .are_probs = {plan->spaces[KL_INPUT] == KL_PROB, plan->spaces[KL_TARGET] == KL_PROB},
        .share = plan->share};
    struct kl_mixed to = {.losses = b->mixed_losses};
    for (int i = 0; i < KL_OPERANDS; i++)
        to.grads[i] = kl_is_wanted(job, i) ? b->mixed_grads[i] : NULL;
    if (needs_ratios(job)) {
        find_ratios(b, tile, b->scratch);
        to.log_ratio = b->scratch;
    }
    kl_load_spaces(b, tile);
    job->kernel->mixture(&mixture, b->v[KL_INPUT], b->v[KL_TARGET], &to, kl_tile_size(tile));
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED; /* v holds probabilities */
    b->has_mixture = true;
    b->mixed_start = tile->start;
}
