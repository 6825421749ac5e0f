/* GET of groups: a row for each, and one with its monitors that drift, its incidents and its history. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/incidents.h"
#include "api/monitors/http/list.h"
#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* group: what the states of its monitors are together. */
struct group {
    struct api_rank rank; /* by the share; its id is the minimal one of the monitors */
    const char *name;
    size_t monitors, states[API_VERDICTS], stale_states[API_VERDICTS], stale;
    enum api_verdict state; /* the worst */
    double share;           /* of the monitors with a verdict, those not ok; NaN without one */
    int64_t since;          /* the earliest of the monitors in that state, or API_NO_TIME */
    int64_t last_observation;
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a == API_NO_TIME || (b != API_NO_TIME && b < a) ? b : a;
}

static void add_monitor(struct group *group, const struct api_monitor *monitor)
{
    const struct api_monitor_status *status = &monitor->status;
    bool stale = api_monitor_is_stale(monitor);
    if (group->monitors == 0 ||
        api_severity(status->state, false) > api_severity(group->state, false)) {
        group->state = status->state;
        group->since = API_NO_TIME;
    }
    if (status->state == group->state)
        group->since = earlier(group->since, status->since);
    if (group->monitors == 0 || monitor->id < group->rank.id)
        group->rank.id = monitor->id;
    if (group->monitors == 0 || status->last_observation > group->last_observation)
        group->last_observation = status->last_observation;
    group->states[status->state]++;
    group->stale_states[status->state] += stale;
    group->stale += stale;
    group->monitors++;
}

/* Sums up `n` monitors, which are of one group. */
static struct group sum_up(struct api_monitor *const *monitors, size_t n)
{
    struct group group = {.name = monitors[0]->group, .rank.monitor = monitors[0]};
    for (size_t i = 0; i < n; i++)
        add_monitor(&group, monitors[i]);
    size_t drifting = group.states[API_WARNING] + group.states[API_CRITICAL];
    size_t judged = drifting + group.states[API_OK];
    group.share = judged > 0 ? (double)drifting / (double)judged : (double)NAN;
    group.rank.severity = api_severity(group.state, group.stale > 0);
    group.rank.ratio = judged > 0 ? group.share : -1;
    return group;
}

/* Writes the members without the closing brace. */
static void write_group(const struct api_registry *registry, const struct group *group,
                        struct api_buffer *out)
{
    const struct api_mute mute = api_mutes_find(&registry->mutes, group->name, NULL, api_now());
    api_write_names(out, group->name, NULL);
    api_write_json(out, ",'state':%s,'monitors':%zu,'states':", api_verdict_names[group->state],
                   group->monitors);
    api_verdicts_write(group->states, out);
    api_write_json(out, ",'stale':%zu,'stale_states':", group->stale);
    api_verdicts_write(group->stale_states, out);
    api_write_json(out, ",'share':%g,'since':%jd,'last_observation':%jd,'muted':", group->share,
                   group->since, group->last_observation);
    api_mute_write(&mute, out);
}

/* ---- All groups, worst first */

static bool passes(const struct group *group, const struct api_pagination *page)
{
    const char *state = api_pagination_text(page, "state"), *words = api_pagination_text(page, "q");
    return (!state || strcmp(state, api_verdict_names[group->state]) == 0) &&
           (!words || strcasestr(group->name, words));
}

static bool rank_next(const struct api_registry *registry, const void *filter, size_t *i,
                      struct api_rank *rank)
{
    const struct api_exchange *x = filter;
    size_t first = *i, size;
    api_registry_group(registry, registry->monitors[first]->group, &size);
    const struct group group = sum_up(registry->monitors + first, size);
    *i += size;
    *rank = group.rank;
    return api_token_has_group(&x->token, group.name) && passes(&group, x->state);
}

static void write_item(const struct api_registry *registry, const struct api_monitor *monitor,
                       struct api_buffer *out)
{
    size_t size, first = api_registry_group(registry, monitor->group, &size);
    const struct group group = sum_up(registry->monitors + first, size);
    write_group(registry, &group, out);
    api_append(out, "}", 1);
}

