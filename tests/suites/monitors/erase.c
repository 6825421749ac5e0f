/* DELETE of windows. The oracle is a monitor that never had the window: all that is left of both is the same, and what
 * comes later, too. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 5, BEGIN = 1600000020, MAX_VALUES = 400, BODY = 1 << 13 };
#define EDGES                                                                                      \
    "{\"bins\":{\"edges\":[0,1,2,3,4,5]},\"reference\":{\"counts\":[1000,1000,1000,1000,1000]}}"
#define LABELS                                                                                     \
    "{\"bins\":{\"labels\":[\"a\",\"b\",\"c\",\"d\",\"e\"]},"                                      \
    "\"reference\":{\"counts\":[1000,1000,1000,1000,1000],\"other\":5}}"

/* ---- Histories */

static void make_monitor(const struct api_service *service, const char *name, bool labels,
                         const char *window, const char *settings)
{
    char line[200];
    snprintf(line, sizeof line, "PUT /monitors/g/%s?window=%s", name, window);
    monitors_expect(service, line, labels ? LABELS : EDGES, 201);
    snprintf(line, sizeof line, "PATCH /monitors/g/%s", name);
    monitors_expect(service, line, settings, 200);
}

/* stream: observations with a shift that comes and goes. */
struct stream {
    unsigned long long seed;
    bool labels;
    double shift;
    size_t size;
    long time;
};

static void next_body(struct stream *s, char *to)
{
    static const char *const others[] = {"x", "y", "z"};
    char *p = to + sprintf(to, "{\"values\":[");
    if (uniform_below(&s->seed, 8) == 0)
        s->shift = 0.2 * (double)uniform_below(&s->seed, 4);
    size_t n = s->size + uniform_below(&s->seed, 30);
    for (size_t i = 0; i < n; i++) {
        size_t bin = uniform(&s->seed) < s->shift ? 0 : uniform_below(&s->seed, BINS);
        p += sprintf(p, i ? "," : "");
        if (!s->labels)
            p += sprintf(p, "%zu.5", bin);
        else if (uniform(&s->seed) < s->shift / 4)
            p += sprintf(p, "\"%s\"", others[uniform_below(&s->seed, 3)]);
        else
            p += sprintf(p, "\"%c\"", (char)('a' + (int)bin));
    }
    sprintf(p, "],\"timestamp\":%ld}", s->time);
    s->time += 60 * (1 + (long)(uniform_below(&s->seed, 6) == 0));
}

/* ---- Comparison */

/* Copies what a monitor shows, without numbers of windows, and times of its events. */
static char *shown(const struct api_service *service, const char *name)
{
    char line[100];
    json_t *window, *all = json_object();
    size_t i;
    snprintf(line, sizeof line, "GET /monitors/g/%s/windows?limit=1000&counts=true", name);
    json_t *list = monitors_get(service, line, NULL, 200);
    json_array_foreach(at(list, "windows"), i, window)
        json_object_del(json_object_get(window, "window"), "id");
    snprintf(line, sizeof line, "GET /monitors?q=%s", name);
    json_t *rows = monitors_get(service, line, NULL, 200);
    json_t *row = json_array_get(at(rows, "monitors"), 0);
    static const char *const members[] = {"state",  "kl",  "n",        "infinite",
                                          "recent", "top", "sentence", "top_share"};
    for (i = 0; i < COUNT(members); i++)
        json_object_set(all, members[i], json_object_get(row, members[i]));
    json_object_set(all, "windows", json_object_get(list, "windows"));
    char *text = json_dumps(all, JSON_SORT_KEYS);
    json_decref(list);
    json_decref(rows);
    json_decref(all);
    return text;
}

static void expect_same(const struct api_service *service, const char *when,
                        unsigned long long seed, const char *settings)
{
    char *got = shown(service, "one"), *due = shown(service, "two");
    size_t i = 0;
    while (got[i] && got[i] == due[i])
        i++;
    cr_expect_str_eq(got, due, "seed %llu, %s, %s: at %zu\n%.300s and not\n%.300s", seed, when,
                     settings, i, got + (i > 150 ? i - 150 : 0), due + (i > 150 ? i - 150 : 0));
    free(got);
    free(due);
}

static void observe(const struct api_service *service, const char *name, const char *body)
{
    char line[100];
    snprintf(line, sizeof line, "POST /monitors/g/%s/observations", name);
    monitors_expect(service, line, body, 200);
}

