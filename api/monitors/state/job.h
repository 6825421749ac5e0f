/* api_work: what a request has the store's thread do. */
#ifndef KLDIV_API_MONITORS_STATE_JOB_H
#define KLDIV_API_MONITORS_STATE_JOB_H

#include "api/problem.h"

struct api_exchange;
struct api_monitors;

/* api_work: begins the structure of each kind of work. The thread calls `run` within a transaction,
 * `collect` when all works have run and their observations are written, `publish` after the commit;
 * each may be NULL. False from run or collect with a problem is the request's, by which run must have
 * written nothing; without one the store or memory failed. A work may run again, after its transaction
 * failed. */
struct api_work {
    struct api_work *next;
    bool alone;    /* has a transaction of its own: it changes what others see */
    size_t counts; /* that it writes, about; one of many waits for those of few */
    bool (*run)(struct api_work *work, struct api_monitors *monitors);
    bool (*collect)(struct api_work *work, struct api_monitors *monitors);
    void (*publish)(struct api_work *work, struct api_monitors *monitors);
    struct api_problem problem;
    struct api_exchange *x; /* told at the end */
    bool done;
};

#endif
