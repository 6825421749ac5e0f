#include "lib/dense/dense.h"
#include "lib/dense/elements.h"
#include "lib/diagnose/diagnose.h"
#include "lib/job/job.h"
#include "lib/job/reduction.h"
#include "lib/plan/problem.h"
#include "lib/plan/shape.h"
#include "lib/rows/parallel.h"

#include <math.h>
#include <string.h>

/* True if a loss is NaN. The losses are summed, so infinite losses of both signs also give true. */
static bool any_nan(const struct kl_job *job, const void *losses)
{
    const struct kl_plan *plan = job->plan;
    const struct kl_array_view view = {KL_OF_LOSS, plan->dtype, false, losses};
    size_t n = plan->reduction == KL_NONE ? plan->kept_count : 1;
    for (size_t i = 0; i < n && !kl_is_stopped(plan); i += KL_CHUNK)
        if (isnan(
                job->kernel->row_stats[plan->dtype](kl_at(&view, i), kl_min(n - i, KL_CHUNK), false)
                    .sum))
            return true;
    return false;
}

/* KL_REVERSE is KL_FORWARD of the operands in each other's place. Returns the plan itself if it is not that. */
static const struct kl_plan *exchange(const struct kl_plan *plan, struct kl_plan *exchanged)
{
    if (plan->divergence != KL_REVERSE)
        return plan;
    *exchanged = *plan;
    exchanged->exchanged = true;
    exchanged->divergence = KL_FORWARD;
    exchanged->input = plan->target;
    exchanged->target = plan->input;
    for (int i = 0; i < KL_OPERANDS; i++) {
        exchanged->counts[i] = plan->counts[!i];
        exchanged->spaces[i] = plan->spaces[!i];
    }
    return exchanged;
}

/* The caller's name of an operand. */
static enum kl_operand named(const struct kl_plan *plan, int operand)
{
    return (enum kl_operand)(plan->exchanged ? !operand : operand);
}

size_t kl_dense_scratch_size(const struct kl_plan *plan, size_t threads,
                             const struct kl_results *results)
{
    struct kl_plan exchanged;
    struct kl_layout layout;
    plan = exchange(plan, &exchanged);
    struct kl_job job = {.plan = plan, .layout = &layout};
    size_t diagnosis = results->diagnosis ? kl_diagnosis_scratch() : 0;
    if (plan->count == 0 || kl_is_flat(plan))
        return diagnosis;
    for (int i = 0; i < KL_OPERANDS; i++)
        job.gradients[i].data = results->grad[named(plan, i)];
    size_t rows = kl_rows_scratch_size(&job, threads);
    if (!results->loss)
        return rows + diagnosis;
    return rows > diagnosis ? rows : diagnosis;
}

/* Stores the results of an empty call: sums over nothing are 0. */
static void store_nothing(const struct kl_job *job)
{
    const struct kl_plan *plan = job->plan;
    if (job->losses)
        memset(job->losses, 0, plan->loss_size);
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_wanted(job, i))
            memset(job->gradients[i].data, 0,
                   plan->counts[i] * kl_dtype_size(job->operands[i].dtype));
}

/* grad_output is one number for each loss under KL_NONE, and else one for all. */
static bool read_grad_output(struct kl_job *job, const struct kl_tensor *grad_output,
                             struct kl_problem *problem)
{
    const struct kl_plan *plan = job->plan;
    job->factor = job->unit / job->divisor;
    if (!grad_output)
        return true;
    if (kl_dtype_size(grad_output->dtype) == 0)
        return kl_fail(problem, KL_GRAD_OUTPUT, "dtype_invalid",
                       "the dtype of grad_output is not one of enum kl_dtype");
    if (!kl_shape_same(grad_output->ndim, grad_output->shape, plan->ndim, plan->shape))
        return kl_fail(problem, KL_GRAD_OUTPUT, "shape_mismatch",
                       "grad_output must have the shape of the loss");
    if (plan->reduction == KL_NONE)
        job->grad_output =
            (struct kl_array_view){KL_OF_LOSS, grad_output->dtype, false, grad_output->data};
    else
        job->factor *= kl_load(grad_output->dtype, grad_output->data, 0);
    return true;
}

