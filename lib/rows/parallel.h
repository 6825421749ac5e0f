/* Rows of any layout: groups of them, which are computed each as blocks, in chunks that threads share. */
#pragma once

#include "lib/job/job.h"
#include "lib/threads/pool.h"

/* Runs a job of any kind; adds reduced losses to its total. False if out of memory, before anything is
 * written. */
bool kl_run_rows(struct kl_job *job, struct kl_pool *pool);

/* The bytes that kl_run_rows allocates. The job has its plan, its gradients and a layout to fill. */
size_t kl_rows_scratch_size(struct kl_job *job, size_t threads);
