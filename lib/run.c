#include "lib/dense/dense.h"
#include "lib/plan/problem.h"
#include "lib/sparse/sparse.h"
#include "lib/threads/pool.h"

static bool run(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                struct kl_pool *pool, const struct kl_results *results, struct kl_partial *partial,
                struct kl_problem *problem)
{
    int before = kl_disable_cancellation();
    bool good = (plan->sparse.indices ? kl_run_sparse : kl_run_dense)(plan, grad_output, pool,
                                                                      results, partial, problem);
    kl_restore_cancellation(before);
    pthread_testcancel(); /* a thread that only computes would never end */
    return good;
}

bool kl_run_gradients(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                      struct kl_pool *pool, const struct kl_results *results,
                      struct kl_problem *problem)
{
    return run(plan, grad_output, pool, results, NULL, problem);
}

bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem)
{
    return kl_run_gradients(plan, NULL, pool, &(struct kl_results){.loss = loss}, problem);
}

bool kl_run_partial(const struct kl_plan *plan, struct kl_pool *pool, struct kl_partial *partial,
                    struct kl_problem *problem)
{
    return plan->reduction == KL_NONE
               ? kl_fail(problem, KL_NO_OPERAND, "partial_none",
                         "a partial result needs a reduction, and reduction is none")
               : run(plan, NULL, pool, &(struct kl_results){.loss = NULL}, partial, problem);
}

bool kl_diagnose(const struct kl_plan *plan, struct kl_pool *pool, struct kl_diagnosis *diagnosis,
                 struct kl_problem *problem)
{
    return run(plan, NULL, pool, &(struct kl_results){.diagnosis = diagnosis}, NULL, problem);
}

size_t kl_scratch_size(const struct kl_plan *plan, const struct kl_pool *pool,
                       const struct kl_results *results)
{
    return (plan->sparse.indices ? kl_sparse_scratch_size
                                 : kl_dense_scratch_size)(plan, kl_pool_threads(pool), results);
}
