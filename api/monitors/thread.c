/* The thread that owns the store. Jobs that wait share a transaction, and so share one wait for the disk. Small jobs
 * and large ones take turns: a job waits for at most one transaction of the other size. */
#include "api/monitors/monitors.h"

#include "api/monitors/batch.h"
#include "api/monitors/silence.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/others.h"
#include "api/monitors/state/replace.h"
#include "api/text/clock.h"

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
        if (n == API_MAX_BATCH || counts > MAX_COUNTS)
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
    return now >= monitors->keys_pruned + API_MINUTE_US || now < monitors->keys_pruned ||
           monitors->keys > MAX_KEYS;
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
    monitors->keys = keys > MAX_KEYS ? MAX_KEYS : keys;
    monitors->keys_pruned = monitors->now;
    return true;
}

/* Reads what other servers have counted, before a monitor is reported as stale: others may have observed it. */
static bool learn_before_reporting(struct api_monitors *monitors)
{
    if (monitors->learned == monitors->epoch || !api_silence_is_due(monitors))
        return true;
    monitors->next_learning = 0;
    return api_others_learn(monitors);
}

/* Writes a page of the store and restores it. It changes the value, because SQLite writes no page for a row that is
 * set to the value it has. */
static bool probe(struct api_monitors *monitors)
{
    return api_store_run(monitors->store, API_SQL_PROBE, API_ROW(1)) &&
           api_store_run(monitors->store, API_SQL_PROBE, API_ROW(-1));
}

/* True if the last observation of a monitor came when the clock was ahead by more than servers' clocks differ. */
static bool was_seen_ahead(const struct api_monitor *monitor, int64_t now)
{
    return monitor->status.last_observation > now + API_MINUTE_US;
}

/* Has silence count from now on. */
static bool see_now(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (pending)
        api_monitor_see(monitor, &pending->status, monitors->now, monitors->now);
    return pending;
}

/* Closes windows that are due, deletes rows that are past retention or of deleted monitors, and finds out whether the
 * store can be written. */
static bool maintain(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    size_t due = 0;
    if ((!atomic_load(&monitors->stored) && !probe(monitors)) || !learn_before_reporting(monitors))
        return false;
    for (size_t i = 0; i < registry->n && due < MAX_DUE; i++) {
        struct api_monitor *monitor = registry->monitors[i];
        bool closes = monitor->status.next_close <= monitors->now,
             is_ahead = was_seen_ahead(monitor, monitors->now);
        if ((closes && !api_close_open(monitors, monitor, true)) ||
            (is_ahead && !see_now(monitors, monitor)))
            return false;
        due += closes || is_ahead;
    }
    return api_mutes_end(monitors) && api_silence_watch(monitors) && prune_keys(monitors) &&
           api_gc(monitors);
}

/* True if there is something to do now. Finds when the next window is due. */
static bool is_maintenance_due(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    int64_t now = api_now();
    bool gc_unfinished = monitors->n_tombstones > 0, is_ahead = false;
    monitors->next_close = INT64_MAX;
    for (size_t i = 0; i < registry->n; i++) {
        const struct api_monitor *monitor = registry->monitors[i];
        gc_unfinished |= monitor->may_have_expired;
        is_ahead |= was_seen_ahead(monitor, now);
        if (monitor->status.next_close < monitors->next_close)
            monitors->next_close = monitor->status.next_close;
    }
    return gc_unfinished || is_ahead || monitors->next_close <= now ||
           keys_are_due(monitors, now) || api_mutes_are_due(registry) ||
           api_silence_is_due(monitors);
}

/* ---- The thread */

/* pause_s: seconds between two rounds of maintenance, unless a window is due: what other servers count is known
 * within a second. */
static const double pause_s = 0.5;

/* Time, in microseconds, until there is something to do; at most the pause, for clocks jump. */
static int64_t idle_time(const struct api_monitors *monitors, double since)
{
    int64_t now = api_now(), next = now + (int64_t)(pause_s * 1e6);
    if (monitors->backoff)
        return since < pause_s ? (int64_t)((pause_s - since) * 1e6) : 0;
    if (monitors->gc_unfinished || monitors->shrink_unfinished)
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
    monitors->backoff = !down && api_store_is_shared(monitors->store) &&
                        !api_transact(monitors, NULL, api_others_learn);
    if (monitors->backoff)
        return;
    monitors->backoff =
        (is_maintenance_due(monitors) || down) && !api_transact(monitors, NULL, maintain);
    bool up = atomic_load(&monitors->stored);
    monitors->shrink_unfinished = up && api_store_shrink(monitors->store);
    if (up && monitors->log_has_deleted && monitors->n_tombstones == 0)
        monitors->log_has_deleted = !api_store_empty_log(monitors->store);
}

static struct api_store_job *wait_for_jobs(struct api_monitors *monitors, int64_t idle)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanos = until.tv_nsec + idle * 1000;
    until.tv_sec += nanos / 1000000000;
    until.tv_nsec = nanos % 1000000000;
    if (monitors->waiting == 0 && !monitors->stopping)
        pthread_cond_timedwait(&monitors->wake, &monitors->lock, &until);
    return take(monitors);
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

bool api_monitors_start(struct api_monitors *monitors,
                        void (*log)(bool is_failure, const char *sentence))
{
    monitors->log = log;
    monitors->stopping = false;
    api_load_tell(monitors);
    monitors->started = pthread_create(&monitors->thread, NULL, work_on, monitors) == 0;
    return monitors->started;
}

void api_monitors_stop(struct api_monitors *monitors)
{
    if (!monitors || !monitors->started)
        return;
    pthread_mutex_lock(&monitors->lock);
    monitors->stopping = true;
    pthread_cond_signal(&monitors->wake);
    pthread_mutex_unlock(&monitors->lock);
    pthread_join(monitors->thread, NULL);
    monitors->started = false;
}

bool api_monitors_submit(struct api_monitors *monitors, struct api_store_job *job)
{
    job->next = NULL;
    job->done = false;
    struct api_lane *lane = job->counts > LARGE ? &monitors->large : &monitors->small;
    pthread_mutex_lock(&monitors->lock);
    bool good = monitors->waiting < MAX_WAITING;
    if (good) {
        if (lane->first)
            lane->last->next = job;
        else
            lane->first = job;
        lane->last = job;
        if (monitors->waiting++ == 0)
            pthread_cond_signal(&monitors->wake);
    }
    pthread_mutex_unlock(&monitors->lock);
    return good;
}
