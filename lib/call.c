#include "lib/diagnose/diagnose.h"
#include "lib/divisor.h"
#include "lib/elements.h"
#include "lib/negative.h"
#include "lib/parallel.h"
#include "lib/partial.h"
#include "lib/problem.h"
#include "lib/shape.h"

#include <math.h>
#include <stdlib.h>

static double unit_of(const struct kl_options *options)
{
    return options->base == KL_BITS ? 0x1.71547652b82fep+0 : 1; /* 1 / ln 2 */
}

/* True if a loss is NaN, or if infinite ones make it look so. */
static bool any_nan(const struct kl_job *job, const void *losses)
{
    size_t n = job->plan->reduction == KL_NONE ? job->plan->places : 1;
    return isnan(job->kernel->row_stats[job->plan->dtype](losses, n, false).sum);
}

size_t kl_scratch_size(const struct kl_plan *plan, const struct kl_results *results)
{
    struct kl_layout layout;
    struct kl_job job = {.plan = plan, .layout = &layout};
    size_t diagnosis = results->diagnosis ? KL_DIAGNOSIS_SCRATCH : 0;
    if (plan->count == 0)
        return diagnosis;
    if (kl_is_elementwise(plan))
        return diagnosis;
    for (int i = 0; i < KL_OPERANDS; i++)
        job.sinks[i].gradient = results->grad[i];
    size_t rows = kl_rows_scratch_size(&job);
    return rows > diagnosis ? rows : diagnosis;
}

/* Computes results, and adds reduced losses. Nothing is written before all memory is allocated. */
static bool run(struct kl_job *job, struct kl_pool *pool)
{
    return kl_is_elementwise(job->plan) ? kl_run_elements(job, pool) : kl_run_rows(job, pool);
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
        .weight = {KL_OF_WEIGHT, plan->weight.dtype, false, plan->weight.data},
        .mask = {KL_OF_MASK, KL_FLOAT64, true, plan->mask.data},
        .unit = unit_of(&plan->options),
        .total = {.lock = PTHREAD_MUTEX_INITIALIZER, .base = plan->options.base},
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
            (struct kl_numbers){KL_OF_LOSS, grad_output->dtype, false, grad_output->data};
    else
        job->factor *= kl_load(grad_output->dtype, grad_output->data, 0);
    return true;
}

/* Computes the loss and the derivatives. */
static bool compute(struct kl_job *job, struct kl_pool *pool, const struct kl_results *results,
                    struct kl_problem *problem)
{
    const struct kl_plan *plan = job->plan;
    if (plan->count == 0)
        store_nothing(job);
    else if (!run(job, pool))
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    if (kl_is_stopped(plan))
        return kl_fail(problem, KL_NO_OPERAND, "stopped", "the call was stopped");
    double value = job->losses ? 0 : kl_total_value(&job->total);
    if (results->loss && !job->losses)
        kl_store(plan->dtype, results->loss, 0,
                 kl_reduced(value, job->divisor, plan->reduction, kl_is_zero_if_empty(plan)));
    if (job->partial)
        kl_fill_partial(plan, kl_total_exact(&job->total), job->partial);
    /* Negative probabilities make NaN of losses; the first one is searched for only after a NaN came
     * out, or where no loss could show it. */
    bool math = plan->options.compat == KL_MATH && plan->count > 0;
    bool suspect = math && (!job->wants_loss || isnan(value) ||
                            (results->loss && any_nan(job, results->loss)));
    return !suspect || kl_check_negative(plan, problem);
}

/* Computes, and looks at the rows beside. */
static bool compute_and_diagnose(struct kl_job *job, struct kl_pool *pool,
                                 const struct kl_results *results, struct kl_problem *problem)
{
    job->diagnosing = kl_diagnosing_begin(job->plan);
    if (!job->diagnosing)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    bool good = compute(job, pool, results, problem);
    kl_diagnosing_end(job->diagnosing, pool, good ? results->diagnosis : NULL);
    return good;
}

/* True if rows are diagnosed while their losses are computed. */
static bool diagnoses_beside(const struct kl_plan *plan, const struct kl_results *results)
{
    return results->diagnosis && plan->count > 0 && kl_is_elementwise(plan);
}

/* Out of line, so that a diagnosis afterwards does not have the layout on its stack. */
static __attribute__((noinline)) bool
run_call(const struct kl_plan *plan, const struct kl_tensor *grad_output, struct kl_pool *pool,
         const struct kl_results *results, struct kl_partial *partial, struct kl_problem *problem)
{
    struct kl_layout layout; /* filled where it is needed */
    struct kl_job job = job_of(plan, &layout);
    if (!read_grad_output(&job, grad_output, problem))
        return false;
    job.sinks[KL_INPUT].gradient = results->grad[KL_INPUT];
    job.sinks[KL_TARGET].gradient = results->grad[KL_TARGET];
    job.partial = partial;
    job.wants_loss = results->loss || partial;
    job.losses = plan->reduction == KL_NONE ? results->loss : NULL;
    return (diagnoses_beside(plan, results) ? compute_and_diagnose : compute)(&job, pool, results,
                                                                              problem);
}

bool kl_run_gradients(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                      struct kl_pool *pool, const struct kl_results *results,
                      struct kl_problem *problem)
{
    return run_call(plan, grad_output, pool, results, NULL, problem) &&
           (!results->diagnosis || diagnoses_beside(plan, results) ||
            kl_diagnose(plan, pool, results->diagnosis, problem));
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    return kl_run_gradients(plan, NULL, pool, &(struct kl_results){.loss = loss}, problem);
}

bool kl_run_partial(const struct kl_plan *plan, struct kl_pool *pool, struct kl_partial *partial,
                    struct kl_problem *problem)
{
    if (plan->reduction == KL_NONE)
        return kl_fail(problem, KL_NO_OPERAND, "partial_none",
                       "a partial result needs a reduction, and reduction is none");
    return run_call(plan, NULL, pool, &(struct kl_results){.loss = NULL}, partial, problem);
}
