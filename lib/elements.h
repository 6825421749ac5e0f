/* Calls whose losses are plain and whose arrays lie alike: chunks of elements, straight from and to
 * the caller's arrays. */
#pragma once

#include "lib/job.h"
#include "lib/pool.h"

/* True if a call is such. */
bool kl_is_flat(const struct kl_plan *plan);

/* Runs such a job; adds reduced losses to its total. Allocates KL_DIAGNOSIS_SCRATCH at most, of a job
 * that is diagnosed; false if out of memory, before anything is written. */
bool kl_run_elements(struct kl_job *job, struct kl_pool *pool);
