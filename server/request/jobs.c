#include "server/request/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct queue {
    struct srv_job *first, *last;
    pthread_cond_t wake;
    double waiting_ns; /* estimates of the queued jobs */
    size_t waiting;
    size_t started;
    pthread_t *threads;
};

/* Bounds of a queue: time to do what waits in it, in ns; jobs. */
static const double max_waiting_ns = 10e9;
enum { MAX_WAITING = 1000 };

static struct {
    pthread_mutex_t lock;
    struct queue queues[SRV_QUEUES];
    atomic_size_t pending;
    bool stopping;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *run_jobs(void *argument)
{
    struct queue *queue = argument;
    pthread_mutex_lock(&jobs.lock);
    for (;;) {
        while (!queue->first && !jobs.stopping)
            pthread_cond_wait(&queue->wake, &jobs.lock);
        struct srv_job *job = queue->first;
        if (!job)
            break;
        queue->first = job->next;
        queue->waiting--;
        queue->waiting_ns = queue->first ? queue->waiting_ns - job->cost_ns : 0;
        pthread_mutex_unlock(&jobs.lock);
        job->run(job);
        pthread_mutex_lock(&jobs.lock);
        jobs.pending--;
    }
    pthread_mutex_unlock(&jobs.lock);
    return NULL;
}

static bool start_queue(struct queue *queue, size_t threads)
{
    pthread_cond_init(&queue->wake, NULL);
    queue->threads = calloc(threads, sizeof *queue->threads);
    if (!queue->threads)
        return false;
    for (; queue->started < threads; queue->started++)
        if (pthread_create(&queue->threads[queue->started], NULL, run_jobs, queue) != 0)
            return false;
    return true;
}

bool srv_jobs_start(size_t threads_of_queue)
{
    for (size_t i = 0; i < SRV_QUEUES; i++)
        if (!start_queue(&jobs.queues[i], i == SRV_PROBES ? 1 : threads_of_queue)) {
            srv_jobs_stop();
            return false;
        }
    return true;
}

/* A single job is taken whatever it costs. */
static bool is_full(const struct queue *queue)
{
    return queue->waiting >= MAX_WAITING ||
           queue->waiting_ns > max_waiting_ns * (double)queue->started;
}

bool srv_jobs_add(enum srv_queue which, struct srv_job *job)
{
    struct queue *queue = &jobs.queues[which];
    job->next = NULL;
    pthread_mutex_lock(&jobs.lock);
    if (is_full(queue)) {
        pthread_mutex_unlock(&jobs.lock);
        return false;
    }
    queue->waiting++;
    queue->waiting_ns += job->cost_ns;
    if (queue->first)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    jobs.pending++;
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&jobs.lock);
    return true;
}

size_t srv_jobs_pending(void) { return atomic_load(&jobs.pending); }

void srv_jobs_stop(void)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.stopping = true;
    for (size_t i = 0; i < SRV_QUEUES; i++)
        pthread_cond_broadcast(&jobs.queues[i].wake);
    pthread_mutex_unlock(&jobs.lock);
    for (size_t i = 0; i < SRV_QUEUES; i++) {
        struct queue *queue = &jobs.queues[i];
        for (size_t j = 0; j < queue->started; j++)
            pthread_join(queue->threads[j], NULL);
        free(queue->threads);
        *queue = (struct queue){.wake = PTHREAD_COND_INITIALIZER};
    }
}
