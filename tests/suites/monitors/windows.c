/* Windows of monitors: what closes them, what comes late, what goes. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PUT "PUT /monitors/g/m"
#define OBSERVE "POST /monitors/g/m/observations"
#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"

/* Makes a service with one monitor, by a query. */
static struct api_service with_monitor(const char *query)
{
    struct api_service service = monitors_new(100);
    char line[200];
    snprintf(line, sizeof line, PUT "?%s", query);
    monitors_expect(&service, line, CONFIG, 201);
    return service;
}

/* Observes counts at a time, and gives the answer. */
static json_t *observe(const struct api_service *service, const char *counts, const char *time)
{
    char body[200];
    snprintf(body, sizeof body, "{\"counts\":%s%s%s}", counts, *time ? ",\"timestamp\":" : "",
             time);
    return monitors_get(service, OBSERVE, body, 200);
}

/* Observes, and expects the window: "id start end closed restated n". Times are without "2001-09-0". */
static void expect_window(const struct api_service *service, const char *counts, const char *time,
                          const char *expected)
{
    char got[200];
    json_t *json = observe(service, counts, time);
    const char *start = text_at(json, "window.start"), *end = text_at(json, "window.end");
    snprintf(got, sizeof got, "%.0f %s %s %s %s %.0f", number_at(json, "window.id"),
             strlen(start) > 9 ? start + 9 : start, strlen(end) > 9 ? end + 9 : end,
             json_is_true(at(json, "window.closed")) ? "closed" : "open",
             json_is_true(at(json, "window.restated")) ? "restated" : "once", number_at(json, "n"));
    cr_expect_str_eq(got, expected, "%s at %s: %s", counts, time, got);
    json_decref(json);
}

/* 1000000000 is 2001-09-09T01:46:40Z. */
Test(monitors_windows, of_batches_are_one_for_each_request)
{
    struct api_service service = with_monitor("window=batch");
    expect_window(&service, "[1,2]", "1000000000", "1 9T01:46:40Z 9T01:46:40Z closed once 3");
    expect_window(&service, "[4,5]", "1000000000", "2 9T01:46:40Z 9T01:46:40Z closed once 9");
    expect_window(&service, "[4,5]", "\"2001-09-09T03:46:40.5+02:00\"",
                  "3 9T01:46:40.500000Z 9T01:46:40.500000Z closed once 9");
    expect_window(&service, "[4,0]", "999999999.25",
                  "4 9T01:46:39.250000Z 9T01:46:39.250000Z closed once 4");
    monitors_end(&service);
}

Test(monitors_windows, of_seconds_are_aligned_and_closed_at_once_if_past)
{
    struct api_service service = with_monitor("window=600s,60s");
    expect_window(&service, "[1,2]", "1000000000", "1 9T01:40:00Z 9T01:50:00Z closed once 3");
    expect_window(&service, "[1,0]", "1000000199.999999",
                  "1 9T01:40:00Z 9T01:50:00Z closed restated 4");
    expect_window(&service, "[1,0]", "1000000200", "2 9T01:50:00Z 9T02:00:00Z closed once 1");
    expect_window(&service, "[1,0]", "\"2001-09-09T01:40:00Z\"",
                  "1 9T01:40:00Z 9T01:50:00Z closed restated 5");
    monitors_end(&service);
}

/* 2001-09-09 was a Sunday. */
Test(monitors_windows, of_weeks_begin_on_mondays)
{
    struct api_service service = with_monitor("window=1w");
    json_t *json = observe(&service, "[1,2]", "1000000000");
    expect_at(json, "window.start", "\"2001-09-03T00:00:00Z\"");
    expect_at(json, "window.end", "\"2001-09-10T00:00:00Z\"");
    json_decref(json);
    json = observe(&service, "[1,2]", "\"2001-09-10T00:00:00Z\"");
    expect_at(json, "window.start", "\"2001-09-10T00:00:00Z\"");
    json_decref(json);
    monitors_end(&service);
}

Test(monitors_windows, before_the_epoch_are_aligned_too)
{
    struct api_service service = with_monitor("window=600s&retention_days=36500");
    json_t *json = observe(&service, "[1,2]", "-1");
    expect_at(json, "window.start", "\"1969-12-31T23:50:00Z\"");
    expect_at(json, "window.end", "\"1970-01-01T00:00:00Z\"");
    json_decref(json);
    monitors_end(&service);
}

