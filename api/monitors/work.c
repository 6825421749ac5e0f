/* The thread that owns the store: works in groups, one transaction for each group. */
#include "api/monitors/work.h"

#include "api/clock.h"
#include "api/monitors/close.h"
#include "api/monitors/load.h"
#include "api/monitors/statistics.h"
#include "api/monitors/submit.h"
#include "api/monitors/upkeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* MOST_WAITING: works that wait at most. MOST_AT_ONCE: those of one transaction. MOST_COUNTS: counts that
 * one transaction writes, unless a single work has more: some 20 ms. LARGE: those of a large work. */
enum { MOST_WAITING = 4000, MOST_AT_ONCE = 256, MOST_COUNTS = 16000, LARGE = 4000 };

int64_t api_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool api_monitors_are_stored(const struct api_monitors *monitors)
{
    return atomic_load(&monitors->stored);
}

/* ---- Drafts */

static void free_draft(struct api_draft *draft)
{
    for (struct api_touched *t = draft->windows, *next; t; t = next) {
        next = t->next;
        api_view_release(t->view);
        free(t->added);
        free(t);
    }
    api_previous_free(&draft->previous);
    draft->monitor->draft = NULL;
    free(draft);
}

void api_draft_drop(struct api_monitors *monitors)
{
    struct api_draft *draft = monitors->drafts;
    monitors->drafts = draft->next;
    free_draft(draft);
}

static void drop_drafts(struct api_monitors *monitors)
{
    while (monitors->drafts)
        api_draft_drop(monitors);
}

/* Keeps the open window that was added to last, which the next observations will be for. If another server
 * adds to it, api_load lets it go. */
static void keep_open(struct api_draft *draft)
{
    struct api_monitor *monitor = draft->monitor;
    api_view_release(monitor->open);
    monitor->open = NULL;
    for (const struct api_touched *t = draft->windows; t; t = t->next) {
        if (t->view->window.closed)
            continue;
        api_view_release(monitor->open);
        monitor->open = t->view;
        atomic_fetch_add(&monitor->open->references, 1);
    }
}

/* Lets others see what was committed. */
static void publish(struct api_monitors *monitors, struct api_work *works)
{
    pthread_rwlock_wrlock(&monitors->registry.lock);
    for (struct api_draft *draft = monitors->drafts; draft; draft = draft->next) {
        draft->monitor->live = draft->live;
        keep_open(draft);
        if (draft->live.next_close < monitors->next_close)
            monitors->next_close = draft->live.next_close;
    }
    for (struct api_work *work = works; work; work = work->next)
        if (work->publish && !work->problem.code)
            work->publish(work, monitors);
    pthread_rwlock_unlock(&monitors->registry.lock);
}

/* ---- The size of the store */

/* Counts, for the budget, what a store in memory takes beyond OWN bytes; later, where requests have the
 * memory now. */
static void count_size(struct api_monitors *monitors, size_t size)
{
    enum { OWN = 1 << 20 };
    struct api_budget *budget = monitors->budget;
    size_t counted = monitors->counted, bytes = size > OWN ? size - OWN : 0;
    if (bytes < counted)
        api_budget_forget(budget, counted - bytes);
    if (bytes <= counted || api_budget_retain(budget, bytes - counted, true))
        monitors->counted = bytes;
    monitors->is_full =
        budget && budget->limit && atomic_load(&budget->retained) > budget->limit / 2;
}

bool api_note_size(struct api_monitors *monitors)
{
    int64_t bytes;
    if (!api_store_size(monitors->store, &bytes))
        return false;
    atomic_store(&monitors->size, bytes);
    if (api_store_is_in_memory(monitors->store))
        count_size(monitors, (size_t)bytes);
    return true;
}

bool api_check_store(const struct api_monitors *monitors, struct api_problem *problem)
{
    long long size = atomic_load(&monitors->size);
    if (monitors->is_full)
        return api_fail(problem, "store_full",
                        "the store in memory has %lld bytes, and with monitors may have half of "
                        "--max-memory; delete monitors, or have them keep windows for fewer days",
                        size);
    return monitors->max_store == 0 || size < monitors->max_store ||
           api_fail(
               problem, "store_full",
               "the store has %lld bytes, and --max-store is %lld; delete monitors, or have them "
               "keep windows for fewer days",
               size, (long long)monitors->max_store);
}

