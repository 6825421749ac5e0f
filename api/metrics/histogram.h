/* Histograms of Prometheus. Any thread may count; numbers are read without a lock. */
#pragma once

#include "api/memory/buffer.h"

#include <stdatomic.h>

/* api_histogram: zeroed at first. Its bounds are passed to each call: `n` of them, ascending. */
enum { API_HISTOGRAM_BOUNDS = 16 };
struct api_histogram {
    atomic_ulong
        buckets[API_HISTOGRAM_BOUNDS + 1]; /* not cumulative; the last is above all bounds */
    atomic_ulong sum;                      /* in units of 1 / scale */
};

static inline void api_histogram_add(struct api_histogram *histogram, const double *bounds,
                                     size_t n, double value, double scale)
{
    size_t i = 0;
    while (i < n && value > bounds[i])
        i++;
    atomic_fetch_add_explicit(&histogram->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum, (unsigned long)(value * scale),
                              memory_order_relaxed);
}

/* Number of values. */
unsigned long api_histogram_count(const struct api_histogram *histogram, size_t n);

/* Appends the lines. `labels` is "" or `name="value",`. Each bucket is read once: the counts of a histogram
 * may not contradict each other. */
void api_histogram_write(struct api_buffer *out, const char *name, const char *labels,
                         const struct api_histogram *histogram, const double *bounds, size_t n,
                         double scale);
