/* Threads for requests that take too long for a network thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* srv_queue: a kind of job, the least urgent first. Huge jobs leave some threads to large ones, and large ones to huge
 * ones; one thread never holds anything but a probe, which makes what all probes share. */
enum srv_queue { SRV_HUGE, SRV_LARGE, SRV_PROBES, SRV_QUEUES };

/* srv_job: a part of the caller's structure, which owns it; `next` is used while the job waits. */
struct srv_job {
    struct srv_job *next;
    double cost_ns; /* estimate */
    void (*run)(struct srv_job *job);
};

/* Starts threads for `n` large jobs at once or as many huge ones, a quarter more for both, and one for probes; false if
 * one cannot be started. */
bool srv_jobs_start(size_t n);

/* Queues the job, which another thread runs: the most urgent kind first, each in order. NULL, or why it is refused: as many
 * jobs of the kind wait already as `n` threads do in 10 s, or 1,000. */
const char *srv_jobs_add(enum srv_queue which, struct srv_job *job);

/* Number of jobs that wait or run. */
size_t srv_jobs_pending(void);

/* Waits until all jobs have run, then ends the threads. */
void srv_jobs_stop(void);