/* ---- Negative probabilities, an error under KL_MATH */

static bool is_negative(const struct kl_tensor *tensor, size_t i)
{
    return kl_load(tensor->dtype, tensor->data, i) < 0;
}

/* SEARCHED, SEARCHED_UNDER_MASK: elements that are searched in some 10 us, before a call asks whether it is stopped. */
enum { SEARCHED = 4096, SEARCHED_UNDER_MASK = 256 };

/* The first negative element that is not masked in all of its losses, or the number of elements. */
static size_t find_unmasked(const struct kl_plan *plan, const struct kl_tensor *tensor,
                            enum kl_array array, size_t count)
{
    struct kl_layout layout;
    size_t first = count;
    kl_layout_of(&layout, plan, false);
    for (size_t row = 0; row < layout.outer.volume; row++)
        for (size_t i = 0; i < layout.inner.volume; i++) {
            if ((row * layout.inner.volume + i) % SEARCHED_UNDER_MASK == 0 && kl_is_stopped(plan))
                return count;
            size_t offset =
                kl_offset(&layout.outer, array, row) + kl_offset(&layout.inner, array, i);
            if (offset < first && is_negative(tensor, offset) &&
                !kl_is_masked(&layout, plan->mask.data, row, i))
                first = offset;
        }
    return first;
}

static size_t find_negative(const struct kl_plan *plan, const struct kl_tensor *tensor,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i % SEARCHED == 0 && kl_is_stopped(plan))
            break;
        if (is_negative(tensor, i))
            return i;
    }
    return count;
}

static bool check_operand(const struct kl_plan *plan, enum kl_operand operand,
                          struct kl_problem *problem)
{
    static const enum kl_array arrays[] = {KL_OF_INPUT, KL_OF_TARGET};
    const struct kl_tensor *tensor = operand == KL_INPUT ? &plan->input : &plan->target;
    size_t count = plan->counts[operand];
    size_t first = find_negative(plan, tensor, count);
    if (first < count && plan->mask.data)
        first = find_unmasked(plan, tensor, arrays[operand], count);
    if (first == count)
        return true;
    if (problem && !problem->code) {
        problem->has_index = true;
        problem->index = first;
    }
    bool is_input = named(plan, operand) == KL_INPUT;
    return kl_fail(problem, named(plan, operand), is_input ? "input_negative" : "target_negative",
                   "%s holds %g, but a probability is never negative",
                   is_input ? "input" : "target", kl_load(tensor->dtype, tensor->data, first));
}

static bool check_negative(const struct kl_plan *plan, struct kl_problem *problem)
{
    for (int i = 0; i < KL_OPERANDS; i++) { /* the caller's input first */
        enum kl_operand operand = named(plan, i);
        if (plan->spaces[operand] == KL_PROB && !check_operand(plan, operand, problem))
            return false;
    }
    return true;
}

/* ---- The call */

/* Computes the loss and the derivatives. */
static bool compute(struct kl_job *job, struct kl_pool *pool, const struct kl_results *results,
                    struct kl_problem *problem)
{
    const struct kl_plan *plan = job->plan;
    if (plan->count == 0)
        store_nothing(job);
    else if (kl_is_flat(plan))
        kl_run_elements(job, pool);
    else if (!kl_run_rows(job, pool))
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    double value = job->losses ? 0 : kl_total_value(&job->total);
    if (results->loss && !job->losses)
        kl_store(plan->dtype, results->loss, 0,
                 kl_reduced(value, job->divisor, plan->reduction, plan->zero_if_empty));
    if (job->partial)
        kl_fill_partial(plan, kl_total_exact(&job->total), job->partial);
    if (!kl_check_stopped(plan, problem))
        return false;
    /* Negative probabilities make losses NaN. The first negative one is searched for only if a loss
     * is NaN, or if the call computes no loss. */
    bool math = plan->options.compat == KL_MATH && plan->count > 0;
    bool suspect = math && (!job->wants_loss || isnan(value) ||
                            (results->loss && any_nan(job, results->loss)));
    if (suspect && !check_negative(plan, problem))
        return false;
    return !math || kl_check_stopped(plan, problem);
}

