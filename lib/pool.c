#include "lib/pool.h"

#include <pthread.h>
#include <stdlib.h>

/* One kl_pool_run under way; lives on its caller's stack. It is in the ring as long as it has
 * pieces that nobody took. */
struct job {
    struct job *next, *previous;
    void (*piece)(void *context, size_t i);
    void *context;
    size_t n, taken, done;
    pthread_cond_t finished;
};

struct kl_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct job *ring; /* whose turn it is; each piece taken passes the turn on */
    bool closing;
    size_t started;
    size_t threads;
    pthread_t workers[];
};

static void link_job(struct kl_pool *pool, struct job *job)
{
    if (!pool->ring) {
        job->next = job->previous = job;
        pool->ring = job;
        return;
    }
    job->next = pool->ring;
    job->previous = pool->ring->previous;
    job->previous->next = job->next->previous = job;
}

static void unlink_job(struct kl_pool *pool, struct job *job)
{
    if (pool->ring == job)
        pool->ring = job->next == job ? NULL : job->next;
    job->previous->next = job->next;
    job->next->previous = job->previous;
}

/* With the lock held: takes one piece of `job`, runs it unlocked, counts it. */
static void run_piece(struct kl_pool *pool, struct job *job)
{
    size_t i = job->taken++;
    if (job->taken == job->n)
        unlink_job(pool, job);
    pthread_mutex_unlock(&pool->lock);
    job->piece(job->context, i);
    pthread_mutex_lock(&pool->lock);
    if (++job->done == job->n)
        pthread_cond_signal(&job->finished);
}

static void *work(void *argument)
{
    struct kl_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->ring && !pool->closing)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->closing)
            break;
        struct job *job = pool->ring;
        pool->ring = job->next;
        run_piece(pool, job);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct kl_pool *kl_pool_new(size_t threads)
{
    if (threads < 1)
        threads = 1;
    struct kl_pool *pool = calloc(1, sizeof *pool + (threads - 1) * sizeof *pool->workers);
    if (!pool)
        return NULL;
    pool->threads = threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    for (; pool->started < threads - 1; pool->started++)
        if (pthread_create(&pool->workers[pool->started], NULL, work, pool) != 0) {
            kl_pool_free(pool);
            return NULL;
        }
    return pool;
}

void kl_pool_free(struct kl_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

size_t kl_pool_threads(const struct kl_pool *pool) { return pool ? pool->threads : 1; }

void kl_pool_run(struct kl_pool *pool, size_t n, void (*piece)(void *context, size_t i),
                 void *context)
{
    if (!pool || pool->threads == 1 || n <= 1) {
        for (size_t i = 0; i < n; i++)
            piece(context, i);
        return;
    }
    struct job job = {.piece = piece, .context = context, .n = n};
    pthread_cond_init(&job.finished, NULL);
    pthread_mutex_lock(&pool->lock);
    link_job(pool, &job);
    if (n - 1 < pool->started)
        for (size_t i = 1; i < n; i++)
            pthread_cond_signal(&pool->work);
    else
        pthread_cond_broadcast(&pool->work);
    while (job.taken < n)
        run_piece(pool, &job);
    while (job.done < n)
        pthread_cond_wait(&job.finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&job.finished);
}