/* The window of now is open; one that ended a second ago is, too, for its grace. */
Test(monitors_windows, of_seconds_stay_open_for_their_grace)
{
    struct api_service service =
        with_monitor("window=1000000000s,1000000000s&retention_days=36500");
    json_t *json = observe(&service, "[90,10]", "");
    expect_at(json, "window.closed", "false");
    expect_at(json, "state", "\"insufficient_data\"");
    expect_at(json, "verdict", "\"critical\"");
    json_decref(json);
    json = observe(&service, "[10,90]", "");
    expect_at(json, "n", "200");
    json_decref(json);
    expect_window(&service, "[1,2]", "999999999", "2 1T00:00:00Z 9T01:46:40Z open once 3");
    monitors_end(&service);
}

Test(monitors_windows, close_by_the_clock)
{
    struct api_service service = with_monitor("window=1s");
    json_decref(observe(&service, "[90,10]", ""));
    for (int i = 0; i < 100; i++) {
        struct answer answer = monitors_ask(&service, "GET /monitors/g/m/windows/latest", NULL);
        int status = answer.status;
        if (status == 200)
            expect_at(answer.json, "state", "\"critical\"");
        answer_free(&answer);
        if (status == 200)
            break;
        cr_assert_lt(i, 99);
        usleep(100000);
    }
    monitors_expect(&service, "GET /monitors/g/m/windows/current", NULL, 404);
    monitors_end(&service);
}

Test(monitors_windows, of_counts_close_when_they_are_full)
{
    struct api_service service = with_monitor("window=10");
    expect_window(&service, "[1,2]", "1000000000", "1 9T01:46:40Z 9T01:46:40Z open once 3");
    expect_window(&service, "[1,2]", "999999990", "1 9T01:46:30Z 9T01:46:40Z open once 6");
    expect_window(&service, "[9,9]", "1000000005", "1 9T01:46:30Z 9T01:46:45Z closed once 24");
    expect_window(&service, "[1,2]", "1000000001", "2 9T01:46:41Z 9T01:46:41Z open once 3");
    expect_window(&service, "[7,0]", "1000000001", "2 9T01:46:41Z 9T01:46:41Z closed once 10");
    monitors_end(&service);
}

/* Windows of another length or kind do not take what is for the new ones. */
Test(monitors_windows, of_another_setting_are_not_taken_for_new_ones)
{
    struct api_service service = with_monitor("window=600s");
    expect_window(&service, "[1,2]", "999999600", "1 9T01:40:00Z 9T01:50:00Z closed once 3");
    monitors_expect(&service, PUT "?window=1200s", CONFIG, 200);
    expect_window(&service, "[1,2]", "1000000500", "2 9T01:40:00Z 9T02:00:00Z closed once 3");
    monitors_expect(&service, PUT "?window=batch", CONFIG, 200);
    expect_window(&service, "[1,2]", "1000000800", "3 9T02:00:00Z 9T02:00:00Z closed once 3");
    monitors_expect(&service, PUT "?window=600s", CONFIG, 200);
    expect_window(&service, "[1,2]", "1000000800", "4 9T02:00:00Z 9T02:10:00Z closed once 3");
    expect_window(&service, "[1,2]", "999999700", "1 9T01:40:00Z 9T01:50:00Z closed restated 6");
    monitors_end(&service);
}

/* The window that ends last may end long after an observation that belongs to it. */
Test(monitors_windows, that_are_longer_than_the_retention_are_filled)
{
    struct api_service service = with_monitor("window=604800s&retention_days=1");
    expect_window(&service, "[1,2]", "1000000000", "1 3T00:00:00Z 0T00:00:00Z closed once 3");
    expect_window(&service, "[1,2]", "1000000001", "1 3T00:00:00Z 0T00:00:00Z closed restated 6");
    monitors_refused(&service, OBSERVE, "{\"counts\":[1,1],\"timestamp\":999475199}",
                     "timestamp_invalid");
    monitors_end(&service);
}

