#include "lib/job.h"
#include "lib/kernel.h"
#include "lib/pool.h"
#include "lib/problem.h"
#include "lib/shape.h"

#include <math.h>
#include <stdlib.h>

static double unit_of(const struct kl_options *options)
{
    return options->base == KL_BITS ? 0x1.71547652b82fep+0 : 1; /* 1 / ln 2 */
}

/* ---- Plain losses of two dense operands alike, which need no rows */

/* CHUNKS_ON_STACK: sums of up to so many chunks (2^20 elements) need no heap. */
enum { CHUNKS_ON_STACK = 64 };

struct chunks {
    const struct kl_job *job;
    struct kl_sum *sums; /* one for each */
};

static size_t chunk_size(const struct kl_job *job, size_t i)
{
    size_t left = job->plan->count - i * KL_CHUNK;
    return left < KL_CHUNK ? left : KL_CHUNK;
}

static void sum_chunk(void *context, size_t i, void *scratch)
{
    (void)scratch;
    const struct chunks *chunks = context;
    size_t start = i * KL_CHUNK;
    chunks->sums[i] = (struct kl_sum){0, 0};
    if (kl_is_stopped(chunks->job->plan))
        return;
    chunks->sums[i] = kl_sum_elements(chunks->job, start, start, chunk_size(chunks->job, i));
}

static void map_chunk(void *context, size_t i, void *scratch)
{
    (void)scratch;
    const struct chunks *chunks = context;
    const struct kl_job *job = chunks->job;
    size_t start = i * KL_CHUNK;
    enum kl_dtype dtype = job->plan->dtype;
    if (kl_is_stopped(job->plan))
        return;
    job->kernel->map[dtype][kl_rule_is_log(job->rule)](
        job->rule, kl_at(&job->operands[KL_INPUT], start), kl_at(&job->operands[KL_TARGET], start),
        job->losses + start * kl_dtype_size(dtype), chunk_size(job, i));
}

static bool sum_chunks(const struct kl_job *job, struct kl_pool *pool, size_t n,
                       struct kl_sum *total)
{
    struct kl_sum on_stack[CHUNKS_ON_STACK];
    struct chunks chunks = {job, n <= CHUNKS_ON_STACK ? on_stack : malloc(n * sizeof *on_stack)};
    if (!chunks.sums)
        return false;
    kl_pool_run(pool, n, sum_chunk, &chunks, NULL);
    for (size_t i = 0; i < n; i++)
        kl_sum_merge(total, chunks.sums[i]);
    if (chunks.sums != on_stack)
        free(chunks.sums);
    return true;
}

/* ---- Any call */

static bool any_nan(const struct kl_plan *plan, const void *losses)
{
    size_t n = plan->reduction == KL_NONE ? plan->places : 1;
    for (size_t i = 0; i < n; i++)
        if (isnan(kl_load(plan->dtype, losses, i)))
            return true;
    return false;
}

/* True if losses are plain ones of operands of one shape, without weight or mask. */
static bool is_simple(const struct kl_plan *plan)
{
    return kl_is_plain(plan) && !plan->weight.data && !plan->mask.data &&
           plan->counts[KL_INPUT] == plan->count && plan->counts[KL_TARGET] == plan->count;
}

/* True if losses are a kernel's map of the operands as they are. */
static bool is_map(const struct kl_plan *plan)
{
    return is_simple(plan) && plan->reduction == KL_NONE && plan->places == plan->count &&
           plan->dtype == plan->input.dtype && plan->dtype == plan->target.dtype &&
           plan->options.base == KL_NATS;
}

static size_t chunks_of(const struct kl_plan *plan)
{
    return plan->count / KL_CHUNK + (plan->count % KL_CHUNK != 0);
}

static bool is_sum(const struct kl_plan *plan)
{
    return is_simple(plan) && plan->reduction != KL_NONE;
}

size_t kl_scratch_size(const struct kl_plan *plan, const struct kl_results *results)
{
    struct kl_layout layout;
    struct kl_job job = {.plan = plan, .layout = &layout};
    size_t sums = 0, rows;
    if (plan->count == 0)
        return 0;
    if (results->loss && is_sum(plan) && chunks_of(plan) > CHUNKS_ON_STACK)
        sums = chunks_of(plan) * sizeof(struct kl_sum);
    for (int i = 0; i < KL_OPERANDS; i++)
        job.sinks[i].gradient = results->grad[i];
    if (!kl_any_wanted(&job) && (!results->loss || is_sum(plan) || is_map(plan)))
        return sums;
    rows = kl_rows_scratch_size(&job);
    return rows > sums ? rows : sums;
}

/* Computes results, and `total` of reduced losses. Simple losses are computed apart from
 * derivatives, with the bits that they have alone. Nothing is written before all memory is
 * allocated. */
