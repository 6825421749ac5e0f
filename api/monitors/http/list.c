/* GET of monitors: lists and configs; what lists of monitors and groups have in common. */
#include "api/monitors/http/list.h"

#include "api/json/format.h"
#include "api/json/json_text.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/http/request.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/rows/rows.h"
#include "api/monitors/state/change.h"
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
    double ratio = isnan(kl) ? -1 : kl / monitor->warning;
    int severity = api_severity(monitor->status.state, api_monitor_is_stale(monitor));
    return (struct api_rank){severity, isnan(ratio) ? 0 : ratio, monitor->id};
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

/* Checks the parameters `state` and `stale`. */
static bool check_states(const struct api_page *page)
{
    struct api_problem *problem = &page->x->problem;
    const char *state = api_page_text(page, "state"), *stale = api_page_text(page, "stale");
    if (stale && strcmp(stale, "true") != 0 && strcmp(stale, "false") != 0)
        return api_fail_at(problem, API_QUERY, "stale", "option_invalid",
                           "stale must be true or false");
    for (size_t i = 0; i < API_VERDICTS; i++)
        if (!state || strcmp(state, api_verdict_names[i]) == 0)
            return true;
    return api_fail_at(problem, API_QUERY, "state", "option_invalid",
                       "state must be critical, warning, insufficient_data or ok");
}

/* A cursor is severity, bits of the ratio, number. */
enum { SEVERITY, RATIO, ID, NUMBERS };

bool api_list_begin(struct api_exchange *x, struct api_list *list, const char *name,
                    const char *const *known)
{
    struct api_rank *after = &list->after;
    list->items = (struct api_buffer){.budget = x->service->budget};
    if (!api_page_read(x, &list->page, known) || !check_states(&list->page) ||
        !api_page_begin(&list->page, name, NUMBERS))
        return false;
    const int64_t *numbers = list->page.after;
    *after = (struct api_rank){.severity = (int)numbers[SEVERITY], .id = numbers[ID]};
    memcpy(&after->ratio, &numbers[RATIO], sizeof after->ratio);
    return list->page.is_first || !isnan(after->ratio) || api_page_fail(x);
}

bool api_list_end(struct api_list *list, bool good, size_t size, struct api_monitors *monitors,
                  bool (*write)(struct api_monitors *monitors, const void *item,
                                struct api_buffer *out))
{
    struct api_page *page = &list->page;
    size_t n = list->items.size / size;
    good = good && (!list->items.failed || api_fail_oom(&page->x->problem));
    if (good && n > 0)
        qsort(list->items.data, n, size, api_rank_compare);
    for (size_t i = 0; good && i < n; i++) {
        const struct api_rank *item = (const void *)(list->items.data + i * size);
        if (!page->is_first && api_rank_compare(item, &list->after) <= 0)
            continue;
        if (!api_page_add(page))
            break;
        good = write(monitors, item, &page->x->response.body);
        page->last[SEVERITY] = item->severity;
        memcpy(&page->last[RATIO], &item->ratio, sizeof item->ratio);
        page->last[ID] = item->id;
    }
    api_buffer_free(&list->items);
    return api_page_end(page, good);
}

/* ---- All monitors */

/* item: of a list; with its monitor if that is in memory. */
struct item {
    struct api_rank rank;
    const struct api_monitor *monitor;
};

/* writing: rows that are formatted. */
struct writing {
    struct api_buffer *out;
    const struct api_mutes *mutes;
};

/* filter: what a list is restricted to; NULL for everything. `words` are also as a JSON string has them. */
struct filter {
    struct api_list *list;
    const char *state, *stale, *words, *in_json;
};

/* True if a part of a JSON text, from one member on and up to another one, contains words. */
static bool mentions(const struct api_datum *text, const char *from, const char *to,
                     const char *words)
{
    char *copy = strndup(text->text, text->size), *begin = copy ? strstr(copy, from) : NULL;
    char *last = begin ? strstr(begin, to) : NULL;
    if (last)
        *last = '\0';
    bool found = begin && strcasestr(begin + strlen(from), words);
    free(copy);
    return found;
}

static bool has_words(const struct filter *filter, const struct api_monitor *monitor,
                      const struct api_datum *values)
{
    return strcasestr(monitor->name, filter->words) || strcasestr(monitor->group, filter->words) ||
           mentions(&values[API_DEFINITION],
                    "{\"bins\":{\"labels\":", "]},\"reference\":", filter->in_json) ||
           mentions(&values[API_SETTINGS], ",\"annotations\":", "\x01", filter->words);
}

static void add_monitor(void *context, const struct api_monitor *monitor)
{
    const struct filter *filter = context;
    const struct api_monitor_status *status = &monitor->status;
    if (!api_token_has_group(&filter->list->page.x->token, monitor->group) ||
        (filter->state && strcmp(filter->state, api_verdict_names[status->state]) != 0) ||
        (filter->stale && (*filter->stale == 't') != api_monitor_is_stale(monitor)))
        return;
    const struct item item = {api_rank_of(monitor), monitor->config ? monitor : NULL};
    api_append(&filter->list->items, &item, sizeof item);
}

/* Adds a row with its texts, if they have the words. */
static void add_row(void *context, const struct api_datum *values)
{
    const struct filter *filter = context;
    struct api_monitor monitor = {.config = NULL};
    api_monitor_read_part(&monitor, values, API_SAMPLE_VALUES);
    if (!api_is_unreadable(filter->list->page.x->service->monitors, monitor.id, monitor.version) &&
        has_words(filter, &monitor, values))
        add_monitor(context, &monitor);
}

