#include "lib/dense/elements.h"

#include "lib/diagnose/diagnose.h"
#include "lib/job/job.h"

static bool is_full(const void *data, size_t ndim, const size_t *shape, size_t count)
{
    size_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    return !data || n == count;
}

bool kl_is_flat(const struct kl_plan *plan)
{
    return kl_is_direct(plan) && plan->options.n_dim == 0 &&
           plan->input.dtype == plan->target.dtype && plan->counts[KL_INPUT] == plan->count &&
           plan->counts[KL_TARGET] == plan->count &&
           is_full(plan->weight.data, plan->weight.ndim, plan->weight.shape, plan->count) &&
           is_full(plan->mask.data, plan->mask.ndim, plan->mask.shape, plan->count);
}

/* ---- A chunk, in tiles of one row: whole, or KL_BLOCK elements at a time where arrays have to be widened
 * or losses and factors are computed as doubles first. */

static struct kl_elements elements_of(const struct kl_job *job, const struct kl_tile *tile)
{
    return (struct kl_elements){
        .input = kl_at(&job->operands[KL_INPUT], tile->start),
        .target = kl_at(&job->operands[KL_TARGET], tile->start),
        .mask = job->mask.data ? kl_at(&job->mask, tile->start) : NULL,
    };
}

static void sum_tile(const struct kl_job *job, const struct kl_tile *tile, struct kl_sum *sum)
{
    double block[KL_BLOCK];
    struct kl_elements elements = elements_of(job, tile);
    elements.weight = kl_tile_doubles(job->kernel, job->layout, tile, &job->weight, block);
    kl_sum_merge(sum, job->kernel->sum[job->plan->dtype][kl_rule_is_log(job->rule)](
                          job->rule, &elements, tile->length));
}

/* True if each loss is stored as the formula gives it. */
static bool maps(const struct kl_job *job)
{
    return !job->weight.data && !job->mask.data && job->unit == 1;
}

static void map_tile(const struct kl_job *job, const struct kl_tile *tile)
{
    const struct kl_elements e = elements_of(job, tile);
    enum kl_dtype dtype = job->plan->dtype;
    bool is_log = kl_rule_is_log(job->rule);
    char *to = job->losses + tile->start * kl_dtype_size(dtype);
    double losses[KL_BLOCK], block[KL_BLOCK];
    if (maps(job)) {
        job->kernel->map[dtype][is_log](job->rule, e.input, e.target, to, tile->length);
        return;
    }
    job->kernel->losses[dtype][is_log](job->rule, e.input, e.target, losses, tile->length);
    kl_weigh_losses(job, losses,
                    kl_tile_doubles(job->kernel, job->layout, tile, &job->weight, block), e.mask,
                    tile->length);
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, tile->length);
    job->kernel->narrow[dtype](losses, to, tile->length);
}

static size_t loss_tile_length(const struct kl_job *job)
{
    bool widens = job->weight.data && job->weight.dtype != KL_FLOAT64;
    return widens || (job->losses && !maps(job)) ? KL_BLOCK : KL_CHUNK;
}

static void compute_grads(const struct kl_job *job, const struct kl_tile *tile)
{
    double factors[KL_BLOCK], block[KL_BLOCK];
    const struct kl_elements e = elements_of(job, tile);
    struct kl_grads grads = {.factors = NULL};
    kl_set_factors(job, tile, factors, block, &grads);
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_wanted(job, i))
            grads.by[i] =
                job->gradients[i].data + tile->start * kl_dtype_size(job->operands[i].dtype);
    job->kernel->grads[job->plan->dtype][kl_rule_is_log(job->rule)](job->rule, &e, &grads,
                                                                    tile->length);
}

static size_t grad_tile_length(const struct kl_job *job)
{
    return job->weight.data || job->grad_output.data ? KL_BLOCK : KL_CHUNK;
}

/* Diagnoses the rows that begin in [start, end). */
static void diagnose_chunk(struct kl_diagnosing *diagnosing, size_t start, size_t end,
                           void *scratch)
{
    size_t length = diagnosing->layout.inner.volume;
    kl_diagnose_rows(diagnosing, (start + length - 1) / length, (end + length - 1) / length,
                     scratch);
}

static void run_chunk(void *context, size_t chunk, void *scratch)
{
    struct kl_job *job = context;
    size_t start = chunk * KL_CHUNK, end = start + kl_min(KL_CHUNK, job->plan->count - start);
    struct kl_sum sum = {0, 0};
    struct kl_tile tile = {.rows = 1};
    if (kl_is_stopped(job->plan))
        return;
    if (job->wants_loss)
        for (tile.start = start; tile.start < end; tile.start += tile.length) {
            tile.length = kl_min(loss_tile_length(job), end - tile.start);
            if (job->losses)
                map_tile(job, &tile);
            else
                sum_tile(job, &tile, &sum);
        }
    if (kl_any_wanted(job))
        for (tile.start = start; tile.start < end; tile.start += tile.length) {
            tile.length = kl_min(grad_tile_length(job), end - tile.start);
            compute_grads(job, &tile);
        }
    if (job->diagnosing)
        diagnose_chunk(job->diagnosing, start, end, scratch);
    if (job->wants_loss && !job->losses)
        kl_total_add(&job->total, sum);
}

void kl_run_elements(struct kl_job *job, struct kl_pool *pool)
{
    size_t count = job->plan->count, n = count / KL_CHUNK + (count % KL_CHUNK != 0);
    kl_flat_layout(job->layout, count);
    kl_pool_run(pool, n, run_chunk, job, job->diagnosing ? job->diagnosing->scratch : NULL);
}
