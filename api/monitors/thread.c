/* The thread that owns the store. Jobs that wait share a transaction, and so share one wait for the disk. Small jobs
 * and large ones take turns: a job waits for at most one transaction of the other size. */
#include "api/monitors/monitors.h"

#include "api/monitors/batch.h"
#include "api/monitors/silence.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/text/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* MAX_WAITING: jobs that wait at most. MAX_COUNTS: counts that one transaction writes, which takes some 20 ms; a job
 * that has more is written alone. LARGE: counts of a large job. */
enum { MAX_WAITING = 4000, MAX_COUNTS = 16000, LARGE = 4000 };

/* ---- The queue */

/* The queue whose turn it is: that of small jobs, unless small jobs had the last turn and large ones wait. */
static struct api_lane *next_lane(struct api_monitors *monitors)
{
    bool is_large = monitors->large.first && (!monitors->small.first || !monitors->was_large);
    monitors->was_large = is_large;
    return is_large ? &monitors->large : &monitors->small;
}

/* Takes all probes that wait. */
static struct api_store_job *take_probes(struct api_monitors *monitors)
{
    struct api_store_job *first = monitors->probes.first;
    monitors->probes.first = NULL;
    return first;
}

/* True if two jobs need different transactions: only those that say which monitors they change go on beside other servers. */
static bool is_of_other_kind(const struct api_monitors *monitors, const struct api_store_job *a,
                             const struct api_store_job *b)
{
    return api_store_is_shared(monitors->store) && (a->n_touches > 0) != (b->n_touches > 0);
}

/* Takes jobs that wait: an exclusive one, or others, concurrent or not, up to API_MAX_BATCH and MAX_COUNTS. */
static struct api_store_job *take(struct api_monitors *monitors)
{
    struct api_lane *lane = next_lane(monitors);
    struct api_store_job *first = lane->first, *end = first;
    size_t n = 1;
    if (!first)
        return NULL;
    for (size_t counts = first->counts; !first->exclusive && end->next && !end->next->exclusive;
         n++) {
        counts += end->next->counts;
        if (n == API_MAX_BATCH || counts > MAX_COUNTS ||
            is_of_other_kind(monitors, first, end->next))
            break;
        end = end->next;
    }
    lane->first = end->next;
    monitors->waiting -= n;
    end->next = NULL;
    return first;
}

/* ---- Maintenance: work between requests */

/* MAX_KEYS: idempotency keys that are kept for a day. MAX_DUE: monitors whose windows one
 * transaction closes. */
enum { MAX_KEYS = 1000000, MAX_DUE = 100 };

/* True once a minute, and after the clock has gone back. */
static bool keys_are_due(const struct api_monitors *monitors, int64_t now)
{
    return now >= monitors->keys_pruned + API_MINUTE_US || now < monitors->keys_pruned;
}

static bool prune_keys(struct api_monitors *monitors)
{
    int64_t keys = 0;
    if (!keys_are_due(monitors, monitors->now))
        return true;
    if (!api_store_run(monitors->store, API_SQL_KEYS_PRUNE, API_ROW(monitors->now - API_DAY_US)) ||
        !api_store_number(monitors->store, API_SQL_KEYS_COUNT, NULL, &keys))
        return false;
    if (keys > MAX_KEYS &&
        !api_store_run(monitors->store, API_SQL_KEYS_TRIM, API_ROW(keys - MAX_KEYS)))
        return false;
    monitors->keys_pruned = monitors->now;
    return true;
}

/* Writes a page of the store and restores it. It changes the value, because SQLite writes no page for a row that is
 * set to the value it has. */
static bool probe(struct api_monitors *monitors)
{
    return api_store_run(monitors->store, API_SQL_PROBE, API_ROW(1)) &&
           api_store_run(monitors->store, API_SQL_PROBE, API_ROW(-1));
}

