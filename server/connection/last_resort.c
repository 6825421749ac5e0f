#include "server/connection/last_resort.h"

#include "server/telemetry/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool armed, stopping;
    size_t seconds;      /* from a signal to the end, where nothing else arms it */
    struct timespec end; /* CLOCK_MONOTONIC; valid once armed */
} resort = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* True if the process was told to end, and the main thread has not taken the signal. */
static bool is_told_to_end(void)
{
    sigset_t signals;
    return sigpending(&signals) == 0 &&
           (sigismember(&signals, SIGTERM) == 1 || sigismember(&signals, SIGINT) == 1);
}

static void set_end(size_t seconds)
{
    clock_gettime(CLOCK_MONOTONIC, &resort.end);
    resort.end.tv_sec += (time_t)seconds;
    resort.armed = true;
}

/* Waits until it is armed or stopped, with the lock held. Looks for signals each second. */
static void wait_unarmed(void)
{
    enum { PATIENCE = 5 };
    for (int waiting = 0; !resort.armed && !resort.stopping;) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec++;
        pthread_cond_clockwait(&resort.changed, &resort.lock, CLOCK_MONOTONIC, &next);
        waiting = is_told_to_end() ? waiting + 1 : 0;
        if (waiting == PATIENCE)
            set_end(resort.seconds);
    }
}

static void *run_last_resort(void *unused)
{
    (void)unused;
    int result = 0;
    pthread_mutex_lock(&resort.lock);
    wait_unarmed();
    while (!resort.stopping && result != ETIMEDOUT)
        result =
            pthread_cond_clockwait(&resort.changed, &resort.lock, CLOCK_MONOTONIC, &resort.end);
    if (!resort.stopping) {
        srv_log_at_once(SRV_LOG_ERROR, "a thread did not end in time after --drain-timeout: the "
                                       "process ends with status 2");
        _exit(SRV_EXIT_STUCK);
    }
    pthread_mutex_unlock(&resort.lock);
    return NULL;
}

bool srv_last_resort_start(size_t seconds)
{
    resort.seconds = seconds;
    return pthread_create(&resort.thread, NULL, run_last_resort, NULL) == 0;
}

void srv_last_resort_arm(size_t seconds)
{
    pthread_mutex_lock(&resort.lock);
    set_end(seconds);
    pthread_cond_signal(&resort.changed);
    pthread_mutex_unlock(&resort.lock);
}

void srv_last_resort_stop(void)
{
    pthread_mutex_lock(&resort.lock);
    resort.stopping = true;
    pthread_cond_signal(&resort.changed);
    pthread_mutex_unlock(&resort.lock);
    pthread_join(resort.thread, NULL);
}
