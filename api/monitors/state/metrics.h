/* The metrics of monitors, for Prometheus: the lines of all monitors as they were at one moment. Responses that are
 * asked for while lines are made get the next lines, which they share. */
#pragma once

#include "api/memory/buffer.h"
#include "api/metrics/metrics.h"
#include "api/monitors/state/registry.h"
#include "api/request/exchange.h"

/* api_monitor_metrics: the last lines. The lock is held while others are made, which takes 50 ms for 10,000
 * monitors; the registry is locked only to copy their numbers, 1 ms. */
struct api_monitor_metrics {
    bool groups_only; /* without lines of single monitors; set before the first scrape */
    pthread_mutex_t lock;
    struct api_budget paid; /* memory for one text, which the monitors have counted already */
    struct api_metrics_text {
        double since;             /* time before the monitors were read, in s of api_seconds */
        struct api_shared *lines; /* NULL if there are none */
        struct api_shared *gzip; /* the same as the begin of a gzip stream; NULL if not asked for */
        uint32_t crc;            /* of the lines; valid with `gzip` */
    } texts[API_METRICS_FORMATS];
};

bool api_monitor_metrics_init(struct api_monitor_metrics *metrics);
void api_monitor_metrics_free(struct api_monitor_metrics *metrics);

/* Bytes that a monitor of this name takes beside its config, with its lines and what they are made of. */
size_t api_monitor_size(const char *group, const char *name);

/* Adds the lines of the monitors that a token is for to a response. If it is for some alone, they are made for this response,
 * and not compressed. Else they were read not before `since`, in s of api_seconds. The response's body, which is complete,
 * comes after them. Both are compressed if `with_gzip` is true and memory allows it. If slow clients still read old lines and
 * memory does not allow new ones, the last lines are sent again. False if memory is exhausted. */
bool api_monitor_metrics_response(struct api_monitor_metrics *metrics,
                                  struct api_registry *registry, const struct api_token *token,
                                  double since, enum api_metrics_format format, bool with_gzip,
                                  struct api_response *response, struct api_budget *budget);

/* Frees lines that were made more than `seconds` ago, unless a response has them. */
void api_monitor_metrics_trim(struct api_monitor_metrics *metrics, double seconds);
