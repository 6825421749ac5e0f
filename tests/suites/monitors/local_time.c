/* Windows of days and weeks, and seasons, in the time of a zone. */
#include "api/text/zone.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define OBSERVE "POST /monitors/g/m/observations"
#define CONFIG                                                                                     \
    "{\"bins\": {\"labels\": [\"in\", \"out\"]}, \"reference\": {\"counts\": [500, 500]}}"

/* Windows of a time; those around changes of clocks have other lengths. */
static const struct {
    const char *zone, *window, *time, *start, *end;
} spans[] = {
    {"UTC", "1d", "2026-03-29T23:30:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
    {"Europe/Berlin", "1d", "2026-03-28T23:30:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
    {"Europe/Berlin", "1d", "2026-10-24T22:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
    {"Europe/Berlin", "1w", "2026-10-25T22:59:59Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
    {"Europe/Berlin", "604800s", "2026-10-25T23:00:00Z", "2026-10-25T23:00:00Z",
     "2026-11-01T23:00:00Z"},
    {"Europe/Berlin", "1h", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
    {"Europe/Berlin", "2d", "2026-10-25T00:30:00Z", "2026-10-24T00:00:00Z", "2026-10-26T00:00:00Z"},
    {"Asia/Kolkata", "1d", "2026-01-01T18:29:59Z", "2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z"},
    {"+05:30", "1d", "2026-01-01T18:29:59Z", "2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z"},
    {"Australia/Lord_Howe", "1d", "2026-04-04T14:00:00Z", "2026-04-04T13:00:00Z",
     "2026-04-05T13:30:00Z"},
    /* midnight is skipped */
    {"America/Sao_Paulo", "1d", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z",
     "2018-11-05T02:00:00Z"},
    /* the hour after midnight occurs twice, then the one before it */
    {"America/Havana", "1d", "2025-11-02T05:30:00Z", "2025-11-02T04:00:00Z",
     "2025-11-03T05:00:00Z"},
    {"America/Sao_Paulo", "1d", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z",
     "2018-02-18T03:00:00Z"},
    /* clocks went back from a minute past midnight: the day has begun */
    {"America/St_Johns", "1d", "2006-10-29T02:40:00Z", "2006-10-29T02:30:00Z",
     "2006-10-30T03:30:00Z"},
    {"America/St_Johns", "1d", "2006-10-29T02:20:00Z", "2006-10-28T02:30:00Z",
     "2006-10-29T02:30:00Z"},
    /* a day that never was */
    {"Pacific/Apia", "1d", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
    {"Pacific/Apia", "1d", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
    {"Europe/Berlin", "1d", "1945-07-01T00:00:00Z", "1945-06-30T21:00:00Z", "1945-07-01T21:00:00Z"},
};

Test(monitors_local_time, days_and_weeks_begin_at_midnight)
{
    for (size_t i = 0; i < COUNT(spans); i++) {
        struct api_service service = monitors_new(10);
        char line[200], body[100];
        snprintf(line, sizeof line, "PUT /monitors/g/m?window=%s&timezone=%s", spans[i].window,
                 *spans[i].zone == '+' ? "%2B05:30" : spans[i].zone);
        monitors_expect(&service, line, CONFIG, 201);
        snprintf(body, sizeof body, "{\"counts\": [5, 5], \"timestamp\": \"%s\"}", spans[i].time);
        json_t *json = monitors_get(&service, OBSERVE, body, 200);
        cr_expect_str_eq(text_at(json, "window.start"), spans[i].start, "%zu: %s", i,
                         text_at(json, "window.start"));
        cr_expect_str_eq(text_at(json, "window.end"), spans[i].end, "%zu: %s", i,
                         text_at(json, "window.end"));
        json_decref(json);
        monitors_end(&service);
    }
}

/* An open day closes where the zone makes it another, and goes on where it does not. */
Test(monitors_local_time, a_patch_of_the_zone)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=1d", CONFIG, 201);
    json_decref(monitors_get(&service, OBSERVE, "{\"counts\": [5, 5]}", 200));
    json_t *json =
        monitors_get(&service, "PATCH /monitors/g/m", "{\"timezone\": \"Etc/UTC\"}", 200);
    expect_at(json, "timezone", "\"Etc/UTC\"");
    json_decref(json);
    monitors_expect(&service, "GET /monitors/g/m/windows/current", NULL, 200);
    monitors_expect(&service, "PATCH /monitors/g/m", "{\"timezone\": \"Asia/Kolkata\"}", 200);
    monitors_expect(&service, "GET /monitors/g/m/windows/current", NULL, 404);
    json = monitors_get(&service, "PATCH /monitors/g/m", "{\"timezone\": null}", 200);
    expect_at(json, "timezone", "\"UTC\"");
    json_decref(json);
    monitors_refused(&service, "PATCH /monitors/g", "{\"timezone\": \"Kolkata\"}",
                     "option_invalid #/timezone ~'Asia/Kolkata'");
    monitors_end(&service);
}

Test(monitors_local_time, a_config_that_comes_back_is_taken)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=1w&timezone=Europe/Berlin", CONFIG, 201);
    struct answer config = monitors_ask(&service, "GET /monitors/g/m", NULL);
    char *text = body_of(&config);
    json_t *again = monitors_get(&service, "PUT /monitors/g/m", text, 200);
    cr_expect(json_equal(config.json, again));
    json_decref(again);
    free(text);
    answer_free(&config);
    monitors_end(&service);
}

/* ---- Seasons */

static unsigned long long state;

/* People of whom nine in ten are in from 8 to 18, and one in ten at other times. */
static size_t count_in(double hour, size_t n)
{
    double share = hour >= 8 && hour < 18 ? 0.9 : 0.1;
    size_t in = 0;
    for (size_t i = 0; i < n; i++)
        in += uniform(&state) < share;
    return in;
}

/* Alarms of hourly windows over `days`, of people who live in a zone, by a monitor in a zone. */
static size_t count_alarms(const char *people, const char *zone, int64_t from, size_t days)
{
    enum { N = 400 };
    struct api_service service = monitors_new(10);
    char line[200], body[200];
    size_t alarms = 0;
    const struct api_zone *there = api_zone_find(people);
    snprintf(line, sizeof line,
             "PUT /monitors/g/m?window=1h&compare=previous:7@24h&timezone=%s&retention_days=365",
             zone);
    monitors_expect(&service, line, "{\"bins\": {\"labels\": [\"in\", \"out\"]}}", 201);
    for (size_t hour = 0; hour < 24 * days; hour++) {
        int64_t second = from + 3600 * (int64_t)hour;
        double local = (double)api_zone_to_local(there, second * 1000000, NULL) / 3.6e9;
        size_t in = count_in(fmod(local, 24), N);
        snprintf(body, sizeof body, "{\"counts\": [%zu, %zu], \"timestamp\": %lld}", in, N - in,
                 (long long)second);
        json_t *result = monitors_get(&service, OBSERVE, body, 200);
        const char *verdict = text_at(result, "verdict");
        alarms += *verdict == 'w' || *verdict == 'c';
        json_decref(result);
    }
    monitors_end(&service);
    return alarms;
}

/* The ten days before and after a change. */
Test(monitors_local_time, the_same_hour_over_changes_of_clocks)
{
    enum { DAYS = 20 };
    static const struct {
        const char *zone;
        int64_t from;
    } cases[] = {
        {"Europe/Berlin", 1760572800},       /* 2025-10-16 */
        {"Europe/Berlin", 1742342400},       /* 2025-03-19 */
        {"America/New_York", 1761177600},    /* 2025-10-23 */
        {"Australia/Lord_Howe", 1742860800}, /* 2025-03-25, by half an hour */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        state = i + 1;
        size_t alarms = count_alarms(cases[i].zone, cases[i].zone, cases[i].from, DAYS);
        cr_expect_eq(alarms, 0, "%zu: %zu alarms", i, alarms);
    }
    state = 1;
    cr_expect_gt(count_alarms("Europe/Berlin", "UTC", cases[0].from, DAYS), 10);
}

/* Counts of the hours before tell which of them an hour is compared with. */
Test(monitors_local_time, skipped_and_repeated_hours)
{
    /* hours of Berlin's local time, the first one of those that occur twice; counts are the hours since the epoch, in bits */
    static const struct {
        const char *timestamp;
        const char *n_reference; /* windows it is compared with, by their counts */
    } cases[] = {
        /* 02:00 of the 30th of March 2025: skipped on the 30th; of the 28th and 29th at 01:00Z */
        {"2025-03-31T00:00:00Z", "3"},
        {"2025-10-27T01:00:00Z", "12"},
    };
    static const struct {
        const char *timestamp;
        int n;
    } windows[] = {
        {"2025-03-28T01:00:00Z", 1},  {"2025-03-29T01:00:00Z", 2}, {"2025-03-30T01:00:00Z", 4},
        {"2025-03-30T00:00:00Z", 8},  {"2025-10-25T00:00:00Z", 4}, {"2025-10-26T00:00:00Z", 8},
        {"2025-10-26T01:00:00Z", 16},
    };
    struct api_service service = monitors_new(10);
    char body[200];
    monitors_expect(&service,
                    "PUT /monitors/g/m?window=1h&compare=previous:3@24h&timezone=Europe/Berlin"
                    "&retention_days=365",
                    "{\"bins\": {\"labels\": [\"in\", \"out\"]}}", 201);
    for (size_t i = 0; i < COUNT(windows); i++) {
        snprintf(body, sizeof body, "{\"counts\": [%d, 0], \"timestamp\": \"%s\"}", windows[i].n,
                 windows[i].timestamp);
        monitors_expect(&service, OBSERVE, body, 200);
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(body, sizeof body, "{\"counts\": [1, 1], \"timestamp\": \"%s\"}",
                 cases[i].timestamp);
        json_t *result = monitors_get(&service, OBSERVE, body, 200);
        expect_at(result, "n_reference", cases[i].n_reference);
        json_decref(result);
    }
    monitors_end(&service);
}
