#include "lib/elements.h"
#include "lib/diagnose/diagnose.h"

#include <stdlib.h>

static bool is_full(const void *data, size_t ndim, const size_t *shape, size_t count)
{
    size_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    return !data || n == count;
}

bool kl_is_elementwise(const struct kl_plan *plan)
{
    return kl_is_plain(plan) && plan->options.n_dim == 0 &&
           plan->input.dtype == plan->target.dtype && plan->counts[KL_INPUT] == plan->count &&
           plan->counts[KL_TARGET] == plan->count &&
           is_full(plan->weight.data, plan->weight.ndim, plan->weight.shape, plan->count) &&
           is_full(plan->mask.data, plan->mask.ndim, plan->mask.shape, plan->count);
}

/* ---- A chunk */

/* span: elements of a chunk, whose numbers that are no doubles in the caller's arrays are widened: a
 * block of them at most. */
struct span {
    const struct kl_job *job;
    size_t start, n;
    struct kl_elements elements;
};

/* True if an array has numbers that are to be widened. */
static bool is_widened(const struct kl_numbers *numbers)
{
    return numbers->data && numbers->dtype != KL_FLOAT64;
}

/* The numbers of a span as doubles: where they are, or in `block`. NULL if there are none. */
static const double *doubles_of(const struct span *span, const struct kl_numbers *numbers,
                                double *block)
{
    const void *at = numbers->data ? kl_at(numbers, span->start) : NULL;
    if (!is_widened(numbers))
        return at;
    span->job->kernel->widen[numbers->dtype](at, block, span->n);
    return block;
}

static struct kl_elements elements_at(const struct kl_job *job, size_t start)
{
    return (struct kl_elements){
        .input = kl_at(&job->operands[KL_INPUT], start),
        .target = kl_at(&job->operands[KL_TARGET], start),
        .mask = job->mask.data ? kl_at(&job->mask, start) : NULL,
    };
}

static void sum_span(const struct span *span, struct kl_sum *sum)
{
    const struct kl_job *job = span->job;
    double block[KL_BLOCK];
    struct kl_elements elements = span->elements;
    elements.weight = doubles_of(span, &job->weight, block);
    kl_sum_merge(sum, job->kernel->sum[job->plan->dtype][kl_rule_is_log(job->rule)](
                          job->rule, &elements, span->n));
}

static void map_span(const struct span *span)
{
    const struct kl_job *job = span->job;
    const struct kl_elements *e = &span->elements;
    enum kl_dtype dtype = job->plan->dtype;
    bool is_log = kl_rule_is_log(job->rule);
    char *to = job->losses + span->start * kl_dtype_size(dtype);
    double losses[KL_BLOCK], block[KL_BLOCK];
    const double *weight = doubles_of(span, &job->weight, block);
    if (!weight && !e->mask && job->unit == 1) {
        job->kernel->map[dtype][is_log](job->rule, e->input, e->target, to, span->n);
        return;
    }
    job->kernel->losses[dtype][is_log](job->rule, e->input, e->target, losses, span->n);
    if (weight)
        job->kernel->multiply(losses, weight, span->n);
    if (e->mask)
        job->kernel->apply_mask(losses, e->mask, 0, span->n);
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, span->n);
    job->kernel->narrow[dtype](losses, to, span->n);
}

/* Derivatives under factors are computed in blocks of these. */
static size_t span_of_grads(const struct kl_job *job)
{
    return job->weight.data || job->grad_output.data ? KL_BLOCK : KL_CHUNK;
}

static void grad_span(const struct span *span)
{
    const struct kl_job *job = span->job;
    double factors[KL_BLOCK], block[KL_BLOCK];
    struct kl_grads grads = {.factor = job->factor};
    const struct kl_numbers *const arrays[] = {&job->grad_output, &job->weight};
    for (size_t i = 0; i < span->n && span_of_grads(job) == KL_BLOCK; i++)
        factors[i] = job->factor;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i]->data) {
            job->kernel->multiply(factors, doubles_of(span, arrays[i], block), span->n);
            grads.factors = factors;
        }
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_wanted(job, i))
            grads.by[i] =
                job->sinks[i].gradient + span->start * kl_dtype_size(job->operands[i].dtype);
    job->kernel->grads[job->plan->dtype][kl_rule_is_log(job->rule)](job->rule, &span->elements,
                                                                    &grads, span->n);
}

/* The elements that each part of a chunk is computed by: all, or blocks where numbers are kept. */
static size_t span_of_losses(const struct kl_job *job)
{
    bool maps = job->losses && (job->weight.data || job->mask.data || job->unit != 1);
    return maps || is_widened(&job->weight) ? KL_BLOCK : KL_CHUNK;
}

/* Looks at the rows that begin in [start, end). */
static void diagnose_chunk(struct kl_diagnosing *diagnosing, size_t start, size_t end,
                           void *scratch)
{
    size_t length = diagnosing->look.layout.along.volume;
    kl_diagnose_rows(diagnosing, (start + length - 1) / length, (end + length - 1) / length,
                     scratch);
}

static void run_chunk(void *context, size_t chunk, void *scratch)
{
    struct kl_job *job = context;
    size_t start = chunk * KL_CHUNK, end = start + kl_smaller(KL_CHUNK, job->plan->count - start);
    struct kl_sum sum = {0, 0};
    if (kl_is_stopped(job->plan))
        return;
    size_t most = span_of_losses(job);
    for (size_t i = start; i < end && job->wants_loss; i += most) {
        struct span span = {job, i, kl_smaller(most, end - i), elements_at(job, i)};
        if (job->losses)
            map_span(&span);
        else
            sum_span(&span, &sum);
    }
    most = span_of_grads(job);
    for (size_t i = start; i < end && kl_any_wanted(job); i += most)
        grad_span(&(struct span){job, i, kl_smaller(most, end - i), elements_at(job, i)});
    if (job->diagnosing)
        diagnose_chunk(job->diagnosing, start, end, scratch);
    if (job->wants_loss && !job->losses)
        kl_total_add(&job->total, sum);
}

bool kl_run_elements(struct kl_job *job, struct kl_pool *pool)
{
    size_t count = job->plan->count, n = count / KL_CHUNK + (count % KL_CHUNK != 0);
    void *scratch = job->diagnosing ? malloc(sizeof(struct kl_look_scratch)) : NULL;
    bool good = scratch || !job->diagnosing;
    if (good)
        kl_pool_run(pool, n, run_chunk, job, scratch);
    free(scratch);
    return good;
}
