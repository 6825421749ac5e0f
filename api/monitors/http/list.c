/* GET of monitors: lists and configs, from memory; what lists of monitors and groups have in common. */
#include "api/monitors/http/list.h"

#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/http/request.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/state/replace.h"
#include "api/request/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Ranks */

int api_severity(enum api_verdict state, bool stale)
{
    enum { STALE = 2 };
    static const int severities[API_VERDICTS] = {
        [API_CRITICAL] = 4, [API_WARNING] = 3, [API_INSUFFICIENT] = 1, [API_OK] = 0};
    return stale && severities[state] < STALE ? STALE : severities[state];
}

struct api_rank api_rank_of(const struct api_monitor *monitor)
{
    double kl = monitor->status.last.scores.drift.kl;
    double ratio = isnan(kl) ? -1 : kl / monitor->config->settings.warning;
    int severity = api_severity(monitor->status.state, api_monitor_is_stale(monitor));
    return (struct api_rank){monitor, severity, isnan(ratio) ? 0 : ratio, monitor->id};
}

int api_rank_compare(const void *a, const void *b)
{
    const struct api_rank *first = a, *second = b;
    if (first->severity != second->severity)
        return first->severity > second->severity ? -1 : 1;
    if (first->ratio != second->ratio)
        return first->ratio > second->ratio ? -1 : 1;
    return first->id < second->id ? -1 : first->id > second->id;
}

/* A cursor is severity, bits of the ratio, number. */
enum { SEVERITY, RATIO, ID, NUMBERS };

/* Reads the cursor, the rank of the last row of the page before. */
static bool read_cursor(struct api_rank *rank, const struct api_pagination *page,
                        struct api_problem *problem)
{
    int64_t numbers[NUMBERS] = {0};
    if (!api_pagination_cursor(page, numbers, NUMBERS, problem))
        return false;
    *rank = (struct api_rank){.severity = (int)numbers[SEVERITY], .id = numbers[ID]};
    memcpy(&rank->ratio, &numbers[RATIO], sizeof rank->ratio);
    return !isnan(rank->ratio) || api_pagination_fail(problem);
}

/* Ends a page, whose last row has the rank `last`, or NULL if no row follows. */
static void end(const struct api_rank *last, struct api_buffer *out)
{
    int64_t numbers[NUMBERS];
    if (last) {
        numbers[SEVERITY] = last->severity;
        memcpy(&numbers[RATIO], &last->ratio, sizeof last->ratio);
        numbers[ID] = last->id;
    }
    api_pagination_end(numbers, last ? NUMBERS : 0, out);
}

/* Checks the parameters `state` and `stale`. */
static bool check_states(const struct api_pagination *page, struct api_problem *problem)
{
    const char *state = api_pagination_text(page, "state"),
               *stale = api_pagination_text(page, "stale");
    if (stale && strcmp(stale, "true") != 0 && strcmp(stale, "false") != 0)
        return api_fail_at(problem, API_QUERY, "stale", "option_invalid",
                           "stale must be true or false");
    for (size_t i = 0; i < API_VERDICTS; i++)
        if (!state || strcmp(state, api_verdict_names[i]) == 0)
            return true;
    return api_fail_at(problem, API_QUERY, "state", "option_invalid",
                       "state must be critical, warning, insufficient_data or ok");
}

/* ---- Steps */

enum api_outcome api_list_parse(struct api_exchange *x, const char *const *known)
{
    if (api_must_refresh(x))
        return API_REFRESH;
    return api_outcome_of((x->captures.n == 0 || api_find_monitor(x)) &&
                          api_pagination_read(x, x->state, known));
}

void api_list_drop(struct api_exchange *x) { api_pagination_free(x->state); }

bool api_list_write(struct api_exchange *x, const char *name, const void *filter,
                    bool (*next)(const struct api_registry *registry, const void *filter, size_t *i,
                                 struct api_rank *rank),
                    void (*write)(const struct api_registry *registry,
                                  const struct api_monitor *monitor, struct api_buffer *out))
{
    const struct api_pagination *page = x->state;
    struct api_registry *registry = &x->service->monitors->registry;
    struct api_rank after;
    size_t n = 0;
    if (!check_states(page, &x->problem) || !read_cursor(&after, page, &x->problem))
        return false;
    struct api_buffer *out = api_begin_json(x);
    pthread_rwlock_rdlock(&registry->lock);
    struct api_rank *ranks = malloc((registry->n + 1) * sizeof *ranks);
    for (size_t i = 0; ranks && i < registry->n;)
        n += next(registry, filter, &i, &ranks[n]) &&
             (!*page->cursor || api_rank_compare(&ranks[n], &after) > 0);
    if (ranks)
        qsort(ranks, n, sizeof *ranks, api_rank_compare);
    api_write_json(out, "{%s:[", name);
    for (size_t i = 0; i < n && i < page->limit; i++) {
        api_append(out, ",", i > 0);
        write(registry, ranks[i].monitor, out);
    }
    pthread_rwlock_unlock(&registry->lock);
    end(n > page->limit ? &ranks[page->limit - 1] : NULL, out);
    bool good = ranks || api_fail_oom(&x->problem);
    free(ranks);
    return good;
}

/* ---- All monitors */

