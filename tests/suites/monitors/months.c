/* Comparisons with the same day of months before. */
#include "api/monitors/model/window.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY INT64_C(86400)
#define BEGIN INT64_C(1767225600) /* 2026-01-01 */
#define LABELS "{\"bins\":{\"labels\":[\"a\",\"b\",\"c\"]}}"
#define SETTINGS "window=1d&compare=previous:3@month&retention_days=36500"

/* The windows that Python's calendar names: tests/tools/golden/months.py. */
Test(monitors_months, compares_with_the_same_day_of_months_before)
{
    size_t size, n_absent = 0;
    char *all = read_file("tests/tools/golden/months.jsonl", &size), *rest = all;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        struct api_monitor_settings settings;
        json_t *row = json_loads(line, 0, NULL);
        api_settings_init(&settings);
        settings.window = API_SECONDS;
        settings.window_size = number_at(row, "size");
        settings.period = API_MONTH;
        settings.zone = api_zone_find(text_at(row, "zone"));
        cr_assert(settings.zone, "%s", line);
        int64_t start = json_integer_value(json_object_get(row, "start")) * API_SECOND_US;
        const json_t *before = json_object_get(row, "before");
        int64_t expected =
            json_is_null(before) ? API_NO_TIME : json_integer_value(before) * API_SECOND_US;
        int64_t found =
            api_window_before(&settings, start, json_integer_value(json_object_get(row, "months")));
        n_absent += expected == API_NO_TIME;
        cr_expect_eq(found, expected, "%s: %jd", line, (intmax_t)found);
        json_decref(row);
    }
    cr_expect_gt(n_absent, 5);
    free(all);
}

static bool is_last_of_month(long day)
{
    time_t next = BEGIN + (day + 1) * DAY;
    struct tm tm;
    return gmtime_r(&next, &tm)->tm_mday == 1;
}

/* Sends the values of a day: those of the last days of months differ, always in the same way; `other` is a change. */
static void send_day(const struct api_service *service, const char *name, long day, bool other)
{
    unsigned long long seed = (unsigned long long)(day + 1) * 0x9E3779B97F4A7C15;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9;
    char request[100], body[100];
    int counts[3] = {0};
    for (int i = 0; i < 300; i++) {
        double part = uniform(&seed);
        const double odd[] = {0.2, 0.5}, usual[] = {0.6, 0.9}, changed[] = {0.4, 0.9};
        const double *of = is_last_of_month(day) ? odd : other ? changed : usual;
        counts[(part > of[0]) + (part > of[1])]++;
    }
    snprintf(request, sizeof request, "POST /monitors/g/%s/observations", name);
    snprintf(body, sizeof body, "{\"counts\":[%d,%d,%d],\"timestamp\":%jd}", counts[0], counts[1],
             counts[2], (intmax_t)(BEGIN + day * DAY));
    monitors_expect(service, request, body, 200);
}

/* After two months each day has a month before that has such a day. */
Test(monitors_months, ends_of_months_are_no_drift_and_a_change_is)
{
    enum { DAYS = 330, CHANGE = 300 };
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?" SETTINGS, LABELS, 201);
    for (long day = 0; day < DAYS; day++)
        send_day(&service, "m", day, day >= CHANGE);
    json_t *json = monitors_get(&service, "GET /monitors/g/m/windows?limit=1000", NULL, 200);
    const json_t *windows = json_object_get(json, "windows");
    size_t alarms = 0, judged = 0, seen = 0;
    for (size_t i = 0; i < json_array_size(windows); i++) {
        const json_t *window = json_array_get(windows, i);
        long day = DAYS - 1 - (long)i; /* newest first */
        const char *verdict = text_at(window, "verdict");
        bool alarm = strcmp(verdict, "warning") == 0 || strcmp(verdict, "critical") == 0;
        judged += day >= 60 && strcmp(verdict, "insufficient_data") != 0;
        alarms += alarm && day < CHANGE;
        seen += alarm && day >= CHANGE && !is_last_of_month(day);
    }
    cr_expect_eq(alarms, 0, "%zu", alarms);
    cr_expect_eq(judged, DAYS - 60, "%zu", judged);
    cr_expect_gt(seen, 20, "%zu", seen);
    json_decref(json);
    monitors_end(&service);
}

