/* Lists of monitors, of windows and of events: order, filters, pages, CSV. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"

/* ---- All monitors */

enum { MANY = 200, PAGE = 7 };

/* Makes monitors in three groups, with none to three windows each; some are exact with an infinite
 * divergence. */
static void make_many(struct api_service *service)
{
    unsigned long long seed = 5;
    for (size_t i = 0; i < MANY; i++) {
        char line[100], body[200];
        bool exact = uniform(&seed) < 0.1;
        snprintf(line, sizeof line, "PUT /monitors/g%zu/Name%zu?critical=0.25&warning=0.%d", i % 3,
                 i, 1 + (int)(uniform(&seed) * 2));
        monitors_expect(service, line,
                        exact ? "{\"bins\":{\"edges\":[0,1,2]},"
                                "\"reference\":{\"probabilities\":[1,0]},\"pseudocount\":0}"
                              : CONFIG,
                        201);
        for (size_t windows = (size_t)(uniform(&seed) * 4); windows > 0; windows--) {
            size_t a = (size_t)(uniform(&seed) * 100);
            snprintf(line, sizeof line, "POST /monitors/g%zu/Name%zu/observations", i % 3, i);
            snprintf(body, sizeof body, "{\"counts\":[%zu,%zu],\"timestamp\":%zu}", a, 101 - a,
                     1000 - windows);
            monitors_expect(service, line, body, 200);
        }
    }
}

/* Severity of an item, then its divergence over the threshold: the greater, the earlier. */
static int severity(const json_t *item)
{
    static const char *const states[] = {"ok", "insufficient_data", "warning", "critical"};
    int i = 0;
    while (i < 3 && strcmp(states[i], text_at(item, "state")) != 0)
        i++;
    return i;
}

static double ratio(const json_t *item)
{
    if (json_is_true(at(item, "infinite")))
        return (double)INFINITY;
    double kl = number_at(item, "kl");
    return isnan(kl) ? -1 : kl / number_at(item, "thresholds.warning");
}

static void check_order(const json_t *list)
{
    for (size_t i = 1; i < json_array_size(list); i++) {
        const json_t *a = json_array_get(list, i - 1), *b = json_array_get(list, i);
        cr_expect(severity(a) > severity(b) || (severity(a) == severity(b) && ratio(a) >= ratio(b)),
                  "%s %g before %s %g", text_at(a, "state"), ratio(a), text_at(b, "state"),
                  ratio(b));
    }
}

/* Walks all pages of a list, and gives their items. */
static json_t *walk(const struct api_service *service, const char *line, const char *member,
                    size_t page)
{
    json_t *all = json_array();
    char next[100] = "", asked[300];
    for (;;) {
        snprintf(asked, sizeof asked, "%s%slimit=%zu%s%s", line, strchr(line, '?') ? "&" : "?",
                 page, *next ? "&cursor=" : "", next);
        json_t *json = monitors_get(service, asked, NULL, 200);
        bool last = json_is_null(at(json, "next"));
        cr_expect(last || json_array_size(at(json, member)) == page);
        json_array_extend(all, at(json, member));
        snprintf(next, sizeof next, "%s", text_at(json, "next"));
        json_decref(json);
        if (last)
            return all;
        cr_assert_lt(json_array_size(all), 5000);
    }
}

Test(monitors_lists, pages_give_each_monitor_once_and_worst_first)
{
    struct api_service service = monitors_new(MANY);
    make_many(&service);
    json_t *whole = monitors_get(&service, "GET /monitors?limit=1000", NULL, 200);
    json_t *pages = walk(&service, "GET /monitors", "monitors", PAGE);
    cr_expect_eq(json_array_size(pages), MANY);
    cr_expect(json_equal(pages, at(whole, "monitors")));
    check_order(pages);
    json_decref(pages);
    json_decref(whole);
    monitors_refused(&service, "PUT /monitors/g0/more", CONFIG, "too_many_monitors");
    monitors_refused(&service, "PUT /monitors/g0", "Name0,more\n1,1\n", "too_many_monitors");
    monitors_expect(&service, "PUT /monitors/g0", "Name0,Name3\n1,1\n", 200);
    monitors_end(&service);
}

