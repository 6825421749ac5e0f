#include "lib/run.h"
#include "lib/kernel.h"
#include "lib/pool.h"
#include "lib/problem.h"

#include <math.h>
#include <stdlib.h>

/* Sums of up to this many pieces (2^20 elements) need no heap. */
enum { PIECES_ON_STACK = 64 };

struct run {
    struct kl_work work;
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

/* Operands of different dtypes go through doubles, in blocks that stay in the first-level cache. */
static void widen(const struct kl_work *work, const struct kl_tensor *operand, size_t start,
                  size_t n, double *to)
{
    work->kernel->widen[operand->dtype](kl_at(operand, start), to, n);
}

struct kl_sum kl_sum_elements(const struct kl_work *work, size_t start, size_t n)
{
    const struct kl_tensor *input = &work->plan->input, *target = &work->plan->target;
    bool is_log = kl_rule_is_log(work->rule);
    if (input->dtype == target->dtype)
        return work->kernel->sum[input->dtype][is_log](work->rule, kl_at(input, start),
                                                       kl_at(target, start), n);
    double x[KL_BLOCK], t[KL_BLOCK];
    struct kl_sum total = {0, 0};
    for (size_t end = start + n; start < end; start += KL_BLOCK) {
        size_t length = end - start < KL_BLOCK ? end - start : KL_BLOCK;
        widen(work, input, start, length, x);
        widen(work, target, start, length, t);
        kl_sum_merge(&total, work->kernel->sum[KL_FLOAT64][is_log](work->rule, x, t, length));
    }
    return total;
}

void kl_map_elements(const struct kl_work *work, size_t start, size_t n, double *losses)
{
    double x[KL_BLOCK], t[KL_BLOCK];
    widen(work, &work->plan->input, start, n, x);
    widen(work, &work->plan->target, start, n, t);
    work->kernel->map[KL_FLOAT64][kl_rule_is_log(work->rule)](work->rule, x, t, losses, n);
}

/* Each loss where it belongs; by way of doubles where it is scaled before it is rounded, or the
 * operands differ in dtype. */
static void map_piece(const struct run *run, size_t start, size_t n)
{
    const struct kl_work *work = &run->work;
    const struct kl_plan *plan = work->plan;
    size_t size = kl_dtype_size(plan->dtype);
    double unit = kl_unit_of(&plan->options), losses[KL_BLOCK];
    if (plan->input.dtype == plan->target.dtype && plan->options.base == KL_NATS) {
        work->kernel->map[plan->dtype][kl_rule_is_log(work->rule)](
            work->rule, kl_at(&plan->input, start), kl_at(&plan->target, start),
            run->losses + start * size, n);
        return;
    }
    for (size_t end = start + n; start < end; start += KL_BLOCK) {
        size_t length = end - start < KL_BLOCK ? end - start : KL_BLOCK;
        kl_map_elements(work, start, length, losses);
        for (size_t i = 0; i < length; i++)
            losses[i] *= unit;
        work->kernel->narrow[plan->dtype](losses, run->losses + start * size, length);
    }
}

static void run_piece(void *context, size_t i)
{
    const struct run *run = context;
    size_t start = i * KL_PIECE, left = run->work.plan->count - start;
    size_t n = left < KL_PIECE ? left : KL_PIECE;
    if (run->sums)
        run->sums[i] = kl_sum_elements(&run->work, start, n);
    else
        map_piece(run, start, n);
}

double kl_divisor_of(const struct kl_plan *plan)
{
    return plan->reduction == KL_MEAN        ? (double)plan->places
           : plan->reduction == KL_BATCHMEAN ? (double)plan->batch
                                             : 1;
}

/* The sum divided as the reduction says, rounded to the dtype of the loss only afterwards. */
static double reduce(const struct kl_plan *plan, const struct kl_sum *sums, size_t pieces)
{
    struct kl_sum total = {0, 0};
    for (size_t i = 0; i < pieces; i++)
        kl_sum_merge(&total, sums[i]);
    double sum = total.high + (isfinite(total.high) ? total.low : 0);
    if (plan->reduction == KL_MEAN && plan->places == 0 && plan->options.compat == KL_ONEFLOW)
        return 0;
    return sum * kl_unit_of(&plan->options) / kl_divisor_of(plan);
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
    for (size_t i = 0; i < plan->places; i++)
        if (isnan(kl_load(plan->dtype, losses, i)))
            return true;
    return false;
}

static bool run_sum(struct run *run, struct kl_pool *pool, size_t pieces, void *loss,
                    struct kl_problem *problem)
{
    struct kl_sum on_stack[PIECES_ON_STACK];
    run->sums = pieces <= PIECES_ON_STACK ? on_stack : malloc(pieces * sizeof *run->sums);
    if (!run->sums)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    kl_pool_run(pool, pieces, run_piece, run);
    kl_store(run->work.plan->dtype, loss, 0, reduce(run->work.plan, run->sums, pieces));
    if (run->sums != on_stack)
        free(run->sums);
    return true;
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    struct run run = {.work = {plan, kl_kernel(), kl_rule_of(&plan->options)}, .losses = loss};
    size_t pieces = plan->count / KL_PIECE + (plan->count % KL_PIECE != 0);
    bool each = plan->reduction == KL_NONE && plan->places == plan->count;
    bool rows = plan->reduction == KL_NONE && !each && plan->places != 1;
    if (each)
        kl_pool_run(pool, pieces, run_piece, &run);
    else if (rows)
        kl_run_rows(&run.work, pool, loss);
    else if (!run_sum(&run, pool, pieces, loss, problem))
        return false;
    /* Kernels make NaN of negative targets; only where one came out are they looked for. */
    bool one = plan->reduction != KL_NONE;
    if (run.work.rule == KL_PROB_MATH &&
        (one ? isnan(kl_load(plan->dtype, loss, 0)) : any_nan(plan, loss)))
        return kl_refuse_negative(plan, problem);
    return true;
}