/* Closes windows that are due; those of a monitor that cannot be read are not. */
static bool close_due(struct api_monitors *monitors, const int64_t *ids, size_t n)
{
    for (size_t i = 0; i < n && !api_touch_exceeds(monitors); i++) {
        struct api_monitor *monitor;
        if (!api_touch(monitors, ids[i], NULL, &monitor) ||
            !(monitor ? api_close_open(monitors, monitor, true)
                      : api_store_run(monitors->store, API_SQL_MONITOR_SET_ASIDE, API_ROW(ids[i]))))
            return false;
    }
    return true;
}

static bool close_windows(struct api_monitors *monitors)
{
    struct api_buffer ids = {.size = 0};
    if (monitors->next_close > monitors->now && !api_store_is_shared(monitors->store))
        return true;
    bool good =
        api_read_ids(monitors, API_SQL_MONITORS_DUE, API_ROW(monitors->now, MAX_DUE), &ids) &&
        close_due(monitors, (const void *)ids.data, ids.size / sizeof(int64_t)) &&
        api_flush(monitors) &&
        api_store_number(monitors->store, API_SQL_NEXT_CLOSE, NULL, &monitors->next_close);
    api_buffer_free(&ids);
    return good;
}

/* Closes windows that are due, deletes rows that are past retention or of deleted monitors, and finds out whether the
 * store can be written. */
static bool maintain(struct api_monitors *monitors)
{
    return (atomic_load(&monitors->stored) || probe(monitors)) && close_windows(monitors) &&
           (!api_silence_is_due(monitors, monitors->now) || api_silence_watch(monitors)) &&
           prune_keys(monitors) && api_gc(monitors) && api_flush(monitors);
}

static bool is_maintenance_due(const struct api_monitors *monitors)
{
    int64_t now = api_now();
    return api_gc_is_unfinished(monitors) || monitors->next_close <= now ||
           keys_are_due(monitors, now) || api_silence_is_due(monitors, now) ||
           api_store_is_shared(monitors->store);
}

/* ---- The thread */

/* pause_s: seconds between two rounds of maintenance, unless a window is due. */
static const double pause_s = 0.5;

/* Time, in microseconds, until there is something to do; at most the pause, for clocks jump. */
static int64_t idle_time(const struct api_monitors *monitors, double since)
{
    int64_t now = api_now(), next = now + (int64_t)(pause_s * 1e6);
    if (monitors->backoff)
        return since < pause_s ? (int64_t)((pause_s - since) * 1e6) : 0;
    if (api_gc_is_unfinished(monitors) || monitors->shrink_unfinished)
        return 0;
    if (monitors->next_close < next)
        next = monitors->next_close;
    return next > now ? next - now : 0;
}

/* Closes windows as soon as they are due, unless the store or memory failed at the last attempt. The clock of windows
 * may jump; the clock of that pause does not. */
static void run_maintenance(struct api_monitors *monitors, double *last, bool is_idle)
{
    double now = api_seconds();
    if (now - *last < pause_s && (monitors->backoff || !is_idle))
        return;
    *last = now;
    bool down = !atomic_load(&monitors->stored) || !api_store_is_in_place(monitors->store);
    monitors->backoff =
        (is_maintenance_due(monitors) || down) && !api_transact(monitors, NULL, maintain);
    bool up = atomic_load(&monitors->stored);
    monitors->shrink_unfinished = up && api_store_shrink(monitors->store);
    if (up && monitors->log_has_deleted && !monitors->has_orphans)
        monitors->log_has_deleted = !api_store_empty_log(monitors->store);
}

static struct api_store_job *wait_for_jobs(struct api_monitors *monitors, int64_t idle)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanos = until.tv_nsec + idle * 1000;
    until.tv_sec += nanos / 1000000000;
    until.tv_nsec = nanos % 1000000000;
    if (monitors->waiting == 0 && !monitors->probes.first && !monitors->stopping)
        pthread_cond_timedwait(&monitors->wake, &monitors->lock, &until);
    return monitors->probes.first ? take_probes(monitors) : take(monitors);
}

