/* Groups: their rows, one with what drifts and its history; events of all monitors. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"

/* Observes counts at a time, in seconds. */
static void observe(const struct api_service *service, const char *monitor, unsigned a, unsigned b,
                    unsigned time)
{
    char line[200], body[100];
    snprintf(line, sizeof line, "POST /monitors/%s/observations", monitor);
    snprintf(body, sizeof body, "{\"counts\":[%u,%u],\"timestamp\":%u}", a, b, time);
    monitors_expect(service, line, body, 200);
}

static void make(const struct api_service *service, const char *monitor)
{
    char line[200];
    snprintf(line, sizeof line,
             "PUT /monitors/%s?warning=0.1&critical=0.25&significance=0.01&pool=1&clear_after=1",
             monitor);
    monitors_expect(service, line, CONFIG, 201);
}

/* Three groups: "bad" with a critical, a warning, an ok monitor and one without data; "good"; "new". */
static struct api_service make_groups(void)
{
    struct api_service service = monitors_new(100);
    static const char *const names[] = {"bad/critical", "bad/ok",   "bad/silent",
                                        "bad/warning",  "good/one", "new/one"};
    for (size_t i = 0; i < COUNT(names); i++)
        make(&service, names[i]);
    observe(&service, "bad/ok", 50, 50, 1000);
    observe(&service, "bad/critical", 50, 50, 1000);
    observe(&service, "bad/critical", 95, 5, 2000);
    observe(&service, "bad/warning", 75, 25, 2000);
    observe(&service, "bad/ok", 50, 50, 2000);
    observe(&service, "good/one", 500, 500, 3000);
    return service;
}

Test(monitors_groups, rows_are_worst_first)
{
    struct api_service service = make_groups();
    json_t *all = monitors_get(&service, "GET /groups", NULL, 200);
    cr_expect_eq(json_array_size(at(all, "groups")), 3);
    expect_at(all, "groups.0",
              "{\"group\":\"bad\",\"last_observation\":\"1970-01-01T00:33:20Z\",\"monitors\":4,"
              "\"muted\":null,\"segment_of\":null,\"share\":0.666666666666667,\"since\":\"1970-01-"
              "01T00:33:20Z\","
              "\"stale\":0,\"stale_states\":{\"critical\":0,\"insufficient_data\":0,\"ok\":0,"
              "\"warning\":0},"
              "\"state\":\"critical\",\"states\":{\"critical\":1,\"insufficient_data\":"
              "1,\"ok\":1,"
              "\"warning\":1}}");
    expect_at(all, "groups.1.group", "\"new\"");
    expect_at(all, "groups.1.state", "\"insufficient_data\"");
    expect_at(all, "groups.1.share", "null");
    expect_at(all, "groups.1.since", "null");
    expect_at(all, "groups.2.group", "\"good\"");
    expect_at(all, "groups.2.share", "0");
    expect_at(all, "next", "null");
    json_decref(all);
    monitors_end(&service);
}

/* A group that is silent is to be looked at before one without data, and after one that drifts. */
Test(monitors_groups, silence_comes_before_too_little_data)
{
    struct api_service service = make_groups();
    monitors_expect(&service, "PATCH /monitors/good/one", "{\"stale_after\":60}", 200);
    char line[200] = "GET /groups?limit=1";
    static const char *const order[] = {"\"bad\"", "\"good\"", "\"new\""};
    for (size_t i = 0; i < COUNT(order); i++) {
        json_t *page = monitors_get(&service, line, NULL, 200);
        expect_at(page, "groups.0.group", order[i]);
        if (i == 1)
            expect_at(page, "groups.0.stale_states",
                      "{\"critical\":0,\"insufficient_data\":0,\"ok\":1,\"warning\":0}");
        snprintf(line, sizeof line, "GET /groups?limit=1&cursor=%s", text_at(page, "next"));
        json_decref(page);
    }
    monitors_end(&service);
}

