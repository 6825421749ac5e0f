#include "server/watchdog.h"

#include "server/clock.h"
#include "server/log.h"
#include "server/notify.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* MOST: threads that are watched: those of --http-threads at its most, and some more. LINE: bytes that
 * cores pass to each other at once. */
enum { MOST = 1040, LINE = 64, LONGEST_WAIT_MS = 1000 };

static struct {
    unsigned long long half; /* of the manager's time, in ms; 0: nobody watches */
    unsigned long long next; /* when to tell it again, in ms */
    bool complained;
    atomic_uint n;
    struct {
        _Alignas(LINE) atomic_ullong since; /* start of the step, in ms; 0 between steps */
    } threads[MOST];
} watchdog;

/* place: number of the calling thread's mark, from 1. */
static _Thread_local unsigned place;

void srv_watchdog_start(void)
{
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (time && (!pid || strtol(pid, NULL, 10) == getpid()))
        watchdog.half = strtoull(time, NULL, 10) / 2000;
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void mark(unsigned long long since)
{
    if (place == 0)
        place = atomic_fetch_add(&watchdog.n, 1) + 1;
    if (place <= MOST)
        atomic_store_explicit(&watchdog.threads[place - 1].since, since, memory_order_relaxed);
}

void srv_step_begin(void)
{
    if (watchdog.half)
        mark(srv_now_ms());
}

void srv_step_end(void)
{
    if (watchdog.half)
        mark(0);
}

/* Time that a thread has been in the same step, in ms, at most. */
static unsigned long long longest_step(unsigned long long now)
{
    unsigned long long longest = 0;
    unsigned n = atomic_load(&watchdog.n);
    for (unsigned i = 0; i < n && i < MOST; i++) {
        unsigned long long since = atomic_load(&watchdog.threads[i].since);
        if (since && since < now && now - since > longest)
            longest = now - since;
    }
    return longest;
}

unsigned long long srv_watchdog_beat(void)
{
    if (watchdog.half == 0)
        return LONGEST_WAIT_MS;
    unsigned long long now = srv_now_ms(), step = longest_step(now);
    bool works = step < watchdog.half;
    if (!works && !watchdog.complained)
        srv_log(SRV_LOG_ERROR, "a thread is stuck: it has been in one step for %llu ms", step);
    watchdog.complained = !works;
    if (works && now >= watchdog.next) {
        srv_notify("WATCHDOG=1");
        watchdog.next = now + watchdog.half;
    }
    unsigned long long wait = works ? watchdog.next - now : watchdog.half;
    return wait < LONGEST_WAIT_MS ? wait : LONGEST_WAIT_MS;
}
