/* api_store_metrics: durations and failures of the store's operations, for /metrics. */
#pragma once

#include "api/metrics/metrics.h"

enum api_operation { API_OPERATION_WRITE, API_OPERATION_COMMIT };
#define API_OPERATIONS 2

/* Zeroed at first. */
struct api_store_metrics {
    struct {
        struct api_histogram seconds; /* their sum is kept in microseconds */
        atomic_ulong errors;
    } operations[API_OPERATIONS];
};

/* Counts an operation that began at `start`, by api_seconds. */
void api_store_metrics_add(struct api_store_metrics *metrics, enum api_operation operation,
                           double start, bool good);
void api_store_metrics_write(const struct api_store_metrics *metrics, struct api_buffer *out);