Test(monitors_groups, pages_and_filters)
{
    static const char *const order[] = {"\"bad\"", "\"new\"", "\"good\""};
    struct api_service service = make_groups();
    char line[200] = "GET /groups?limit=1";
    for (size_t i = 0; i < COUNT(order); i++) {
        json_t *page = monitors_get(&service, line, NULL, 200);
        cr_expect_eq(json_array_size(at(page, "groups")), 1);
        expect_at(page, "groups.0.group", order[i]);
        cr_expect_eq(json_is_null(at(page, "next")), i + 1 == COUNT(order));
        snprintf(line, sizeof line, "GET /groups?limit=1&cursor=%s", text_at(page, "next"));
        json_decref(page);
    }
    static const struct {
        const char *query, *groups;
    } filters[] = {{"state=ok", "good"}, {"state=critical", "bad"}, {"q=EW", "new"}};
    for (size_t i = 0; i < COUNT(filters); i++) {
        snprintf(line, sizeof line, "GET /groups?%s", filters[i].query);
        json_t *list = monitors_get(&service, line, NULL, 200);
        cr_expect_eq(json_array_size(at(list, "groups")), 1, "%s", line);
        cr_expect_str_eq(text_at(list, "groups.0.group"), filters[i].groups, "%s", line);
        json_decref(list);
    }
    json_t *none = monitors_get(&service, "GET /groups?state=warning", NULL, 200);
    expect_at(none, "groups", "[]");
    json_decref(none);
    monitors_refused(&service, "GET /groups?state=bad", NULL, "option_invalid ?state");
    monitors_refused(&service, "GET /groups?cursor=1", NULL, "cursor_invalid ?cursor");
    monitors_refused(&service, "GET /groups?group=bad", NULL, "option_unknown ?group");
    monitors_end(&service);
}

Test(monitors_groups, a_group_says_what_drifts)
{
    struct api_service service = make_groups();
    json_t *bad = monitors_get(&service, "GET /groups/bad", NULL, 200);
    expect_at(bad, "states", "{\"critical\":1,\"insufficient_data\":1,\"ok\":1,\"warning\":1}");
    cr_expect_eq(json_array_size(at(bad, "drifting")), 2);
    expect_at(bad, "drifting.0.name", "\"critical\"");
    expect_at(bad, "drifting.0.since", "\"1970-01-01T00:33:20Z\"");
    expect_at(bad, "drifting.0.top", "[\"[1, 2]\",\"[0, 1)\"]");
    expect_at(bad, "drifting.1.name", "\"warning\"");
    double first = number_at(bad, "drifting.0.kl"), second = number_at(bad, "drifting.1.kl");
    cr_expect_float_eq(number_at(bad, "drifting.0.share"), first / (first + second), 1e-15);
    cr_expect_float_eq(number_at(bad, "drifting.1.share"), second / (first + second), 1e-15);
    expect_at(bad, "history",
              "[{\"drifting\":2,\"end\":\"1970-01-01T00:33:20Z\",\"monitors\":3,"
              "\"start\":\"1970-01-01T00:33:20Z\"},"
              "{\"drifting\":0,\"end\":\"1970-01-01T00:16:40Z\",\"monitors\":2,"
              "\"start\":\"1970-01-01T00:16:40Z\"}]");
    json_decref(bad);
    json_t *part = monitors_get(&service, "GET /groups/bad?from=1000&to=2000", NULL, 200);
    cr_expect_eq(json_array_size(at(part, "history")), 1);
    expect_at(part, "history.0.monitors", "2");
    json_decref(part);
    monitors_refused(&service, "GET /groups/none", NULL, "group_not_found");
    monitors_refused(&service, "GET /groups/bad?from=x", NULL, "timestamp_invalid ?from");
    monitors_refused(&service, "GET /groups/bad?limit=1", NULL, "option_unknown ?limit");
    monitors_end(&service);
}

Test(monitors_groups, an_infinite_divergence_has_no_share)
{
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g/m?pool=1&pseudocount=0",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"probabilities\":[1,0]}}", 201);
    observe(&service, "g/m", 60, 60, 1000);
    json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200);
    expect_at(group, "drifting.0.infinite", "true");
    expect_at(group, "drifting.0.kl", "null");
    expect_at(group, "drifting.0.share", "null");
    json_decref(group);
    monitors_end(&service);
}