/* ---- Transactions */

static bool run_works(struct api_monitors *monitors, struct api_work *works)
{
    for (struct api_work *work = works; work; work = work->next) {
        work->problem.code = NULL;
        if (work->run && !work->run(work, monitors) && !work->problem.code)
            return false;
    }
    if (!api_flush(monitors))
        return false;
    for (struct api_work *work = works; work; work = work->next)
        if (work->collect && !work->problem.code && !work->collect(work, monitors) &&
            !work->problem.code)
            return false;
    return true;
}

/* True if what failed was memory, which says nothing of the store. */
static bool is_for_memory(const struct api_monitors *monitors)
{
    return monitors->out_of_memory || api_store_is_out_of_memory(monitors->store);
}

/* Tells once that the store fails, and once that it works again. A transaction that only read does not
 * show that the store can be written. */
static void note(struct api_monitors *monitors, bool good)
{
    char sentence[400];
    if (atomic_exchange(&monitors->stored, good) == good || !monitors->log)
        return;
    if (good)
        snprintf(sentence, sizeof sentence, "the store works again");
    else
        snprintf(sentence, sizeof sentence, "--store: the store cannot be written: %s",
                 api_store_reason(monitors->store));
    monitors->log(!good, sentence);
}

/* kept: what the thread's steps change beside drafts, as it was before a transaction. */
struct kept {
    size_t n_dead;
    int64_t keys, keys_pruned;
};

/* Restores it after a failure. Monitors may have been taken for swept that are not. */
static void restore(struct api_monitors *monitors, const struct kept *kept)
{
    monitors->n_dead = kept->n_dead;
    monitors->keys = kept->keys;
    monitors->keys_pruned = kept->keys_pruned;
    for (size_t i = 0; i < monitors->registry.n; i++)
        monitors->registry.monitors[i]->sweep = true;
}

/* Runs works, or upkeep, in a transaction. False if it failed: then nothing has changed. */
static bool transact(struct api_monitors *monitors, struct api_work *works,
                     bool (*upkeep)(struct api_monitors *monitors))
{
    const struct kept kept = {monitors->n_dead, monitors->keys, monitors->keys_pruned};
    double start = api_seconds();
    monitors->out_of_memory = false;
    monitors->now = api_now();
    bool began = api_store_begin(monitors->store) && api_load(monitors) && api_note_size(monitors);
    bool ran = began &&
               (upkeep ? upkeep(monitors) && api_flush(monitors) : run_works(monitors, works)) &&
               api_change_store(monitors);
    api_statistics_add(monitors->statistics, API_OPERATION_WRITE, start, ran);
    start = api_seconds();
    bool good = ran && api_store_commit(monitors->store);
    if (ran)
        api_statistics_add(monitors->statistics, API_OPERATION_COMMIT, start, good);
    api_change_end(monitors, good);
    if (good ? api_store_has_written(monitors->store) : !is_for_memory(monitors))
        note(monitors, good);
    if (good) {
        publish(monitors, works);
    } else {
        api_store_rollback(monitors->store);
        restore(monitors, &kept);
    }
    drop_drafts(monitors);
    return good;
}

static void fail_works(const struct api_monitors *monitors, struct api_work *works,
                       bool is_uncertain)
{
    for (struct api_work *work = works; work; work = work->next) {
        work->problem.code = NULL;
        if (is_for_memory(monitors))
            api_fail_oom(&work->problem);
        else if (is_uncertain)
            api_fail(&work->problem, "store_unavailable",
                     "the store was lost while it committed, so that this is stored or is not; "
                     "with its Idempotency-Key it can be repeated");
        else
            api_fail(&work->problem, "store_unavailable",
                     "the store cannot be written now, so that nothing is stored; try again");
    }
}

/* ---- The queue */

/* The lane whose turn it is: that of small works, unless they had the last turn and others wait. */
static struct api_lane *next_lane(struct api_monitors *monitors)
{
    bool is_large = monitors->large.first && (!monitors->small.first || !monitors->was_large);
    monitors->was_large = is_large;
    return is_large ? &monitors->large : &monitors->small;
}