/* True if an item of the list passes a filter. */
static bool passes(const json_t *item, const char *filter)
{
    const char *value = strchr(filter, '=') + 1;
    if (*filter == 'g')
        return strcmp(text_at(item, "group"), value) == 0;
    if (*filter == 's')
        return strcmp(text_at(item, "state"), value) == 0;
    return strcasestr(text_at(item, "name"), value) || strcasestr(text_at(item, "group"), value);
}

Test(monitors_lists, filters_leave_the_order)
{
    static const char *const filters[] = {
        "group=g1", "group=none", "state=critical", "state=ok", "state=insufficient_data",
        "q=nAmE1",  "q=g2",       "q=zz",           "q=m"};
    struct api_service service = monitors_new(MANY);
    make_many(&service);
    json_t *all = walk(&service, "GET /monitors", "monitors", 1000), *item;
    for (size_t i = 0; i < COUNT(filters); i++) {
        char line[100];
        size_t j;
        json_t *expected = json_array();
        json_array_foreach(all, j, item) if (passes(item, filters[i]))
            json_array_append(expected, item);
        snprintf(line, sizeof line, "GET /monitors?%s", filters[i]);
        json_t *got = walk(&service, line, "monitors", PAGE);
        cr_expect(json_equal(got, expected), "%s: %zu and not %zu", filters[i],
                  json_array_size(got), json_array_size(expected));
        json_decref(got);
        json_decref(expected);
    }
    json_decref(all);
    monitors_end(&service);
}

/* Monitors in each state, some of them silent for as long as the test runs. */
static struct api_service make_silent(void)
{
    static const struct {
        const char *name, *counts;
        bool silent;
    } monitors[] = {{"ok", "50,50", false},       {"critical", "95,5", false},
                    {"ok-silent", "52,48", true}, {"critical-silent", "90,10", true},
                    {"few", "1,1", false},        {"few-silent", "2,1", true}};
    struct api_service service = monitors_new(COUNT(monitors) + 1);
    for (size_t i = 0; i < COUNT(monitors); i++) {
        char line[200], body[100];
        snprintf(line, sizeof line,
                 "PUT /monitors/g/%s?stale_after=100000&warning=0.1&critical=0.2",
                 monitors[i].name);
        monitors_expect(&service, line, CONFIG, 201);
        snprintf(line, sizeof line, "POST /monitors/g/%s/observations", monitors[i].name);
        snprintf(body, sizeof body, "{\"counts\":[%s]%s}", monitors[i].counts,
                 monitors[i].silent ? ",\"timestamp\":1000" : "");
        monitors_expect(&service, line, body, 200);
    }
    monitors_expect(&service, "PUT /monitors/h/labels",
                    "{\"bins\":{\"labels\":[\"Fraud\",\"none\"]},\"reference\":{\"counts\":[5,5]},"
                    "\"annotations\":{\"owner\":\"Risk team\"}}",
                    201);
    return service;
}

/* Silence is looked at after what drifts, and before what is known to be as it was. */
Test(monitors_lists, silence_comes_after_drift_and_is_a_filter)
{
    static const struct {
        const char *query, *names;
    } cases[] = {
        {"", "critical critical-silent few-silent ok-silent few labels ok "},
        {"?stale=true", "critical-silent few-silent ok-silent "},
        {"?stale=false", "critical few labels ok "},
        {"?state=ok&stale=false", "ok "},
        {"?state=ok", "ok-silent ok "},
        {"?q=fraud", "labels "},
        {"?q=RISK", "labels "},
        {"?q=owner", "labels "},
        {"?q=window", ""},
    };
    struct api_service service = make_silent();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[100], names[200] = "";
        snprintf(line, sizeof line, "GET /monitors%s", cases[i].query);
        json_t *list = walk(&service, line, "monitors", 1000), *item;
        size_t j;
        json_array_foreach(list, j, item) snprintf(
            names + strlen(names), sizeof names - strlen(names), "%s ", text_at(item, "name"));
        cr_expect_str_eq(names, cases[i].names, "%s: %s", line, names);
        json_t *pages = walk(&service, line, "monitors", 1);
        cr_expect(json_equal(pages, list), "%s by pages", line);
        json_decref(pages);
        json_decref(list);
    }
    monitors_end(&service);
}