/* Dumps the windows of a monitor as JSON, without their numbers. */
static char *windows_of(const struct api_service *service, const char *name)
{
    char request[100];
    snprintf(request, sizeof request, "GET /monitors/g/%s/windows?limit=1000", name);
    json_t *json = monitors_get(service, request, NULL, 200),
           *windows = json_object_get(json, "windows"), *window;
    size_t i;
    json_array_foreach(windows, i, window) json_object_del(json_object_get(window, "window"), "id");
    char *text = json_dumps(windows, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(json);
    return text;
}

/* Windows of up to three months after a deleted one are judged as if it had never been. */
Test(monitors_months, windows_after_a_deleted_one_are_judged_again)
{
    enum { DAYS = 125 };
    static const long gone[] = {30, 58, 89,
                                40}; /* January 31, February 28, March 31, February 10 */
    for (size_t i = 0; i < COUNT(gone); i++) {
        struct api_service service = monitors_new(10);
        char request[100];
        monitors_expect(&service, "PUT /monitors/g/a?pool=1&" SETTINGS, LABELS, 201);
        monitors_expect(&service, "PUT /monitors/g/b?pool=1&" SETTINGS, LABELS, 201);
        for (long day = 0; day < DAYS; day++) {
            send_day(&service, "a", day, day % 9 == 0);
            if (day != gone[i])
                send_day(&service, "b", day, day % 9 == 0);
        }
        snprintf(request, sizeof request, "DELETE /monitors/g/a/windows?from=%jd&to=%jd",
                 (intmax_t)(BEGIN + gone[i] * DAY), (intmax_t)(BEGIN + (gone[i] + 1) * DAY));
        monitors_expect(&service, request, NULL, 200);
        char *a = windows_of(&service, "a"), *b = windows_of(&service, "b");
        cr_expect_str_eq(a, b, "%ld", gone[i]);
        free(a);
        free(b);
        monitors_end(&service);
    }
}

/* Only windows that were compared with a deleted one are compared anew: the store no longer has all that the others were
 * compared with. */
Test(monitors_months, windows_that_a_deleted_one_has_no_part_in_stay)
{
    enum { DAYS = 300, GONE = 220 };
    struct api_service service = monitors_new(10);
    char request[200];
    monitors_expect(&service,
                    "PUT /monitors/g/m?window=1d&compare=previous:3@month&retention_days=94&pool=1",
                    LABELS, 201);
    for (long day = 0; day < DAYS; day++)
        send_day(&service, "m", day, false);
    char *before = windows_of(&service, "m");
    snprintf(request, sizeof request, "DELETE /monitors/g/m/windows?from=%jd&to=%jd",
             (intmax_t)(BEGIN + GONE * DAY), (intmax_t)(BEGIN + (GONE + 1) * DAY));
    json_t *json = monitors_get(&service, request, NULL, 200);
    json_decref(json);
    char *after = windows_of(&service, "m");
    json_t *first = json_loads(before, 0, NULL), *second = json_loads(after, 0, NULL), *window;
    size_t i, changed = 0;
    json_array_foreach(second, i, window)
    {
        const json_t *was =
            json_array_get(first, i < json_array_size(first) - 1 &&
                                          strcmp(text_at(json_array_get(first, i), "window.start"),
                                                 text_at(window, "window.start")) == 0
                                      ? i
                                      : i + 1);
        cr_assert_str_eq(text_at(was, "window.start"), text_at(window, "window.start"));
        changed += !json_equal(json_object_get(was, "n_reference"),
                               json_object_get(window, "n_reference"));
    }
    cr_expect_eq(changed, 2, "%zu", changed); /* August 9: September 9, October 9 */
    json_decref(first);
    json_decref(second);
    free(before);
    free(after);
    monitors_end(&service);
}

/* A window of six hours after a change of clocks is compared with one that begins up to six hours before. */
Test(monitors_months, windows_behind_a_change_of_clocks_are_judged_again)
{
    static const struct {
        const char *compare, *gone, *until, *later;
    } cases[] = {
        {"previous:1@month", "2021-10-18T18:00:00Z", "2021-10-19T00:00:00Z",
         "2021-11-19T00:00:00Z"},
        {"previous:1@31d", "2021-10-18T18:00:00Z", "2021-10-19T00:00:00Z", "2021-11-19T00:00:00Z"},
        {"previous:7@24h", "2021-10-24T18:00:00Z", "2021-10-25T00:00:00Z", "2021-11-01T00:00:00Z"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        char request[200], body[200];
        snprintf(
            request, sizeof request,
            "PUT "
            "/monitors/g/m?window=6h&compare=%s&timezone=Europe/Berlin&retention_days=900&pool=1",
            cases[i].compare);
        monitors_expect(&service, request, LABELS, 201);
        for (int later = 0; later <= 1; later++) {
            snprintf(body, sizeof body, "{\"counts\":[100,200,0],\"timestamp\":\"%s\"}",
                     later ? cases[i].later : cases[i].gone);
            monitors_expect(&service, "POST /monitors/g/m/observations", body, 200);
        }
        json_t *json = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
        cr_expect_eq(number_at(json, "n_reference"), 300, "%s", cases[i].compare);
        json_decref(json);
        snprintf(request, sizeof request, "DELETE /monitors/g/m/windows?from=%s&to=%s",
                 cases[i].gone, cases[i].until);
        monitors_expect(&service, request, NULL, 200);
        json = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
        cr_expect(json_is_null(at(json, "n_reference")), "%s", cases[i].compare);
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_months, need_windows_of_a_day_or_a_part)
{
    static const struct {
        const char *query, *body, *problem;
    } cases[] = {
        {"window=1w&compare=previous:3@month", LABELS, "option_invalid #/compare ~a day"},
        {"window=5h&compare=previous:3@month", LABELS, "option_invalid #/compare ~a part of it"},
        {"compare=previous:3@month", LABELS, "option_invalid #/compare"},
        {"window=1d&compare=previous:3@months", LABELS,
         "option_invalid #/compare ~previous:K@month"},
        {"window=1d&compare=previous:3@mont", LABELS, "option_invalid #/compare"},
        {"window=1d", "{\"compare\":{\"previous\":3,\"period\":\"Month\"}}",
         "option_invalid #/compare"},
        {"window=1d", "{\"compare\":{\"previous\":3,\"period\":2678400.5}}",
         "option_invalid #/compare"},
        {"window=1d", "{\"compare\":{\"previous\":\"month\"}}", "option_invalid #/compare"},
    };
    struct api_service service = monitors_new(10);
    char request[200];
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(request, sizeof request, "PUT /monitors/g/m?%s", cases[i].query);
        monitors_refused(&service, request, cases[i].body, cases[i].problem);
    }
    json_t *json =
        monitors_get(&service, "PUT /monitors/g/m?window=6h&compare=previous:3@month", LABELS, 201);
    expect_at(json, "compare", "{\"period\":\"month\",\"previous\":3}");
    json_decref(json);
    json = monitors_get(&service, "PATCH /monitors/g/m", "{\"compare\":{\"previous\":4}}", 200);
    expect_at(json, "compare", "{\"previous\":4}");
    json_decref(json);
    json =
        monitors_get(&service, "PATCH /monitors/g/m", "{\"compare\":{\"period\":\"month\"}}", 200);
    expect_at(json, "compare", "{\"period\":\"month\",\"previous\":4}");
    json_decref(json);
    monitors_end(&service);
}