/* Ends a diagnosis. If it depends on the loss, it uses `loss`, or computes the loss if `loss` is NULL, which may
 * fail. */
static bool end_diagnosis(struct kl_diagnosing *d, struct kl_pool *pool, const void *loss,
                          struct kl_diagnosis *diagnosis, struct kl_problem *problem)
{
    const struct kl_plan *plan = d->sound.plan;
    double cell, value = 0;
    bool needs_loss = kl_diagnosing_needs_loss(d);
    const struct kl_results results = {.loss = &cell};
    bool good = !needs_loss || loss || kl_run_dense(plan, NULL, pool, &results, NULL, problem);
    if (needs_loss && good)
        value = kl_load(plan->dtype, loss ? loss : &cell, 0);
    kl_diagnosing_end(d, value, good ? diagnosis : NULL);
    return good && kl_check_stopped(plan, problem);
}

/* Diagnoses a call: the rows of each chunk after `job` has computed it, or all rows of a call whose loss is known, or
 * NULL, if that is NULL. */
static bool diagnose(const struct kl_plan *plan, struct kl_job *job, struct kl_pool *pool,
                     const struct kl_results *results, struct kl_problem *problem)
{
    struct kl_diagnosing *d = kl_diagnosing_new(plan);
    bool good;
    if (!d)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    if (job) {
        job->diagnosing = d;
        good = compute(job, pool, results, problem);
    } else {
        kl_diagnose_all(d, pool);
        good = kl_check_stopped(plan, problem);
    }
    if (good)
        return end_diagnosis(d, pool, results->loss, results->diagnosis, problem);
    kl_diagnosing_end(d, 0, NULL);
    return false;
}

/* True if rows are diagnosed chunk by chunk, while they are in the cache. */
static bool diagnoses_chunks(const struct kl_plan *plan, const struct kl_results *results)
{
    return results->diagnosis && plan->count > 0 && kl_is_flat(plan);
}

/* Out of line, so that a diagnosis after the computation does not have the layout on its stack. */
static __attribute__((noinline)) bool
run_call(const struct kl_plan *plan, const struct kl_tensor *grad_output, struct kl_pool *pool,
         const struct kl_results *results, struct kl_partial *partial, struct kl_problem *problem)
{
    struct kl_layout layout; /* filled where it is needed */
    struct kl_plan exchanged;
    const struct kl_plan *given = plan;
    plan = exchange(given, &exchanged);
    struct kl_job job = kl_job_of(plan, &layout);
    job.divisor = kl_divisor_of(plan);
    if (!read_grad_output(&job, grad_output, problem))
        return false;
    for (int i = 0; i < KL_OPERANDS; i++)
        job.gradients[i].data = results->grad[named(plan, i)];
    job.partial = partial;
    job.wants_loss = results->loss || partial;
    job.losses = plan->reduction == KL_NONE ? results->loss : NULL;
    return diagnoses_chunks(given, results) ? diagnose(given, &job, pool, results, problem)
                                            : compute(&job, pool, results, problem);
}

bool kl_run_dense(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                  struct kl_pool *pool, const struct kl_results *results,
                  struct kl_partial *partial, struct kl_problem *problem)
{
    bool diagnoses = results->diagnosis && !diagnoses_chunks(plan, results);
    bool computes = results->loss || results->grad[0] || results->grad[1] || partial || !diagnoses;
    return (!computes || run_call(plan, grad_output, pool, results, partial, problem)) &&
           (!diagnoses || diagnose(plan, NULL, pool, results, problem));
}
