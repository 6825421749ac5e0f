#include "server/jobs.h"

#include <pthread.h>
#include <stdlib.h>

struct lane {
    struct srv_job *first, *last;
    pthread_cond_t wake;
    double waiting_ns; /* estimates of the queued jobs */
    size_t waiting;
    size_t started;
    pthread_t *threads;
};

/* Bounds of a queue: time to do what waits in it, in ns; jobs. */
static const double most_waiting_ns = 10e9;
enum { MOST_WAITING = 1000 };

static struct {
    pthread_mutex_t lock;
    struct lane lanes[SRV_LANES];
    size_t pending;
    bool stopping;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *work(void *argument)
{
    struct lane *lane = argument;
    pthread_mutex_lock(&jobs.lock);
    for (;;) {
        while (!lane->first && !jobs.stopping)
            pthread_cond_wait(&lane->wake, &jobs.lock);
        struct srv_job *job = lane->first;
        if (!job)
            break;
        lane->first = job->next;
        lane->waiting--;
        lane->waiting_ns = lane->first ? lane->waiting_ns - job->cost_ns : 0;
        pthread_mutex_unlock(&jobs.lock);
        job->run(job);
        pthread_mutex_lock(&jobs.lock);
        jobs.pending--;
    }
    pthread_mutex_unlock(&jobs.lock);
    return NULL;
}

static bool start_lane(struct lane *lane, size_t threads)
{
    lane->started = 0;
    pthread_cond_init(&lane->wake, NULL);
    lane->threads = calloc(threads, sizeof *lane->threads);
    if (!lane->threads)
        return false;
    for (; lane->started < threads; lane->started++)
        if (pthread_create(&lane->threads[lane->started], NULL, work, lane) != 0)
            return false;
    return true;
}

bool srv_jobs_start(size_t threads_of_lane)
{
    jobs.stopping = false;
    for (size_t i = 0; i < SRV_LANES; i++)
        if (!start_lane(&jobs.lanes[i], i == SRV_PROBES ? 1 : threads_of_lane)) {
            srv_jobs_stop();
            return false;
        }
    return true;
}

/* A single job is taken whatever it costs. */
static bool is_full(const struct lane *lane)
{
    return lane->waiting >= MOST_WAITING ||
           lane->waiting_ns > most_waiting_ns * (double)lane->started;
}

bool srv_jobs_add(enum srv_lane lane_of_it, struct srv_job *job)
{
    struct lane *lane = &jobs.lanes[lane_of_it];
    job->next = NULL;
    pthread_mutex_lock(&jobs.lock);
    if (is_full(lane)) {
        pthread_mutex_unlock(&jobs.lock);
        return false;
    }
    lane->waiting++;
    lane->waiting_ns += job->cost_ns;
    if (lane->first)
        lane->last->next = job;
    else
        lane->first = job;
    lane->last = job;
    jobs.pending++;
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&jobs.lock);
    return true;
}

size_t srv_jobs_pending(void)
{
    pthread_mutex_lock(&jobs.lock);
    size_t pending = jobs.pending;
    pthread_mutex_unlock(&jobs.lock);
    return pending;
}

void srv_jobs_stop(void)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.stopping = true;
    for (size_t i = 0; i < SRV_LANES; i++)
        pthread_cond_broadcast(&jobs.lanes[i].wake);
    pthread_mutex_unlock(&jobs.lock);
    for (size_t i = 0; i < SRV_LANES; i++) {
        struct lane *lane = &jobs.lanes[i];
        for (size_t j = 0; j < lane->started; j++)
            pthread_join(lane->threads[j], NULL);
        free(lane->threads);
        *lane = (struct lane){.wake = PTHREAD_COND_INITIALIZER};
    }
}
