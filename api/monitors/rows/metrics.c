#include "api/monitors/rows/metrics.h"

#include "api/json/format.h"
#include "api/metrics/metrics.h"
#include "api/request/coding.h"
#include "api/request/response.h"
#include "api/text/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers of monitors */

size_t api_metric_samples_count(const struct api_metric_samples *samples)
{
    return samples->of_monitors.size / sizeof(struct api_metric_sample);
}

void api_metric_samples_free(struct api_metric_samples *samples)
{
    api_buffer_free(&samples->of_monitors);
    api_buffer_free(&samples->labels);
    samples->since = 0;
    samples->is_short = false;
}

/* Samples are sorted by their labels. */
static int compare(const void *a, const void *b, void *labels)
{
    const struct api_metric_sample *first = a, *second = b;
    return strcmp((const char *)labels + first->labels, (const char *)labels + second->labels);
}

/* ---- Lines */

static void write_value(struct api_buffer *out, double value)
{
    if (isfinite(value))
        api_write_number(out, value);
    else
        api_append_text(out, value > 0 ? "+Inf" : "-Inf");
    api_append(out, "\n", 1);
}

/* families: a value of each monitor, the double at `offset` in struct api_metric_sample; or 1 in one state, and 0 in the others. Rows
 * without a type are lines of the family before, with another label. */
static const struct family {
    const char *name, *type, *help;
    const char *label; /* after those of the monitor */
    size_t offset;     /* NO_OFFSET: of a state */
    enum api_verdict state;
} families[] = {
#define NO_OFFSET SIZE_MAX
#define VALUE(member) "", offsetof(struct api_metric_sample, member), API_OK
#define THRESHOLD(member)                                                                          \
    ",severity=\"" #member "\"", offsetof(struct api_metric_sample, member), API_OK
#define STATE(name, state) ",state=\"" name "\"", NO_OFFSET, state
    {"kldiv_monitor_kl_divergence_nats", "gauge",
     "KL(current || reference) of the last closed window.", VALUE(kl)},
    {"kldiv_monitor_js_divergence_nats", "gauge",
     "Jensen-Shannon divergence of the last closed window.", VALUE(js)},
    {"kldiv_monitor_population_stability_index", "gauge",
     "Population stability index of the last closed window.", VALUE(psi)},
    {"kldiv_monitor_unseen_ratio", "gauge",
     "Fraction of the last closed window in bins where the reference has none.",
     VALUE(unseen_ratio)},
    {"kldiv_monitor_missing_ratio", "gauge",
     "Fraction of missing values in the last closed window.", VALUE(missing_ratio)},
    {"kldiv_monitor_window_observations", "gauge", "Observations in the last closed window.",
     VALUE(n)},
    {"kldiv_monitor_volume_ratio", "gauge",
     "Observations in the last closed window, divided by what is usual.", VALUE(volume_ratio)},
    {"kldiv_monitor_window_end_timestamp_seconds", "gauge", "End of the last closed window.",
     VALUE(end)},
    {"kldiv_monitor_threshold_nats", "gauge", "Divergence from which a severity applies.",
     THRESHOLD(warning)},
    {"kldiv_monitor_threshold_nats", NULL, NULL, THRESHOLD(critical)},
    {"kldiv_monitor_state", "gauge", "1 for the state that the monitor is in, else 0.",
     STATE("insufficient_data", API_INSUFFICIENT)},
    {"kldiv_monitor_state", NULL, NULL, STATE("ok", API_OK)},
    {"kldiv_monitor_state", NULL, NULL, STATE("warning", API_WARNING)},
    {"kldiv_monitor_state", NULL, NULL, STATE("critical", API_CRITICAL)},
    {"kldiv_monitor_stale", "gauge",
     "1 if the monitor has had no observation for as long as stale_after says, else 0.",
     VALUE(stale)},
    {"kldiv_monitor_muted", "gauge", "1 if nobody is to be told about the monitor now, else 0.",
     VALUE(muted)},
    {"kldiv_monitor_observations_total", "counter", "Observations stored.", VALUE(observations)},
    {"kldiv_monitor_last_observation_timestamp_seconds", "gauge", "Time of the newest observation.",
     VALUE(last_observation)},
};
#define N_FAMILIES (sizeof families / sizeof *families)

