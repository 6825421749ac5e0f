#include "server/last_resort.h"

#include "server/log.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool armed, stopping;
    struct timespec end; /* CLOCK_MONOTONIC; valid once armed */
} resort = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *run(void *unused)
{
    (void)unused;
    int result = 0;
    pthread_mutex_lock(&resort.lock);
    while (!resort.stopping && result != ETIMEDOUT)
        result = resort.armed ? pthread_cond_clockwait(&resort.changed, &resort.lock,
                                                       CLOCK_MONOTONIC, &resort.end)
                              : pthread_cond_wait(&resort.changed, &resort.lock);
    if (!resort.stopping) {
        srv_log_at_once(SRV_LOG_ERROR, "a thread did not end in time after --drain-timeout: the "
                                       "process ends with status 2");
        _exit(SRV_EXIT_STUCK);
    }
    pthread_mutex_unlock(&resort.lock);
    return NULL;
}

bool srv_last_resort_start(void) { return pthread_create(&resort.thread, NULL, run, NULL) == 0; }

void srv_last_resort_arm(size_t seconds)
{
    pthread_mutex_lock(&resort.lock);
    clock_gettime(CLOCK_MONOTONIC, &resort.end);
    resort.end.tv_sec += (time_t)seconds;
    resort.armed = true;
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
