#include "lib/run.h"
#include "lib/kernel.h"
#include "lib/pool.h"
#include "lib/problem.h"

#include <math.h>
#include <stdlib.h>

/* Operands of different dtypes, and losses that are scaled before they are rounded, go through
 * doubles in blocks that stay in the first-level cache. */
enum { BLOCK = 512 };

/* Sums of up to this many pieces (2^20 elements) need no heap. */
enum { PIECES_ON_STACK = 64 };

struct run {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    enum kl_rule rule;
    struct kl_sum *sums; /* one per piece, or NULL under none */
    char *losses;        /* under none */
};

enum kl_rule kl_rule_of(const struct kl_options *options)
{
    static const enum kl_rule rules[2][3] = {
        {[KL_PYTORCH] = KL_PROB_PYTORCH, [KL_ONEFLOW] = KL_PROB_ONEFLOW, [KL_MATH] = KL_PROB_MATH},
        {[KL_PYTORCH] = KL_LOG_PYTORCH, [KL_ONEFLOW] = KL_LOG_PYTORCH, [KL_MATH] = KL_LOG_MATH},
    };
    return rules[options->log_target][options->compat];
}

double kl_unit_of(const struct kl_options *options)
{
    return options->base == KL_BITS ? 0x1.71547652b82fep+0 : 1; /* 1 / ln 2 */
}

const void *kl_at(const struct kl_tensor *tensor, size_t index)
{
    return (const char *)tensor->data + index * kl_dtype_size(tensor->dtype);
}

static void add_block(struct kl_sum *total, struct kl_sum part)
{
    kl_sum_add(total, part.high);
    total->low += part.low;
}

static void scale(double *losses, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        losses[i] *= factor;
}

/* Elements [start, start + n), by way of doubles. */
static struct kl_sum wide_piece(const struct run *run, size_t start, size_t n)
{
    const struct kl_tensor *input = &run->plan->input, *target = &run->plan->target;
    double x[BLOCK], t[BLOCK], losses[BLOCK];
    struct kl_sum total = {0, 0};
    bool is_log = kl_rule_is_log(run->rule);
    for (size_t end = start + n; start < end; start += BLOCK) {
        size_t length = end - start < BLOCK ? end - start : BLOCK;
        run->kernel->widen[input->dtype](kl_at(input, start), x, length);
        run->kernel->widen[target->dtype](kl_at(target, start), t, length);
        if (run->sums) {
            add_block(&total, run->kernel->sum[KL_FLOAT64][is_log](run->rule, x, t, length));
        } else {
            enum kl_dtype dtype = run->plan->dtype;
            run->kernel->map[KL_FLOAT64][is_log](run->rule, x, t, losses, length);
            scale(losses, length, kl_unit_of(&run->plan->options));
            run->kernel->narrow[dtype](losses, run->losses + start * kl_dtype_size(dtype), length);
        }
    }
    return total;
}

static void run_piece(void *context, size_t i)
{
    const struct run *run = context;
    const struct kl_plan *plan = run->plan;
    enum kl_dtype dtype = plan->dtype;
    bool is_log = kl_rule_is_log(run->rule);
    size_t start = i * KL_PIECE;
    size_t n = plan->count - start < KL_PIECE ? plan->count - start : KL_PIECE;
    const void *x = kl_at(&plan->input, start), *t = kl_at(&plan->target, start);

    bool scaled = run->losses && plan->options.base != KL_NATS;
    if (plan->input.dtype != plan->target.dtype || scaled) {
        struct kl_sum sum = wide_piece(run, start, n);
        if (run->sums)
            run->sums[i] = sum;
    } else if (run->sums) {
        run->sums[i] = run->kernel->sum[dtype][is_log](run->rule, x, t, n);
    } else {
        run->kernel->map[dtype][is_log](run->rule, x, t, run->losses + start * kl_dtype_size(dtype),
                                        n);
    }
}

/* The sum divided as the reduction says, rounded to the dtype of the loss only afterwards. */
static double reduce(const struct kl_plan *plan, const struct kl_sum *sums, size_t pieces)
{
    struct kl_sum total = {0, 0};
    for (size_t i = 0; i < pieces; i++)
        add_block(&total, sums[i]);
    double sum = total.high + (isfinite(total.high) ? total.low : 0);
    sum *= kl_unit_of(&plan->options);

    if (plan->reduction == KL_MEAN)
        return plan->count == 0 && plan->options.compat == KL_ONEFLOW ? 0
                                                                      : sum / (double)plan->count;
    if (plan->reduction == KL_BATCHMEAN && plan->input.ndim > 0)
        return sum / (double)plan->input.shape[0];
    return sum;
}

bool kl_refuse_negative(const struct kl_plan *plan, struct kl_problem *problem)
{
    for (size_t i = 0; i < plan->count; i++) {
        double t = kl_load(plan->target.dtype, plan->target.data, i);
        if (!(t < 0))
            continue;
        if (problem && !problem->code) {
            problem->has_index = true;
            problem->index = i;
        }
        return kl_fail(problem, KL_TARGET, "target_negative",
                       "target holds %g, and a probability is never negative", t);
    }
    return true;
}

static bool any_nan(const struct kl_plan *plan, const void *losses)
{
    for (size_t i = 0; i < plan->count; i++)
        if (isnan(kl_load(plan->dtype, losses, i)))
            return true;
    return false;
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    struct run run = {.plan = plan, .kernel = kl_kernel(), .rule = kl_rule_of(&plan->options)};
    size_t pieces = plan->count / KL_PIECE + (plan->count % KL_PIECE != 0);
    bool nan_seen;

    if (plan->reduction == KL_NONE) {
        run.losses = loss;
        kl_pool_run(pool, pieces, run_piece, &run);
        nan_seen = run.rule == KL_PROB_MATH && any_nan(plan, loss);
    } else {
        struct kl_sum on_stack[PIECES_ON_STACK];
        run.sums = pieces <= PIECES_ON_STACK ? on_stack : malloc(pieces * sizeof *run.sums);
        if (!run.sums)
            return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
        kl_pool_run(pool, pieces, run_piece, &run);
        double reduced = reduce(plan, run.sums, pieces);
        if (run.sums != on_stack)
            free(run.sums);
        kl_store(plan->dtype, loss, 0, reduced);
        nan_seen = isnan(reduced);
    }
    /* Kernels make NaN of negative targets; only where one came out are they looked for. */
    if (nan_seen && run.rule == KL_PROB_MATH)
        return kl_refuse_negative(plan, problem);
    return true;
}
