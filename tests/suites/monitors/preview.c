/* PATCH with dry_run: what the windows of before would have raised. The oracle of other settings is a monitor that had
 * them while the same observations came. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 5, BEGIN = 1600000020, DAY = 86400 };
#define CONFIG                                                                                     \
    "{\"bins\":{\"edges\":[0,1,2,3,4,5]},"                                                         \
    "\"reference\":{\"counts\":[1000,1000,1000,1000,1000]}}"

/* ---- Histories: windows of time, of requests, or of numbers, in order */

/* Makes a monitor with settings; `window` is its parameter. */
static void make_monitor(const struct api_service *service, const char *name, const char *window,
                         const char *settings)
{
    char line[200];
    snprintf(line, sizeof line, "PUT /monitors/g/%s?window=%s", name, window);
    monitors_expect(service, line, CONFIG, 201);
    snprintf(line, sizeof line, "PATCH /monitors/g/%s", name);
    monitors_expect(service, line, settings, 200);
}

/* Observes the same in both monitors, with a shift that comes and goes. */
static void observe(const struct api_service *service, unsigned long long *seed, size_t n)
{
    double shift = 0;
    size_t size = 20 + 60 * uniform_below(seed, 4);
    long time = BEGIN;
    for (size_t i = 0; i < n; i++) {
        size_t counts[BINS] = {0};
        char body[200];
        if (uniform_below(seed, 10) == 0)
            shift = 0.2 * (double)uniform_below(seed, 4);
        for (size_t j = 0; j < size; j++)
            counts[uniform(seed) < shift ? 0 : uniform_below(seed, BINS)]++;
        snprintf(body, sizeof body, "{\"counts\":[%zu,%zu,%zu,%zu,%zu],\"timestamp\":%ld}",
                 counts[0], counts[1], counts[2], counts[3], counts[4], time);
        monitors_expect(service, "POST /monitors/g/a/observations", body, 200);
        monitors_expect(service, "POST /monitors/g/b/observations", body, 200);
        time += 60 * (1 + (long)(uniform_below(seed, 6) == 0));
    }
}

/* Expects the changes of a preview to be the events of a monitor. Gives how many. */
static size_t expect_events(const struct api_service *service, const char *name,
                            const char *settings, unsigned long long seed)
{
    char line[100];
    size_t alarms = 0, i;
    json_t *event;
    snprintf(line, sizeof line, "GET /monitors/g/%s/events?limit=1000", name);
    json_t *events = monitors_get(service, line, NULL, 200);
    json_t *dry = monitors_get(service, "PATCH /monitors/g/a?dry_run=true", settings, 200);
    json_array_foreach(at(events, "events"), i, event)
        json_object_set_new(event, "began", json_null()); /* previews do not look for it */
    char *got = json_dumps(at(dry, "preview.changes"), JSON_SORT_KEYS);
    char *due = json_dumps(at(events, "events"), JSON_SORT_KEYS);
    cr_expect_str_eq(got, due, "seed %llu, %s:\n%s and not\n%s", seed, settings, got, due);
    json_array_foreach(at(events, "events"), i, event)
    {
        bool worse = strcmp(text_at(event, "to"), "critical") == 0 ||
                     (strcmp(text_at(event, "to"), "warning") == 0 &&
                      strcmp(text_at(event, "from"), "critical") != 0);
        alarms += worse;
    }
    cr_expect_eq(number_at(dry, "preview.alarms"), (double)alarms);
    free(got);
    free(due);
    json_decref(events);
    json_decref(dry);
    return i;
}

Test(monitors_preview, of_the_same_settings_are_the_events_and_of_others_those_with_them)
{
    static const char *const windows[] = {"60s", "batch", "60s", "300"};
    size_t changes = 0;
    for (unsigned long long seed = 0; seed < SOME_OF(80); seed++) {
        struct api_service service = monitors_new(10);
        static const char *const pseudocounts[] = {"\"pseudocount\":0", "\"pseudocount\":0.5"};
        unsigned long long random = seed;
        char a[400], b[400];
        const char *window = windows[seed % COUNT(windows)];
        bool time = seed % 2 == 0;
        monitors_random_settings(&random, time, pseudocounts[uniform_below(&random, 2)], a,
                                 sizeof a);
        monitors_random_settings(&random, time, pseudocounts[uniform_below(&random, 2)], b,
                                 sizeof b);
        make_monitor(&service, "a", window, a);
        make_monitor(&service, "b", window, b);
        observe(&service, &random, 20 + uniform_below(&random, 60));
        json_t *before = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
        changes += expect_events(&service, "a", "{}", seed);
        changes += expect_events(&service, "b", b, seed);
        json_t *after = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
        cr_expect(json_equal(before, after));
        json_decref(before);
        json_decref(after);
        monitors_end(&service);
    }
    cr_expect_gt(changes, SOME_OF(300), "%zu", changes);
}

/* ---- Its answer */

