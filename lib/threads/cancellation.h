/* A thread that is cancelled in a call would leave locks that others wait for, and memory: so it ends after the call. */
#pragma once

#include <pthread.h>

/* Disables cancellation, and returns the state of before, which kl_restore_cancellation brings back. */
static inline int kl_disable_cancellation(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void kl_restore_cancellation(int before) { pthread_setcancelstate(before, NULL); }