static void write_sample(const struct api_metric_sample *sample, const struct family *family,
                         const char *labels, struct api_buffer *out)
{
    double value = sample->state == family->state;
    if (family->offset != NO_OFFSET)
        memcpy(&value, (const char *)sample + family->offset, sizeof value);
    if (isnan(value))
        return;
    api_append_text(out, family->name);
    api_append_text(out, labels);
    api_append_text(out, family->label);
    api_append(out, "} ", 2);
    write_value(out, value);
}

/* Writes how many monitors of each group are in each state; samples of a group follow one another. */
static void write_groups(const struct api_metric_samples *samples, struct api_buffer *out)
{
    static const char name[] = "kldiv_group_monitors";
    const struct api_metric_sample *of_monitors = (const void *)samples->of_monitors.data;
    size_t n = samples->of_monitors.size / sizeof *of_monitors, states[API_VERDICTS] = {0};
    if (n > 0)
        api_metrics_head(out, name, "gauge", "Monitors of the group by state.");
    for (size_t i = 0; i < n && !out->failed; i++) {
        const struct api_metric_sample *this = &of_monitors[i], *next = this + 1;
        const char *labels = samples->labels.data + this->labels;
        states[this->state]++;
        if (i + 1 < n && next->group == this->group &&
            memcmp(samples->labels.data + next->labels, labels, this->group) == 0)
            continue;
        for (size_t state = 0; state < API_VERDICTS; state++) {
            api_append_text(out, name);
            api_append(out, labels, this->group);
            api_append_format(out, ",state=\"%s\"} %zu\n", api_verdict_names[state], states[state]);
            states[state] = 0;
        }
    }
}

static void write_lines(const struct api_metric_samples *samples, bool groups_only,
                        struct api_buffer *out)
{
    const struct api_metric_sample *of_monitors = (const void *)samples->of_monitors.data;
    size_t n = samples->of_monitors.size / sizeof *of_monitors;
    for (size_t i = 0, end; i < N_FAMILIES && n > 0 && !groups_only; i = end) {
        for (end = i + 1; end < N_FAMILIES && !families[end].type;)
            end++;
        api_metrics_head(out, families[i].name, families[i].type, families[i].help);
        for (size_t j = 0; j < n && !out->failed; j++)
            for (size_t line = i; line < end; line++)
                write_sample(&of_monitors[j], &families[line],
                             samples->labels.data + of_monitors[j].labels, out);
    }
    write_groups(samples, out);
}

/* ---- Making */

bool api_monitor_metrics_init(struct api_monitor_metrics *metrics)
{
    return pthread_mutex_init(&metrics->lock, NULL) == 0;
}

/* Notes how many bytes of a text outlive requests. */
static void note_kept(struct api_metrics_text *text, struct api_budget *budget)
{
    api_budget_keep_no_more(budget, text->kept);
    text->kept = (text->lines ? text->lines->bytes.capacity : 0) +
                 (text->gzip ? text->gzip->bytes.capacity : 0);
    api_budget_keep(budget, text->kept);
}

static void drop(struct api_metrics_text *text)
{
    api_shared_release(text->lines);
    api_shared_release(text->gzip);
    text->lines = text->gzip = NULL;
}

void api_monitor_metrics_free(struct api_monitor_metrics *metrics, struct api_budget *budget)
{
    api_monitor_metrics_trim(metrics, budget, 0);
    pthread_mutex_destroy(&metrics->lock);
}

/* Writes all lines of samples. */
static bool fill(const struct api_monitor_metrics *metrics, struct api_metric_samples *samples,
                 enum api_metrics_format format, struct api_buffer *out)
{
    size_t n = api_metric_samples_count(samples);
    if (n > 0)
        qsort_r(samples->of_monitors.data, n, sizeof(struct api_metric_sample), compare,
                samples->labels.data);
    out->size = 0;
    write_lines(samples, metrics->groups_only, out);
    if (format == API_METRICS_OPEN)
        api_metrics_open(out);
    return !out->failed;
}

/* Reserves memory for lines that may be a sixteenth more than the last ones; without it, fewer may do. */
static void reserve(struct api_buffer *lines, size_t last)
{
    (void)api_buffer_reserve(lines, last + last / 16);
    lines->failed = false;
}

