#include "api/monitors/thread.h"

#include "api/api.h"

/* Hosts without `resume` block until a work is done. */
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_wake = PTHREAD_COND_INITIALIZER;

void api_work_finish(struct api_work *work)
{
    struct api_exchange *x = work->x;
    if (x->resume) {
        work->done = true;
        x->resume(x);
        return;
    }
    pthread_mutex_lock(&done_lock);
    work->done = true;
    pthread_cond_broadcast(&done_wake);
    pthread_mutex_unlock(&done_lock);
}

static void wait_until_done(const struct api_work *work)
{
    pthread_mutex_lock(&done_lock);
    while (!work->done)
        pthread_cond_wait(&done_wake, &done_lock);
    pthread_mutex_unlock(&done_lock);
}

bool api_wait(struct api_exchange *x)
{
    bool blocks = !x->resume;
    struct api_work *work = x->work;
    work->x = x;
    if (api_work_submit(x->service->monitors, work)) {
        if (blocks)
            wait_until_done(work);
        return true;
    }
    api_refuse(x, "overloaded", "too many requests wait for the store; try again");
    return false;
}