static void *work_on(void *argument)
{
    struct api_monitors *monitors = argument;
    double last_upkeep = 0;
    for (;;) {
        int64_t idle = idle_time(monitors, api_seconds() - last_upkeep);
        pthread_mutex_lock(&monitors->lock);
        struct api_store_job *jobs = wait_for_jobs(monitors, idle);
        bool stopping = monitors->stopping && !jobs;
        pthread_mutex_unlock(&monitors->lock);
        if (stopping)
            return NULL;
        if (jobs)
            api_batch_run(monitors, jobs);
        run_maintenance(monitors, &last_upkeep, !jobs);
    }
}

/* PROBE_MS: milliseconds for which a probe waits at most; then it is answered without the store, which may hang. */
enum { PROBE_MS = 1000 };

/* Ends probes once the first of them has waited for too long. */
static void *time_probes(void *argument)
{
    struct api_monitors *monitors = argument;
    pthread_mutex_lock(&monitors->lock);
    while (!monitors->stopping) {
        struct timespec until;
        uint64_t turn = monitors->probe_turn;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PROBE_MS / 1000;
        if (!monitors->probes.first) {
            pthread_cond_wait(&monitors->probe, &monitors->lock);
            continue;
        }
        int result = pthread_cond_timedwait(&monitors->probe, &monitors->lock, &until);
        if (result != ETIMEDOUT || turn != monitors->probe_turn || !monitors->probes.first)
            continue;
        struct api_store_job *jobs = take_probes(monitors);
        pthread_mutex_unlock(&monitors->lock);
        api_batch_refuse(jobs);
        pthread_mutex_lock(&monitors->lock);
    }
    pthread_mutex_unlock(&monitors->lock);
    return NULL;
}

bool api_monitors_start(struct api_monitors *monitors,
                        void (*log)(bool is_failure, const char *sentence))
{
    monitors->log = log;
    monitors->stopping = false;
    for (size_t at = 0; log && at < monitors->load_errors.size;
         at += strlen(monitors->load_errors.data + at) + 1)
        log(true, monitors->load_errors.data + at);
    api_buffer_free(&monitors->load_errors);
    monitors->started = pthread_create(&monitors->thread, NULL, work_on, monitors) == 0;
    monitors->times_probes =
        monitors->started && pthread_create(&monitors->timer, NULL, time_probes, monitors) == 0;
    return monitors->times_probes;
}

void api_monitors_stop(struct api_monitors *monitors)
{
    if (!monitors || !monitors->started)
        return;
    pthread_mutex_lock(&monitors->lock);
    monitors->stopping = true;
    pthread_cond_signal(&monitors->wake);
    pthread_cond_signal(&monitors->probe);
    pthread_mutex_unlock(&monitors->lock);
    pthread_join(monitors->thread, NULL);
    if (monitors->times_probes)
        pthread_join(monitors->timer, NULL);
    monitors->started = monitors->times_probes = false;
}

bool api_monitors_submit(struct api_monitors *monitors, struct api_store_job *job)
{
    job->next = NULL;
    job->done = false;
    struct api_lane *lane = job->is_probe         ? &monitors->probes
                            : job->counts > LARGE ? &monitors->large
                                                  : &monitors->small;
    pthread_mutex_lock(&monitors->lock);
    bool good = monitors->waiting < MAX_WAITING || job->is_probe, is_first = !lane->first;
    if (good) {
        *(is_first ? &lane->first : &lane->last->next) = job;
        lane->last = job;
        if (job->is_probe ? is_first : monitors->waiting++ == 0)
            pthread_cond_signal(&monitors->wake);
        if (job->is_probe && is_first) {
            monitors->probe_turn++;
            pthread_cond_signal(&monitors->probe);
        }
    }
    pthread_mutex_unlock(&monitors->lock);
    return good;
}