static bool write_groups(struct api_exchange *x)
{
    return api_list_write(x, "groups", x, rank_next, write_item);
}

static enum api_outcome parse_groups(struct api_exchange *x)
{
    return api_list_parse(x, API_NAMES("state", "q", "limit", "cursor"));
}

const struct api_steps api_list_groups = {
    .check = api_check_available, .parse = parse_groups, .write = write_groups, API_LISTS};

/* ---- One group */

/* PERIODS: of a history, at most. WINDOWS: how many windows of all monitors are read for one history, about. */
enum { PERIODS = 500, WINDOWS = 100000 };

/* group_page: the history of a group, whose periods are formatted as they are read. */
struct group_page {
    struct api_pagination page;
    struct api_buffer periods;
};

static void drop(struct api_exchange *x)
{
    struct group_page *g = x->state;
    api_buffer_free(&g->periods);
    api_pagination_free(&g->page);
}

static void add_period(void *context, const struct api_datum *values)
{
    enum { START, END, DRIFTING, MONITORS };
    struct api_buffer *out = context;
    api_append(out, ",", out->size > 0);
    api_write_json(out, "{'start':%jd,'end':%jd,'drifting':%ld,'monitors':%ld}",
                   values[START].integer, values[END].integer, values[DRIFTING].integer,
                   values[MONITORS].integer);
}

static bool read_history(struct api_exchange *x, struct api_monitors *monitors)
{
    struct group_page *g = x->state;
    const char *group = api_group_of(x);
    size_t n;
    api_registry_group(&monitors->registry, group, &n);
    if (n == 0)
        return api_find_monitor(x);
    size_t each = WINDOWS / n;
    const struct api_datum *of = API_ROW(group, g->page.from, g->page.to,
                                         each > PERIODS ? PERIODS
                                         : each > 0     ? each
                                                        : 1,
                                         PERIODS);
    g->periods.size = 0;
    if (!api_store_read(monitors->store, API_SQL_GROUP_HISTORY, of, add_period, &g->periods))
        return false;
    return !g->periods.failed || api_fail_oom(&x->problem);
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct group_page *g = x->state;
    g->periods.budget = x->service->budget;
    return api_outcome_of(api_pagination_read(x, &g->page, API_NAMES("from", "to")));
}

/* Writes a monitor whose state is not ok; `sum` is the divergence of all of them. */
static void write_drifting(const struct api_registry *registry, const struct api_monitor *monitor,
                           double sum, struct api_buffer *out)
{
    const struct api_monitor_status *status = &monitor->status;
    const struct api_scores *last = &status->last.scores;
    const struct api_mute mute =
        api_mutes_find(&registry->mutes, monitor->group, monitor->name, api_now());
    double kl = last->drift.kl;
    api_write_json(out, "{'name':%s,'state':%s,'since':%jd,'kl':%g,'infinite':%d,'share':%g,'top':",
                   monitor->name, api_verdict_names[status->state], status->since, kl, isinf(kl),
                   sum > 0 ? kl / sum : (double)NAN);
    api_top_write(last->top, &monitor->config->bins, out);
    api_write_json(out, ",'top_share':%g,'sentence':%s,'muted':", last->top_share,
                   status->sentence);
    api_mute_write(&mute, out);
    api_append(out, "}", 1);
}