Test(monitors_groups, silent_monitors_are_named)
{
    struct api_service service = monitors_new(100);
    make(&service, "g/a");
    monitors_expect(&service, "PUT /monitors/g/b?pool=1&stale_after=60", CONFIG, 201);
    observe(&service, "g/a", 50, 50, 1000);
    observe(&service, "g/b", 50, 50, 1000);
    json_t *groups = monitors_get(&service, "GET /groups", NULL, 200);
    expect_at(groups, "groups.0.stale", "1");
    json_decref(groups);
    json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200);
    expect_at(group, "stale", "1");
    expect_at(group, "silent", "[{\"last_observation\":\"1970-01-01T00:16:40Z\",\"name\":\"b\"}]");
    json_decref(group);
    monitors_end(&service);
}

enum { WINDOWS = 520 };

Test(monitors_groups, the_history_has_500_periods)
{
    struct api_service service = monitors_new(100);
    make(&service, "g/a");
    make(&service, "g/b");
    for (unsigned i = 0; i < WINDOWS; i++) {
        observe(&service, "g/a", 50, 50, 1000 + i);
        if (i % 2)
            observe(&service, "g/b", 95, 5, 1000 + i);
    }
    json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200);
    const json_t *history = at(group, "history");
    cr_expect_eq(json_array_size(history), 500);
    for (size_t i = 0; i < json_array_size(history); i++) {
        const json_t *period = json_array_get(history, i);
        unsigned number = (unsigned)(WINDOWS - 1 - i);
        cr_expect_eq(number_at(period, "monitors"), 1 + number % 2);
        cr_expect_eq(number_at(period, "drifting"), number % 2);
    }
    json_decref(group);
    monitors_end(&service);
}

/* ---- Events */

Test(monitors_groups, events_of_all_are_newest_first)
{
    struct api_service service = make_groups();
    static const char *const expected[] = {"good/one", "bad/warning", "bad/critical", "bad/ok",
                                           "bad/critical"};
    char line[300] = "GET /events?limit=2", names[200], last[100] = "9";
    size_t n = 0;
    for (bool more = true; more;) {
        json_t *page = monitors_get(&service, line, NULL, 200), *event;
        size_t i;
        json_array_foreach(at(page, "events"), i, event)
        {
            cr_assert_lt(n, COUNT(expected));
            snprintf(names, sizeof names, "%s/%s", text_at(event, "group"), text_at(event, "name"));
            cr_expect_str_eq(names, expected[n++]);
            cr_expect_leq(strcmp(text_at(event, "at"), last), 0);
            snprintf(last, sizeof last, "%s", text_at(event, "at"));
        }
        more = !json_is_null(at(page, "next"));
        snprintf(line, sizeof line, "GET /events?limit=2&cursor=%s", text_at(page, "next"));
        json_decref(page);
    }
    cr_expect_eq(n, COUNT(expected));
    json_t *events = monitors_get(&service, "GET /events?group=bad&since=2000", NULL, 200);
    cr_expect_eq(json_array_size(at(events, "events")), 2);
    expect_at(events, "events.1.from", "\"ok\"");
    expect_at(events, "events.1.to", "\"critical\"");
    json_decref(events);
    json_t *before = monitors_get(&service, "GET /events?since=1000&to=2000", NULL, 200), *event;
    size_t k;
    cr_expect_gt(json_array_size(at(before, "events")), 0);
    json_array_foreach(at(before, "events"), k, event)
        expect_at(event, "at", "\"1970-01-01T00:16:40Z\"");
    json_decref(before);
    monitors_refused(&service, "GET /events?to=x", NULL, "timestamp_invalid ?to");
    json_t *none = monitors_get(&service, "GET /events?group=none", NULL, 200);
    expect_at(none, "events", "[]");
    json_decref(none);
    monitors_expect(&service, "DELETE /monitors/bad", NULL, 204);
    json_t *rest = monitors_get(&service, "GET /events", NULL, 200);
    cr_expect_eq(json_array_size(at(rest, "events")), 1);
    json_decref(rest);
    monitors_refused(&service, "GET /events?cursor=1_2", NULL, "cursor_invalid ?cursor");
    monitors_refused(&service, "GET /events?since=x", NULL, "timestamp_invalid ?since");
    monitors_refused(&service, "GET /events?from=1", NULL, "option_unknown ?from");
    monitors_end(&service);
}
