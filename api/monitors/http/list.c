/* GET of monitors: lists and configs, from memory. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"

#include "api/monitors/http/rank.h"
#include "api/monitors/http/request.h"
#include "api/monitors/state/replace.h"
#include "api/request/response.h"

#include <math.h>
#include <string.h>

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
        return api_find_monitor(x, &x->problem);
    api_response_header(&x->response, "ETag", x->response.header_text);
    api_append_text(out, "\n");
    return true;
}

const struct api_steps api_list_group = {
    .check = api_check_monitor, .parse = parse_no_parameters, .write = write_group, API_LISTS};
const struct api_steps api_show_monitor = {
    .check = api_check_monitor, .parse = parse_no_parameters, .write = write_monitor, API_LISTS};