static void write_monitor(const struct api_mutes *mutes, const struct api_monitor *monitor,
                          const struct api_datum *top, struct api_buffer *out)
{
    const struct api_monitor_status *status = &monitor->status;
    const struct api_scores *last = &status->last.scores;
    const struct api_monitor_state state = api_monitor_state_of(monitor, mutes);
    api_write_names(out, monitor->group, monitor->name);
    api_monitor_state_write(&state, out);
    api_write_json(out, ",'kl':%g,'infinite':%d,'noise_floor':%g,'thresholds':", last->drift.kl,
                   isinf(last->drift.kl), last->pooled.noise_floor);
    api_write_json(out, "{'warning':%g,'critical':%g,'significance':%g},'n':%g,'window':",
                   monitor->warning, monitor->critical, monitor->significance, status->last.n);
    api_window_write(&status->last, out);
    api_write_json(out, ",'last_observation':%jd,'recent':", status->last_observation);
    api_write_numbers(out, status->recent, status->n_recent);
    api_append_text(out, ",\"top\":");
    if (top)
        api_append(out, top->text, top->size);
    else
        api_top_write(last->top, &monitor->config->bins, out);
    api_write_json(out, ",'top_share':%g,'sentence':%s}", last->top_share, status->sentence);
}

static void write_row(void *context, const struct api_datum *values)
{
    const struct writing *writing = context;
    struct api_monitor monitor;
    api_monitor_read(&monitor, values);
    write_monitor(writing->mutes, &monitor, &values[API_TOP_NAMES], writing->out);
}

static bool write_item(struct api_monitors *monitors, const void *of, struct api_buffer *out)
{
    const struct item *item = of;
    struct writing writing = {out, &monitors->mutes};
    if (!item->monitor)
        return api_store_read(monitors->store, API_SQL_MONITOR, API_ROW(item->rank.id), write_row,
                              &writing);
    write_monitor(&monitors->mutes, item->monitor, NULL, out);
    return true;
}

static bool list_monitors(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_list list;
    struct api_buffer in_json = {.size = 0};
    bool good = api_list_begin(x, &list, "monitors",
                               API_NAMES("group", "state", "stale", "q", "limit", "cursor"));
    const char *words = api_page_text(&list.page, "q"), *group = api_page_text(&list.page, "group");
    api_append_json_string(&in_json, words ? words : "");
    in_json.size -= in_json.size > 0; /* its quotes */
    api_append(&in_json, "", 1);
    const struct filter filter = {.list = &list,
                                  .state = api_page_text(&list.page, "state"),
                                  .stale = api_page_text(&list.page, "stale"),
                                  .words = words,
                                  .in_json = in_json.failed ? "" : in_json.data + 1};
    good = good && (!in_json.failed || api_transaction_fail_oom(monitors)) &&
           api_mutes_read(monitors, &monitors->mutes) &&
           (words ? api_store_read(monitors->store,
                                   group ? API_SQL_TEXTS_OF_GROUP : API_SQL_TEXTS_OF_ALL,
                                   API_ROW(group ? group : ""), add_row, (void *)&filter)
                  : api_each_row(monitors, group, add_monitor, (void *)&filter));
    api_buffer_free(&in_json);
    return api_list_end(&list, good, sizeof(struct item), monitors, write_item);
}

const struct api_steps api_list_monitors = {
    .place = API_STORE_READS, .check = api_check_available, .handle = list_monitors};

/* ---- Configs */

/* configs: of one monitor, or of a group. */
struct configs {
    struct api_buffer *out;
    const struct api_monitors *monitors;
    int64_t id, version; /* of the last one; 0 without one */
};

/* False for a text that is damaged, and was not found to be so yet. */
static bool is_object(const struct api_datum *text)
{
    return text->size > 1 && text->text[0] == '{' && text->text[text->size - 1] == '}';
}

static void add_config(void *context, const struct api_datum *values)
{
    struct configs *configs = context;
    struct api_monitor monitor = {.id = 0};
    const struct api_datum *texts = &values[API_SETTINGS];
    api_monitor_read(&monitor, values);
    if (api_is_unreadable(configs->monitors, monitor.id, monitor.version) ||
        !is_object(&texts[0]) || !is_object(&texts[1]))
        return;
    const struct api_monitor_state state =
        api_monitor_state_of(&monitor, &configs->monitors->mutes);
    api_append_comma(configs->out);
    api_config_write(texts[1].text, texts[0].text, monitor.group, monitor.name, &state,
                     monitor.revision, configs->out);
    api_append(configs->out, "}", 1);
    configs->id = monitor.id;
    configs->version = monitor.version;
}

static bool show_configs(struct api_exchange *x, struct api_monitors *monitors)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_buffer *out = &x->response.body;
    struct configs configs = {.out = out, .monitors = monitors};
    if (!name) {
        api_write_names(out, group, NULL);
        api_append_text(out, ",\"monitors\":[");
    }
    if (!api_page_read_none(x) ||
        !(name ? api_monitor_of(x, monitors) != NULL : api_check_exists(x, monitors)) ||
        !api_mutes_read(monitors, &monitors->mutes) ||
        !api_store_read(monitors->store, name ? API_SQL_TEXTS_NAMED : API_SQL_TEXTS_OF_GROUP,
                        API_ROW(group, name ? name : ""), add_config, &configs) ||
        (configs.id == 0 && !api_fail_missing(x, name != NULL)))
        return false;
    api_append_text(out, name ? "\n" : "]}\n");
    if (!name)
        return true;
    api_monitor_etag(configs.id, configs.version, x->response.header_text);
    api_response_header(&x->response, "ETag", x->response.header_text);
    return true;
}

const struct api_steps api_show_configs = {
    .place = API_STORE_READS, .check = api_check_names, .handle = show_configs};
