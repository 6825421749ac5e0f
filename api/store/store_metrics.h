/* How the store does: api_store_metrics, durations and failures of its operations, for /metrics; api_outage, since when it
 * cannot be written, and why. */
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

struct api_outage {
    int64_t since;   /* microseconds since 1970; 0: no outage */
    char error[200]; /* one line, cut if it is longer */
};

/* Notes a failure: the first one begins an outage, others change its error. */
void api_outage_note(struct api_outage *outage, int64_t now, const char *reason);
