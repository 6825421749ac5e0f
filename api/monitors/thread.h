/* The store's thread. Jobs that wait share a transaction, so that they share one wait for the disk. Small
 * jobs and large ones take turns: nobody waits for more than one transaction that is not of its own size. */
#pragma once

#include "api/monitors/state/job.h"

/* Starts the thread; see api_monitors_start. */
bool api_thread_start(struct api_monitors *monitors,
                      void (*log)(bool is_failure, const char *sentence));
void api_thread_stop(struct api_monitors *monitors);

/* Queues a job; false if too many wait. */
bool api_store_job_submit(struct api_monitors *monitors, struct api_store_job *job);

/* Has the store do x->work, which x->resume tells the end of; perhaps before this returns. False if
 * too much waits for the store: the response, which says so, is complete. */
bool api_wait(struct api_exchange *x);
