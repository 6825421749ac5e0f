/* api_store_job: what a request, or the host, has the store's thread do. */
#pragma once

#include "api/json/problem.h"

struct api_exchange;
struct api_known;
struct api_monitors;

/* The thread calls `run` within a transaction, `read_back` when all jobs have run and their observations are written; each may
 * be NULL.
 *
 * If run or read_back returns false with a problem, the request has failed; run must then have written nothing, unless it is
 * exclusive: then nothing is stored. If it
 * returns false without a problem, the store or memory has failed. A job may run again after its transaction failed. */
struct api_store_job {
    struct api_store_job *next;
    bool is_probe;                    /* is taken however many wait */
    bool exclusive;                   /* has a transaction of its own: it changes what others see */
    const unsigned char *key;         /* API_HASH bytes of an Idempotency-Key; NULL: none */
    const struct api_known **touches; /* monitors that it changes, in any order ... */
    size_t n_touches;                 /* ... if it is not exclusive */
    size_t counts; /* that it writes, about; one of many waits for those of few */
    bool (*run)(struct api_store_job *job, struct api_monitors *monitors);
    bool (*read_back)(struct api_store_job *job, struct api_monitors *monitors);
    struct api_problem *problem;
    struct api_exchange *x; /* whose `resume` is called at the end; NULL: somebody waits */
    bool done;
};
