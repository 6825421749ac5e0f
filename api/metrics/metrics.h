/* Metrics as Prometheus reads them: families, histograms, and the two formats. */
#pragma once

#include "api/memory/buffer.h"

#include <stdatomic.h>

/* Appends the lines before those of a family. */
void api_metrics_head(struct api_buffer *out, const char *name, const char *type, const char *help);

/* Appends a family of one value, without labels: a counter if its name ends in _total, otherwise a gauge. */
void api_metrics_value(struct api_buffer *out, const char *name, const char *help, double value);

/* ---- Histograms. Any thread may count; numbers are read without a lock. */

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

/* ---- The two formats of Prometheus: its text format 0.0.4, in which metrics are written, and OpenMetrics 1.0.0. */

enum api_metrics_format { API_METRICS_TEXT, API_METRICS_OPEN, API_METRICS_FORMATS };

/* The format for the value of Accept, which may be NULL: the text format unless the other one is preferred. */
enum api_metrics_format api_metrics_choose(const char *accept);
extern const char *const api_metrics_content_types[API_METRICS_FORMATS];

/* Makes OpenMetrics of lines of the text format, in place: families of counters lose their _total, which samples keep. No
 * help may have a quote or a backslash. The text still needs "# EOF\n" at its end. Time is linear in its size. */
void api_metrics_open(struct api_buffer *text);
