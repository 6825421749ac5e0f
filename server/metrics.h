/* What /metrics tells, in Prometheus' text format 0.0.4. */
#ifndef KLDIV_SERVER_METRICS_H
#define KLDIV_SERVER_METRICS_H

#include "api/api.h"

/* All counters are updated without locks; any thread may. */
void srv_metrics_begin_request(void);

/* One request done with: its reply as sent, its times. */
void srv_metrics_end_request(const struct api_reply *reply, const char *method, size_t body_size,
                             double seconds);

/* One connection, or the request on it, turned away because all are taken. */
void srv_metrics_connection_refused(void);

void srv_metrics_write(const struct api_budget *budget, struct api_buffer *out);

#endif
