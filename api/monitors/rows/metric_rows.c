#include "api/monitors/rows/metric_rows.h"

#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/rows/rows.h"

#include <math.h>

/* Appends a label's value, escaped as the text format wants it. */
static void append_label(struct api_buffer *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\\' || *text == '"')
            api_append_format(out, "\\%c", *text);
        else
            api_append(out, text, 1);
}

static double seconds(int64_t time) { return time == API_NO_TIME ? NAN : (double)time / 1e6; }

/* reading: rows that become samples. */
struct reading {
    struct api_metric_samples *samples;
    const struct api_monitors *monitors;
    const struct api_token *token;
};

static void add_sample(void *context, const struct api_monitor *monitor)
{
    const struct reading *reading = context;
    struct api_buffer *labels = &reading->samples->labels;
    if (!api_token_has_group(reading->token, monitor->group))
        return;
    const struct api_monitor_state state = api_monitor_state_of(monitor, &reading->monitors->mutes);
    const struct api_monitor_status *status = &monitor->status;
    const struct api_scores *last = &status->last.scores;
    size_t begin = labels->size;
    api_append_text(labels, "{group=\"");
    append_label(labels, monitor->group);
    api_append(labels, "\"", 1);
    const struct api_metric_sample sample = {
        .labels = begin,
        .group = labels->size - begin,
        .kl = last->drift.kl,
        .js = last->drift.js,
        .psi = last->drift.psi,
        .unseen_ratio = last->drift.unseen_ratio,
        .missing_ratio = last->missing_ratio,
        .volume_ratio = last->volume.ratio > 0 ? last->volume.ratio : (double)NAN,
        .n = status->last.n,
        .end = seconds(status->last.end),
        .warning = monitor->warning,
        .critical = monitor->critical,
        .observations = (double)status->observations,
        .last_observation = seconds(status->last_observation),
        .stale = state.stale,
        .muted = state.mute.until != API_NO_TIME,
        .state = status->state};
    api_append(&reading->samples->of_monitors, &sample, sizeof sample);
    api_append_text(labels, ",monitor=\"");
    append_label(labels, monitor->name);
    api_append(labels, "\"", 2);
}

bool api_metric_samples_read(struct api_monitors *monitors, const struct api_token *token,
                             enum api_metrics_format format, double since,
                             struct api_metric_samples *samples)
{
    const struct reading reading = {samples, monitors, token};
    struct api_monitor_metrics *metrics = &monitors->metrics;
    double now = api_seconds();
    api_metric_samples_free(samples);
    pthread_mutex_lock(&metrics->lock);
    bool is_new = metrics->texts[format].lines && metrics->texts[format].since >= since;
    pthread_mutex_unlock(&metrics->lock);
    if (is_new && !api_token_is_bound(token))
        return true;
    if (!api_mutes_read(monitors, &monitors->mutes) ||
        !api_each_row(monitors, NULL, add_sample, (void *)&reading))
        return false;
    if (samples->of_monitors.failed || samples->labels.failed)
        return api_transaction_fail_oom(monitors);
    samples->since = now;
    return true;
}