Test(monitors_windows, close_when_the_setting_or_the_revision_changes)
{
    struct api_service service = with_monitor("window=100");
    expect_window(&service, "[1,2]", "1000000000", "1 9T01:46:40Z 9T01:46:40Z open once 3");
    monitors_expect(&service, PUT "?window=100&fire_after=3", CONFIG, 200);
    expect_window(&service, "[1,0]", "1000000000", "1 9T01:46:40Z 9T01:46:40Z open once 4");
    monitors_expect(&service, PUT "?window=50", CONFIG, 200);
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows/1", NULL, 200);
    expect_at(json, "window.closed", "true");
    expect_at(json, "n", "4");
    json_decref(json);
    expect_window(&service, "[60,0]", "1000000000", "2 9T01:46:40Z 9T01:46:40Z closed once 60");
    monitors_expect(&service, "GET /monitors/g/m/windows/current", NULL, 404);
    expect_window(&service, "[1,0]", "1000000000", "3 9T01:46:40Z 9T01:46:40Z open once 1");
    json = monitors_get(&service, PUT "?window=50",
                        "{\"bins\":{\"edges\":[0,2,4]},\"reference\":{\"counts\":[500,500]}}", 200);
    expect_at(json, "revision", "2");
    expect_at(json, "state", "\"insufficient_data\"");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/m/windows/3", NULL, 200);
    expect_at(json, "revision", "1");
    expect_at(json, "window.closed", "true");
    expect_at(json, "bins.1.name", "\"[0, 1)\"");
    json_decref(json);
    monitors_expect(&service, "GET /monitors/g/m/windows/latest", NULL, 404);
    monitors_end(&service);
}

/* ---- Compared with windows before */

Test(monitors_windows, may_be_compared_with_those_before)
{
    struct api_service service = with_monitor("window=60s&compare=previous:2&min_observations=1");
    static const struct {
        const char *counts, *time, *n_reference;
    } steps[] = {{"[10,20]", "600", "null"}, {"[1,2]", "660", "30"},   {"[5,5]", "720", "33"},
                 {"[1,1]", "780", "13"},     {"[100,0]", "690", "30"}, {"[7,0]", "840", "12"},
                 {"[1,0]", "540", "null"}};
    for (size_t i = 0; i < COUNT(steps); i++) {
        json_t *json = observe(&service, steps[i].counts, steps[i].time);
        expect_at(json, "n_reference", steps[i].n_reference);
        cr_expect_eq(json_is_null(at(json, "kl")), strcmp(steps[i].n_reference, "null") == 0);
        cr_expect_str_eq(text_at(json, "verdict"), json_is_null(at(json, "kl"))
                                                       ? "insufficient_data"
                                                       : text_at(json, "verdict"));
        json_decref(json);
    }
    json_t *json = monitors_get(&service, "POST /monitors/g/m/evaluate",
                                "{\"counts\":[1,1],\"timestamp\":700}", 200);
    expect_at(json, "n_reference", "133"); /* those that start at 600 and 660 */
    expect_at(json, "window", "null");
    json_decref(json);
    monitors_end(&service);
}

/* ---- References made of windows */

Test(monitors_windows, become_the_reference)
{
    struct api_service service = with_monitor("window=60s");
    json_decref(observe(&service, "[10,20]", "600"));
    json_decref(observe(&service, "[1,2]", "660"));
    json_decref(observe(&service, "[1,200]", "720"));
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":0,\"to\":600}",
                     "windows_missing");
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":0}",
                     "option_invalid #");
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":0,\"to\":null}",
                     "timestamp_invalid #/to");
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":\"x\",\"to\":1}",
                     "timestamp_invalid #/from");
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{", "json_malformed");
    monitors_refused(&service, "POST /monitors/g/reference?include=m",
                     "\xef\xbb\xbf{\"from\":0,\"to\":600}", "windows_missing");
    json_t *json = monitors_get(&service, "POST /monitors/g/reference?include=m",
                                "{\"from\":600,\"to\":\"1970-01-01T00:12:00Z\"}", 200);
    expect_at(json, "monitors.0.revision", "2");
    expect_at(json, "monitors.0.state", "\"insufficient_data\"");
    expect_at(json, "monitors.0.reference",
              "{\"counts\":[11,22],\"missing\":0,\"overflow\":0,\"underflow\":0}");
    json_decref(json);
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":0,\"to\":1e9}",
                     "windows_missing");
    monitors_end(&service);
}