/* Writes the monitors that drift, worst first, and their incidents; false if memory is exhausted. */
static bool write_all_drifting(const struct api_registry *registry, size_t first, size_t n,
                               struct api_buffer *out)
{
    struct api_monitor *const *monitors = registry->monitors + first;
    struct api_rank *ranks = malloc((n + 1) * sizeof *ranks);
    struct api_onset *onsets = malloc((n + 1) * sizeof *onsets);
    size_t drifting = 0;
    double sum = 0;
    if (!ranks || !onsets) {
        free(ranks);
        free(onsets);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (monitors[i]->status.state >= API_WARNING) {
            double kl = monitors[i]->status.last.scores.drift.kl;
            ranks[drifting++] = api_rank_of(monitors[i]);
            sum += isnan(kl) ? 0 : kl;
        }
    qsort(ranks, drifting, sizeof *ranks, api_rank_compare);
    api_append_text(out, ",\"drifting\":[");
    for (size_t i = 0; i < drifting; i++) {
        api_append(out, ",", i > 0);
        write_drifting(registry, ranks[i].monitor, sum, out);
        onsets[i] = api_onset_of(ranks[i].monitor, i);
    }
    api_append_text(out, "]");
    bool good = api_incidents_write(registry, onsets, drifting, out);
    free(ranks);
    free(onsets);
    return good;
}

/* True for a monitor that is stale while its group is not: its column is gone. `alive` is the newest observation of those
 * that are not stale. */
static bool is_absent(const struct api_monitor *monitor, int64_t alive)
{
    const struct api_monitor_status *status = &monitor->status;
    return status->missed >= API_MISSED || status->last_observation < alive;
}

/* Writes the monitors that are stale, by name; or of these the ones that are absent. */
static void write_silent(struct api_monitor *const *monitors, size_t n, bool absent,
                         struct api_buffer *out)
{
    size_t written = 0;
    int64_t alive = API_NO_TIME;
    for (size_t i = 0; i < n; i++)
        if (!api_monitor_is_stale(monitors[i]) && monitors[i]->status.last_observation > alive)
            alive = monitors[i]->status.last_observation;
    api_write_json(out, ",%s:[", absent ? "absent" : "silent");
    for (size_t i = 0; i < n; i++) {
        if (!api_monitor_is_stale(monitors[i]) || (absent && !is_absent(monitors[i], alive)))
            continue;
        api_append(out, ",", written++ > 0);
        api_write_json(out, "{'name':%s,'last_observation':%jd}", monitors[i]->name,
                       monitors[i]->status.last_observation);
    }
    api_append(out, "]", 1);
}

/* Writes the names of columns in observations that have no monitor. */
static void write_new(const struct api_registry *registry, const char *group,
                      struct api_buffer *out)
{
    size_t n, written = 0;
    const struct api_column_of *columns = api_columns_group(&registry->columns, group, &n);
    api_append_text(out, ",\"new\":[");
    for (size_t i = 0; i < n; i++) {
        if (columns[i].left_out || api_registry_find(registry, group, columns[i].of.name))
            continue;
        api_append(out, ",", written++ > 0);
        api_append_json_string(out, columns[i].of.name);
    }
    api_append(out, "]", 1);
}

static bool write_page(struct api_exchange *x)
{
    const struct group_page *g = x->state;
    struct api_registry *registry = &x->service->monitors->registry;
    struct api_buffer *out = api_begin_json(x);
    size_t n;
    pthread_rwlock_rdlock(&registry->lock);
    size_t first = api_registry_group(registry, api_group_of(x), &n);
    struct group group = {0};
    if (n > 0) {
        group = sum_up(registry->monitors + first, n);
        write_group(registry, &group, out);
    }
    bool good = n == 0 || write_all_drifting(registry, first, n, out);
    write_silent(registry->monitors + first, n, false, out);
    write_silent(registry->monitors + first, n, true, out);
    write_new(registry, api_group_of(x), out);
    pthread_rwlock_unlock(&registry->lock);
    if (n == 0)
        return api_find_monitor(x);
    api_append_text(out, ",\"history\":[");
    api_append(out, g->periods.data, g->periods.size);
    api_append_text(out, "]}\n");
    return good || api_fail_oom(&x->problem);
}

const struct api_steps api_group = {.place = API_STORE_READS,
                                    .state = sizeof(struct group_page),
                                    .check = api_check_monitor,
                                    .parse = parse,
                                    .read_back = read_history,
                                    .write = write_page,
                                    .drop = drop};
