#include "server/connection/watcher.h"

#include "api/text/clock.h"
#include "server/telemetry/log.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* TICK_MS: maximal time between two turns of the thread, in ms: so late may it notice that an entry is due sooner. */
enum { TICK_MS = 50, EVENTS = 64 };

static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    int events; /* epoll */
    atomic_bool stopping;
    size_t descriptors, n;
    unsigned added;
    _Atomic(struct srv_watched *) *by_descriptor; /* read by network threads without the lock */
    struct srv_watched **heap;                    /* none is due before its parent */
    atomic_ullong process_end;                    /* in ms */
    size_t patience; /* seconds from a signal to it, unless it is set */
} watcher = {.lock = PTHREAD_MUTEX_INITIALIZER, .events = -1, .process_end = SRV_NEVER};

void srv_watcher_lock(void) { pthread_mutex_lock(&watcher.lock); }

void srv_watcher_unlock(void) { pthread_mutex_unlock(&watcher.lock); }

void srv_watcher_wait(const size_t *n)
{
    for (size_t left = 1; left > 0;) {
        srv_watcher_lock();
        left = *n;
        srv_watcher_unlock();
        if (left > 0)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

/* ---- Heap */

static void put(struct srv_watched *w, size_t index)
{
    watcher.heap[index] = w;
    w->index = index;
}

static void move_up(struct srv_watched *w)
{
    unsigned long long due = atomic_load(&w->due);
    size_t i = w->index;
    for (; i > 0 && atomic_load(&watcher.heap[(i - 1) / 2]->due) > due; i = (i - 1) / 2)
        put(watcher.heap[(i - 1) / 2], i);
    put(w, i);
}

/* The child of an entry that is due first, or the number of entries. */
static size_t first_child(size_t i)
{
    size_t left = 2 * i + 1, right = left + 1;
    if (left >= watcher.n)
        return watcher.n;
    return right < watcher.n &&
                   atomic_load(&watcher.heap[right]->due) < atomic_load(&watcher.heap[left]->due)
               ? right
               : left;
}

static void move_down(struct srv_watched *w)
{
    unsigned long long due = atomic_load(&w->due);
    size_t i = w->index;
    for (size_t child = first_child(i);
         child < watcher.n && atomic_load(&watcher.heap[child]->due) < due;
         child = first_child(i)) {
        put(watcher.heap[child], i);
        i = child;
    }
    put(w, i);
}

void srv_watch_at(struct srv_watched *w, unsigned long long due)
{
    atomic_store(&w->due, due);
    move_up(w);
    move_down(w);
}

void srv_watch_by(struct srv_watched *w, unsigned long long due)
{
    if (due < atomic_load(&w->due))
        srv_watch_at(w, due);
}

void srv_watch_soon(struct srv_watched *w, unsigned long long due)
{
    if (due >= atomic_load(&w->due))
        return;
    srv_watcher_lock();
    srv_watch_by(w, due);
    srv_watcher_unlock();
}

/* ---- Entries */

/* Tells an entry from others that have its descriptor after it. */
static uint64_t key_of(const struct srv_watched *w)
{
    return (uint64_t)w->number << 32 | (unsigned)w->fd;
}

struct srv_watched *srv_watched_at(int fd)
{
    return fd >= 0 && (size_t)fd < watcher.descriptors ? atomic_load(&watcher.by_descriptor[fd])
                                                       : NULL;
}

struct srv_watched *srv_watched_next(size_t *i)
{
    return *i < watcher.n ? watcher.heap[(*i)++] : NULL;
}

bool srv_watch_add(struct srv_watched *w)
{
    if ((size_t)w->fd >= watcher.descriptors || watcher.n == watcher.descriptors)
        return false;
    w->number = watcher.added++;
    put(w, watcher.n++);
    move_up(w);
    atomic_store(&watcher.by_descriptor[w->fd], w);
    return true;
}

void srv_watch_remove(struct srv_watched *w)
{
    struct srv_watched *last = watcher.heap[--watcher.n];
    atomic_store(&watcher.by_descriptor[w->fd], NULL);
    epoll_ctl(watcher.events, EPOLL_CTL_DEL, w->fd, NULL); /* a duplicate would keep it */
    if (last == w)
        return;
    put(last, w->index);
    move_up(last);
    move_down(last);
}

bool srv_watch_events(const struct srv_watched *w, unsigned events)
{
    struct epoll_event event = {.events = events, .data.u64 = key_of(w)};
    return epoll_ctl(watcher.events, EPOLL_CTL_ADD, w->fd, &event) == 0;
}

/* ---- The end of a process that is stuck */

void srv_watcher_end_process(size_t seconds)
{
    atomic_store(&watcher.process_end, api_now_ms() + seconds * 1000);
}

/* True if the process got a signal to end that the main thread has not taken. */
static bool is_told_to_end(void)
{
    sigset_t signals;
    return sigpending(&signals) == 0 &&
           (sigismember(&signals, SIGTERM) == 1 || sigismember(&signals, SIGINT) == 1);
}

/* Looks for signals each second, and ends the process if it is time. */
static void check_process(void)
{
    enum { LOOKS = 5 };
    static unsigned long long next_look;
    static int told;
    unsigned long long now = api_now_ms(), end = atomic_load(&watcher.process_end);
    if (now >= end) {
        srv_log_at_once(SRV_LOG_ERROR, "a thread did not end in time after --drain-timeout: the "
                                       "process ends with status 2");
        _exit(SRV_EXIT_STUCK);
    }
    if (now < next_look || end != SRV_NEVER)
        return;
    next_look = now + 1000;
    told = is_told_to_end() ? told + 1 : 0;
    if (told == LOOKS)
        srv_watcher_end_process(watcher.patience);
}

/* Locks the watcher, and looks at the process as long as that is not possible. */
static void lock_and_check(void)
{
    struct timespec end;
    do {
        check_process();
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec++;
    } while (pthread_mutex_timedlock(&watcher.lock, &end) != 0);
}

/* ---- Thread */

/* While an entry is looked at, its due time is none, so that srv_watch_soon waits for the lock: a thread that wants
 * the entry sooner then files it itself. */
static void look_at(struct srv_watched *w, unsigned events, unsigned long long now)
{
    srv_watch_at(w, SRV_NEVER);
    w->look(w, events, now);
}

static void look_at_events(const struct epoll_event *events, int n, unsigned long long now)
{
    for (int i = 0; i < n; i++) {
        struct srv_watched *w = srv_watched_at((int)(events[i].data.u64 & INT_MAX));
        if (w && key_of(w) == events[i].data.u64)
            look_at(w, events[i].events, now);
    }
}

/* Looks at what is due; gives the time until the next turn, in ms. */
static int look_at_due(unsigned long long now)
{
    for (;;) {
        unsigned long long due = watcher.n > 0 ? atomic_load(&watcher.heap[0]->due) : SRV_NEVER;
        if (due > now)
            return due < now + TICK_MS ? (int)(due - now) : TICK_MS;
        look_at(watcher.heap[0], 0, now);
    }
}

static void *run_watcher(void *unused)
{
    (void)unused;
    struct epoll_event events[EVENTS];
    int wait = TICK_MS;
    while (!atomic_load(&watcher.stopping)) {
        int n = epoll_wait(watcher.events, events, EVENTS, wait);
        lock_and_check();
        unsigned long long now = api_now_ms();
        look_at_events(events, n, now);
        wait = look_at_due(now);
        srv_watcher_unlock();
    }
    return NULL;
}

bool srv_watcher_start(size_t descriptors, size_t seconds)
{
    watcher.patience = seconds;
    watcher.by_descriptor = calloc(descriptors, sizeof *watcher.by_descriptor);
    watcher.heap = calloc(descriptors, sizeof *watcher.heap);
    watcher.descriptors = watcher.by_descriptor && watcher.heap ? descriptors : 0;
    watcher.events = epoll_create1(EPOLL_CLOEXEC);
    return watcher.descriptors > 0 && watcher.events >= 0 &&
           pthread_create(&watcher.thread, NULL, run_watcher, NULL) == 0;
}

void srv_watcher_stop(void)
{
    atomic_store(&watcher.stopping, true);
    pthread_join(watcher.thread, NULL);
    close(watcher.events);
}
