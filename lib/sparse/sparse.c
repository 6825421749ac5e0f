/* Losses of a target that names few elements of each row, as those of short rows: the probabilities that it names, or
 * their logarithms, are gathered of both operands, and, unless they are ignored, those of the rest of either as one element
 * more. The rest of input is the sum over the elements that are not named, which does not cancel where these have almost no
 * mass. Losses and derivatives are then those of a dense call, and derivatives by input are found from these in another
 * pass. */
#include "lib/sparse/sparse.h"

#include "lib/dense/dense.h"
#include "lib/plan/problem.h"
#include "lib/sparse/call.h"
#include "lib/threads/pool.h"

#include <stdlib.h>

static bool is_masked(const struct kl_sparse_call *call, size_t row)
{
    return kl_is_masked(&call->layout, call->plan->mask.data, row, 0);
}

/* Rows of a task: some KL_CHUNK elements. */
static size_t rows_of_task(const struct kl_sparse_call *call)
{
    return call->length < KL_CHUNK ? KL_CHUNK / call->length : 1;
}

static void gather_rows(void *context, size_t task, void *scratch)
{
    struct kl_sparse_call *call = context;
    size_t n = rows_of_task(call), row = task * n, end = row + kl_min(n, call->rows - row);
    uint64_t *named = malloc(2 * kl_named_size(call));
    (void)scratch;
    if (!named) {
        struct kl_problem problem = {0};
        kl_fail(&problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
        kl_sparse_fail(call, 0, problem);
        return;
    }
    for (; row < end && !kl_is_stopped(call->plan); row++) {
        if (is_masked(call, row)) {
            for (int i = 0; i < KL_OPERANDS; i++)
                kl_fill(call->operands[i] + row * call->columns, 0, call->columns);
            continue;
        }
        kl_gather_row(call, row, named);
    }
    free(named);
}

static void scatter_rows(void *context, size_t task, void *scratch)
{
    const struct kl_sparse_call *call = context;
    static void (*const scatter[KL_OPERANDS])(const struct kl_sparse_call *,
                                              size_t) = {kl_scatter_input, kl_scatter_target};
    const size_t lengths[KL_OPERANDS] = {call->length, call->k};
    size_t n = rows_of_task(call), row = task * n, end = row + kl_min(n, call->rows - row);
    (void)scratch;
    for (; row < end && !kl_is_stopped(call->plan); row++)
        for (int i = 0; i < KL_OPERANDS; i++) {
            const struct kl_tensor *tensor = i ? &call->plan->target : &call->plan->input;
            size_t size = lengths[i] * kl_dtype_size(tensor->dtype);
            if (call->results->grad[i] && is_masked(call, row))
                memset((char *)call->results->grad[i] + row * size, 0, size);
            else if (call->results->grad[i])
                scatter[i](call, row);
        }
}

/* ---- The call */

/* Plans the dense call of the short rows. Its losses are in the unit of this one. */
static bool plan_inner(struct kl_sparse_call *call, struct kl_problem *problem)
{
    const struct kl_plan *plan = call->plan;
    static const int last[] = {-1};
    size_t ndim = plan->joint_ndim;
    memcpy(call->inner_shape, plan->joint_shape, ndim * sizeof *call->inner_shape);
    call->inner_shape[ndim - 1] = call->columns;
    const struct kl_tensor input = {KL_FLOAT64, ndim, call->inner_shape, call->operands[KL_INPUT]},
                           target = {KL_FLOAT64, ndim, call->inner_shape,
                                     call->operands[KL_TARGET]};
    struct kl_options options = plan->options;
    options.reduction = plan->reduction;
    options.size_average = options.reduce = KL_ABSENT;
    options.log_target = false;
    options.compat = KL_MATH;
    options.input_space = kl_is_prob(call, KL_INPUT) ? KL_PROB : KL_LOG_PROB;
    options.target_space = kl_is_prob(call, KL_TARGET) ? KL_PROB : KL_LOG_PROB;
    options.temperature = 0;
    options.scale = KL_UNSCALED;
    options.dim = last, options.n_dim = 1;
    options.sparse = NULL;
    options.weight = plan->weight.data ? &plan->weight : NULL;
    options.mask = plan->mask.data ? &plan->mask : NULL;
    if (!kl_plan(&call->inner, &input, &target, &options, problem))
        return false;
    call->inner.options.scale = plan->options.scale;
    call->inner.zero_if_empty = plan->zero_if_empty;
    call->inner.temperature = plan->temperature;
    call->inner.stopped = plan->stopped;
    call->inner.stop_context = plan->stop_context;
    return true;
}

static size_t losses_of(const struct kl_plan *plan)
{
    return plan->reduction == KL_NONE ? plan->kept_count : 1;
}

/* The doubles that a call allocates, at `data`, or NULL to count them. */
static size_t lay_out(struct kl_sparse_call *call, double *data)
{
    size_t n = call->rows * call->columns, at = 0;
    for (int i = 0; i < KL_OPERANDS; i++, at += n)
        call->operands[i] = data ? data + at : NULL;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (call->results->grad[i]) {
            call->grads[i] = data ? data + at : NULL;
            at += n;
        }
    call->losses = data ? data + at : NULL;
    at += call->results->loss ? losses_of(call->plan) : 0;
    call->of_rows = data ? (void *)(data + at) : NULL;
    at += call->rows * sizeof *call->of_rows / sizeof *data;
    call->left_out = data ? (void *)(data + at) : NULL;
    return at + call->rows * call->k * sizeof *call->left_out / sizeof *data + 1;
}

static struct kl_sparse_call call_of(const struct kl_plan *plan, const struct kl_results *results)
{
    size_t length = plan->joint_shape[plan->joint_ndim - 1],
           k = plan->target.shape[plan->joint_ndim - 1];
    return (struct kl_sparse_call){.plan = plan,
                                   .results = results,
                                   .kernel = kl_kernel(),
                                   .rows = plan->kept_count,
                                   .length = length,
                                   .k = k,
                                   .columns = k + (plan->sparse.tail != KL_TAIL_IGNORE),
                                   .lock = PTHREAD_MUTEX_INITIALIZER};
}

size_t kl_sparse_scratch_size(const struct kl_plan *plan, size_t threads,
                              const struct kl_results *results)
{
    struct kl_sparse_call call = call_of(plan, results);
    size_t of_threads = kl_min(call.rows, threads) * 2 * kl_named_size(&call);
    double one[1];
    for (int i = 0; i < KL_OPERANDS; i++)
        call.operands[i] = one;
    if (!plan_inner(&call, NULL))
        return 0;
    return lay_out(&call, NULL) * sizeof(double) + of_threads +
           kl_dense_scratch_size(&call.inner, threads, results);
}

static bool compute(struct kl_sparse_call *call, const struct kl_tensor *grad_output,
                    struct kl_pool *pool, struct kl_partial *partial, struct kl_problem *problem)
{
    const struct kl_plan *plan = call->plan;
    size_t tasks = call->rows / rows_of_task(call) + (call->rows % rows_of_task(call) != 0);
    if (!plan_inner(call, problem))
        return false;
    if (call->rows > 0)
        kl_layout_of(&call->layout, &call->inner, true);
    kl_pool_run(pool, tasks, gather_rows, call, NULL);
    if (call->problem.code) {
        if (problem && !problem->code)
            *problem = call->problem;
        return false;
    }
    if (!kl_check_stopped(plan, problem)) /* perhaps before all was gathered */
        return false;
    const struct kl_results inner = {call->results->loss ? call->losses : NULL,
                                     {call->grads[KL_INPUT], call->grads[KL_TARGET]},
                                     NULL};
    if (!kl_run_dense(&call->inner, grad_output, pool, &inner, partial, problem))
        return false;
    for (size_t i = 0; call->results->loss && i < losses_of(plan); i++)
        kl_store(plan->dtype, call->results->loss, i, call->losses[i]);
    if (call->results->grad[KL_INPUT] || call->results->grad[KL_TARGET])
        kl_pool_run(pool, tasks, scatter_rows, call, NULL);
    return kl_check_stopped(plan, problem);
}

bool kl_run_sparse(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                   struct kl_pool *pool, const struct kl_results *results,
                   struct kl_partial *partial, struct kl_problem *problem)
{
    struct kl_sparse_call call = call_of(plan, results);
    if (results->diagnosis)
        return kl_fail(problem, KL_NO_OPERAND, "sparse_unsupported",
                       "a call with a sparse target is not diagnosed");
    double *data = malloc(lay_out(&call, NULL) * sizeof *data);
    if (!data)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    lay_out(&call, data);
    bool good = compute(&call, grad_output, pool, partial, problem);
    free(data);
    return good;
}
