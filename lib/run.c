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

/* Sums of up to this many pieces (2^20 elements) need no heap. */
enum { PIECES_ON_STACK = 64 };

struct pieces {
    const struct kl_job *job;
    struct kl_sum *sums; /* one for each */
};

static size_t piece_size(const struct kl_job *job, size_t i)
{
    size_t left = job->plan->count - i * KL_PIECE;
    return left < KL_PIECE ? left : KL_PIECE;
}

static void sum_piece(void *context, size_t i, void *scratch)
{
    (void)scratch;
    const struct pieces *pieces = context;
    size_t start = i * KL_PIECE;
    pieces->sums[i] = kl_sum_elements(pieces->job, start, start, piece_size(pieces->job, i));
}

static void map_piece(void *context, size_t i, void *scratch)
{
    (void)scratch;
    const struct pieces *pieces = context;
    const struct kl_job *job = pieces->job;
    size_t start = i * KL_PIECE;
    enum kl_dtype dtype = job->plan->dtype;
    job->kernel->map[dtype][kl_rule_is_log(job->rule)](
        job->rule, kl_at(&job->operands[KL_INPUT], start), kl_at(&job->operands[KL_TARGET], start),
        job->losses + start * kl_dtype_size(dtype), piece_size(job, i));
}

static bool sum_pieces(const struct kl_job *job, struct kl_pool *pool, size_t n,
                       struct kl_sum *total)
{
    struct kl_sum on_stack[PIECES_ON_STACK];
    struct pieces pieces = {job, n <= PIECES_ON_STACK ? on_stack : malloc(n * sizeof *on_stack)};
    if (!pieces.sums)
        return false;
    kl_pool_run(pool, n, sum_piece, &pieces, NULL);
    for (size_t i = 0; i < n; i++)
        kl_sum_merge(total, pieces.sums[i]);
    if (pieces.sums != on_stack)
        free(pieces.sums);
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

/* Whether losses alone are wanted, plain ones of operands that lie alike. */
static bool is_simple(const struct kl_plan *plan, const struct kl_results *results)
{
    return kl_is_plain(plan) && !plan->weight.data && !plan->mask.data &&
           !results->grad[KL_INPUT] && !results->grad[KL_TARGET] &&
           plan->counts[KL_INPUT] == plan->count && plan->counts[KL_TARGET] == plan->count;
}

/* Whether they are a map of the operands as they are. */
static bool is_map(const struct kl_plan *plan)
{
    return plan->reduction == KL_NONE && plan->places == plan->count &&
           plan->dtype == plan->input.dtype && plan->dtype == plan->target.dtype &&
           plan->options.base == KL_NATS;
}

static size_t pieces_of(const struct kl_plan *plan)
{
    return plan->count / KL_PIECE + (plan->count % KL_PIECE != 0);
}

size_t kl_scratch_size(const struct kl_plan *plan, const struct kl_results *results)
{
    struct kl_layout layout;
    struct kl_job job = {.plan = plan, .layout = &layout};
    if (plan->count == 0)
        return 0;
    if (is_simple(plan, results) && (plan->reduction != KL_NONE || !results->loss))
        return pieces_of(plan) > PIECES_ON_STACK ? pieces_of(plan) * sizeof(struct kl_sum) : 0;
    if (is_simple(plan, results) && is_map(plan))
        return 0;
    for (int i = 0; i < KL_OPERANDS; i++)
        job.sinks[i].gradient = results->grad[i];
    return kl_rows_scratch_size(&job);
}

/* Computes what the job wants, and `total` of losses that are reduced. */
static bool run(struct kl_job *job, bool simple, struct kl_pool *pool, struct kl_sum *total)
{
    const struct kl_plan *plan = job->plan;
    if (simple && !job->losses)
        return sum_pieces(job, pool, pieces_of(plan), total);
    if (simple && is_map(plan)) {
        kl_pool_run(pool, pieces_of(plan), map_piece, &(struct pieces){.job = job}, NULL);
        return true;
    }
    kl_layout_of(job->layout, plan);
    return kl_run_rows(job, pool, total);
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

/* Nothing to compute: sums over nothing are 0. */
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
static bool take_grad_output(struct kl_job *job, const struct kl_tensor *grad_output,
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
    bool simple = is_simple(plan, results);
    if (!take_grad_output(&job, grad_output, problem))
        return false;
    job.sinks[KL_INPUT].gradient = results->grad[KL_INPUT];
    job.sinks[KL_TARGET].gradient = results->grad[KL_TARGET];
    job.wants_loss = results->loss != NULL;
    job.losses = plan->reduction == KL_NONE ? results->loss : NULL;
    if (plan->count == 0)
        store_nothing(&job);
    else if (!run(&job, simple, pool, &total))
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    if (results->loss && plan->reduction != KL_NONE)
        store_reduced(&job, total, results->loss);
    /* Kernels make NaN of negative targets; only where one came out are they looked for. */
    bool suspect = job.negative || (simple && results->loss && job.rule == KL_PROB_MATH &&
                                    any_nan(plan, results->loss));
    return !suspect || kl_check_negative(plan, problem);
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    return kl_run_gradients(plan, NULL, pool, &(struct kl_results){.loss = loss}, problem);
}
