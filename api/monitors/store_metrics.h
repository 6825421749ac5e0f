/* api_store_metrics: durations and failures of the store's operations, for /metrics. */
#pragma once

#include "api/memory/buffer.h"

enum api_operation { API_OPERATION_WRITE, API_OPERATION_COMMIT };
#define API_OPERATIONS 2

struct api_store_metrics;
struct api_store_metrics *api_store_metrics_new(void);
void api_store_metrics_free(struct api_store_metrics *statistics);

/* Counts an operation that began at `start`, by api_seconds. */
void api_store_metrics_add(struct api_store_metrics *statistics, enum api_operation operation,
                           double start, bool good);
void api_store_metrics_write(const struct api_store_metrics *statistics, struct api_buffer *out);
