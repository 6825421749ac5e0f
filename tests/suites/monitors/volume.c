/* Verdicts by the number of rows of a window. */
#include "api/monitors/model/volume.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR INT64_C(3600)
#define BEGIN INT64_C(1767571200) /* 2026-01-05, a Monday */
#define LABELS "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[500,500]}}"

static void read_list(const json_t *list, struct api_volumes *to)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *window = json_array_get(list, i);
        api_volumes_add(to, json_number_value(json_array_get(window, 0)),
                        json_is_true(json_array_get(window, 1)));
    }
}

/* The rule in Python: tests/tools/golden/volume.py. */
Test(monitors_volume, follows_the_rule_in_python)
{
    size_t size, levels[API_VERDICTS] = {0};
    char *all = read_file("tests/tools/golden/volume.jsonl", &size), *rest = all;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        struct api_monitor_settings settings = {.volume_warning = 0};
        struct api_volumes_before before = {.last.n = 0};
        json_t *row = json_loads(line, 0, NULL), *list;
        const json_t *season = at(row, "case.1"), *judged = at(row, "judged");
        size_t day;
        json_array_foreach(season, day, list) read_list(list, &before.season[day]);
        read_list(at(row, "case.2"), &before.last);
        settings.volume_warning = number_at(row, "case.3");
        settings.volume_critical = number_at(row, "case.4");
        const struct api_volume volume =
            api_volume_judge(&settings, number_at(row, "case.0"), &before);
        if (json_is_null(judged)) {
            cr_expect_eq(volume.windows, 0, "%s", line);
        } else {
            cr_expect_eq(volume.usual, number_at(judged, "0"), "%s", line);
            cr_expect_eq(volume.windows, number_at(judged, "1"), "%s", line);
            cr_expect_float_eq(volume.ratio, number_at(judged, "2"), 1e-12 * volume.ratio, "%s",
                               line);
            double due = number_at(judged, "3");
            cr_expect_float_eq(volume.p_value, due, 1e-9 * due, "%s: %g", line, volume.p_value);
            cr_expect_str_eq(api_verdict_names[(int)volume.level], text_at(judged, "4"), "%s",
                             line);
            levels[(int)volume.level]++;
        }
        json_decref(row);
    }
    for (size_t level = API_OK; level < API_VERDICTS; level++)
        cr_expect_gt(levels[level], 20, "%zu: %zu", level, levels[level]);
    free(all);
}

/* Sends the rows of a window, which the next one closes. */
static void send(const struct api_service *service, const char *name, int64_t start, int rows)
{
    char request[100], body[100];
    snprintf(request, sizeof request, "POST /monitors/g/%s/observations", name);
    snprintf(body, sizeof body, "{\"counts\":[%d,%d],\"timestamp\":%jd}", rows / 2, rows - rows / 2,
             (intmax_t)start);
    monitors_expect(service, request, body, 200);
}

/* Rows that vary by a few percent, always in the same way. */
static int usual(int64_t i, int rows) { return rows + (int)(i * 7919 % 13 - 6) * rows / 200; }

/* A column's values are as ever, but few: the state rises, says why, and falls. */
Test(monitors_volume, a_third_of_the_rows_is_told)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=1h&volume=1.5,3&retention_days=900", LABELS,
                    201);
    for (int64_t i = 0; i < 4; i++)
        send(&service, "m", BEGIN + i * HOUR, 12000);
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
    expect_at(json, "volume", "null");
    json_decref(json);
    for (int64_t i = 4; i < 20; i++)
        send(&service, "m", BEGIN + i * HOUR, i == 12 ? 4100 : i == 16 ? 40 : 12000);
    json = monitors_get(&service, "GET /monitors/g/m/windows", NULL, 200);
    for (int64_t i = 0; i < 20; i++) { /* newest first */
        const json_t *window = json_array_get(json_object_get(json, "windows"), 19 - (size_t)i);
        bool is_low = i == 12 || i == 16;
        const char *verdict = i == 12 ? "warning" : i == 16 ? "critical" : "ok";
        cr_expect_str_eq(text_at(window, "verdict"), verdict, "%jd", (intmax_t)i);
        cr_expect_eq(json_is_null(at(window, "volume")), i < 5, "%jd", (intmax_t)i);
        if (i >= 5)
            cr_expect_eq(strcmp(text_at(window, "volume.level"), "ok") != 0, is_low, "%jd",
                         (intmax_t)i);
    }
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/m/events", NULL, 200);
    expect_at(json, "events.0.to", "\"ok\"");
    expect_at(json, "events.1.to", "\"critical\"");
    cr_expect_str_eq(text_at(json, "events.1.at"), "2026-01-05T17:00:00Z");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/m/windows/13", NULL, 200);
    cr_expect_str_eq(text_at(json, "sentence"), "rows: 12,000 → 4,100, a third of usual");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/m/windows/17", NULL, 200);
    cr_expect_str_eq(text_at(json, "sentence"), "rows: 12,000 → 40, 0.33 % of usual");
    expect_at(json, "pooled.level", "\"ok\"");
    json_decref(json);
    monitors_end(&service);
}