/* Makes the lines of samples; NULL if memory is exhausted. */
static struct api_shared *make_lines(const struct api_monitor_metrics *metrics,
                                     struct api_metric_samples *samples,
                                     enum api_metrics_format format, struct api_budget *budget)
{
    const struct api_shared *last = metrics->texts[format].lines;
    struct api_shared *lines = api_shared_new(budget);
    if (lines && last)
        reserve(&lines->bytes, last->bytes.size);
    if (lines && fill(metrics, samples, format, &lines->bytes))
        return lines;
    api_shared_release(lines);
    return NULL;
}

/* True if a text has lines that no response holds. */
static bool is_idle(const struct api_metrics_text *text)
{
    return text->lines && atomic_load(&text->lines->refcount) == 1;
}

/* Makes new lines in the place of the last ones, if samples were read: in their memory, if nobody reads them and there is
 * no other. */
static void renew(struct api_monitor_metrics *metrics, struct api_metric_samples *samples,
                  enum api_metrics_format format, struct api_budget *budget)
{
    struct api_metrics_text *text = &metrics->texts[format];
    if (samples->since <= text->since)
        return;
    struct api_shared *lines = make_lines(metrics, samples, format, budget);
    if (!lines && text->lines && !is_idle(text))
        return;
    if (!lines && text->lines) {
        reserve(&text->lines->bytes, text->lines->bytes.size);
        if (fill(metrics, samples, format, &text->lines->bytes))
            lines = api_shared_hold(text->lines);
    }
    drop(text);
    text->lines = lines;
    text->since = samples->since;
}

static bool compress(struct api_metrics_text *text, struct api_budget *budget)
{
    if (text->gzip)
        return true;
    struct api_shared *gzip = api_shared_new(budget);
    if (!gzip || !api_gzip_begin(&text->lines->bytes, &text->crc, &gzip->bytes)) {
        api_shared_release(gzip);
        return false;
    }
    api_buffer_trim(&gzip->bytes);
    text->gzip = gzip;
    return true;
}

/* Replaces the body, which ends the stream, by its compressed form. */
static bool response_gzip(const struct api_metrics_text *text, struct api_response *response)
{
    struct api_buffer end = {.budget = response->body.budget};
    if (!api_gzip_end(&response->body, text->crc, text->lines->bytes.size, &end)) {
        api_buffer_free(&end);
        return false;
    }
    api_buffer_free(&response->body);
    response->body = end;
    response->shared = api_shared_hold(text->gzip);
    api_response_header(response, "Content-Encoding", "gzip");
    return true;
}

bool api_monitor_metrics_update(struct api_monitor_metrics *metrics,
                                struct api_metric_samples *samples, const struct api_token *token,
                                enum api_metrics_format format, struct api_response *response,
                                struct api_budget *budget)
{
    bool has_lines, needs_lines = samples->since > 0 || samples->is_short;
    if (api_token_is_bound(token)) {
        response->shared = samples->since > 0 ? make_lines(metrics, samples, format, budget) : NULL;
        has_lines = response->shared != NULL;
    } else {
        pthread_mutex_lock(&metrics->lock);
        renew(metrics, samples, format, budget);
        has_lines = metrics->texts[format].lines != NULL;
        note_kept(&metrics->texts[format], budget);
        pthread_mutex_unlock(&metrics->lock);
    }
    api_metric_samples_free(samples);
    return has_lines || !needs_lines;
}

void api_monitor_metrics_response(struct api_monitor_metrics *metrics,
                                  const struct api_token *token, enum api_metrics_format format,
                                  bool with_gzip, struct api_response *response,
                                  struct api_budget *budget)
{
    struct api_metrics_text *text = &metrics->texts[format];
    if (api_token_is_bound(token))
        return;
    pthread_mutex_lock(&metrics->lock);
    text->used = api_seconds();
    if (text->lines && text->lines->bytes.size > 0 &&
        !(with_gzip && compress(text, budget) && response_gzip(text, response)))
        response->shared = api_shared_hold(text->lines);
    note_kept(text, budget);
    pthread_mutex_unlock(&metrics->lock);
}

void api_monitor_metrics_trim(struct api_monitor_metrics *metrics, struct api_budget *budget,
                              double seconds)
{
    pthread_mutex_lock(&metrics->lock);
    for (struct api_metrics_text *text = metrics->texts;
         text < metrics->texts + API_METRICS_FORMATS; text++)
        if (text->lines && api_seconds() - text->used >= seconds) {
            drop(text);
            note_kept(text, budget);
        }
    pthread_mutex_unlock(&metrics->lock);
}