static void erase(const struct api_service *service, size_t window, int status)
{
    char line[100];
    snprintf(line, sizeof line, "DELETE /monitors/g/one/windows/%zu", window);
    monitors_expect(service, line, NULL, status);
}

/* Deletes the windows of a period, of the monitor or of its group. */
static void erase_period(const struct api_service *service, bool of_group, const long period[2])
{
    char line[100];
    snprintf(line, sizeof line, "DELETE /monitors/g%s/windows?from=%ld&to=%ld",
             of_group ? "" : "/one", period[0], period[1]);
    monitors_expect(service, line, NULL, 200);
}

/* Both monitors get the same but for some windows, which are deleted, one by one or all of a period; then both get the same. */
static void run_history(unsigned long long seed, bool by_period)
{
    static const char *const windows[] = {"60s", "batch", "60s", "20"};
    enum { MAX = 70 };
    bool gone[MAX] = {false};
    char settings[400], body[BODY];
    struct database database = database_new();
    struct api_service service = monitors_new_at(10, database.location);
    struct stream s = {.seed = seed * 7 + 1, .labels = seed % 5 == 4, .time = BEGIN};
    monitors_random_settings(&s.seed, seed % 2 == 0, "\"retention_days\":36500", settings,
                             sizeof settings);
    make_monitor(&service, "one", s.labels, windows[seed % COUNT(windows)], settings);
    make_monitor(&service, "two", s.labels, windows[seed % COUNT(windows)], settings);
    s.size = 20 + 60 * uniform_below(&s.seed, 4);
    size_t n = 10 + uniform_below(&s.seed, MAX - 10), erased = 1 + uniform_below(&s.seed, 3);
    for (size_t i = 0; i < erased && !by_period; i++)
        gone[uniform_below(&s.seed, 4) ? uniform_below(&s.seed, n) : n - 1] = true;
    size_t last = by_period ? uniform_below(&s.seed, n) : 0,
           first = uniform_below(&s.seed, last + 1);
    long period[2] = {0, 0};
    for (size_t i = first; i <= last && by_period; i++)
        gone[i] = true;
    for (size_t i = 0; i < n + 10; i++) {
        period[0] = i == first ? s.time : period[0];
        period[1] = i == last ? s.time + 1 : period[1];
        next_body(&s, body);
        observe(&service, "one", body);
        if (i >= n || !gone[i])
            observe(&service, "two", body);
        for (size_t j = n; i + 1 == n && j > 0 && !by_period;
             j--) /* the newest first, as an undo does */
            if (gone[j - 1])
                erase(&service, j, 204);
        if (i + 1 == n && by_period)
            erase_period(&service, seed % 3 == 0, period);
        if (i + 1 == n)
            expect_same(&service, "after the deletion", seed, settings);
    }
    expect_same(&service, "later", seed, settings);
    monitors_restart(&service, 10);
    expect_same(&service, "after a restart", seed, settings);
    monitors_end(&service);
    database_free(&database);
}

Test(monitors_erase, leaves_what_a_monitor_without_the_window_has, .timeout = 300)
{
    for (unsigned long long seed = 0; seed < SOME_OF(24); seed++)
        run_history(seed, false);
}

Test(monitors_erase, of_a_period_leaves_what_a_monitor_without_its_windows_has, .timeout = 300)
{
    for (unsigned long long seed = 200; seed < 200 + SOME_OF(24); seed++)
        run_history(seed, true);
}

/* ---- One window */

#define EVEN "{\"counts\":[40,40,40,40,40],\"timestamp\":%d}"
#define FAR "{\"counts\":[200,0,0,0,0],\"timestamp\":%d}"

static void observe_at(const struct api_service *service, bool far, int time)
{
    char body[100];
    snprintf(body, sizeof body, far ? FAR : EVEN, time);
    observe(service, "one", body);
}

static void expect_list(const struct api_service *service, const char *path, const char *expected)
{
    json_t *list = monitors_get(service, "GET /monitors?q=one", NULL, 200);
    expect_at(list, path, expected);
    json_decref(list);
}