/* ---- Retention */

/* Number of windows, when no more than `most` are left, or after 5 s. */
static size_t count_windows(const struct api_service *service, size_t max)
{
    size_t n = SIZE_MAX;
    for (int i = 0; i < 50 && n > max; i++) {
        json_t *json = monitors_get(service, "GET /monitors/g/m/windows?limit=1000", NULL, 200);
        n = json_array_size(at(json, "windows"));
        json_decref(json);
        if (n > max)
            usleep(100000);
    }
    return n;
}

Test(monitors_windows, go_after_the_retention_and_nothing_older_is_taken)
{
    struct api_service service = with_monitor("retention_days=1");
    static const struct {
        double days;
        bool good;
    } steps[] = {{10, true}, {9.5, true}, {9, true},     {8.9999, false},
                 {12, true}, {11, true},  {10.9, false}, {11.5, true}};
    for (size_t i = 0; i < COUNT(steps); i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%.1f}", steps[i].days * 86400);
        if (steps[i].good)
            monitors_expect(&service, OBSERVE, body, 200);
        else
            monitors_refused(&service, OBSERVE, body, "timestamp_invalid");
    }
    cr_expect_eq(count_windows(&service, 3), 3);
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows", NULL, 200);
    expect_at(json, "windows.2.window.start", "\"1970-01-12T00:00:00Z\"");
    json_decref(json);
    monitors_end(&service);
}

Test(monitors_windows, times_are_checked)
{
    struct api_service service = with_monitor("window=batch");
    static const char *const bad[] = {"\"now\"",
                                      "true",
                                      "[]",
                                      "\"2001-09-09T01:46:40\"",
                                      "1e300",
                                      "\"2001-02-29T00:00:00Z\"",
                                      "\"\"",
                                      "\"2001-09-0\"",
                                      "\"inf\"",
                                      "\"2001-09-09T24:00:00Z\"",
                                      "99999999999",
                                      "\"9999-12-31T23:59:59-23:59\"",
                                      "\"0001-01-01T00:00:00+00:01\"",
                                      "\"2001-09-09T01:46:40UTC\""};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%s}", bad[i]);
        monitors_refused(&service, OBSERVE, body, "timestamp_invalid #/timestamp");
    }
    monitors_refused(&service, OBSERVE "?timestamp=x", "{\"counts\":[1,1]}",
                     "timestamp_invalid ?timestamp");
    monitors_refused(&service, OBSERVE "?timestamp=1", "{\"counts\":[1,1],\"timestamp\":2}",
                     "option_conflict ?timestamp");
    monitors_refused(&service, OBSERVE "?timestamp=1", "{\"counts\":[1,1],\"timestamp\":\"x\"}",
                     "timestamp_invalid #/timestamp");
    monitors_expect(&service, "PUT /monitors/g/twice",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
    monitors_expect(&service, "POST /monitors/g/twice/observations?timestamp=1",
                    "{\"counts\":[1,1],\"timestamp\":\"1970-01-01T00:00:01Z\"}", 200);
    monitors_refused(&service, OBSERVE "?timestam=1", "{\"counts\":[1,1]}",
                     "option_unknown ?timestam");
    char body[100];
    snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%lld}",
             (long long)time(NULL) + 86000);
    monitors_expect(&service, OBSERVE, body, 200);
    snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%lld}",
             (long long)time(NULL) + 86500);
    monitors_refused(&service, OBSERVE, body,
                     "timestamp_invalid #/timestamp ~ahead of this server's clock, 2");
    monitors_refused(&service, OBSERVE "?timestamp=1000000000", "{\"counts\":[1,1]}",
                     "timestamp_invalid ~timestamp, 2001-09-09T01:46:40Z, is more than "
                     "retention_days, 90, before");
    monitors_refused(&service, OBSERVE "?timestamp=1e30", "{\"counts\":[1,1]}",
                     "timestamp_invalid ?timestamp ~between the years 1 and 9999");
    static const struct {
        const char *rest, *problem;
    } edges[] = {{"windows?from=x", "timestamp_invalid ?from ~a date, or seconds"},
                 {"windows?to=2026-02-30", "timestamp_invalid ?to ~a date, or seconds"},
                 {"notes?from=1e30", "timestamp_invalid ?from ~a date, or seconds"},
                 {"compare?against_from=x", "timestamp_invalid ?against_from ~a date, or seconds"}};
    for (size_t i = 0; i < COUNT(edges); i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /monitors/g/m/%s", edges[i].rest);
        monitors_refused(&service, line, NULL, edges[i].problem);
    }
    monitors_refused(&service, "POST /monitors/g/reference?include=m", "{\"from\":\"x\",\"to\":2}",
                     "timestamp_invalid #/from ~a date, or seconds");
    monitors_expect(&service, OBSERVE "?timestamp=2001-09-09T01:46:40%2B02:00",
                    "{\"counts\":[1,1]}", 422); /* older than the retention */
    monitors_end(&service);
}

