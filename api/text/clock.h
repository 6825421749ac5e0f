/* Clocks. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Microseconds since 1970, by a clock that may jump. */
static inline int64_t api_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Seconds since some time before the process began, by one that never jumps. */
static inline double api_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Milliseconds by a clock that never jumps, with the resolution of the kernel's tick (1 to 10 ms); costs a third of api_seconds. */
static inline unsigned long long api_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}
