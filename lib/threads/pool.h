/* Threads shared by all callers. The constructors are in kldiv.h. */
#pragma once

#include "lib/kldiv.h"

#include <pthread.h>

/* KL_THREAD_SCRATCH: bytes of scratch that each thread of a pool holds for what it runs, so that
 * large arrays lie on no stack. */
enum { KL_THREAD_SCRATCH = 136 << 10 };

/* Calls task(context, i, scratch) once for each i below n, on the calling thread and those of the
 * pool, in no order, and returns when all have returned. Every caller gets its own tasks done on
 * its own thread at least, so it never waits for another caller's. `pool` may be NULL. What
 * the tasks wrote is visible to the caller afterwards. `scratch` is for tasks on the calling
 * thread: KL_THREAD_SCRATCH bytes, or NULL if tasks take none. */
void kl_pool_run(struct kl_pool *pool, size_t n,
                 void (*task)(void *context, size_t i, void *scratch), void *context,
                 void *scratch);

/* Disables cancellation, and returns the state of before, which kl_restore_cancellation brings back: a thread that is
 * cancelled in a call would leave locks that others wait for, and memory, so it ends after the call. */
static inline int kl_disable_cancellation(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void kl_restore_cancellation(int before) { pthread_setcancelstate(before, NULL); }
