/* Members since, top and top_share of a list: since when a monitor has its state, because of what. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PUT "PUT /monitors/g/m"
#define OBSERVE "POST /monitors/g/m/observations"
#define BINS "{\"bins\":{\"edges\":[0,1,2,3,4]},\"reference\":"
#define CONFIG BINS "{\"counts\":[500,500,500,500]}}"

/* ---- Beside what windows and events tell */

/* Sum of the shares of bins with these names, at most 1; NaN if one is null, or all are 0. */
static double shares_of(const json_t *bins, const json_t *names)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(bins); i++) {
        const json_t *bin = json_array_get(bins, i);
        for (size_t j = 0; j < json_array_size(names); j++)
            if (json_equal(at(bin, "name"), json_array_get(names, j)))
                sum += number_at(bin, "share");
    }
    return sum > 0 ? fmin(sum, 1) : (double)NAN;
}

/* Expects that the list says of its monitor what its last closed window and its newest event say;
 * `has_event` if that is of this revision. */
static void expect_agreement(const struct api_service *service, bool has_event)
{
    json_t *list = monitors_get(service, "GET /monitors", NULL, 200);
    json_t *events = monitors_get(service, "GET /monitors/g/m/events", NULL, 200);
    const json_t *item = at(list, "monitors.0"), *window = at(item, "window");
    if (json_is_null(window)) {
        monitors_expect(service, "GET /monitors/g/m/windows/latest", NULL, 404);
        expect_at(item, "top", "[]");
        expect_at(item, "top_share", "null");
    } else {
        json_t *latest = monitors_get(service, "GET /monitors/g/m/windows/latest", NULL, 200);
        double share = number_at(item, "top_share"),
               expected = shares_of(at(latest, "bins"), at(latest, "top"));
        cr_expect(json_equal(at(item, "top"), at(latest, "top")));
        cr_expect(isnan(share) == isnan(expected) && !(fabs(share - expected) > 1e-12));
        cr_expect(isnan(share) || (share > 0 && share <= 1));
        json_decref(latest);
    }
    if (has_event)
        cr_expect_str_eq(text_at(item, "severity_since"), text_at(events, "events.0.at"));
    else
        expect_at(item, "severity_since", "null");
    json_decref(list);
    json_decref(events);
}

/* Expects members of the list as JSON; the share to three digits, NaN for null. */
static void expect_item(const struct api_service *service, const char *since, const char *top,
                        double share)
{
    json_t *list = monitors_get(service, "GET /monitors", NULL, 200);
    double got = number_at(list, "monitors.0.top_share");
    expect_at(list, "monitors.0.severity_since", since);
    expect_at(list, "monitors.0.top", top);
    cr_expect(isnan(got) == isnan(share) && !(fabs(got - share) > 5e-4), "%g is not %g", got,
              share);
    json_decref(list);
    expect_agreement(service, strcmp(since, "null") != 0);
}

static void observe(const struct api_service *service, const char *counts, long time)
{
    char body[200];
    snprintf(body, sizeof body, "{\"counts\":%s,\"timestamp\":%ld}", counts, time);
    monitors_expect(service, OBSERVE, body, 200);
}

static struct api_service with_monitor(const char *settings, const char *config)
{
    struct api_service service = monitors_new(10);
    char line[200];
    snprintf(line, sizeof line, PUT "?%s", settings);
    monitors_expect(&service, line, config, 201);
    expect_item(&service, "null", "[]", (double)NAN);
    return service;
}

/* ---- Windows one after another */

#define NONE ((double)NAN)
#define FIRST "\"[0, 1)\""
#define SECOND "\"[1, 2)\""
#define THIRD "\"[2, 3)\""
#define FOURTH "\"[3, 4]\""
#define LOW "[" FIRST "," THIRD "," FOURTH "]"

Test(monitors_causes, are_of_the_last_closed_window_and_of_the_last_change)
{
    static const struct {
        const char *counts;
        long time; /* of windows of a minute; some come late */
        const char *since, *top;
        double share;
    } steps[] = {
        {"[1,1,1,1]", 60, "null", "[]", NONE},
        {"[50,50,50,50]", 120, "\"1970-01-01T00:03:00Z\"", "[]", NONE},
        {"[200,0,0,0]", 180, "\"1970-01-01T00:04:00Z\"", "[" FIRST "," SECOND "," THIRD "]", 0.823},
        {"[190,10,0,0]", 240, "\"1970-01-01T00:04:00Z\"", LOW, 0.899},
        {"[0,0,0,100]", 130, "\"1970-01-01T00:04:00Z\"", LOW, 0.899},     /* restates one before */
        {"[0,180,190,190]", 250, "\"1970-01-01T00:05:00Z\"", "[]", NONE}, /* the last */
        {"[90,0,0,0]", 255, "\"1970-01-01T00:05:00Z\"", "[" FIRST "," SECOND "," THIRD "]", 0.908},
        {"[9,0,0,0]", 60, "\"1970-01-01T00:05:00Z\"", "[" FIRST "," SECOND "," THIRD "]", 0.908},
        {"[0,0,0,300]", 300, "\"1970-01-01T00:06:00Z\"", "[" FOURTH "," FIRST "," SECOND "]",
         0.822},
    };
    struct api_service service = with_monitor("window=60s&pool=1&clear_after=1", CONFIG);
    for (size_t i = 0; i < COUNT(steps); i++) {
        observe(&service, steps[i].counts, steps[i].time);
        expect_item(&service, steps[i].since, steps[i].top, steps[i].share);
    }
    monitors_end(&service);
}

