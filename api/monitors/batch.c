#include "api/monitors/batch.h"

#include "api/monitors/rows/touch.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/status.h"
#include "api/notify/notifier.h"

#include <pthread.h>
#include <stdio.h>
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

/* ---- Transactions */

static bool run_jobs(struct api_monitors *monitors, struct api_store_job *jobs)
{
    for (struct api_store_job *job = jobs; job; job = job->next) {
        job->problem->code = NULL;
        monitors->trace = job->x ? &job->x->trace : NULL;
        bool good = !job->run || job->run(job, monitors) || job->problem->code;
        monitors->trace = NULL;
        if (!good)
            return false;
    }
    if (!api_flush(monitors))
        return false;
    for (struct api_store_job *job = jobs; job; job = job->next)
        if (job->read_back && !job->problem->code && !job->read_back(job, monitors) &&
            !job->problem->code)
            return false;
    return true;
}

/* True if memory was what failed, so that the failure says nothing of the store. */
static bool is_oom(const struct api_monitors *monitors)
{
    return monitors->out_of_memory || api_store_last(monitors->store)->out_of_memory;
}

/* Tells once that the store fails, and once that it works again. A transaction that only read does not
 * show that the store can be written. */
static void note(struct api_monitors *monitors, bool good)
{
    char sentence[400];
    pthread_mutex_lock(&monitors->lock);
    if (good)
        monitors->outage.since = 0;
    else
        api_outage_note(&monitors->outage, monitors->now, api_store_reason(monitors->store));
    pthread_mutex_unlock(&monitors->lock);
    if (atomic_exchange(&monitors->stored, good) == good || !monitors->log)
        return;
    if (good)
        snprintf(sentence, sizeof sentence, "the store works again");
    else
        snprintf(sentence, sizeof sentence, "the store cannot be written: %s",
                 api_store_reason(monitors->store));
    monitors->log(!good, sentence);
}

/* Writes what rows of an older schema lack, and their settings as they are written now. */
static bool fill(struct api_monitors *monitors)
{
    enum { AT_ONCE = 100 };
    for (struct api_buffer ids = {.size = 0};; ids.size = 0) {
        struct api_monitor *monitor;
        bool good = api_read_ids(monitors, API_SQL_MONITORS_UNFILLED, API_ROW(AT_ONCE), &ids);
        size_t n = ids.size / sizeof(int64_t);
        for (size_t i = 0; good && i < n; i++) {
            int64_t id = ((const int64_t *)(const void *)ids.data)[i];
            good = api_touch(monitors, id, NULL, &monitor);
            if (good && !monitor)
                good = api_store_run(monitors->store, API_SQL_MONITOR_SET_ASIDE, API_ROW(id));
            if (!good || !monitor)
                continue;
            api_touch_all(monitor);
            good = api_status_read(monitors, monitor) && api_touch_write(monitors, monitor) &&
                   api_store_run(monitors->store, API_SQL_MONITOR_SETTINGS,
                                 API_ROW(monitor->config->others, id)) &&
                   api_store_run(monitors->store, API_SQL_REVISION_SET,
                                 API_ROW(monitor->config->definition, id, monitor->revision));
            if (api_touch_exceeds(monitors))
                api_touch_forget(monitors);
        }
        api_touch_forget(monitors);
        if (good && n > 0)
            continue;
        api_buffer_free(&ids);
        return good;
    }
}

/* Begins a transaction. After a new connection, which may be to another copy of the database that lacks the last transactions,
 * nothing that is in memory holds. */
static bool begin(struct api_monitors *monitors, bool is_beside)
{
    struct api_store *store = monitors->store;
    is_beside &= atomic_load(&monitors->loaded);
    monitors->out_of_memory = monitors->has_news = false;
    monitors->now = api_now();
    if (!api_store_begin(store, is_beside) ||
        (api_store_is_shared(store) && !is_beside && !api_read_schema(monitors)))
        return false;
    if (!atomic_load(&monitors->loaded) || api_store_last(store)->is_new) {
        api_touch_forget(monitors);
        api_known_forget(&monitors->known, NULL);
        monitors->has_orphans = monitors->looks_for_silence = true;
        monitors->log_has_deleted |= api_store_had_log(store);
        monitors->gc_from = monitors->next_close = -1;
        size_t n = 0;
        if (!api_check_all(monitors, &n) || !fill(monitors))
            return false;
        atomic_store(&monitors->n_at_start, n);
    }
    return api_note_size(monitors);
}