Test(monitors_preview, answers_with_the_config_as_it_would_be_and_stores_nothing)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "a", "batch", "{}");
    json_t *before = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    json_t *dry = monitors_get(&service, "PATCH /monitors/g/a?dry_run=true",
                               "{\"pool\":4,\"annotations\":{\"x\":1}}", 200);
    expect_at(dry, "pool", "4");
    expect_at(dry, "annotations.x", "1");
    expect_at(dry, "preview",
              "{\"alarms\":0,\"changes\":[],\"from\":null,\"to\":null,\"windows\":0}");
    json_t *after = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    cr_expect(json_equal(before, after));
    json_t *done = monitors_get(&service, "PATCH /monitors/g/a?dry_run=false",
                                "{\"pool\":4,\"annotations\":{\"x\":1}}", 200);
    json_object_del(dry, "preview");
    cr_expect(json_equal(dry, done), "a dry run answers as the patch does");
    json_decref(before);
    json_decref(dry);
    json_decref(after);
    json_decref(done);
    monitors_end(&service);
}

Test(monitors_preview, of_a_group_is_its_configs)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "a", "batch", "{}");
    make_monitor(&service, "b", "batch", "{}");
    json_t *dry =
        monitors_get(&service, "PATCH /monitors/g?dry_run=true", "{\"fire_after\":7}", 200);
    expect_at(dry, "monitors.0.fire_after", "7");
    expect_at(dry, "monitors.1.fire_after", "7");
    expect_at(dry, "preview", "null");
    json_t *group = monitors_get(&service, "GET /monitors/g", NULL, 200);
    expect_at(group, "monitors.0.fire_after", "1");
    json_decref(dry);
    json_decref(group);
    monitors_end(&service);
}

Test(monitors_preview, refuses_what_the_patch_refuses)
{
    struct api_service service = monitors_new(10);
    make_monitor(&service, "a", "batch", "{}");
    monitors_refused(&service, "PATCH /monitors/g/a?dry_run=yes", "{}", "option_invalid ?dry_run");
    monitors_refused(&service, "PATCH /monitors/g/a?dry=true", "{}", "option_unknown ?dry");
    monitors_refused(&service, "PATCH /monitors/g/a?dry_run=true", "{\"bins\":null}",
                     "option_invalid #/bins");
    monitors_refused(&service, "PATCH /monitors/g/a?dry_run=true",
                     "{\"thresholds\":{\"warning\":9}}", "option_invalid #/thresholds/critical");
    monitors_refused(&service, "PATCH /monitors/g/none?dry_run=true", "{}", "monitor_not_found");
    const struct monitors_request other = {.line = "PATCH /monitors/g/a?dry_run=true",
                                           .body = "{}",
                                           .headers = {{"If-Match", "\"0-0\""}}};
    struct answer answer = monitors_send(&service, &other);
    cr_expect_eq(answer.status, 412);
    answer_free(&answer);
    monitors_end(&service);
}

/* ---- Its bounds */

static void expect_period(const struct api_service *service, const char *expected)
{
    char got[200];
    json_t *dry = monitors_get(service, "PATCH /monitors/g/a?dry_run=true", "{}", 200);
    snprintf(got, sizeof got, "%.0f %s %s", number_at(dry, "preview.windows"),
             text_at(dry, "preview.from"), text_at(dry, "preview.to"));
    cr_expect_str_eq(got, expected, "%s", got);
    json_decref(dry);
}

Test(monitors_preview, is_of_sixty_days_before_the_newest_window)
{
    struct api_service service = monitors_new(10);
    char body[100];
    make_monitor(&service, "a", "86400s", "{\"retention_days\":1000}");
    for (long day = 0; day < 80; day++) {
        snprintf(body, sizeof body, "{\"counts\":[9,9,9,9,9],\"timestamp\":%ld}",
                 946684800 + day * DAY);
        monitors_expect(&service, "POST /monitors/g/a/observations", body, 200);
    }
    expect_period(&service, "61 2000-01-20T00:00:00Z 2000-03-21T00:00:00Z");
    monitors_end(&service);
}

Test(monitors_preview, is_of_two_thousand_windows)
{
    struct api_service service = monitors_new(10);
    char body[100];
    make_monitor(&service, "a", "60s", "{}");
    for (long i = 0; i < 2100; i++) {
        snprintf(body, sizeof body, "{\"counts\":[9,9,9,9,9],\"timestamp\":%ld}",
                 946684800 + i * 60);
        monitors_expect(&service, "POST /monitors/g/a/observations", body, 200);
    }
    expect_period(&service, "2000 2000-01-01T01:40:00Z 2000-01-02T11:00:00Z");
    monitors_end(&service);
}

/* 1,003 counts a window. */
Test(monitors_preview, is_of_a_hundred_thousand_counts)
{
    struct api_service service = monitors_new(10);
    struct api_buffer config = {0};
    char body[100];
    api_append_text(&config, "{\"bins\":{\"edges\":[0");
    for (size_t i = 1; i <= 1000; i++)
        api_append_format(&config, ",%zu", i);
    api_append_text(&config, "]},\"reference\":{\"values\":[1]}}");
    api_append(&config, "", 1);
    monitors_expect(&service, "PUT /monitors/g/a?window=60s", config.data, 201);
    for (long i = 0; i < 220; i++) {
        snprintf(body, sizeof body, "{\"values\":[%ld],\"timestamp\":%ld}", i, 946684800 + i * 60);
        monitors_expect(&service, "POST /monitors/g/a/observations", body, 200);
    }
    expect_period(&service, "99 2000-01-01T02:01:00Z 2000-01-01T03:40:00Z");
    api_buffer_free(&config);
    monitors_end(&service);
}
