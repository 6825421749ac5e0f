/* GET of groups: a row for each, and one with its monitors that drift, and its history. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/list.h"
#include "api/monitors/http/request.h"
#include "api/monitors/model/labels.h"
#include "api/monitors/model/segment.h"
#include "api/monitors/rows/columns.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/rows/rows.h"
#include "api/request/response.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* group: what the states of its monitors are together. */
struct group {
    struct api_rank rank; /* by the share; its id is the minimal one of the monitors */
    char name[API_MAX_NAME + 1];
    size_t monitors, states[API_VERDICTS], stale_states[API_VERDICTS], stale;
    enum api_verdict state; /* the worst */
    double share;           /* of the monitors with a verdict, those not ok; NaN without one */
    int64_t since;          /* the earliest of the monitors in that state, or API_NO_TIME */
    int64_t last_observation;
    struct api_mute mute;
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a == API_NO_TIME || (b != API_NO_TIME && b < a) ? b : a;
}

static void add_monitor(struct group *group, const struct api_monitor *monitor)
{
    const struct api_monitor_status *status = &monitor->status;
    bool stale = api_monitor_is_stale(monitor), is_first = group->monitors == 0;
    if (is_first || api_severity(status->state, false) > api_severity(group->state, false)) {
        group->state = status->state;
        group->since = API_NO_TIME;
    }
    if (status->state == group->state)
        group->since = earlier(group->since, status->since);
    if (is_first || monitor->id < group->rank.id)
        group->rank.id = monitor->id;
    if (is_first || status->last_observation > group->last_observation)
        group->last_observation = status->last_observation;
    memcpy(group->name, monitor->group, sizeof group->name);
    group->states[status->state]++;
    group->stale_states[status->state] += stale;
    group->stale += stale;
    group->monitors++;
}

/* Sums up, once all monitors are added. */
static void sum_up(struct group *group, const struct api_mutes *mutes)
{
    size_t drifting = group->states[API_WARNING] + group->states[API_CRITICAL];
    size_t judged = drifting + group->states[API_OK];
    group->share = judged > 0 ? (double)drifting / (double)judged : (double)NAN;
    group->rank.severity = api_severity(group->state, group->stale > 0);
    group->rank.ratio = judged > 0 ? group->share : -1;
    group->mute = api_mutes_find(mutes, group->name, NULL, api_now());
}

/* Writes the members without the closing brace. */
static void write_group(const struct group *group, struct api_buffer *out)
{
    char parent[API_MAX_NAME + 1];
    int size = (int)api_segment_parent(group->name);
    snprintf(parent, sizeof parent, "%.*s", size, group->name);
    api_write_names(out, group->name, NULL);
    api_write_json(out,
                   ",'segment_of':%s,'state':%s,'monitors':%zu,'states':", size > 0 ? parent : NULL,
                   api_verdict_names[group->state], group->monitors);
    api_verdicts_write(group->states, out);
    api_write_json(out, ",'stale':%zu,'stale_states':", group->stale);
    api_verdicts_write(group->stale_states, out);
    api_write_json(out, ",'share':%g,'since':%jd,'last_observation':%jd,'muted':", group->share,
                   group->since, group->last_observation);
    api_mute_write(&group->mute, out);
}

/* ---- All groups, worst first */

static bool passes(const struct group *group, const struct api_page *page)
{
    const char *state = api_page_text(page, "state"), *words = api_page_text(page, "q");
    const char *of = api_page_text(page, "segment_of");
    size_t parent = of ? api_segment_parent(group->name) : 0;
    return (!of || (parent > 0 && strlen(of) == parent && strncmp(group->name, of, parent) == 0)) &&
           api_token_has_group(&page->x->token, group->name) &&
           (!state || strcmp(state, api_verdict_names[group->state]) == 0) &&
           (!words || strcasestr(group->name, words));
}

/* groups: of rows of all monitors. */
struct groups {
    struct api_label_table names;
    struct api_list list; /* struct group, in the order of their names */
};

