/* Calls whose losses are plain and whose arrays lie alike: chunks of elements, straight from and to the caller's
 * arrays. */
#pragma once

#include "lib/job/job.h"
#include "lib/threads/pool.h"

/* True if a call is such. */
bool kl_is_flat(const struct kl_plan *plan);

/* Runs a job of plain losses; adds reduced losses to its total. */
void kl_run_elements(struct kl_job *job, struct kl_pool *pool);
