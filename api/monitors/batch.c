#include "api/monitors/batch.h"

#include "api/monitors/state/close.h"
#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/others.h"
#include "api/monitors/state/replace.h"
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

/* ---- After a commit */

/* Keeps the open window that was added to last, because the next observations will most likely be for it. If another
 * server adds to it, api_pending_of reads it again. */
static void cache_open(struct api_pending_monitor *pending)
{
    struct api_monitor *monitor = pending->monitor;
    api_snapshot_release(monitor->open);
    monitor->open = NULL;
    for (const struct api_dirty_window *t = pending->windows; t; t = t->next) {
        if (t->snapshot->window.closed)
            continue;
        api_snapshot_release(monitor->open);
        monitor->open = t->snapshot;
        atomic_fetch_add(&monitor->open->refcount, 1);
    }
}

/* Publishes what was committed to the other threads. */
static void publish(struct api_monitors *monitors, struct api_store_job *jobs)
{
    pthread_rwlock_wrlock(&monitors->registry.lock);
    for (struct api_pending_monitor *pending = monitors->staged; pending; pending = pending->next) {
        struct api_pool *pool = pending->monitor->pool;
        pending->monitor->status = pending->status;
        pending->monitor->epoch = monitors->epoch;
        pending->monitor->pool = pending->pool;
        pending->pool = pool;
        cache_open(pending);
        if (pending->status.next_close < monitors->next_close)
            monitors->next_close = pending->status.next_close;
    }
    for (struct api_store_job *job = jobs; job; job = job->next)
        if (job->publish && !job->problem->code)
            job->publish(job, monitors);
    if (monitors->mutes.is_read)
        api_named_move(&monitors->registry.mutes, &monitors->mutes, monitors->budget);
    pthread_rwlock_unlock(&monitors->registry.lock);
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

/* kept: what the thread's steps change beside staged monitors, as it was before a transaction. */
struct kept {
    size_t n_tombstones;
    int64_t keys, keys_pruned;
};

/* Restores it after a failure. Monitors may have been marked as collected that are not. */
static void restore(struct api_monitors *monitors, const struct kept *kept)
{
    monitors->n_tombstones = kept->n_tombstones;
    monitors->keys = kept->keys;
    monitors->keys_pruned = kept->keys_pruned;
    for (size_t i = 0; i < monitors->registry.n; i++)
        monitors->registry.monitors[i]->may_have_expired = true;
}

bool api_transact(struct api_monitors *monitors, struct api_store_job *jobs,
                  bool (*upkeep)(struct api_monitors *monitors))
{
    const struct kept kept = {monitors->n_tombstones, monitors->keys, monitors->keys_pruned};
    double start = api_seconds();
    monitors->out_of_memory = monitors->has_news = false;
    monitors->now = api_now();
    bool began = api_store_begin(monitors->store) && api_load(monitors) && api_note_size(monitors);
    bool ran = began &&
               (upkeep ? upkeep(monitors) && api_flush(monitors) : run_jobs(monitors, jobs)) &&
               api_change_store(monitors) && api_others_write(monitors);
    api_store_metrics_add(&monitors->store_metrics, API_OPERATION_WRITE, start, ran);
    start = api_seconds();
    bool good = ran && api_store_commit(monitors->store);
    if (ran)
        api_store_metrics_add(&monitors->store_metrics, API_OPERATION_COMMIT, start, good);
    api_change_end(monitors, good);
    api_others_end(monitors, good);
    if (good ? api_store_last(monitors->store)->has_written : !is_oom(monitors))
        note(monitors, good);
    if (good) {
        publish(monitors, jobs);
        if (monitors->has_news)
            monitors->notifier->wake();
    } else {
        api_store_rollback(monitors->store);
        restore(monitors, &kept);
    }
    api_buffer_free(&monitors->mutes.list);
    monitors->mutes.is_read = false;
    while (monitors->staged)
        api_pending_drop(monitors);
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