static void add_row(void *context, const struct api_monitor *monitor)
{
    static const struct group none;
    struct groups *groups = context;
    struct api_buffer *items = &groups->list.items;
    size_t size = strlen(monitor->group), n = groups->names.n,
           i = api_labels_find(&groups->names, monitor->group, size);
    if (i == n && !api_labels_add(&groups->names, monitor->group, size, false))
        items->failed = true;
    else if (i == n)
        api_append(items, &none, sizeof none);
    if (!items->failed)
        add_monitor((struct group *)(void *)items->data + i, monitor);
}

static bool write_item(struct api_monitors *monitors, const void *item, struct api_buffer *out)
{
    (void)monitors;
    write_group(item, out);
    api_append(out, "}", 1);
    return true;
}

static bool list_groups(struct api_exchange *x, struct api_monitors *monitors)
{
    struct groups groups = {.names = {.n = 0}};
    api_labels_set_budget(&groups.names, x->service->budget);
    bool good = api_list_begin(x, &groups.list, "groups",
                               API_NAMES("state", "q", "segment_of", "limit", "cursor")) &&
                api_mutes_read(monitors, &monitors->mutes) &&
                api_each_row(monitors, NULL, add_row, &groups);
    struct group *all = (void *)groups.list.items.data;
    size_t n = 0;
    for (size_t i = 0; good && !groups.list.items.failed && i < groups.names.n; i++) {
        sum_up(&all[i], &monitors->mutes);
        if (passes(&all[i], &groups.list.page))
            all[n++] = all[i];
    }
    groups.list.items.size = n * sizeof *all;
    api_labels_free(&groups.names);
    return api_list_end(&groups.list, good, sizeof *all, monitors, write_item);
}

const struct api_steps api_list_groups = {
    .place = API_STORE_READS, .check = api_check_available, .handle = list_groups};

/* ---- One group */

/* PERIODS: of a history, at most. WINDOWS: how many windows of all monitors are read for one history, about. */
enum { PERIODS = 500, WINDOWS = 100000 };

/* member: a monitor whose state is not ok, or that is stale; names of its top bins, at an offset. */
struct member {
    struct api_rank rank;
    struct api_monitor monitor;
    struct api_mute mute;
    bool stale;
    size_t top, top_size;
};

/* group_page: a group, and its members that drift or are stale. */
struct group_page {
    struct group group;
    struct api_buffer members, tops;
    const struct api_monitors *monitors;
    int64_t alive; /* newest observation of the monitors that are not stale */
};

static void add_member(void *context, const struct api_datum *values)
{
    struct group_page *g = context;
    const struct api_datum *top = &values[API_TOP_NAMES];
    struct member member = {.top = g->tops.size, .top_size = top->size};
    struct api_monitor *monitor = &member.monitor;
    api_monitor_read(monitor, values);
    if (api_is_unreadable(g->monitors, monitor->id, monitor->version))
        return;
    add_monitor(&g->group, monitor);
    member.stale = api_monitor_is_stale(monitor);
    if (!member.stale && monitor->status.last_observation > g->alive)
        g->alive = monitor->status.last_observation;
    if (!member.stale && monitor->status.state < API_WARNING)
        return;
    member.rank = api_rank_of(monitor);
    member.mute = api_mutes_find(&g->monitors->mutes, monitor->group, monitor->name, api_now());
    api_append(&g->tops, top->text, top->size);
    api_append(&g->members, &member, sizeof member);
}

static void add_period(void *context, const struct api_datum *values)
{
    enum { START, END, DRIFTING, MONITORS };
    struct api_buffer *out = context;
    api_append_comma(out);
    api_write_json(out, "{'start':%jd,'end':%jd,'drifting':%ld,'monitors':%ld}",
                   values[START].integer, values[END].integer, values[DRIFTING].integer,
                   values[MONITORS].integer);
}

