#include "api/monitors/batch.h"

#include "api/monitors/transact.h"
#include "api/text/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The end of a job */

/* Hosts without `resume` block until a job is done. */
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_wake = PTHREAD_COND_INITIALIZER;

void api_store_job_finish(struct api_store_job *job)
{
    struct api_exchange *x = job->x;
    if (x && x->resume) {
        job->done = true;
        x->resume(x);
        return;
    }
    pthread_mutex_lock(&done_lock);
    job->done = true;
    pthread_cond_broadcast(&done_wake);
    pthread_mutex_unlock(&done_lock);
}

void api_store_job_wait(const struct api_store_job *job)
{
    pthread_mutex_lock(&done_lock);
    while (!job->done)
        pthread_cond_wait(&done_wake, &done_lock);
    pthread_mutex_unlock(&done_lock);
}

static void finish(struct api_store_job *jobs)
{
    for (struct api_store_job *job = jobs, *next; job; job = next) {
        next = job->next; /* the job may be freed once it is done */
        api_store_job_finish(job);
    }
}

/* Runs each job by itself, until the store is lost. */
static void run_singly(struct api_monitors *monitors, struct api_store_job *jobs,
                       bool is_concurrent)
{
    bool is_lost = false;
    for (struct api_store_job *job = jobs, *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        if (is_lost) {
            api_fail_jobs(monitors, job, false);
        } else if (!api_transact(monitors, job, NULL, is_concurrent)) {
            is_lost = api_store_last(monitors->store)->is_lost;
            api_fail_jobs(monitors, job, api_store_last(monitors->store)->is_uncertain);
        }
        job->next = next;
    }
}

/* ---- Beside other servers, on a store that they share: the concurrent jobs of a batch are one transaction. Jobs
 * that it cannot do are deferred, and run in another transaction, alone */

/* Takes the jobs that are deferred out of a list, in their order. */
static struct api_store_job *take_deferred(struct api_store_job **jobs)
{
    struct api_store_job *deferred = NULL, **last = &deferred, **at = jobs;
    while (*at) {
        if (!(*at)->is_deferred) {
            at = &(*at)->next;
            continue;
        }
        *last = *at;
        last = &(*last)->next;
        *at = *last = (*at)->next;
        *last = NULL;
    }
    return deferred;
}

static int compare_keys(const void *a, const void *b)
{
    const struct api_store_job *first = *(struct api_store_job *const *)a,
                               *second = *(struct api_store_job *const *)b;
    if (!first->key || !second->key)
        return (first->key != NULL) - (second->key != NULL);
    return memcmp(first->key, second->key, API_HASH);
}

/* Sorts at most API_MAX_BATCH jobs by their keys: servers that claimed some of the same keys in different orders would wait
 * for one another. */
static struct api_store_job *sort_by_key(struct api_store_job *jobs)
{
    struct api_store_job *sorted[API_MAX_BATCH] = {jobs};
    size_t n = 0;
    for (struct api_store_job *job = jobs; job; job = job->next)
        sorted[n++] = job;
    qsort(sorted, n, sizeof *sorted, compare_keys);
    for (size_t i = 0; i < n; i++)
        sorted[i]->next = i + 1 < n ? sorted[i + 1] : NULL;
    return sorted[0];
}

/* ---- Batches */

/* Runs jobs in one transaction. If that fails, runs each job by itself, so that one does not fail the others; but not
 * if the commit may have been done, because observations would then count twice. Returns the deferred jobs. */
static struct api_store_job *run_together(struct api_monitors *monitors, struct api_store_job *jobs,
                                          bool is_concurrent)
{
    bool good = api_transact(monitors, jobs, NULL, is_concurrent);
    bool is_uncertain = !good && api_store_last(monitors->store)->is_uncertain;
    if (!good && jobs->next && !is_uncertain)
        run_singly(monitors, jobs, is_concurrent);
    else if (!good)
        api_fail_jobs(monitors, jobs, is_uncertain);
    struct api_store_job *deferred = take_deferred(&jobs);
    finish(jobs);
    return deferred;
}

/* Runs jobs, beside those of other servers if they can. */
void api_batch_run(struct api_monitors *monitors, struct api_store_job *jobs)
{
    if (jobs->is_concurrent && api_store_is_shared(monitors->store))
        jobs = run_together(monitors, sort_by_key(jobs), true);
    if (jobs)
        run_together(monitors, jobs, false);
}