static bool run(struct kl_job *job, struct kl_pool *pool, struct kl_sum *total)
{
    const struct kl_plan *plan = job->plan;
    bool sum = job->wants_loss && is_sum(plan), map = job->wants_loss && is_map(plan);
    struct chunks chunks = {.job = job};
    struct kl_job rest = *job;
    struct kl_sum rest_total = {0, 0};
    if (sum && !sum_chunks(job, pool, chunks_of(plan), total))
        return false;
    if (sum || map)
        rest.wants_loss = false, rest.losses = NULL;
    if (rest.wants_loss || kl_any_wanted(job)) {
        kl_layout_of(job->layout, plan);
        if (!kl_run_rows(&rest, pool, &rest_total))
            return false;
        kl_sum_merge(total, rest_total);
        job->negative = rest.negative;
    }
    if (map)
        kl_pool_run(pool, chunks_of(plan), map_chunk, &chunks, NULL);
    return true;
}

/* The sum divided as the reduction says, rounded to the dtype of the loss only afterwards. */
static void store_reduced(const struct kl_job *job, struct kl_sum total, void *loss)
{
    const struct kl_plan *plan = job->plan;
    double sum = kl_sum_value(total), divisor = job->divisor;
    bool zero = plan->reduction == KL_MEAN && plan->options.compat == KL_ONEFLOW && divisor == 0 &&
                sum == 0;
    kl_store(plan->dtype, loss, 0, zero ? 0 : sum * job->unit / divisor);
}

/* Stores the results of an empty call: sums over nothing are 0. */
static void store_nothing(const struct kl_job *job)
{
    const struct kl_plan *plan = job->plan;
    for (size_t i = 0; job->losses && i < plan->places; i++)
        kl_store(plan->dtype, job->losses, i, 0);
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        for (size_t i = 0; job->sinks[operand].gradient && i < plan->counts[operand]; i++)
            kl_store(job->operands[operand].dtype, job->sinks[operand].gradient, i, 0);
}

static struct kl_job job_of(const struct kl_plan *plan, struct kl_layout *layout)
{
    return (struct kl_job){
        .plan = plan,
        .kernel = kl_kernel(),
        .rule = kl_rule_of(plan),
        .layout = layout,
        .operands = {kl_input_of(plan), kl_target_of(plan)},
        .weight = {KL_OF_WEIGHT, plan->weight.dtype, false, plan->weight.data, 0},
        .mask = {KL_OF_MASK, KL_FLOAT64, true, plan->mask.data, 0},
        .unit = unit_of(&plan->options),
        .divisor = kl_divisor_of(plan),
    };
}

/* grad_output is one number for each loss under KL_NONE, and else one for all. */
static bool read_grad_output(struct kl_job *job, const struct kl_tensor *grad_output,
                             struct kl_problem *problem)
{
    const struct kl_plan *plan = job->plan;
    job->factor = job->unit / job->divisor;
    if (!grad_output)
        return true;
    if (!kl_shape_same(grad_output->ndim, grad_output->shape, plan->ndim, plan->shape))
        return kl_fail(problem, KL_GRAD_OUTPUT, "shape_mismatch",
                       "grad_output must have the shape of the loss");
    if (plan->reduction == KL_NONE)
        job->grad_output =
            (struct kl_numbers){KL_OF_LOSS, grad_output->dtype, false, grad_output->data, 0};
    else
        job->factor *= kl_load(grad_output->dtype, grad_output->data, 0);
    return true;
}

bool kl_run_gradients(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                      struct kl_pool *pool, const struct kl_results *results,
                      struct kl_problem *problem)
{
    struct kl_layout layout; /* filled where it is needed */
    struct kl_job job = job_of(plan, &layout);
    struct kl_sum total = {0, 0};
    if (!read_grad_output(&job, grad_output, problem))
        return false;
    job.sinks[KL_INPUT].gradient = results->grad[KL_INPUT];
    job.sinks[KL_TARGET].gradient = results->grad[KL_TARGET];
    job.wants_loss = results->loss != NULL;
    job.losses = plan->reduction == KL_NONE ? results->loss : NULL;
    if (plan->count == 0)
        store_nothing(&job);
    else if (!run(&job, pool, &total))
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    if (kl_is_stopped(plan))
        return kl_fail(problem, KL_NO_OPERAND, "stopped", "the call was stopped");
    if (results->loss && plan->reduction != KL_NONE)
        store_reduced(&job, total, results->loss);
    /* Kernels make NaN of negative targets; the first one is searched for only after a NaN came
     * out. */
    bool suspect = job.negative || (results->loss && job.rule == KL_PROB_MATH && is_simple(plan) &&
                                    any_nan(plan, results->loss));
    return !suspect || kl_check_negative(plan, problem);
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    return kl_run_gradients(plan, NULL, pool, &(struct kl_results){.loss = loss}, problem);
}
