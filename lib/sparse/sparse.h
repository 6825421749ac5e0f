/* Calls with a sparse target. */
#pragma once

#include "lib/kldiv.h"

bool kl_run_sparse(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                   struct kl_pool *pool, const struct kl_results *results,
                   struct kl_partial *partial, struct kl_problem *problem);
size_t kl_sparse_scratch_size(const struct kl_plan *plan, size_t threads,
                              const struct kl_results *results);
