/* Transactions of the store's thread; a batch: the jobs of one, a list. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* API_MAX_BATCH: jobs of a batch. */
enum { API_MAX_BATCH = 256 };

/* Runs jobs, or maintenance, in one transaction. False if it failed: nothing has changed then. */
bool api_transact(struct api_monitors *monitors, struct api_store_job *jobs,
                  bool (*upkeep)(struct api_monitors *monitors));

/* Runs a batch and finishes its jobs, which may be gone then. */
void api_batch_run(struct api_monitors *monitors, struct api_store_job *jobs);

/* Fails jobs that the store does not take, and finishes them. */
void api_batch_refuse(struct api_store_job *jobs);

/* Tells the thread or request that waits for a job that the job is done. Called by another thread. */
void api_store_job_finish(struct api_store_job *job);

/* Blocks until a job is finished. Not for a job whose exchange is resumed. */
void api_store_job_wait(const struct api_store_job *job);