/* What a bar beyond a threshold without an alarm is explained by. */
Test(monitors_lists, noise_floor_is_that_of_the_last_window)
{
    struct api_service service = make_silent();
    json_t *list = monitors_get(&service, "GET /monitors?stale=false", NULL, 200),
           *last = monitors_get(&service, "GET /monitors/g/critical/windows/latest", NULL, 200);
    cr_expect_gt(number_at(last, "noise_floor"), 0);
    cr_expect_eq(number_at(list, "monitors.0.noise_floor"), number_at(last, "noise_floor"));
    expect_at(list, "monitors.1.noise_floor", "null");
    json_decref(list);
    json_decref(last);
    monitors_end(&service);
}

static const struct {
    const char *query, *problem;
} wrong[] = {
    {"monitors?limit=0", "option_invalid ?limit"},
    {"monitors?limit=1001", "option_invalid ?limit"},
    {"monitors?limit=-1", "option_invalid ?limit"},
    {"monitors?limit=%2B1", "option_invalid ?limit"},
    {"monitors?limit=1x", "option_invalid ?limit"},
    {"monitors?limit=99999999999999999999", "option_invalid ?limit"},
    {"monitors?cursor=x", "cursor_invalid ?cursor"},
    {"monitors?cursor=3_9221120237041090560_1", "cursor_invalid ?cursor"},
    {"monitors?cursor=3_0_1x", "cursor_invalid ?cursor"},
    {"monitors?cursor=3_0", "cursor_invalid ?cursor"},
    {"monitors?cursor=%203_0_1", "cursor_invalid ?cursor"},
    {"monitors?state=bad", "option_invalid ?state"},
    {"monitors?stat=ok", "option_unknown ?stat"},
    {"monitors?stale=yes", "option_invalid ?stale"},
    {"monitors?q=a&q=b", "option_conflict ?q"},
    {"monitors/g?limit=1", "option_unknown ?limit"},
    {"monitors/g/m?limit=1", "option_unknown ?limit"},
    {"monitors/g/m/windows?cursor=1", "cursor_invalid ?cursor"},
    {"monitors/g/m/windows?cursor=1_2_3", "cursor_invalid ?cursor"},
    {"monitors/g/m/windows?cursor=99999999999999999999_1", "cursor_invalid ?cursor"},
    {"monitors/g/m/windows?from=x", "timestamp_invalid ?from"},
    {"monitors/g/m/windows?to=2001-09-0", "timestamp_invalid ?to"},
    {"monitors/g/m/windows?group=g", "option_unknown ?group"},
    {"monitors/g/m/windows/latest?limit=1", "option_unknown ?limit"},
    {"monitors/g/m/windows/5", "window_not_found"},
    {"monitors/g/m/windows/-1", "window_not_found"},
    {"monitors/g/m/windows/1x", "window_not_found"},
    {"monitors/g/m/windows/%2B1", "window_not_found"},
    {"monitors/g/m/windows/%201", "window_not_found"},
    {"monitors/g/m/windows/first", "window_not_found"},
    {"monitors/g/m/windows/99999999999999999999", "window_not_found"},
    {"monitors/g/m/events?cursor=x", "cursor_invalid ?cursor"},
    {"monitors/g/m/events?cursor=%201", "cursor_invalid ?cursor"},
    {"monitors/g/m/events?from=1", "option_unknown ?from"},
    {"monitors/g/none", "monitor_not_found"},
    {"monitors/none", "group_not_found"},
    {"monitors/none/m", "group_not_found"},
    {"monitors/g/none/windows", "monitor_not_found"},
};