/* Takes works that wait: one that wants to be alone, or others, up to MOST_AT_ONCE and MOST_COUNTS. */
static struct api_work *take(struct api_monitors *monitors)
{
    struct api_lane *lane = next_lane(monitors);
    struct api_work *first = lane->first, *end = first;
    size_t n = 1;
    if (!first)
        return NULL;
    for (size_t counts = first->counts; !first->alone && end->next && !end->next->alone; n++) {
        counts += end->next->counts;
        if (n == MOST_AT_ONCE || counts > MOST_COUNTS)
            break;
        end = end->next;
    }
    lane->first = end->next;
    monitors->waiting -= n;
    end->next = NULL;
    return first;
}

static void finish(struct api_work *works)
{
    for (struct api_work *work = works, *next; work; work = next) {
        next = work->next; /* the work may be freed once it is done */
        api_work_finish(work);
    }
}

/* Runs each work by itself, until the store is lost. */
static void run_singly(struct api_monitors *monitors, struct api_work *works)
{
    bool is_lost = false;
    for (struct api_work *work = works, *next; work; work = next) {
        next = work->next;
        work->next = NULL;
        if (is_lost) {
            fail_works(monitors, work, false);
        } else if (!transact(monitors, work, NULL)) {
            is_lost = api_store_is_lost(monitors->store);
            fail_works(monitors, work, api_store_is_uncertain(monitors->store));
        }
        work->next = next;
    }
}

/* Runs works together; if that fails each by itself, so that one does not fail the others. After a commit
 * that may have been done that would count them twice. */
static void process(struct api_monitors *monitors, struct api_work *works)
{
    bool good = transact(monitors, works, NULL);
    bool is_uncertain = !good && api_store_is_uncertain(monitors->store);
    if (!good && works->next && !is_uncertain)
        run_singly(monitors, works);
    else if (!good)
        fail_works(monitors, works, is_uncertain);
    finish(works);
}

/* ---- The thread */

/* pause_s: seconds between two rounds of upkeep, unless a window is due. */
static const double pause_s = 1;

/* Time, in microseconds, until there is something to do; at most a second, for clocks jump. */
static int64_t idle_time(const struct api_monitors *monitors, double since)
{
    int64_t second = 1000000, now = api_now(), next = now + second;
    if (monitors->must_pause)
        return since < pause_s ? (int64_t)((pause_s - since) * 1e6) : 0;
    if (monitors->sweeps || monitors->shrinks)
        return 0;
    if (monitors->next_close < next)
        next = monitors->next_close;
    return next > now ? next - now : 0;
}

/* Closes windows as soon as they are due, unless the store or memory failed at the last attempt. The
 * clock of windows may jump, that of the pause does not. */
static void keep_up(struct api_monitors *monitors, double *last, bool is_idle)
{
    double now = api_seconds();
    if (now - *last < pause_s && (monitors->must_pause || !is_idle))
        return;
    *last = now;
    bool down = !atomic_load(&monitors->stored) || !api_store_is_in_place(monitors->store);
    monitors->must_pause =
        (api_upkeep_is_due(monitors) || down) && !transact(monitors, NULL, api_upkeep);
    monitors->shrinks = atomic_load(&monitors->stored) && api_store_shrink(monitors->store);
}

static struct api_work *wait_for_works(struct api_monitors *monitors, int64_t idle)
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
        struct api_work *works = wait_for_works(monitors, idle);
        bool stopping = monitors->stopping && !works;
        pthread_mutex_unlock(&monitors->lock);
        if (stopping)
            return NULL;
        if (works)
            process(monitors, works);
        keep_up(monitors, &last_upkeep, !works);
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

bool api_work_submit(struct api_monitors *monitors, struct api_work *work)
{
    work->next = NULL;
    work->done = false;
    struct api_lane *lane = work->counts > LARGE ? &monitors->large : &monitors->small;
    pthread_mutex_lock(&monitors->lock);
    bool good = monitors->waiting < MOST_WAITING;
    if (good) {
        if (lane->first)
            lane->last->next = work;
        else
            lane->first = work;
        lane->last = work;
        if (monitors->waiting++ == 0)
            pthread_cond_signal(&monitors->wake);
    }
    pthread_mutex_unlock(&monitors->lock);
    return good;
}