/* ---- Kinds of divergence */

Test(monitors_causes, are_those_of_any_divergence)
{
    static const struct {
        const char *config, *counts, *top;
        double share;
    } cases[] = {
        {"{\"bins\":{\"labels\":[\"a\\\"\",\"b\",\"c\"]},\"reference\":{\"counts\":[40,30,30]}}",
         "[0,60,0]", "[\"b\",\"a\\\"\",\"c\"]", 1},
        {BINS "{\"probabilities\":[1,0,0,0]},\"pseudocount\":0}", "[60,5,0,0]",
         "[" SECOND "," FIRST "]", NONE}, /* infinite */
        {BINS "{\"probabilities\":[0.5,0.5,0,0]},\"pseudocount\":0}", "[90,10,0,0]",
         "[" SECOND "," FIRST "]", 1},
        {BINS "{\"probabilities\":[0.5,0.5000001,0,0]},\"pseudocount\":0}", "[50,50,0,0]",
         "[" SECOND "]", NONE}, /* below 0 by what the probabilities sum to beside 1 */
        {BINS "{\"probabilities\":[0.5,0.5000001,0,0]},\"pseudocount\":0}", "[50100,49900,0,0]",
         "[" SECOND "," FIRST "]", 1},
        {"{\"bins\":{\"edges\":[0,1]},\"compare\":{\"previous\":2}}", "[60]", "[]", NONE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = with_monitor("min_observations=1", cases[i].config);
        observe(&service, cases[i].counts, 0);
        bool changes = !strstr(cases[i].config, "previous");
        expect_item(&service, changes ? "\"1970-01-01T00:00:00Z\"" : "null", cases[i].top,
                    cases[i].share);
        monitors_end(&service);
    }
}

/* ---- What takes them away */

Test(monitors_causes, end_with_the_revision_and_outlive_other_changes)
{
    struct api_service service = with_monitor("window=batch", CONFIG);
    observe(&service, "[190,10,0,0]", 240);
    expect_item(&service, "\"1970-01-01T00:04:00Z\"", LOW, 0.899);
    monitors_expect(&service, PUT "?critical=9&pseudocount=100", CONFIG, 200);
    expect_item(&service, "\"1970-01-01T00:04:00Z\"", LOW, 0.899);
    monitors_expect(&service, PUT, BINS "{\"counts\":[50,50,50,51]}}", 200);
    expect_item(&service, "null", "[]", NONE);
    observe(&service, "[1,0,0,0]", 300);
    json_t *list = monitors_get(&service, "GET /monitors", NULL, 200);
    expect_at(list, "monitors.0.severity_since", "null");
    expect_at(list, "monitors.0.top.0", FIRST);
    json_decref(list);
    observe(&service, "[0,0,0,100]", 360);
    expect_item(&service, "\"1970-01-01T00:06:00Z\"", "[" FOURTH "," FIRST "," SECOND "]", 0.824);
    monitors_expect(&service, "POST /monitors/g/reference?include=m",
                    "{\"from\":[360],\"to\":[361]}", 200);
    expect_item(&service, "null", "[]", NONE);
    monitors_end(&service);
}

/* An open window ahead of all makes the closed ones too old. The state stays, and its time with it. */
Test(monitors_causes, of_windows_that_are_too_old_are_gone_but_not_the_time)
{
    struct api_service service = with_monitor("window=3600s&retention_days=1", CONFIG);
    long now = time(NULL), then = (now - 18 * 3600) / 3600 * 3600;
    char since[100];
    struct tm parts;
    observe(&service, "[190,10,0,0]", then - 1);
    gmtime_r(&then, &parts);
    strftime(since, sizeof since, "\"%Y-%m-%dT%H:%M:%SZ\"", &parts);
    expect_item(&service, since, LOW, 0.899);
    observe(&service, "[1,1,1,1]", now + 12 * 3600);
    for (int i = 0; i < 50; i++) {
        json_t *list = monitors_get(&service, "GET /monitors", NULL, 200);
        bool gone = json_is_null(at(list, "monitors.0.window"));
        json_decref(list);
        if (gone)
            break;
        usleep(100000);
    }
    expect_item(&service, since, "[]", NONE);
    monitors_end(&service);
}