/* A page of windows is bounded by the bins of the windows, which a former revision may have more of. */
Test(monitors_windows, of_many_bins_come_in_short_pages)
{
    enum { BINS = 1000, WINDOWS = 150, MAX_PAGE = 110 };
    struct api_service service = monitors_new(10);
    struct api_buffer config = {0};
    api_append_text(&config, "{\"bins\":{\"edges\":[0");
    for (int i = 1; i <= BINS; i++)
        api_append_format(&config, ",%d", i);
    api_append(&config, "]},\"compare\":\"previous:1\"}", 27);
    monitors_expect(&service, PUT, config.data, 201);
    for (int i = 0; i < WINDOWS; i++)
        monitors_expect(&service, OBSERVE, "{\"values\":[1,2,999]}", 200);
    monitors_expect(&service, PUT, CONFIG, 200);
    monitors_expect(&service, OBSERVE, "{\"values\":[1,2,999]}", 200);
    size_t pages = 0, n = 0;
    for (char line[200] = "GET /monitors/g/m/windows?limit=500", next[100] = "x"; *next; pages++) {
        json_t *json = monitors_get(&service, line, NULL, 200);
        size_t size = json_array_size(at(json, "windows"));
        cr_expect_leq(size, MAX_PAGE);
        n += size;
        snprintf(next, sizeof next, "%s", text_at(json, "next"));
        snprintf(line, sizeof line, "GET /monitors/g/m/windows?limit=500&cursor=%s", next);
        json_decref(json);
    }
    cr_expect_eq(n, WINDOWS + 1);
    cr_expect_eq(pages, 2);
    api_buffer_free(&config);
    monitors_end(&service);
}

/* Times as programs write them, and the start of their window. */
Test(monitors_windows, times_are_read_as_programs_write_them)
{
    static const struct {
        const char *timestamp, *start;
    } cases[] = {
        {"1000000000", "\"2001-09-09T01:46:40Z\""},
        {"1000000000123", "\"2001-09-09T01:46:40.123000Z\""},
        {"1000000000000001", "\"2001-09-09T01:46:40.000001Z\""},
        {"1000000000000000000", "\"2001-09-09T01:46:40Z\""},
        {"\"1000000000000\"", "\"2001-09-09T01:46:40Z\""},
        {"\"2001-09-09\"", "\"2001-09-09T00:00:00Z\""},
        {"\"2001-09-09T01:46:40+0130\"", "\"2001-09-09T00:16:40Z\""},
        {"\"2001-09-09 01:46:40-01:30\"", "\"2001-09-09T03:16:40Z\""},
    };
    struct api_service service = with_monitor("window=batch");
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"counts\":[1,1],\"timestamp\":%s}", cases[i].timestamp);
        json_t *json = monitors_get(&service, OBSERVE, body, 200);
        expect_at(json, "window.start", cases[i].start);
        json_decref(json);
    }
    monitors_refused(&service, OBSERVE, "{\"counts\":[1,1],\"timestamp\":\"2001-09-09T01:46:40\"}",
                     "timestamp_invalid #/timestamp ~in UTC it is 2001-09-09T01:46:40Z");
    monitors_refused(&service, OBSERVE, "{\"counts\":[1,1],\"timestamp\":\"2001-02-30\"}",
                     "timestamp_invalid #/timestamp");
    monitors_refused(&service, OBSERVE, "{\"counts\":[1,1],\"timestamp\":\"9999999999999\"}",
                     "timestamp_invalid #/timestamp ~ahead");
    monitors_end(&service);
}
