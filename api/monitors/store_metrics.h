/* api_store_statistics: durations and failures of the store's operations, for the exposition. */
#ifndef KLDIV_API_MONITORS_STORE_METRICS_H
#define KLDIV_API_MONITORS_STORE_METRICS_H

#include "api/memory/buffer.h"

enum api_operation { API_OPERATION_WRITE, API_OPERATION_COMMIT };
#define API_OPERATIONS 2

struct api_store_statistics;
struct api_store_statistics *api_statistics_new(void);
void api_statistics_free(struct api_store_statistics *statistics);

/* Counts an operation that began at `start`, by api_seconds. */
void api_statistics_add(struct api_store_statistics *statistics, enum api_operation operation,
                        double start, bool good);
void api_statistics_write(const struct api_store_statistics *statistics, struct api_buffer *out);

#endif
