#include "lib/kernel.h"
#include "lib/pool.h"
#include "lib/problem.h"
#include "lib/run.h"

#include <math.h>
#include <string.h>

struct work {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    enum kl_rule rule;
    enum kl_operand by;
    const struct kl_tensor *upstream; /* one element for each, times `factor`; NULL is 1 */
    double factor;
    char *gradient;
};

static enum kl_dtype dtype_of(const struct work *work)
{
    return work->by == KL_INPUT ? work->plan->input.dtype : work->plan->target.dtype;
}

/* The place of the loss that element `element` of the operands is summed into. */
static size_t place_of(const struct kl_plan *plan, size_t element)
{
    size_t place = 0, stride = 1;
    for (size_t i = plan->input.ndim; i-- > 0; element /= plan->input.shape[i])
        if (!plan->summed[i]) {
            place += element % plan->input.shape[i] * stride;
            stride *= plan->input.shape[i];
        }
    return place;
}

/* The upstream gradients of n elements, times the factor. */
static void gather(const struct work *work, size_t start, size_t n, double *g)
{
    const struct kl_tensor *upstream = work->upstream;
    if (work->plan->options.n_dim == 0)
        work->kernel->widen[upstream->dtype](kl_at(upstream, start), g, n);
    else
        for (size_t i = 0; i < n; i++)
            g[i] = kl_load(upstream->dtype, upstream->data, place_of(work->plan, start + i));
    for (size_t i = 0; i < n; i++)
        g[i] *= work->factor;
}

static void run_piece(void *context, size_t piece)
{
    const struct work *work = context;
    const struct kl_plan *plan = work->plan;
    enum kl_dtype dtype = dtype_of(work);
    double x[KL_BLOCK], t[KL_BLOCK], g[KL_BLOCK], slopes[KL_BLOCK];
    size_t start = piece * KL_PIECE;
    size_t end = plan->count - start < KL_PIECE ? plan->count : start + KL_PIECE;
    for (size_t i = 0; i < KL_BLOCK; i++)
        g[i] = work->factor;
    for (; start < end; start += KL_BLOCK) {
        size_t n = end - start < KL_BLOCK ? end - start : KL_BLOCK;
        work->kernel->widen[plan->input.dtype](kl_at(&plan->input, start), x, n);
        work->kernel->widen[plan->target.dtype](kl_at(&plan->target, start), t, n);
        if (work->upstream)
            gather(work, start, n, g);
        work->kernel->slope[kl_rule_is_log(work->rule)](work->rule, work->by, x, t, g, slopes, n);
        work->kernel->narrow[dtype](slopes, work->gradient + start * kl_dtype_size(dtype), n);
    }
}

static bool fits(const struct kl_plan *plan, const struct kl_tensor *upstream)
{
    return upstream->ndim == plan->ndim &&
           (plan->ndim == 0 ||
            memcmp(upstream->shape, plan->shape, plan->ndim * sizeof *plan->shape) == 0);
}

bool kl_gradient(const struct kl_plan *plan, enum kl_operand operand,
                 const struct kl_tensor *upstream, struct kl_pool *pool, void *gradient,
                 struct kl_problem *problem)
{
    struct work work = {.plan = plan,
                        .kernel = kl_kernel(),
                        .rule = kl_rule_of(&plan->options),
                        .by = operand,
                        .factor = 1,
                        .gradient = gradient};
    if (upstream && !fits(plan, upstream))
        return kl_fail(problem, KL_UPSTREAM, "shape_mismatch",
                       "the upstream gradient must have the shape of the loss");
    if (work.rule == KL_PROB_MATH && !kl_refuse_negative(plan, problem))
        return false;
    if (upstream && plan->reduction == KL_NONE)
        work.upstream = upstream;
    else if (upstream)
        work.factor = kl_load(upstream->dtype, upstream->data, 0);
    work.factor *= kl_unit_of(&plan->options) / kl_divisor_of(plan);
    kl_pool_run(pool, plan->count / KL_PIECE + (plan->count % KL_PIECE != 0), run_piece, &work);
    return true;
}
