/* Metrics in the two formats of Prometheus: its text format 0.0.4, in which they are written, and OpenMetrics 1.0.0. */
#pragma once

#include "api/memory/buffer.h"

enum api_metrics_format { API_METRICS_TEXT, API_METRICS_OPEN, API_METRICS_FORMATS };

/* The format for the value of Accept, which may be NULL: the text format unless the other one is preferred. */
enum api_metrics_format api_metrics_choose(const char *accept);
extern const char *const api_metrics_content_types[API_METRICS_FORMATS];

/* Makes OpenMetrics of lines of the text format, in place: families of counters lose their _total, which samples keep. No
 * help may have a quote or a backslash. The text still needs "# EOF\n" at its end. Time is linear in its size. */
void api_metrics_open(struct api_buffer *text);