/* With a season the same hours of the weeks before count: nights are no alarm, and half of a night is. */
Test(monitors_volume, a_season_has_its_own_usual_number)
{
    enum { WEEKS = 7, HOURS = WEEKS * 168 };
    struct api_service service = monitors_new(10);
    size_t alarms = 0, judged = 0;
    monitors_expect(&service,
                    "PUT /monitors/g/m?window=1h&compare=previous:5@1w&timezone=Europe/Berlin&"
                    "volume=1.5,3&retention_days=900&pool=1",
                    LABELS, 201);
    for (int64_t i = 0; i < HOURS; i++) {
        bool is_day = i % 24 >= 8 && i % 24 < 20, is_weekend = i / 24 % 7 >= 5;
        int rows = usual(i, is_day && !is_weekend ? 4000 : 400);
        send(&service, "m", BEGIN + i * HOUR, i == HOURS - 10 ? rows / 2 : rows);
    }
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows?limit=1000", NULL, 200),
           *window;
    size_t i;
    json_array_foreach(json_object_get(json, "windows"), i, window)
    {
        bool alarm = strcmp(text_at(window, "verdict"), "warning") == 0;
        judged += number_at(window, "volume.windows") == 5;
        alarms += alarm;
        cr_expect(!alarm || i == 9, "%zu", i);
    }
    cr_expect_eq(alarms, 1);
    cr_expect_gt(judged, 300, "%zu", judged);
    json_decref(json);
    monitors_end(&service);
}

/* Windows are judged by the windows that a deletion leaves, and in a preview by the settings of the patch. */
Test(monitors_volume, follows_deletions_and_patches)
{
    struct api_service service = monitors_new(10);
    char request[200];
    monitors_expect(&service, "PUT /monitors/g/m?window=1h&retention_days=900", LABELS, 201);
    for (int64_t i = 0; i < 14; i++)
        send(&service, "m", BEGIN + i * HOUR, i == 10 ? 40000 : usual(i, 12000));
    json_t *json = monitors_get(&service, "PATCH /monitors/g/m?dry_run=true",
                                "{\"volume\":{\"warning\":1.5,\"critical\":3}}", 200);
    cr_expect_eq(number_at(json, "preview.alarms"), 1);
    json_decref(json);
    monitors_expect(&service, "PATCH /monitors/g/m",
                    "{\"volume\":{\"warning\":1.5,\"critical\":3}}", 200);
    send(&service, "m", BEGIN + 10 * HOUR, 2000); /* restated: it is judged now */
    json = monitors_get(&service, "GET /monitors/g/m/windows/11", NULL, 200);
    cr_expect_str_eq(text_at(json, "verdict"), "critical");
    json_decref(json);
    snprintf(request, sizeof request, "DELETE /monitors/g/m/windows?from=%jd&to=%jd",
             (intmax_t)(BEGIN + 10 * HOUR), (intmax_t)(BEGIN + 11 * HOUR));
    monitors_expect(&service, request, NULL, 200);
    json = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
    cr_expect_str_eq(text_at(json, "verdict"), "ok");
    cr_expect_lt(number_at(json, "volume.usual"), 13000);
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/m?", NULL, 200);
    expect_at(json, "state", "\"ok\"");
    json_decref(json);
    monitors_end(&service);
}

Test(monitors_volume, needs_windows_of_time)
{
    struct api_service service = monitors_new(10);
    monitors_refused(&service, "PUT /monitors/g/m?volume=1.5,3", LABELS,
                     "option_invalid #/volume ~windows of time");
    monitors_refused(&service, "PUT /monitors/g/m?window=1h&volume=3,1.5", LABELS,
                     "option_invalid #/volume");
    monitors_expect(&service, "PUT /monitors/g/m?window=1h&volume=1.5,3", LABELS, 201);
    monitors_refused(&service, "PATCH /monitors/g/m", "{\"window\":{\"count\":100}}",
                     "option_invalid #/volume ~windows of time");
    monitors_expect(&service, "PATCH /monitors/g/m", "{\"window\":{\"count\":100},\"volume\":null}",
                    200);
    monitors_end(&service);
}

