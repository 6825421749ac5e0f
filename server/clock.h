/* Time that only goes forward. */
#ifndef KLDIV_SERVER_CLOCK_H
#define KLDIV_SERVER_CLOCK_H

#include <time.h>

/* Seconds, to the nanosecond. */
static inline double srv_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Milliseconds, to the kernel's tick, in a third of the time. */
static inline unsigned long long srv_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

#endif
