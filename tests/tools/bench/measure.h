/* Time, medians and the baseline read for the benchmarks. */
#pragma once

#include <stdlib.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

/* Median; sorts the values. */
static inline double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return values[n / 2];
}

typedef unsigned long long vector __attribute__((vector_size(64), aligned(1), may_alias));
#ifdef __x86_64__
#define EACH_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EACH_SIMD
#endif

/* Reads both arrays, whose size is a multiple of 128 bytes. */
EACH_SIMD __attribute__((unused)) static unsigned long long read_both(const char *a, const char *b,
                                                                      size_t bytes)
{
    vector even = {0}, odd = {0};
    for (size_t i = 0; i < bytes; i += 2 * sizeof even) {
        even |= *(const vector *)(a + i) ^ *(const vector *)(b + i);
        odd |= *(const vector *)(a + i + sizeof even) ^ *(const vector *)(b + i + sizeof even);
    }
    even |= odd;
    return even[0] | even[1] | even[2] | even[3] | even[4] | even[5] | even[6] | even[7];
}
