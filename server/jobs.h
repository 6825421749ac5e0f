/* Threads for requests too large to be answered on a network thread. */
#ifndef KLDIV_SERVER_JOBS_H
#define KLDIV_SERVER_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/* Part of what is to be done, owned by who does it; linked while it waits. */
struct srv_job {
    struct srv_job *next;
    void (*run)(struct srv_job *job);
};

bool srv_jobs_start(size_t threads);

/* Runs the job later, on another thread; in turn. */
void srv_jobs_add(struct srv_job *job);

/* How many wait or run. */
size_t srv_jobs_pending(void);

/* Waits until all have run, and ends the threads. */
void srv_jobs_stop(void);

#endif
