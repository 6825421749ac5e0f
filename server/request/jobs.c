#include "server/request/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct queue {
    struct srv_job *first, *last;
    double waiting_ns; /* estimates of the queued jobs */
    size_t waiting, running;
    size_t max;     /* of running jobs */
    size_t max_all; /* with those of less urgent queues; none of these begins either, then */
};

/* Bounds of a queue: time to do what waits in it, in ns; jobs. */
static const double max_waiting_ns = 10e9;
enum { MAX_WAITING = 1000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct queue queues[SRV_QUEUES];
    size_t running;
    atomic_size_t pending;
    bool stopping;
    pthread_t *threads;
    size_t started;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* The most urgent queue of which a job may run now; NULL if there is none. */
static struct queue *next_queue(void)
{
    size_t running = jobs.running;
    for (struct queue *queue = &jobs.queues[SRV_QUEUES]; queue-- > jobs.queues;) {
        if (running >= queue->max_all)
            return NULL;
        if (queue->first && queue->running < queue->max)
            return queue;
        running -= queue->running;
    }
    return NULL;
}

static struct srv_job *take_first(struct queue *queue)
{
    struct srv_job *job = queue->first;
    queue->first = job->next;
    queue->waiting--;
    queue->waiting_ns = queue->first ? queue->waiting_ns - job->cost_ns : 0;
    return job;
}

static void count_running(struct queue *queue, size_t change)
{
    queue->running += change;
    jobs.running += change;
}

static void *run_jobs(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&jobs.lock);
    for (;;) {
        struct queue *queue = next_queue();
        if (!queue && jobs.stopping)
            break; /* whoever runs a job now runs those that wait for its end */
        if (!queue) {
            pthread_cond_wait(&jobs.wake, &jobs.lock);
            continue;
        }
        struct srv_job *job = take_first(queue);
        count_running(queue, 1);
        pthread_mutex_unlock(&jobs.lock);
        job->run(job);
        pthread_mutex_lock(&jobs.lock);
        count_running(queue, (size_t)-1);
        jobs.pending--;
        pthread_cond_signal(&jobs.wake); /* a job of another queue may run now, too */
    }
    pthread_mutex_unlock(&jobs.lock);
    return NULL;
}

bool srv_jobs_start(size_t n)
{
    size_t both = n + (n < 4 ? 1 : n / 4), all = both + 1;
    jobs.queues[SRV_HUGE].max = jobs.queues[SRV_HUGE].max_all = n;
    jobs.queues[SRV_LARGE].max = n;
    jobs.queues[SRV_LARGE].max_all = both;
    jobs.queues[SRV_PROBES].max = 1;
    jobs.queues[SRV_PROBES].max_all = all;
    jobs.threads = calloc(all, sizeof *jobs.threads);
    for (; jobs.threads && jobs.started < all; jobs.started++)
        if (pthread_create(&jobs.threads[jobs.started], NULL, run_jobs, NULL) != 0)
            break;
    if (jobs.started < all)
        srv_jobs_stop();
    return jobs.started == all;
}

/* Why a queue takes no more, or NULL. A single job is taken whatever it costs. */
static const char *reason_to_refuse(const struct queue *queue)
{
    if (queue->waiting >= MAX_WAITING)
        return "1000 requests wait already; try again";
    return queue->waiting_ns > max_waiting_ns * (double)jobs.queues[SRV_HUGE].max
               ? "more than 10 s of work is pending; try again"
               : NULL;
}

const char *srv_jobs_add(enum srv_queue which, struct srv_job *job)
{
    struct queue *queue = &jobs.queues[which];
    job->next = NULL;
    pthread_mutex_lock(&jobs.lock);
    const char *refusal = reason_to_refuse(queue);
    if (!refusal) {
        queue->waiting++;
        queue->waiting_ns += job->cost_ns;
        if (queue->first)
            queue->last->next = job;
        else
            queue->first = job;
        queue->last = job;
        jobs.pending++;
        pthread_cond_signal(&jobs.wake);
    }
    pthread_mutex_unlock(&jobs.lock);
    return refusal;
}

size_t srv_jobs_pending(void) { return atomic_load(&jobs.pending); }

void srv_jobs_stop(void)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.stopping = true;
    pthread_cond_broadcast(&jobs.wake);
    pthread_mutex_unlock(&jobs.lock);
    for (size_t i = 0; i < jobs.started; i++)
        pthread_join(jobs.threads[i], NULL);
    free(jobs.threads);
    jobs.threads = NULL;
    jobs.started = 0;
    jobs.stopping = false;
}