Test(monitors_lists, wrong_parameters_are_told)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", CONFIG, 201);
    monitors_expect(&service, "POST /monitors/g/m/observations", "{\"counts\":[60,60]}", 200);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char line[200];
        snprintf(line, sizeof line, "GET /%s", wrong[i].query);
        monitors_refused(&service, line, NULL, wrong[i].problem);
    }
    monitors_end(&service);
}

/* ---- Windows */

/* Makes windows of a minute, some with the same start as batches. */
static void make_windows(const struct api_service *service, size_t n)
{
    unsigned long long seed = 9;
    monitors_expect(service, "PUT /monitors/g/m?retention_days=100&pseudocount=0", CONFIG, 201);
    for (size_t i = 0; i < n; i++) {
        char body[100];
        size_t a = (size_t)(uniform(&seed) * 100);
        snprintf(body, sizeof body, "{\"counts\":[%zu,%zu],\"overflow\":%d,\"timestamp\":%zu}", a,
                 60 - a / 2, uniform(&seed) < 0.2, 1000000 + 60 * (size_t)(uniform(&seed) * 50));
        monitors_expect(service, "POST /monitors/g/m/observations", body, 200);
    }
    monitors_expect(service, "PUT /monitors/g/m?retention_days=100&window=1000", CONFIG, 200);
    monitors_expect(service, "POST /monitors/g/m/observations",
                    "{\"counts\":[1,1],\"timestamp\":1000600}", 200);
}

Test(monitors_lists, pages_of_windows_are_the_same_windows)
{
    struct api_service service = monitors_new(10);
    make_windows(&service, 100);
    json_t *all = walk(&service, "GET /monitors/g/m/windows", "windows", 1000);
    json_t *pages = walk(&service, "GET /monitors/g/m/windows", "windows", PAGE);
    cr_expect_eq(json_array_size(all), 101);
    cr_expect(json_equal(all, pages));
    for (size_t i = 1; i < 101; i++) {
        const json_t *a = json_array_get(all, i - 1), *b = json_array_get(all, i);
        int order = strcmp(text_at(a, "window.start"), text_at(b, "window.start"));
        cr_expect(order > 0 ||
                  (order == 0 && number_at(a, "window.id") > number_at(b, "window.id")));
    }
    json_decref(all);
    json_decref(pages);
    monitors_end(&service);
}

/* A parameter that is unknown is refused, and JSON is the only format. */
Test(monitors_lists, windows_are_json_alone)
{
    struct api_service service = monitors_new(10);
    make_windows(&service, 1);
    monitors_refused(&service, "GET /monitors/g/m/windows?format=csv", NULL,
                     "option_unknown ?format");
    const struct question csv = {
        .method = "GET", .path = "/monitors/g/m/windows", .accept = "text/csv"};
    struct answer answer = ask_question(&csv, &service, "", 0);
    cr_expect_eq(answer.status, 406);
    cr_expect(strstr(text_at(answer.json, "detail"), "of this path: application/json"));
    cr_expect_null(strstr(text_at(answer.json, "detail"), ", text/csv"));
    answer_free(&answer);
    json_decref(monitors_get(&service, "GET /monitors/g/m/windows", NULL, 200));
    monitors_end(&service);
}

Test(monitors_lists, windows_start_from_and_before)
{
    static const struct {
        const char *query;
        size_t n;
    } cases[] = {{"from=600", 3},        {"from=601", 2},
                 {"to=600", 0},          {"to=601", 1},
                 {"from=600&to=720", 2}, {"from=660&to=660", 0},
                 {"from=720&to=60", 0},  {"to=1970-01-01T00:11:00Z", 1}};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", CONFIG, 201);
    for (int i = 0; i < 3; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%d}", 600 + 60 * i);
        monitors_expect(&service, "POST /monitors/g/m/observations", body, 200);
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /monitors/g/m/windows?%s", cases[i].query);
        json_t *json = monitors_get(&service, line, NULL, 200);
        cr_expect_eq(json_array_size(at(json, "windows")), cases[i].n, "%s", line);
        json_decref(json);
    }
    monitors_end(&service);
}