/* Writes the monitors that drift, worst first, each with its share of the divergence of all of them. */
static void write_drifting(const struct group_page *g, struct member *members, size_t n,
                           struct api_buffer *out)
{
    double sum = 0;
    if (n > 0)
        qsort(members, n, sizeof *members, api_rank_compare);
    for (size_t i = 0; i < n; i++) {
        double kl = members[i].monitor.status.last.scores.drift.kl;
        sum += members[i].monitor.status.state >= API_WARNING && !isnan(kl) ? kl : 0;
    }
    api_append_text(out, ",\"drifting\":[");
    for (size_t i = 0; i < n; i++) {
        const struct api_monitor_status *status = &members[i].monitor.status;
        double kl = status->last.scores.drift.kl;
        if (status->state < API_WARNING)
            continue;
        api_append_comma(out);
        api_write_json(
            out,
            "{'name':%s,'state':%s,'since':%jd,'began':%jd,'kl':%g,'infinite':%d,'share':%g,'top':",
            members[i].monitor.name, api_verdict_names[status->state], status->since, status->began,
            kl, isinf(kl), sum > 0 ? kl / sum : (double)NAN);
        api_append(out, g->tops.data + members[i].top, members[i].top_size);
        api_write_json(out, ",'top_share':%g,'sentence':%s,'muted':", status->last.scores.top_share,
                       status->sentence);
        api_mute_write(&members[i].mute, out);
        api_append(out, "}", 1);
    }
    api_append(out, "]", 1);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->monitor.name,
                  ((const struct member *)b)->monitor.name);
}

/* True for a monitor that is stale while its group is not: its column is gone. */
static bool is_absent(const struct group_page *g, const struct api_monitor *monitor)
{
    return monitor->status.missed >= API_MISSED || monitor->status.last_observation < g->alive;
}

/* Writes the monitors that are stale, by name; or of these the ones that are absent. */
static void write_silent(const struct group_page *g, const struct member *members, size_t n,
                         bool absent, struct api_buffer *out)
{
    api_write_json(out, ",%s:[", absent ? "absent" : "silent");
    for (size_t i = 0; i < n; i++) {
        const struct api_monitor *monitor = &members[i].monitor;
        if (!members[i].stale || (absent && !is_absent(g, monitor)))
            continue;
        api_append_comma(out);
        api_write_json(out, "{'name':%s,'last_observation':%jd}", monitor->name,
                       monitor->status.last_observation);
    }
    api_append(out, "]", 1);
}

static void write_members(const struct group_page *g, struct api_buffer *out)
{
    struct member *members = (void *)g->members.data;
    size_t n = g->members.size / sizeof *members;
    write_group(&g->group, out);
    write_drifting(g, members, n, out);
    if (n > 0)
        qsort(members, n, sizeof *members, compare_names);
    write_silent(g, members, n, false, out);
    write_silent(g, members, n, true, out);
}

static bool write_page(struct group_page *g, struct api_exchange *x, struct api_monitors *monitors)
{
    const char *group = api_group_of(x);
    struct api_buffer *out = &x->response.body;
    struct api_page page;
    bool good = api_page_read(x, &page, API_NAMES("from", "to"));
    api_page_free(&page);
    if (!good || !api_mutes_read(monitors, &monitors->mutes) ||
        !api_store_read(monitors->store, API_SQL_MONITORS_OF_GROUP, API_ROW(group), add_member,
                        g) ||
        (g->group.monitors == 0 && !api_fail_missing(x, false)) ||
        ((g->members.failed || g->tops.failed) && !api_fail_oom(&x->problem)))
        return false;
    sum_up(&g->group, &monitors->mutes);
    write_members(g, out);
    size_t each = WINDOWS / g->group.monitors;
    each = each > PERIODS ? PERIODS : each > 0 ? each : 1;
    api_append_text(out, ",\"new\":[");
    good = api_columns_write_new(monitors, group, out);
    api_append_text(out, "],\"history\":[");
    good =
        good && api_store_read(monitors->store, API_SQL_GROUP_HISTORY,
                               API_ROW(group, page.from, page.to, each, PERIODS), add_period, out);
    api_append_text(out, "]}\n");
    return good;
}

static bool show_group(struct api_exchange *x, struct api_monitors *monitors)
{
    struct group_page g = {.members.budget = x->service->budget,
                           .tops.budget = x->service->budget,
                           .monitors = monitors,
                           .alive = API_NO_TIME};
    bool good = write_page(&g, x, monitors);
    api_buffer_free(&g.members);
    api_buffer_free(&g.tops);
    return good;
}

const struct api_steps api_group = {
    .place = API_STORE_READS, .check = api_check_names, .handle = show_group};