/* Asks a monitor for its state. */
static void expect_state(const struct api_service *service, const char *name, const char *state)
{
    char request[100];
    snprintf(request, sizeof request, "GET /monitors/g/%s", name);
    json_t *json = monitors_get(service, request, NULL, 200);
    cr_expect_str_eq(text_at(json, "state"), state, "%s", name);
    json_decref(json);
}

/* An alarm by rows ends by rows: also where values have drifted a little for ever, or are too few for a verdict. */
Test(monitors_volume, an_alarm_by_rows_ends_by_rows)
{
    static const struct {
        const char *query, *between, *after;
        double share;
        int rows, odd;
    } cases[] = {
        {"window=1h", "critical", "ok", 0.587, 12000, 2000},
        {"window=1h&pool=1", "critical", "ok", 0.587, 12000, 2000},
        {"window=1h", "critical", "warning", 0.65, 12000, 2000},
        {"window=1h&min_observations=10000", "critical", "ok", 0.5, 500, 40},
        {"window=1h&pool=1", "critical", "ok", 0.5, 40, 1},
        {"window=1h", "critical", "ok", 0.5, 4, 400},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        char request[200], body[100];
        snprintf(request, sizeof request, "PUT /monitors/g/m?volume=1.5,3&retention_days=900&%s",
                 cases[i].query);
        monitors_expect(&service, request, LABELS, 201);
        for (int64_t hour = 0; hour < 30; hour++) {
            double n = hour == 20 ? cases[i].odd : cases[i].rows, a = floor(n * cases[i].share);
            snprintf(body, sizeof body, "{\"counts\":[%.0f,%.0f],\"timestamp\":%jd}", a, n - a,
                     (intmax_t)(BEGIN + hour * HOUR));
            monitors_expect(&service, "POST /monitors/g/m/observations", body, 200);
            if (hour == 20 || hour == 22)
                expect_state(&service, "m", cases[i].between);
        }
        expect_state(&service, "m", cases[i].after);
        monitors_end(&service);
    }
}

/* An outage that lasts is told until it is usual: half of the last eight windows; and an alarm may need two windows. */
Test(monitors_volume, an_outage_that_lasts_is_told)
{
    for (int fire = 1; fire <= 2; fire++) {
        struct api_service service = monitors_new(10);
        char request[200];
        snprintf(request, sizeof request,
                 "PUT /monitors/g/m?window=1h&volume=1.5,3&retention_days=900&fire_after=%d", fire);
        monitors_expect(&service, request, LABELS, 201);
        for (int64_t hour = 0; hour < 104; hour++)
            send(&service, "m", BEGIN + hour * HOUR, usual(hour, hour < 100 ? 12000 : 120));
        expect_state(&service, "m", "critical");
        monitors_end(&service);
    }
}

/* Rows of a window that come in pieces are an alarm until the window is whole; windows of another length are not looked at; a new
 * reference keeps the usual number. */
Test(monitors_volume, looks_at_whole_windows_of_the_same_length)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=1d&volume=1.5,3&retention_days=900", LABELS,
                    201);
    for (int64_t day = 0; day < 12; day++)
        for (int piece = 0; piece < 4; piece++)
            send(&service, "m", BEGIN + day * 24 * HOUR, 3000);
    expect_state(&service, "m", "ok");
    monitors_expect(&service, "PATCH /monitors/g/m", "{\"window\":{\"seconds\":3600}}", 200);
    for (int64_t hour = 0; hour < 6; hour++)
        send(&service, "m", BEGIN + (12 * 24 + hour) * HOUR, usual(hour, 500));
    expect_state(&service, "m", "ok");
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
    cr_expect_eq(number_at(json, "volume.windows"), 5);
    json_decref(json);
    char body[100];
    snprintf(body, sizeof body, "{\"from\":%jd,\"to\":%jd}", (intmax_t)BEGIN,
             (intmax_t)(BEGIN + 48 * HOUR));
    monitors_expect(&service, "POST /monitors/g/reference", body, 200);
    send(&service, "m", BEGIN + (12 * 24 + 6) * HOUR, 50);
    expect_state(&service, "m", "critical");
    monitors_refused(&service,
                     "PUT /monitors/g/m?window=1d&volume=1.5,3&compare=previous:3@month&"
                     "retention_days=94",
                     LABELS, "option_invalid #/retention_days ~155");
    monitors_end(&service);
}
