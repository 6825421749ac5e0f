/* The metrics of monitors, for Prometheus: the lines of all monitors as they were at one moment. Responses that are
 * asked for while lines are made get the next lines, which they share. */
#pragma once

#include "api/memory/buffer.h"
#include "api/metrics/metrics.h"
#include "api/monitors/model/window.h"
#include "api/request/exchange.h"

#include <pthread.h>

/* api_monitor_metrics: the last lines. The lock is held while others are made, which takes 50 ms for 10,000 monitors. */
struct api_monitor_metrics {
    bool groups_only; /* without lines of single monitors; set before the first scrape */
    pthread_mutex_t lock;
    struct api_metrics_text {
        double since, used; /* times of api_seconds: before the rows were read; of the last use */
        struct api_shared *lines; /* NULL if there are none */
        struct api_shared *gzip; /* the same as the begin of a gzip stream; NULL if not asked for */
        uint32_t crc;            /* of the lines; valid with `gzip` */
        size_t kept;             /* bytes of both, which outlive requests */
    } texts[API_METRICS_FORMATS];
};

bool api_monitor_metrics_init(struct api_monitor_metrics *metrics);
void api_monitor_metrics_free(struct api_monitor_metrics *metrics, struct api_budget *budget);

/* api_metric_sample: the numbers of a monitor at one moment. Its labels, `{group="g",monitor="m"` and a NUL, are in a buffer beside. NaN is a number that it does not have. */
struct api_metric_sample {
    size_t labels; /* offset of the begin of its labels */
    size_t group;  /* bytes of the first one, `{group="g"` */
    double kl, js, psi, unseen_ratio, missing_ratio, volume_ratio, n,
        end; /* of the last closed window */
    double warning, critical;
    double observations, last_observation;
    double stale, muted;
    enum api_verdict state;
};

/* api_metric_samples: numbers of monitors, as their rows have them. Zeroed, but for the budget of its buffers. */
struct api_metric_samples {
    double since;  /* time before they were read; 0 if they were not ... */
    bool is_short; /* ... because memory is exhausted */
    struct api_buffer of_monitors, labels;
};
void api_metric_samples_free(struct api_metric_samples *samples);
size_t api_metric_samples_count(const struct api_metric_samples *samples);

/* Makes the lines of samples, if they were read, which it frees; of a token that is for some groups alone for this response.
 * If memory does not allow new lines, the last ones stay; false if there are none either. */
bool api_monitor_metrics_update(struct api_monitor_metrics *metrics,
                                struct api_metric_samples *samples, const struct api_token *token,
                                enum api_metrics_format format, struct api_response *response,
                                struct api_budget *budget);

/* Adds the last lines, if there are any, to a response; its body, which is complete, comes after them. Both are compressed if
 * `with_gzip` is true and memory allows it. */
void api_monitor_metrics_response(struct api_monitor_metrics *metrics,
                                  const struct api_token *token, enum api_metrics_format format,
                                  bool with_gzip, struct api_response *response,
                                  struct api_budget *budget);

/* Frees lines that were not used for `seconds`, unless a response has them. */
void api_monitor_metrics_trim(struct api_monitor_metrics *metrics, struct api_budget *budget,
                              double seconds);