/* Ends a transaction that was committed, or rolled back. */
static void end(struct api_monitors *monitors, bool is_committed)
{
    api_touch_end(monitors, is_committed);
    if (is_committed) {
        atomic_store(&monitors->loaded, true);
        return;
    }
    monitors->has_orphans = monitors->looks_for_silence = true;
    monitors->gc_from = monitors->next_close = -1;
}

/* True if the transaction of one job alone has a problem: nothing of it is stored. */
static bool is_refused(const struct api_store_job *jobs)
{
    return jobs && jobs->exclusive && jobs->problem->code;
}

/* True if jobs say which monitors they change. */
static bool is_all_of_touches(const struct api_store_job *jobs)
{
    for (; jobs; jobs = jobs->next)
        if (jobs->n_touches == 0)
            return false;
    return true;
}

bool api_transact(struct api_monitors *monitors, struct api_store_job *jobs,
                  bool (*upkeep)(struct api_monitors *monitors))
{
    double start = api_seconds();
    bool is_beside = jobs && !jobs->exclusive && is_all_of_touches(jobs);
    bool began =
        begin(monitors, is_beside) &&
        (!is_beside || !api_store_is_shared(monitors->store) || api_touch_jobs(monitors, jobs));
    bool ran = began && (upkeep ? upkeep(monitors) : run_jobs(monitors, jobs));
    api_store_metrics_add(&monitors->store_metrics, API_OPERATION_WRITE, start, ran);
    if (ran && is_refused(jobs)) {
        api_store_rollback(monitors->store);
        api_touch_end(monitors, false);
        return true;
    }
    start = api_seconds();
    bool good = ran && api_store_commit(monitors->store);
    if (ran)
        api_store_metrics_add(&monitors->store_metrics, API_OPERATION_COMMIT, start, good);
    if (good ? api_store_last(monitors->store)->has_written : !is_oom(monitors))
        note(monitors, good);
    if (good && monitors->has_news)
        api_notifier_wake(monitors->notifier);
    if (!good)
        api_store_rollback(monitors->store);
    end(monitors, good);
    return good;
}

/* Fails jobs whose transaction failed; `is_uncertain`: its commit may have been done. */
static void fail_jobs(const struct api_monitors *monitors, struct api_store_job *jobs,
                      bool is_uncertain)
{
    for (struct api_store_job *job = jobs; job; job = job->next) {
        job->problem->code = NULL;
        if (is_oom(monitors))
            api_fail_oom(job->problem);
        else if (is_uncertain)
            api_fail(job->problem, "store_unavailable",
                     "the connection to the store was lost during the commit, so the request may "
                     "or may not be stored; with an Idempotency-Key it can be repeated");
        else
            api_fail(job->problem, "store_unavailable",
                     "the store cannot be written now, and nothing was stored; try again");
    }
}

void api_batch_refuse(struct api_store_job *jobs)
{
    for (struct api_store_job *job = jobs; job; job = job->next)
        api_fail(job->problem, "store_unavailable", "the store does not answer");
    finish(jobs);
}

/* ---- Jobs one by one */

/* Runs each job by itself, until the store is lost. */
static void run_singly(struct api_monitors *monitors, struct api_store_job *jobs)
{
    bool is_lost = false;
    for (struct api_store_job *job = jobs, *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        if (is_lost) {
            fail_jobs(monitors, job, false);
        } else if (!api_transact(monitors, job, NULL)) {
            is_lost = api_store_last(monitors->store)->is_lost;
            fail_jobs(monitors, job, api_store_last(monitors->store)->is_uncertain);
        }
        job->next = next;
    }
}

/* Runs jobs in one transaction. If that fails, runs each job by itself, so that one does not fail the others; but not
 * if the commit may have been done, because observations would then count twice. */
void api_batch_run(struct api_monitors *monitors, struct api_store_job *jobs)
{
    bool good = api_transact(monitors, jobs, NULL);
    bool is_uncertain = !good && api_store_last(monitors->store)->is_uncertain;
    if (!good && jobs->next && !is_uncertain)
        run_singly(monitors, jobs);
    else if (!good)
        fail_jobs(monitors, jobs, is_uncertain);
    finish(jobs);
}