/* An undo: the state is what it was before, and an event says so; what was observed stays counted. */
Test(monitors_erase, undoes_an_alarm)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "one", false, "batch", "{}");
    for (int i = 1; i < 4; i++)
        observe_at(&service, false, 1000 * i);
    observe_at(&service, true, 4000);
    expect_list(&service, "monitors.0.state", "\"critical\"");
    erase(&service, 4, 204);
    expect_list(&service, "monitors.0.state", "\"ok\"");
    expect_list(&service, "monitors.0.kl", "0");
    expect_list(&service, "monitors.0.window.id", "3");
    json_t *events = monitors_get(&service, "GET /monitors/g/one/events", NULL, 200);
    expect_at(events, "events.0.from", "\"critical\"");
    expect_at(events, "events.0.to", "\"ok\"");
    expect_at(events, "events.0.window", "3");
    expect_at(events, "events.1.window", "4");
    json_decref(events);
    for (int i = 3; i > 0; i--)
        erase(&service, (size_t)i, 204);
    expect_list(&service, "monitors.0.state", "\"insufficient_data\"");
    expect_list(&service, "monitors.0.window", "null");
    expect_list(&service, "monitors.0.last_observation", "\"1970-01-01T01:06:40Z\"");
    observe_at(&service, false, 5000);
    expect_list(&service, "monitors.0.window.id", "5");
    monitors_end(&service);
}

/* A window that came with a wrong time keeps those of the right time from being stored. */
Test(monitors_erase, of_a_wrong_time_lets_go_of_retention)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "one", false, "batch", "{\"retention_days\":1}");
    observe_at(&service, false, 1000);
    observe_at(&service, false, 900000000);
    monitors_refused(&service, "POST /monitors/g/one/observations",
                     "{\"counts\":[1,1,1,1,1],\"timestamp\":2000}", "timestamp_invalid");
    erase(&service, 2, 204);
    observe_at(&service, false, 2000);
    monitors_end(&service);
}

Test(monitors_erase, takes_open_windows_and_those_of_former_revisions)
{
    struct api_service service = monitors_new(10);
    char body[BODY];
    make_monitor(&service, "one", false, "1000", "{}");
    observe_at(&service, false, 1000);
    erase(&service, 1, 204);
    monitors_refused(&service, "GET /monitors/g/one/windows/current", NULL, "window_not_found");
    observe_at(&service, false, 2000);
    json_t *window = monitors_get(&service, "GET /monitors/g/one/windows/current", NULL, 200);
    expect_at(window, "window.id", "2");
    expect_at(window, "n", "200");
    json_decref(window);
    snprintf(body, sizeof body, "%s", EDGES);
    body[strlen(body) - 4] = '1'; /* another reference */
    monitors_expect(&service, "PUT /monitors/g/one?window=1000", body, 200);
    monitors_expect(&service, "GET /monitors/g/one/windows/2", NULL, 200);
    erase(&service, 2, 204);
    erase(&service, 2, 404);
    monitors_end(&service);
}

Test(monitors_erase, a_repeated_request_is_not_counted_again)
{
    struct api_service service = monitors_new(10);
    const struct monitors_request post = {.line = "POST /monitors/g/one/observations",
                                          .type = "application/json",
                                          .body = "{\"counts\":[1,1,1,1,1]}",
                                          .headers = {{"Idempotency-Key", "k"}}};
    make_monitor(&service, "one", false, "batch", "{}");
    for (int i = 0; i < 2; i++) {
        struct answer answer = monitors_send(&service, &post);
        cr_expect_eq(answer.status, i ? 404 : 200, "%d", answer.status);
        answer_free(&answer);
        erase(&service, 1, i ? 404 : 204);
    }
    monitors_end(&service);
}

Test(monitors_erase, refuses_what_is_not_there)
{
    static const struct {
        const char *line, *problem;
    } cases[] = {
        {"DELETE /monitors/g/one/windows/2", "window_not_found"},
        {"DELETE /monitors/g/one/windows/latest", "window_not_found ~by its id"},
        {"DELETE /monitors/g/one/windows/-1", "window_not_found"},
        {"DELETE /monitors/g/one/windows/99999999999999999999", "window_not_found"},
        {"DELETE /monitors/g/none/windows/1", "monitor_not_found"},
        {"DELETE /monitors/none/one/windows/1", "group_not_found"},
        {"DELETE /monitors/g/one/windows/1?dry_run=true", "option_unknown ?dry_run"},
        {"DELETE /monitors/g/one/windows", "option_invalid ?from"},
        {"DELETE /monitors/g/one/windows?from=900", "option_invalid ?to"},
        {"DELETE /monitors/g/windows?to=900", "option_invalid ?from"},
        {"DELETE /monitors/g/windows?from=900&to=900", "option_invalid ?to"},
        {"DELETE /monitors/g/windows?from=x&to=900", "timestamp_invalid ?from"},
        {"DELETE /monitors/g/windows?from=900&to=2000&dry_run=true", "option_unknown ?dry_run"},
        {"DELETE /monitors/g/windows?from=1001&to=2000", "window_not_found"},
        {"DELETE /monitors/g/one/windows?from=500&to=1000", "window_not_found"},
        {"DELETE /monitors/none/windows?from=900&to=2000", "group_not_found"},
        {"DELETE /monitors/g/none/windows?from=900&to=2000", "monitor_not_found"},
        {"DELETE /monitors/g/windows", "monitor_not_found"},
    };
    struct api_service service = monitors_new(10);
    make_monitor(&service, "one", false, "batch", "{}");
    observe_at(&service, false, 1000);
    for (size_t i = 0; i < COUNT(cases); i++)
        monitors_refused(&service, cases[i].line, NULL, cases[i].problem);
    const struct monitors_request other = {.line = "DELETE /monitors/g/one/windows/1",
                                           .headers = {{"If-Match", "\"0-0\""}}};
    struct answer answer = monitors_send(&service, &other);
    cr_expect_eq(answer.status, 412);
    answer_free(&answer);
    monitors_expect(&service, "GET /monitors/g/one/windows/1", NULL, 200);
    monitors_end(&service);
}

