#include "api/monitors/state/metrics.h"

#include "api/json/format.h"
#include "api/metrics/metrics.h"
#include "api/request/coding.h"
#include "api/request/response.h"
#include "api/text/clock.h"

#include <math.h>
#include <string.h>

/* ---- Numbers of monitors */

/* sample: the numbers of a monitor at one moment. NaN is a number that it does not have. */
struct sample {
    size_t labels; /* offset of the begin of its labels */
    size_t group;  /* bytes of the first one, `{group="g"` */
    double kl, js, psi, unseen_ratio, missing_ratio, n, end; /* of the last closed window */
    double warning, critical;
    double observations, last_observation;
    double stale, muted;
    enum api_verdict state;
};

/* samples: those of all monitors. Each one's labels, `{group="g",monitor="m"` and a NUL, are in `labels`. */
struct samples {
    struct api_buffer of_monitors, labels;
};

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

static void add_sample(struct samples *samples, const struct api_registry *registry,
                       const struct api_monitor *monitor)
{
    const struct api_monitor_state state = api_monitor_state_of(registry, monitor);
    const struct api_monitor_status *status = &monitor->status;
    const struct api_window *last = &status->last;
    struct api_buffer *labels = &samples->labels;
    size_t begin = labels->size;
    api_append_text(labels, "{group=\"");
    append_label(labels, monitor->group);
    api_append(labels, "\"", 1);
    const struct sample sample = {.labels = begin,
                                  .group = labels->size - begin,
                                  .kl = last->scores.drift.kl,
                                  .js = last->scores.drift.js,
                                  .psi = last->scores.drift.psi,
                                  .unseen_ratio = last->scores.drift.unseen_ratio,
                                  .missing_ratio = last->scores.missing_ratio,
                                  .n = last->n,
                                  .end = seconds(last->end),
                                  .warning = monitor->config->settings.warning,
                                  .critical = monitor->config->settings.critical,
                                  .observations = (double)status->observations,
                                  .last_observation = seconds(status->last_observation),
                                  .stale = state.stale,
                                  .muted = state.mute.until != API_NO_TIME,
                                  .state = status->state};
    api_append(&samples->of_monitors, &sample, sizeof sample);
    api_append_text(labels, ",monitor=\"");
    append_label(labels, monitor->name);
    api_append(labels, "\"", 2);
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

/* families: a value of each monitor, the double at `offset` in struct sample; or 1 in one state, and 0 in the others. Rows
 * without a type are lines of the family before, with another label. */
static const struct family {
    const char *name, *type, *help;
    const char *label; /* after those of the monitor */
    size_t offset;     /* NO_OFFSET: of a state */
    enum api_verdict state;
} families[] = {
#define NO_OFFSET SIZE_MAX
#define VALUE(member) "", offsetof(struct sample, member), API_OK
#define THRESHOLD(member) ",severity=\"" #member "\"", offsetof(struct sample, member), API_OK
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

static void write_sample(const struct sample *sample, const struct family *family,
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
static void write_groups(const struct samples *samples, struct api_buffer *out)
{
    static const char name[] = "kldiv_group_monitors";
    const struct sample *of_monitors = (const void *)samples->of_monitors.data;
    size_t n = samples->of_monitors.size / sizeof *of_monitors, states[API_VERDICTS] = {0};
    if (n > 0)
        api_metrics_head(out, name, "gauge", "Monitors of the group by state.");
    for (size_t i = 0; i < n && !out->failed; i++) {
        const struct sample *this = &of_monitors[i], *next = this + 1;
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

/* HEADS: bytes of the heads of all families, at most. */
enum { HEADS = 4 << 10 };

static void write_lines(const struct samples *samples, bool groups_only, struct api_buffer *out)
{
    const struct sample *of_monitors = (const void *)samples->of_monitors.data;
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

/* ---- Their size */

static size_t escaped_size(const char *text)
{
    size_t size = 0;
    for (; *text; text++)
        size += *text == '\\' || *text == '"' ? 2 : 1;
    return size;
}

/* sizes: bytes of the lines of monitors, at most; of their numbers, and of their labels. */
struct sizes {
    size_t lines, numbers, labels;
};

static void add_size(struct sizes *sizes, const char *group, const char *name, bool groups_only)
{
    /* LINES of a monitor: seven values, two thresholds, four states, four more values, four of its group, which may
     * have no other; LINE: the longest
     * name, a severity or a state, a number; LABELS: their names and quotes. */
    enum { LINES = 21, LINES_OF_GROUP = 4, LINE = 48 + 32 + 28, LABELS = 24 };
    size_t labels = LABELS + escaped_size(group) + escaped_size(name);
    sizes->lines += (groups_only ? LINES_OF_GROUP : LINES) * (LINE + labels);
    sizes->numbers += sizeof(struct sample);
    sizes->labels += labels;
}

size_t api_monitor_size(const char *group, const char *name)
{
    enum { OVERHEAD = 64 }; /* allocations, and a pointer in a list that doubles */
    struct sizes sizes = {0};
    add_size(&sizes, group, name, false);
    return sizeof(struct api_monitor) + OVERHEAD + strlen(group) + strlen(name) + sizes.lines +
           sizes.numbers + sizes.labels;
}

/* ---- Making */

bool api_monitor_metrics_init(struct api_monitor_metrics *metrics)
{
    return pthread_mutex_init(&metrics->lock, NULL) == 0 &&
           pthread_mutex_init(&metrics->paid.lock, NULL) == 0;
}

static void drop(struct api_metrics_text *text)
{
    api_shared_release(text->lines);
    api_shared_release(text->gzip);
    text->lines = text->gzip = NULL;
}

void api_monitor_metrics_free(struct api_monitor_metrics *metrics)
{
    for (size_t i = 0; i < API_METRICS_FORMATS; i++)
        drop(&metrics->texts[i]);
    api_budget_trim(&metrics->paid, 0);
    pthread_mutex_destroy(&metrics->paid.lock);
    pthread_mutex_destroy(&metrics->lock);
}

/* Makes the lines of the monitors that a token is for, on a budget; NULL if memory is exhausted. If the token is for
 * all monitors, the budget is the memory that monitors have counted: whole blocks of numbers, labels and lines, and
 * the part of a budget that only small blocks may have. */
static struct api_shared *make_lines(struct api_monitor_metrics *metrics,
                                     struct api_registry *registry, const struct api_token *token,
                                     enum api_metrics_format format, struct api_budget *budget)
{
    struct sizes sizes = {.lines = HEADS};
    pthread_rwlock_rdlock(&registry->lock);
    for (size_t i = 0; i < registry->n; i++)
        if (api_token_has_group(token, registry->monitors[i]->group))
            add_size(&sizes, registry->monitors[i]->group, registry->monitors[i]->name,
                     metrics->groups_only);
    size_t size =
        api_block_size(sizes.lines) + api_block_size(sizes.numbers) + api_block_size(sizes.labels);
    if (!api_token_is_bound(token))
        metrics->paid.limit = size + size / 16;
    struct samples samples = {{.budget = budget}, {.budget = budget}};
    bool good = api_buffer_reserve(&samples.of_monitors, sizes.numbers) &&
                api_buffer_reserve(&samples.labels, sizes.labels);
    for (size_t i = 0; good && i < registry->n; i++)
        if (api_token_has_group(token, registry->monitors[i]->group))
            add_sample(&samples, registry, registry->monitors[i]);
    pthread_rwlock_unlock(&registry->lock);
    struct api_shared *lines = good && !samples.labels.failed ? api_shared_new(budget) : NULL;
    good = lines && api_buffer_reserve(&lines->bytes, sizes.lines);
    if (good)
        write_lines(&samples, metrics->groups_only, &lines->bytes);
    if (good && format == API_METRICS_OPEN)
        api_metrics_open(&lines->bytes);
    api_buffer_free(&samples.of_monitors);
    api_buffer_free(&samples.labels);
    if (good && !lines->bytes.failed)
        return lines;
    api_shared_release(lines);
    return NULL;
}

/* True if a text has lines that no response holds. */
static bool is_idle(const struct api_metrics_text *text)
{
    return text->lines && atomic_load(&text->lines->refcount) == 1;
}

/* Makes new lines in the memory that is counted already, or on the budget while responses hold the lines in it. */
static bool renew(struct api_monitor_metrics *metrics, struct api_registry *registry,
                  enum api_metrics_format format, struct api_budget *budget)
{
    static const struct api_token all;
    struct api_metrics_text *text = &metrics->texts[format], *other = &metrics->texts[!format];
    double now = api_seconds();
    if (is_idle(text))
        drop(text);
    struct api_shared *lines = make_lines(metrics, registry, &all, format, &metrics->paid);
    if (!lines)
        lines = make_lines(metrics, registry, &all, format, budget);
    if (!lines && is_idle(other)) {
        drop(other);
        lines = make_lines(metrics, registry, &all, format, &metrics->paid);
    }
    if (!lines)
        return false;
    drop(text);
    text->lines = lines;
    text->since = now;
    return true;
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

bool api_monitor_metrics_response(struct api_monitor_metrics *metrics,
                                  struct api_registry *registry, const struct api_token *token,
                                  double since, enum api_metrics_format format, bool with_gzip,
                                  struct api_response *response, struct api_budget *budget)
{
    struct api_metrics_text *text = &metrics->texts[format];
    if (api_token_is_bound(token))
        return (response->shared = make_lines(metrics, registry, token, format, budget)) != NULL;
    pthread_mutex_lock(&metrics->lock);
    bool is_new = text->lines && text->since >= since;
    bool good = is_new || renew(metrics, registry, format, budget) || text->lines;
    if (good && !(with_gzip && compress(text, budget) && response_gzip(text, response)))
        response->shared = api_shared_hold(text->lines);
    pthread_mutex_unlock(&metrics->lock);
    return good;
}

void api_monitor_metrics_trim(struct api_monitor_metrics *metrics, double seconds)
{
    pthread_mutex_lock(&metrics->lock);
    for (struct api_metrics_text *text = metrics->texts;
         text < metrics->texts + API_METRICS_FORMATS; text++)
        if (text->lines && api_seconds() - text->since >= seconds)
            drop(text);
    pthread_mutex_unlock(&metrics->lock);
    api_budget_trim(&metrics->paid, (int64_t)(seconds * 1e9));
}
