#include "server/jobs.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct srv_job *first, **end;
    size_t pending;
    bool stopping;
    size_t started;
    pthread_t *threads;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .end = &jobs.first};

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&jobs.lock);
    for (;;) {
        while (!jobs.first && !jobs.stopping)
            pthread_cond_wait(&jobs.wake, &jobs.lock);
        struct srv_job *job = jobs.first;
        if (!job)
            break;
        jobs.first = job->next;
        if (!jobs.first)
            jobs.end = &jobs.first;
        pthread_mutex_unlock(&jobs.lock);
        job->run(job);
        pthread_mutex_lock(&jobs.lock);
        jobs.pending--;
    }
    pthread_mutex_unlock(&jobs.lock);
    return NULL;
}

bool srv_jobs_start(size_t threads)
{
    jobs.stopping = false;
    jobs.started = 0;
    jobs.threads = calloc(threads, sizeof *jobs.threads);
    if (!jobs.threads)
        return false;
    for (; jobs.started < threads; jobs.started++)
        if (pthread_create(&jobs.threads[jobs.started], NULL, work, NULL) != 0) {
            srv_jobs_stop();
            return false;
        }
    return true;
}

void srv_jobs_add(struct srv_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&jobs.lock);
    *jobs.end = job;
    jobs.end = &job->next;
    jobs.pending++;
    pthread_cond_signal(&jobs.wake);
    pthread_mutex_unlock(&jobs.lock);
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
    pthread_cond_broadcast(&jobs.wake);
    pthread_mutex_unlock(&jobs.lock);
    for (size_t i = 0; i < jobs.started; i++)
        pthread_join(jobs.threads[i], NULL);
    free(jobs.threads);
    jobs.threads = NULL;
    jobs.started = 0;
}
