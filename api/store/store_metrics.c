#include "api/store/store_metrics.h"

#include "api/metrics/metrics.h"
#include "api/text/clock.h"

#include <stdio.h>

static const double bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5};
#define N_BOUNDS (sizeof bounds / sizeof *bounds)

static const char *const names[API_OPERATIONS] = {"write", "commit"};
static const char *const labels[API_OPERATIONS] = {"operation=\"write\",", "operation=\"commit\","};

/* Factor from seconds to the microseconds in which sums are kept. */
#define MICRO 1e6

void api_store_metrics_add(struct api_store_metrics *metrics, enum api_operation operation,
                           double start, bool good)
{
    api_histogram_add(&metrics->operations[operation].seconds, bounds, N_BOUNDS,
                      api_seconds() - start, MICRO);
    if (!good)
        atomic_fetch_add(&metrics->operations[operation].errors, 1);
}

void api_store_metrics_write(const struct api_store_metrics *metrics, struct api_buffer *out)
{
    api_metrics_head(out, "kldiv_store_errors_total", "counter",
                     "Operations of the store that failed.");
    for (size_t i = 0; i < API_OPERATIONS; i++)
        api_append_format(out, "kldiv_store_errors_total{operation=\"%s\"} %lu\n", names[i],
                          atomic_load(&metrics->operations[i].errors));
    api_metrics_head(out, "kldiv_store_operation_duration_seconds", "histogram",
                     "Transactions of the store: writing them, and waiting for the disk.");
    for (size_t i = 0; i < API_OPERATIONS; i++)
        api_histogram_write(out, "kldiv_store_operation_duration_seconds", labels[i],
                            &metrics->operations[i].seconds, bounds, N_BOUNDS, MICRO);
}

void api_outage_note(struct api_outage *outage, int64_t now, const char *reason)
{
    if (outage->since == 0)
        outage->since = now;
    snprintf(outage->error, sizeof outage->error, "%s", reason);
    for (char *p = outage->error; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
}