/* filter: what a list is restricted to; NULL for everything. */
struct filter {
    const struct api_token *token;
    const char *group, *state, *stale, *words;
};

/* True if a label or the annotations of a monitor contain the words. */
static bool mentions(const struct api_config *config, const char *words)
{
    for (size_t i = 0; config->bins.labelled && i < config->bins.n; i++)
        if (strcasestr(config->bins.labels[i], words))
            return true;
    return strcasestr(api_config_annotations(config), words);
}

static bool passes(const struct filter *filter, const struct api_monitor *monitor)
{
    return api_token_has_group(filter->token, monitor->group) &&
           (!filter->group || strcmp(filter->group, monitor->group) == 0) &&
           (!filter->state ||
            strcmp(filter->state, api_verdict_names[monitor->status.state]) == 0) &&
           (!filter->stale || (*filter->stale == 't') == api_monitor_is_stale(monitor)) &&
           (!filter->words || strcasestr(monitor->name, filter->words) ||
            strcasestr(monitor->group, filter->words) || mentions(monitor->config, filter->words));
}

static void write_item(const struct api_registry *registry, const struct api_monitor *monitor,
                       struct api_buffer *out)
{
    const struct api_monitor_status *status = &monitor->status;
    const struct api_scores *last = &status->last.scores;
    const struct api_monitor_state state = api_monitor_state_of(registry, monitor);
    api_write_names(out, monitor->group, monitor->name);
    api_monitor_state_write(&state, out);
    api_write_json(out, ",'kl':%g,'infinite':%d,'noise_floor':%g,'thresholds':", last->drift.kl,
                   isinf(last->drift.kl),
                   last->pooled.windows > 0 ? last->pooled.noise_floor : (double)NAN);
    api_write_thresholds(&monitor->config->settings, out);
    api_write_json(out, ",'n':%g,'window':", status->last.n);
    api_window_write(&status->last, out);
    api_write_json(out, ",'last_observation':%jd,'recent':", status->last_observation);
    api_write_numbers(out, status->recent, status->n_recent);
    api_write_json(out, ",'top':");
    api_top_write(last->top, &monitor->config->bins, out);
    api_write_json(out, ",'top_share':%g,'sentence':%s}", last->top_share, status->sentence);
}

static bool rank_next(const struct api_registry *registry, const void *filter, size_t *i,
                      struct api_rank *rank)
{
    *rank = api_rank_of(registry->monitors[(*i)++]);
    return passes(filter, rank->monitor);
}

static bool write_list(struct api_exchange *x)
{
    const struct api_pagination *page = x->state;
    const struct filter filter = {
        &x->token, api_pagination_text(page, "group"), api_pagination_text(page, "state"),
        api_pagination_text(page, "stale"), api_pagination_text(page, "q")};
    return api_list_write(x, "monitors", &filter, rank_next, write_item);
}

static enum api_outcome parse_list(struct api_exchange *x)
{
    return api_list_parse(x, API_NAMES("group", "state", "stale", "q", "limit", "cursor"));
}

const struct api_steps api_list_monitors = {
    .check = api_check_available, .parse = parse_list, .write = write_list, API_LISTS};

/* ---- Configs */

static void write_config(const struct api_registry *registry, const struct api_monitor *monitor,
                         struct api_buffer *out)
{
    const struct api_monitor_state state = api_monitor_state_of(registry, monitor);
    api_config_write(monitor->config, monitor->group, monitor->name, &state, monitor->revision,
                     out);
    api_append(out, "}", 1);
}

static enum api_outcome parse_no_parameters(struct api_exchange *x)
{
    return api_list_parse(x, API_NAMES(NULL));
}

static bool write_group(struct api_exchange *x)
{
    struct api_registry *registry = &x->service->monitors->registry;
    struct api_buffer *out = api_begin_json(x);
    size_t n;
    api_write_names(out, api_group_of(x), NULL);
    api_append_text(out, ",\"monitors\":[");
    pthread_rwlock_rdlock(&registry->lock);
    size_t first = api_registry_group(registry, api_group_of(x), &n);
    for (size_t i = 0; i < n; i++) {
        api_append(out, ",", i > 0);
        write_config(registry, registry->monitors[first + i], out);
    }
    pthread_rwlock_unlock(&registry->lock);
    api_append_text(out, "]}\n");
    return true;
}

static bool write_monitor(struct api_exchange *x)
{
    struct api_registry *registry = &x->service->monitors->registry;
    struct api_buffer *out = api_begin_json(x);
    pthread_rwlock_rdlock(&registry->lock);
    const struct api_monitor *monitor =
        api_registry_find(registry, api_group_of(x), api_name_of(x));
    if (monitor) {
        write_config(registry, monitor, out);
        api_monitor_etag(monitor->id, monitor->version, x->response.header_text);
    }
    pthread_rwlock_unlock(&registry->lock);
    if (!monitor)
        return api_find_monitor(x);
    api_response_header(&x->response, "ETag", x->response.header_text);
    api_append_text(out, "\n");
    return true;
}

const struct api_steps api_list_group = {
    .check = api_check_monitor, .parse = parse_no_parameters, .write = write_group, API_LISTS};
const struct api_steps api_show_monitor = {
    .check = api_check_monitor, .parse = parse_no_parameters, .write = write_monitor, API_LISTS};
