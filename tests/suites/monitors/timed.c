/* Tables whose rows go to the windows of their own times. */
#include "api/monitors/model/window.h"
#include "tests/suites/monitors/timed_rows.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "POST /monitors/g/observations?time=at"

/* ---- One request, or one for each window */

static int compare_spans(const void *a, const void *b)
{
    const struct api_window_span *first = a, *second = b;
    return (first->start > second->start) - (first->start < second->start);
}

/* The windows that the rows go to, in order. */
static size_t find_windows(const struct api_monitor_settings *settings,
                           struct api_window_span *spans)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < TIMED_ROWS; i++)
        spans[n++] = api_window_span(settings, timed_rows[i].time * 1000000);
    qsort(spans, n, sizeof *spans, compare_spans);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || spans[kept - 1].start != spans[i].start)
            spans[kept++] = spans[i];
    return kept;
}

/* Sends a request for each window, with its last time; gives the results of the last. */
static json_t *post_singly(const struct api_service *service,
                           const struct api_monitor_settings *settings, enum timed_form form,
                           size_t verdicts[4], size_t *n)
{
    struct api_window_span spans[TIMED_ROWS];
    json_t *last = NULL;
    *n = find_windows(settings, spans);
    for (size_t i = 0; i < *n; i++) {
        struct api_buffer body = {0};
        char line[200];
        int64_t latest = 0, start = spans[i].start / 1000000, end = spans[i].end / 1000000;
        for (size_t k = 0; k < TIMED_ROWS; k++)
            if (timed_is_wanted(&timed_rows[k], start, end) && timed_rows[k].time > latest)
                latest = timed_rows[k].time;
        timed_append(&body, form, start, end, false, settings->zone);
        snprintf(line, sizeof line, "POST /monitors/g/observations?timestamp=%lld",
                 (long long)latest);
        json_decref(last);
        last = timed_post(service, line, form, &body);
        for (size_t k = 0; k < 2; k++) {
            const char *verdict =
                text_at(json_array_get(json_object_get(last, "monitors"), k), "verdict");
            verdicts[*verdict == 'o' ? 0 : *verdict == 'w' ? 1 : *verdict == 'c' ? 2 : 3]++;
        }
        api_buffer_free(&body);
    }
    return last;
}

static const struct {
    const char *query, *window, *zone;
    int64_t from;
    size_t seconds;
} cases[] = {
    {"window=1d&pool=4", "1d", "UTC", 1700000000, 1036800},
    {"window=1d&pool=1&clear_after=1", "1d", "UTC", 1700000000, 777600},
    {"window=1d&timezone=Europe/Berlin", "1d", "Europe/Berlin", 1743033600, 864000},
    {"window=1w&timezone=America/New_York&retention_days=20", "1w", "America/New_York", 1729000000,
     5184000},
    {"window=6h,60s&compare=previous:2@1d&timezone=Australia/Lord_Howe", "6h",
     "Australia/Lord_Howe", 1743552000, 518400},
    {"window=6h&compare=previous:3", "6h", "UTC", 1743552000, 345600},
    {"window=12h&ratio=2,4&fire_after=2", "12h", "UTC", 1743552000, 604800},
};

static struct api_monitor_settings settings_of(size_t c)
{
    struct api_monitor_settings settings;
    const char *window = cases[c].window;
    api_settings_init(&settings);
    settings.window = API_SECONDS;
    settings.window_size = window[0] == '6'   ? 21600
                           : window[1] == '2' ? 43200
                           : window[1] == 'd' ? 86400
                                              : 604800;
    settings.zone = api_zone_find(cases[c].zone);
    return settings;
}

/* The response and the store of one request. */
static json_t *do_at_once(size_t c, enum timed_form form, json_t *seen[TIMED_VIEWS])
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    timed_make_group(&service, cases[c].query);
    timed_append(&body, form, INT64_MIN, INT64_MAX, true, api_zone_find(cases[c].zone));
    json_t *result = timed_post(&service, "POST /monitors/g/observations?time=at", form, &body);
    timed_look(&service, seen);
    api_buffer_free(&body);
    monitors_end(&service);
    return result;
}

static void expect_counts(const json_t *result, const size_t verdicts[4])
{
    static const char *const names[] = {"ok", "warning", "critical", "insufficient_data"};
    char text[30];
    for (size_t k = 0; k < 4; k++) {
        snprintf(text, sizeof text, "%zu", verdicts[k]);
        expect_at(json_object_get(result, "windows"), names[k], text);
    }
}

static void compare_ways(size_t c, enum timed_form form)
{
    json_t *seen[TIMED_VIEWS], *others[TIMED_VIEWS];
    size_t verdicts[4] = {0}, n;
    char line[200];
    struct api_monitor_settings settings = settings_of(c);
    json_t *result = do_at_once(c, form, seen);
    struct api_service service = monitors_new(10);
    timed_make_group(&service, cases[c].query);
    json_t *last = post_singly(&service, &settings, form, verdicts, &n);
    timed_look(&service, others);
    monitors_end(&service);
    cr_expect_gt(n, 5);
    expect_counts(result, verdicts);
    snprintf(line, sizeof line, "case %zu, form %d, %zu windows", c, (int)form, n);
    timed_expect_same(json_object_get(result, "monitors"), json_object_get(last, "monitors"), line);
    for (size_t i = 0; i < TIMED_VIEWS; i++) {
        snprintf(line, sizeof line, "case %zu, form %d, %s", c, (int)form, timed_views[i]);
        timed_expect_same(seen[i], others[i], line);
        json_decref(seen[i]);
        json_decref(others[i]);
    }
    json_decref(result);
    json_decref(last);
}

/* One request stores and answers the same as a request for each window. */
Test(monitors_timed, is_a_request_for_each_window)
{
    for (size_t i = 0; i < COUNT(cases) * TIMED_FORMS; i++) {
        timed_seed = i + 1;
        timed_make_rows(cases[i / TIMED_FORMS].from, cases[i / TIMED_FORMS].seconds);
        compare_ways(i / TIMED_FORMS, (enum timed_form)(i % TIMED_FORMS));
    }
}

/* ---- A reference with times */

/* A table is put, then posted: PUT itself takes no times, and says so. */
Test(monitors_timed, a_reference_takes_no_times)
{
    struct api_service service = monitors_new(10);
    static const char csv[] = "at,age\n2025-03-01,1\n2025-03-02,2\n2025-03-03,3\n";
    static const char *const bad[][2] = {
        {"PUT /monitors/g?time=at&window=1d",
         "option_unknown ?time ~PUT the table to /monitors/{group}?exclude=COLUMN, then POST it to "
         "/monitors/{group}/observations?time=COLUMN"},
        {"PUT /monitors/g?window=1d&time=at&dry_run=true", "option_unknown ?time ~then POST it"},
        {"PUT /monitors/g?windw=1d&time=at", "option_unknown ?windw"},
        {"PUT /monitors/g/age?time=at&window=1d", "option_unknown ?time"}};
    for (size_t i = 0; i < COUNT(bad); i++)
        monitors_refused(&service, bad[i][0], csv, bad[i][1]);
    cr_expect_eq(monitors_count(&service), 0);
    json_t *json = monitors_get(&service, "PUT /monitors/g?window=1d&exclude=at", csv, 201);
    expect_at(json, "monitors.0.name", "\"age\"");
    cr_expect_eq(json_array_size(json_object_get(json, "monitors")), 1);
    json_decref(json);
    json = monitors_get(&service, TABLE, csv, 200);
    expect_at(json, "windows.insufficient_data", "3");
    json_decref(json);
    monitors_end(&service);
}
