#include "api/monitors/exposition.h"

#include "api/monitors/write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* families: `offset` is that of a double in api_summary; others have lines of their own. */
static const struct family {
    const char *name, *type, *help;
    size_t offset;
    void (*write)(const struct api_monitor *monitor, const char *name, const char *labels,
                  struct api_buffer *out);
} families[];

static void write_value(struct api_buffer *out, double value)
{
    if (isfinite(value))
        api_write_number(out, value);
    else
        api_append_text(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    api_append(out, "\n", 1);
}

static void write_line(struct api_buffer *out, const char *name, const char *labels, double value)
{
    api_append_text(out, name);
    api_append_text(out, labels);
    api_append(out, "} ", 2);
    write_value(out, value);
}

/* Writes a score of the last closed window, unless there is none. */
static void write_summary(const struct api_monitor *monitor, const struct family *family,
                          const char *labels, struct api_buffer *out)
{
    const char *last = (const char *)&monitor->live.last;
    double value;
    memcpy(&value, last + family->offset, sizeof value);
    if (monitor->live.has_last && !isnan(value))
        write_line(out, family->name, labels, value);
}

static void write_end(const struct api_monitor *monitor, const char *name, const char *labels,
                      struct api_buffer *out)
{
    if (monitor->live.has_last)
        write_line(out, name, labels, (double)monitor->live.last.end / 1e6);
}

static void write_thresholds(const struct api_monitor *monitor, const char *name,
                             const char *labels, struct api_buffer *out)
{
    const struct api_settings *settings = &monitor->config->settings;
    const struct {
        const char *severity;
        double value;
    } thresholds[] = {{"warning", settings->warning}, {"critical", settings->critical}};
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        api_append_format(out, "%s%s,severity=\"%s\"} ", name, labels, thresholds[i].severity);
        write_value(out, thresholds[i].value);
    }
}

static void write_state(const struct api_monitor *monitor, const char *name, const char *labels,
                        struct api_buffer *out)
{
    for (size_t i = 0; i < API_VERDICTS; i++)
        api_append_format(out, "%s%s,state=\"%s\"} %d\n", name, labels, api_verdict_names[i],
                          monitor->live.state == (enum api_verdict)i);
}

static void write_total(const struct api_monitor *monitor, const char *name, const char *labels,
                        struct api_buffer *out)
{
    write_line(out, name, labels, (double)monitor->live.observations);
}

static void write_last_observation(const struct api_monitor *monitor, const char *name,
                                   const char *labels, struct api_buffer *out)
{
    if (monitor->live.last_observation != API_NO_TIME)
        write_line(out, name, labels, (double)monitor->live.last_observation / 1e6);
}

static const struct family families[] = {
#define SCORE(name) offsetof(struct api_summary, name), NULL
    {"kldiv_monitor_kl_divergence_nats", "gauge",
     "KL(current || reference) of the last closed window.", SCORE(kl)},
    {"kldiv_monitor_js_divergence_nats", "gauge",
     "Jensen-Shannon divergence of the last closed window.", SCORE(js)},
    {"kldiv_monitor_population_stability_index", "gauge",
     "Population stability index of the last closed window.", SCORE(psi)},
    {"kldiv_monitor_unseen_ratio", "gauge",
     "Part of the last closed window in bins where the reference has nothing.",
     SCORE(unseen_ratio)},
    {"kldiv_monitor_missing_ratio", "gauge", "Missing part of the last closed window.",
     SCORE(missing_ratio)},
    {"kldiv_monitor_window_observations", "gauge", "Observations in the last closed window.",
     SCORE(n)},
    {"kldiv_monitor_window_end_timestamp_seconds", "gauge", "End of the last closed window.", 0,
     write_end},
    {"kldiv_monitor_threshold_nats", "gauge", "Divergence from which a severity applies.", 0,
     write_thresholds},
    {"kldiv_monitor_state", "gauge", "1 for the state that the monitor is in, else 0.", 0,
     write_state},
    {"kldiv_monitor_observations_total", "counter", "Observations stored.", 0, write_total},
    {"kldiv_monitor_last_observation_timestamp_seconds", "gauge", "Time of the newest observation.",
     0, write_last_observation},
};
#define N_FAMILIES (sizeof families / sizeof *families)

/* Appends a label's value, escaped as the text format wants it. */
static void append_label(struct api_buffer *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\\' || *text == '"')
            api_append_format(out, "\\%c", *text);
        else
            api_append(out, text, 1);
}

/* Makes the lines of a monitor: for each family in order, its lines, then a NUL. */
static void expose(struct api_monitor *monitor)
{
    struct api_buffer labels = {0}, out = {0};
    api_append_text(&labels, "{group=\"");
    append_label(&labels, monitor->group);
    api_append_text(&labels, "\",monitor=\"");
    append_label(&labels, monitor->name);
    api_append(&labels, "\"", 2);
    for (size_t i = 0; i < N_FAMILIES && !labels.failed; i++) {
        if (families[i].write)
            families[i].write(monitor, families[i].name, labels.data, &out);
        else
            write_summary(monitor, &families[i], labels.data, &out);
        api_append(&out, "", 1);
    }
    char *text = out.failed || labels.failed ? NULL : malloc(out.size);
    if (text) {
        memcpy(text, out.data, out.size);
        free(monitor->metrics);
        monitor->metrics = text;
        monitor->exposed = true;
    }
    api_buffer_free(&labels);
    api_buffer_free(&out);
}

void api_registry_refresh(struct api_registry *registry)
{
    pthread_rwlock_wrlock(&registry->lock);
    for (size_t i = 0; i < registry->n; i++)
        if (!registry->monitors[i]->exposed)
            expose(registry->monitors[i]);
    pthread_rwlock_unlock(&registry->lock);
}

/* Lines of a family: the text after so many NULs. */
static const char *lines_of(const struct api_monitor *monitor, size_t family)
{
    const char *text = monitor->metrics;
    while (text && family-- > 0)
        text += strlen(text) + 1;
    return text ? text : "";
}

void api_registry_expose(const struct api_registry *registry, struct api_buffer *out)
{
    for (size_t i = 0; i < N_FAMILIES && registry->n > 0; i++) {
        api_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", families[i].name, families[i].help,
                          families[i].name, families[i].type);
        for (size_t j = 0; j < registry->n; j++)
            api_append_text(out, lines_of(registry->monitors[j], i));
    }
}
