/* Threads for requests too large to be answered on a network thread. */
#ifndef KLDIV_SERVER_JOBS_H
#define KLDIV_SERVER_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/* Each lane has threads and a queue of its own, so that a few huge requests do not hold up the
 * merely large ones. */
enum srv_lane { SRV_LARGE, SRV_HUGE };
#define SRV_LANES 2

/* Part of what is to be done, owned by who does it; linked while it waits. */
struct srv_job {
    struct srv_job *next;
    void (*run)(struct srv_job *job);
};

/* False if a thread cannot be had. */
bool srv_jobs_start(size_t threads_of_each_lane);

/* Runs the job later, on another thread; in turn. */
void srv_jobs_add(enum srv_lane lane, struct srv_job *job);

/* How many wait or run. */
size_t srv_jobs_pending(void);

/* Waits until all have run, and ends the threads. */
void srv_jobs_stop(void);

#endif
