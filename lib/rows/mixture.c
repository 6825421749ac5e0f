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

/* Finds log(p / q) of a tile of logits. The difference of log-sum-exps errs by the same for all of a row, which changes its
 * loss by the square of that. */
static void find_ratios(struct kl_workspace *b, const struct kl_tile *tile, double *ratios)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        b->stage[i] = KL_NOT_LOADED; /* not the shifted ones */
        kl_load_operand(b, tile, i);
    }
    struct kl_log_ratios of = kl_log_ratios_of(b, tile, b->row_max, b->log_sum_exp, ratios);
    b->job->kernel->log_ratios(&of, ratios, kl_tile_size(tile));
}

static struct kl_mixture mixture_of(const struct kl_job *job)
{
    const struct kl_plan *plan = job->plan;
    return (struct kl_mixture){
        .is_js = plan->divergence == KL_JS,
        .is_f64 = plan->dtype == KL_FLOAT64,
        .are_whole = are_rows_whole(job),
        .are_probs = {plan->spaces[KL_INPUT] == KL_PROB, plan->spaces[KL_TARGET] == KL_PROB},
        .share = plan->share};
}

void kl_compute_mixture(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    const struct kl_mixture mixture = mixture_of(job);
    struct kl_mixture_results to = {.losses = b->mixture_losses};
    if (b->has_mixture && b->mixture_start == tile->start)
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        to.grads[i] = kl_is_wanted(job, i) ? b->mixture_grads[i] : NULL;
    if (needs_ratios(job)) {
        find_ratios(b, tile, b->scratch);
        to.log_ratio = b->scratch;
    }
    kl_load_spaces(b, tile);
    job->kernel->mixture(&mixture, b->v[KL_INPUT], b->v[KL_TARGET], &to, kl_tile_size(tile));
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED; /* v holds probabilities */
    b->has_mixture = true;
    b->mixture_start = tile->start;
}

/* ---- Long rows of logits, one by one from where they are: a pass for the softmaxes, and one for the sums of losses and
 * derivatives, whose terms are cached; those of longer rows than the cache has room for take one pass more. */

bool kl_sums_mixture_rows(const struct kl_job *job)
{
    return kl_is_mixture(job->plan) && job->plan->share < 1 && kl_is_logit(job, KL_INPUT) &&
           kl_is_logit(job, KL_TARGET) && !kl_sums_blocks(job) && kl_are_losses_alike(job) &&
           (job->masks_rows || !job->mask.data);
}

size_t kl_mixture_cache_size(const struct kl_job *job)
{
    size_t n = job->layout->inner.volume;
    size_t operands = (size_t)kl_is_wanted(job, KL_INPUT) + kl_is_wanted(job, KL_TARGET);
    bool caches = n > job->tile.length && n <= KL_MAX_CACHED && kl_sums_mixture_rows(job);
    return caches ? operands * 2 * n * sizeof(double) : 0;
}

/* The destination of the terms of a row of a tile: of a group that is a single tile the workspace holds them. */
static struct kl_mixture_terms terms_at(struct kl_workspace *b, const struct kl_tile *tile,
                                        size_t row, int operand)
{
    size_t n = b->group->end - b->group->start, at = row * tile->length;
    if (!b->row_cache)
        return (struct kl_mixture_terms){b->mixture_grads[operand] + at, b->v[operand] + at};
    bool is_second = operand == KL_TARGET && kl_is_wanted(b->job, KL_INPUT);
    double *grads = b->row_cache + (is_second ? 2 * n : 0) + (tile->start - b->group->start);
    return (struct kl_mixture_terms){grads, grads + n};
}

/* Computes the sums of a row of a tile; `stores` its terms. */
static struct kl_mixture_sums compute_row(struct kl_workspace *b, const struct kl_tile *tile,
                                          size_t row, bool stores)
{
    const struct kl_job *job = b->job;
    const struct kl_mixture mixture = mixture_of(job);
    enum kl_dtype dtype = job->plan->dtype;
    struct kl_mixture_row constants = {.mixture = &mixture, .has_exps = b->has_exps};
    const char *operands[KL_OPERANDS];
    double *grads[KL_OPERANDS], *probs[KL_OPERANDS];
    for (int i = 0; i < KL_OPERANDS; i++) {
        struct kl_mixture_terms terms = terms_at(b, tile, row, i);
        operands[i] =
            (const char *)kl_operand(b, tile, i) + row * tile->length * kl_dtype_size(dtype);
        constants.shifts[i] = (struct kl_shift){b->row_max[i][row], 1 / job->plan->temperature};
        constants.log_sum_exp[i] = b->log_sum_exp[i][row];
        grads[i] = stores && kl_is_wanted(job, i) ? terms.grads : NULL;
        probs[i] = terms.probs;
    }
    return job->kernel->mixture_row[dtype](&constants, operands[KL_INPUT], operands[KL_TARGET],
                                           grads, probs, tile->length);
}

void kl_find_mixture_terms(struct kl_workspace *b, const struct kl_tile *tile, size_t row,
                           struct kl_mixture_terms terms[KL_OPERANDS])
{
    if (!b->single && !b->row_cache)
        compute_row(b, tile, row, true);
    for (int i = 0; i < KL_OPERANDS; i++)
        terms[i] = terms_at(b, tile, row, i);
}

/* Sums of exponentials of rows that have no finite loss of KL_FORWARD have too few bits for float64. */
static bool find_softmaxes(struct kl_workspace *b)
{
    b->sentinel = (double)NAN;
    bool are_exact = kl_find_row_sums(b, true, &b->plain) || b->job->plan->dtype != KL_FLOAT64;
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED;
    if (are_exact)
        return true;
    if (memchr(b->plain.known, 1, b->group->rows))
        return false;
    kl_find_softmaxes(b);
    b->has_exps = false;
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED;
    return true;
}

bool kl_sum_mixture_rows(struct kl_workspace *b)
{
    struct kl_sum grads[KL_OPERANDS];
    if (!find_softmaxes(b))
        return false;
    for (size_t i = 0; i < b->group->rows; i++) {
        struct kl_sum loss = {0, 0};
        grads[KL_INPUT] = grads[KL_TARGET] = loss;
        if (!kl_is_row_masked(b, i))
            KL_FOR_EACH_TILE (b, tile) {
                struct kl_mixture_sums sums = compute_row(b, &tile, i, b->single || b->row_cache);
                kl_sum_add(&loss, sums.losses);
                for (int operand = 0; operand < KL_OPERANDS; operand++)
                    kl_sum_add(&grads[operand], sums.grads[operand]);
            }
        b->group->high[i] = loss.high, b->group->low[i] = loss.low;
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            b->grad_sums[operand][i] = kl_sum_value(grads[operand]);
    }
    return true;
}