/* ---- Windows of a period */

/* The undo of a table: the windows of all columns go at once, and the response tells how many; the state is what it was. */
Test(monitors_erase, undoes_a_table)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/t",
                    "{\"columns\":{\"a\":[1,2,3,4],\"b\":[\"x\",\"y\",\"x\",\"y\"]}}", 201);
    for (int i = 1; i < 4; i++) {
        char body[100];
        snprintf(body, sizeof body,
                 "{\"columns\":{\"a\":[1,2,3],\"b\":[\"x\",\"y\",\"x\"]},\"timestamp\":%d}",
                 i * 1000);
        monitors_expect(&service, "POST /monitors/t/observations", body, 200);
    }
    json_t *told =
        monitors_get(&service, "DELETE /monitors/t/windows?from=2000&to=3001", NULL, 200);
    expect_at(told, "windows", "4");
    expect_at(told, "monitors", "2");
    json_decref(told);
    told = monitors_get(&service, "DELETE /monitors/t/b/windows?from=1970-01-01&to=1970-01-02",
                        NULL, 200);
    expect_at(told, "windows", "1");
    expect_at(told, "monitors", "1");
    json_decref(told);
    monitors_expect(&service, "GET /monitors/t/a/windows/1", NULL, 200);
    monitors_expect(&service, "GET /monitors/t/b/windows/1", NULL, 404);
    monitors_end(&service);
}

/* More windows than a request may have are refused as a whole. */
Test(monitors_erase, of_too_many_windows_deletes_none, .timeout = 300)
{
    enum { TABLES = 2, ROWS = 10001 };
    struct api_service service = monitors_new(10);
    struct api_buffer table = {.size = 0};
    make_monitor(&service, "one", false, "60s", "{\"retention_days\":36500}");
    for (int i = 0; i < TABLES * ROWS; i++) {
        api_append_format(&table, "%s%d,1\n", i % ROWS ? "" : "at,one\n", BEGIN + 60 * i);
        if ((i + 1) % ROWS)
            continue;
        api_append(&table, "", 1);
        monitors_expect(&service, "POST /monitors/g/observations?time=at", table.data, 200);
        table.size = 0;
    }
    monitors_refused(&service, "DELETE /monitors/g/windows?from=0&to=2100-01-01", NULL,
                     "too_many_windows ?to");
    json_t *told =
        monitors_get(&service, "DELETE /monitors/g/windows?from=0&to=1600000060", NULL, 200);
    expect_at(told, "windows", "1");
    json_decref(told);
    monitors_end(&service);
    api_buffer_free(&table);
}

/* A monitor may be called windows. */
Test(monitors_erase, of_a_monitor_that_is_called_windows)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "windows", false, "batch", "{}");
    observe(&service, "windows", "{\"counts\":[1,1,1,1,1],\"timestamp\":1000}");
    monitors_expect(&service, "DELETE /monitors/g/windows?from=1000&to=1001", NULL, 200);
    monitors_expect(&service, "GET /monitors/g/windows", NULL, 200);
    monitors_expect(&service, "GET /monitors/g/windows/windows/1", NULL, 404);
    monitors_expect(&service, "DELETE /monitors/g/windows", NULL, 204);
    monitors_expect(&service, "GET /monitors/g/windows", NULL, 404);
    monitors_end(&service);
}
