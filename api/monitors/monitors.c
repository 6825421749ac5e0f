#include "api/monitors/monitors.h"

#include "api/metrics/metrics.h"
#include "api/monitors/batch.h"
#include "api/monitors/rows/touch.h"
#include "api/notify/notifier.h"

#include <stdio.h>
#include <stdlib.h>

static bool init_lock(struct api_monitors *monitors)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&monitors->wake, &attributes) == 0 &&
                pthread_cond_init(&monitors->probe, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return good && pthread_mutex_init(&monitors->lock, NULL) == 0 &&
           pthread_mutex_init(&monitors->known.lock, NULL) == 0;
}

/* Reads of each monitor whether it can be read, which is told. */
static bool read_all(struct api_monitors *monitors)
{
    (void)monitors;
    return true;
}

struct api_monitors *api_monitors_open(const char *location, size_t max_monitors,
                                       struct api_budget *budget, char *reason, size_t size)
{
    struct api_monitors *monitors = calloc(1, sizeof *monitors);
    snprintf(reason, size, "no memory is left");
    if (!monitors)
        return NULL;
    monitors->max_monitors = max_monitors;
    monitors->budget = budget;
    if (init_lock(monitors) && api_monitor_metrics_init(&monitors->metrics))
        monitors->store = api_store_open(location, reason, size);
    atomic_store(&monitors->stored, monitors->store && api_store_is_open(monitors->store));
    if (monitors->store && !api_monitors_are_stored(monitors))
        api_outage_note(&monitors->outage, api_now(), api_store_reason(monitors->store));
    if (monitors->store &&
        (!api_monitors_are_stored(monitors) || api_transact(monitors, NULL, read_all)))
        return monitors;
    if (monitors->store)
        snprintf(reason, size, "it cannot be read: %s", api_store_reason(monitors->store));
    api_monitors_free(monitors);
    return NULL;
}

void api_monitors_limit_store(struct api_monitors *monitors, size_t bytes)
{
    monitors->max_store = (int64_t)bytes;
}

void api_monitors_expose_groups_only(struct api_monitors *monitors)
{
    monitors->metrics.groups_only = true;
}

void api_monitors_notify(struct api_monitors *monitors, struct api_notifier *notifier)
{
    monitors->notifier = notifier;
}

struct api_store *api_monitors_store(struct api_monitors *monitors) { return monitors->store; }

void api_monitors_free(struct api_monitors *monitors)
{
    if (!monitors)
        return;
    api_monitor_metrics_free(&monitors->metrics, monitors->budget);
    api_touch_forget(monitors);
    api_known_forget(&monitors->known, NULL);
    api_buffer_free(&monitors->mutes.rows);
    api_buffer_free(&monitors->unreadable);
    api_store_close(monitors->store);
    api_budget_forget(monitors->budget, monitors->counted);
    pthread_cond_destroy(&monitors->wake);
    pthread_cond_destroy(&monitors->probe);
    pthread_mutex_destroy(&monitors->lock);
    pthread_mutex_destroy(&monitors->known.lock);
    api_buffer_free(&monitors->load_errors);
    free(monitors);
}

bool api_monitors_are_stored(const struct api_monitors *monitors)
{
    return atomic_load(&monitors->stored);
}

/* SILENCE: seconds after which a database that does not answer is down. */
#define SILENCE 5

bool api_monitors_outage(struct api_monitors *monitors, struct api_outage *outage)
{
    double silence = api_store_silence(monitors->store);
    pthread_mutex_lock(&monitors->lock);
    *outage = monitors->outage;
    pthread_mutex_unlock(&monitors->lock);
    if (outage->since == 0 && silence > SILENCE) {
        outage->since = api_now() - (int64_t)(silence * API_SECOND_US);
        snprintf(outage->error, sizeof outage->error, "the database does not answer");
    }
    return outage->since != 0;
}

size_t api_monitors_count(const struct api_monitors *monitors)
{
    return atomic_load(&monitors->n_at_start);
}

void api_monitors_write_store(struct api_monitors *monitors, const struct api_token *token,
                              struct api_buffer *out)
{
    struct api_outage outage;
    api_metrics_value(out, "kldiv_store_up",
                      "1 if the last write to the store worked, and the database has not been "
                      "silent for 5 s, else 0.",
                      !api_monitors_outage(monitors, &outage));
    api_metrics_value(out, "kldiv_store_size_bytes",
                      "Bytes that the store takes, without free ones.",
                      (double)atomic_load(&monitors->size));
    api_store_metrics_write(&monitors->store_metrics, out);
    if (monitors->notifier)
        api_notifier_write_metrics(monitors->notifier, token, out);
}

void api_monitors_trim(struct api_monitors *monitors, double seconds)
{
    api_monitor_metrics_trim(&monitors->metrics, monitors->budget, seconds);
}
