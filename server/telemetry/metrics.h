/* /metrics, in Prometheus' text format 0.0.4. */
#pragma once

#include "api/api.h"
#include "api/regions/regions.h"

#include <time.h>

/* Counts a request that begins. Counters are atomic; any thread may update them. */
void srv_metrics_begin_request(void);

/* Counts a request by its response. A call before the response is sent lets a client that has it find it
 * counted. The size of the request's body is in bytes. */
void srv_metrics_count_response(const struct api_response *response, const char *method,
                                size_t body_size);

/* Counts the time in seconds that a request took to the end of its response. */
void srv_metrics_count_time(const struct api_response *response, double seconds);

/* Counts the end of a request, once its memory is free: a client that reads that no request is in flight finds all
 * other numbers settled. */
void srv_metrics_end_request(void);

/* Counts a connection, or a request on it, that was refused because of --max-connections. */
void srv_metrics_connection_refused(void);

/* Counts a connection that the server ended, by the code of the reason. */
void srv_metrics_connection_ended(const char *code);

/* Notes whether the files were read again well at the last reload: `good` at its begin, else for each that was not. */
void srv_metrics_reload(bool good);

/* srv_snapshot: numbers of this moment, beside those that were counted. */
struct srv_snapshot {
    const struct api_budget *budget;
    struct api_regions *regions; /* or NULL */
    size_t max_connections, open_connections;
    size_t pending_jobs;
    bool is_draining;
    time_t certificate_until; /* end of the certificate; 0 without one */
};

void srv_metrics_write(const struct srv_snapshot *snapshot, struct api_buffer *out);
