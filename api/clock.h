/* A clock that never jumps. */
#pragma once

#include <time.h>

/* Seconds since some time before the process began. */
static inline double api_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
