/* Threads for requests that take too long for a network thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* srv_queue: a queue with its own threads. Huge requests do not delay merely large ones, and neither
 * delays probes, for which one thread makes what all of them share. */
enum srv_queue { SRV_LARGE, SRV_HUGE, SRV_PROBES, SRV_QUEUES };

/* srv_job: a part of the caller's structure, which owns it; `next` is used while the job waits. */
struct srv_job {
    struct srv_job *next;
    double cost_ns; /* estimate */
    void (*run)(struct srv_job *job);
};

/* Starts the threads, one for probes; false if one cannot be started. */
bool srv_jobs_start(size_t threads_of_queue);

/* Queues the job, which another thread runs in order. False if as many jobs wait already as the queue
 * does in 10 s, or 1,000. */
bool srv_jobs_add(enum srv_queue queue, struct srv_job *job);

/* Number of jobs that wait or run. */
size_t srv_jobs_pending(void);

/* Waits until all jobs have run, then ends the threads. */
void srv_jobs_stop(void);
