/* Calls whose target has all elements; kl_run and others are these, or calls with a sparse target. */
#pragma once

#include "lib/kldiv.h"

/* Computes what `results` and `partial`, which may be NULL, want. The thread is not to be cancelled meanwhile. */
bool kl_run_dense(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                  struct kl_pool *pool, const struct kl_results *results,
                  struct kl_partial *partial, struct kl_problem *problem);

/* The bytes that it allocates. */
size_t kl_dense_scratch_size(const struct kl_plan *plan, size_t threads,
                             const struct kl_results *results);
