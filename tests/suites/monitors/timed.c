/* Tables whose rows go to the windows of their own times. */
#include "api/monitors/model/window.h"
#include "api/text/zone.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"
#include "tests/suites/tables/files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random tables */

static unsigned long long seed;
static size_t pick(size_t n) { return (size_t)(uniform(&seed) * (double)n); }

enum { ROWS = 400 };

/* row: its time in seconds, and values; `country` may be unknown to the monitor. */
struct row {
    int64_t time;
    double age;
    const char *country;
};
static struct row rows[ROWS];

/* Rows over some windows, in any order; what they are moves in the middle. */
static void make_rows(int64_t from, size_t seconds)
{
    static const char *const countries[] = {"de", "fr", "it", "xx", "yy"};
    for (size_t i = 0; i < ROWS; i++) {
        double at = uniform(&seed);
        rows[i].time = from + (int64_t)(at * (double)seconds);
        rows[i].age = floor(200 * (uniform(&seed) + (at > 0.5 ? 0.6 : 0))) / 2;
        rows[i].country = countries[pick(at > 0.6 ? 5 : 3)];
    }
}

enum form { CSV, COLUMNS, OBJECTS, LINES, NPZ, FORMS };
static const char *const types[FORMS] = {"text/csv", "application/json", "application/json",
                                         "application/x-ndjson", "application/x-npz"};

/* Texts of a time, some with a zone, some without, which then is that of `zone`. */
static void append_time(struct api_buffer *out, int64_t time, size_t form,
                        const struct api_zone *zone)
{
    char text[40];
    int64_t local = api_zone_to_local(zone, time * 1000000, NULL);
    bool is_first = api_zone_to_utc(zone, local, NULL, NULL) == time * 1000000;
    time_t shown = (time_t)(form == 0 && is_first ? local / 1000000 : time);
    struct tm t;
    gmtime_r(&shown, &t);
    strftime(text, sizeof text, form == 0 && is_first ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%SZ",
             &t);
    api_append_format(out, "\"%s\"", text);
}

static bool is_wanted(const struct row *row, int64_t start, int64_t end)
{
    return row->time >= start && row->time < end;
}

/* Appends the rows of [start, end) to a table, with times if `timed`. */
static void append_table(struct api_buffer *out, enum form form, int64_t start, int64_t end,
                         bool timed, const struct api_zone *zone)
{
    double times[ROWS], ages[ROWS];
    size_t n = 0;
    char countries[ROWS][3];
    if (form == CSV)
        api_append_text(out, timed ? "age,at,country\n" : "age,country\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (!is_wanted(row, start, end))
            continue;
        times[n] = (double)row->time;
        ages[n] = row->age;
        memcpy(countries[n++], row->country, 3);
        if (form == CSV) {
            api_append_format(out, "%.17g,", row->age);
            if (timed)
                append_time(out, row->time, i % 2, zone);
            api_append_format(out, "%s%s\n", timed ? "," : "", row->country);
        } else if (form == OBJECTS || form == LINES) {
            api_append_text(out, form == LINES ? "" : n == 1 ? "{\"rows\":[" : ",");
            api_append_format(out, "{\"age\":%.17g,\"country\":\"%s\"", row->age, row->country);
            if (timed) {
                api_append_text(out, ",\"at\":");
                append_time(out, row->time, i % 2, zone);
            }
            api_append_text(out, form == LINES ? "}\n" : "}");
        }
    }
    if (form == OBJECTS)
        api_append_text(out, "]}");
    const struct tables_array arrays[] = {
        {.name = "age", .dtype = "f8", .n = n, .numbers = ages},
        {.name = "country", .dtype = "U", .n = n, .texts = *countries, .text_size = 3},
        {.name = "at", .dtype = "i8", .n = n, .numbers = times}};
    if (form == NPZ)
        tables_npz(out, arrays, timed ? 3 : 2, false);
    for (size_t k = 0; form == COLUMNS && k < (timed ? 3u : 2u); k++) {
        api_append_format(out, "%s\"%s\":[", k ? "," : "{\"columns\":{", arrays[k].name);
        for (size_t i = 0; i < n; i++) {
            api_append(out, ",", i > 0);
            if (k == 0)
                api_append_format(out, "%.17g", ages[i]);
            else if (k == 1)
                api_append_format(out, "\"%.2s\"", countries[i]);
            else
                append_time(out, (int64_t)times[i], i % 2, zone);
        }
        api_append_text(out, "]");
    }
    if (form == COLUMNS)
        api_append_text(out, "}}");
}

/* ---- One request, or one for each window */

static void make_group(const struct api_service *service, const char *query)
{
    struct api_buffer body = {0};
    char line[300];
    api_append_text(&body, "{\"rows\": [");
    for (size_t i = 0; i < 500; i++)
        api_append_format(&body, "%s{\"age\": %g, \"country\": \"%s\"}", i ? "," : "",
                          (double)(i % 200) / 2,
                          i % 3   ? "de"
                          : i % 2 ? "fr"
                                  : "it");
    api_append_text(&body, "]}");
    api_append(&body, "", 1);
    snprintf(line, sizeof line, "PUT /monitors/g?min_observations=20&%s", query);
    monitors_expect(service, line, body.data, 201);
    api_buffer_free(&body);
}

static json_t *post(const struct api_service *service, const char *line, enum form form,
                    const struct api_buffer *body)
{
    struct answer answer = monitors_send(
        service, &(struct monitors_request){
                     .line = line, .type = types[form], .body = body->data, .size = body->size});
    cr_assert_eq(answer.status, 200, "%s %d: %.*s\n%.*s", line, (int)form,
                 (int)answer.response.body.size, answer.response.body.data, 300, body->data);
    json_t *json = json_incref(answer.json);
    answer_free(&answer);
    return json;
}

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
    for (size_t i = 0; i < ROWS; i++)
        spans[n++] = api_window_span(settings, rows[i].time * 1000000);
    qsort(spans, n, sizeof *spans, compare_spans);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || spans[kept - 1].start != spans[i].start)
            spans[kept++] = spans[i];
    return kept;
}

/* Sends a request for each window, with its last time; gives the results of the last. */
static json_t *post_singly(const struct api_service *service,
                           const struct api_monitor_settings *settings, enum form form,
                           size_t verdicts[4], size_t *n)
{
    struct api_window_span spans[ROWS];
    json_t *last = NULL;
    *n = find_windows(settings, spans);
    for (size_t i = 0; i < *n; i++) {
        struct api_buffer body = {0};
        char line[200];
        int64_t latest = 0, start = spans[i].start / 1000000, end = spans[i].end / 1000000;
        for (size_t k = 0; k < ROWS; k++)
            if (is_wanted(&rows[k], start, end) && rows[k].time > latest)
                latest = rows[k].time;
        append_table(&body, form, start, end, false, settings->zone);
        snprintf(line, sizeof line, "POST /monitors/g/observations?timestamp=%lld",
                 (long long)latest);
        json_decref(last);
        last = post(service, line, form, &body);
        for (size_t k = 0; k < 2; k++) {
            const char *verdict =
                text_at(json_array_get(json_object_get(last, "monitors"), k), "verdict");
            verdicts[*verdict == 'o' ? 0 : *verdict == 'w' ? 1 : *verdict == 'c' ? 2 : 3]++;
        }
        api_buffer_free(&body);
    }
    return last;
}

static const char *const views[] = {"GET /monitors/g/age/windows?limit=1000&counts=true",
                                    "GET /monitors/g/country/windows?limit=1000&counts=true",
                                    "GET /monitors/g/age/windows/latest",
                                    "GET /monitors/g/country/windows/latest",
                                    "GET /monitors/g/age/events",
                                    "GET /monitors/g/country/events",
                                    "GET /monitors?group=g",
                                    "GET /monitors/g/age",
                                    "GET /monitors/g/country"};

/* Windows, events and states of a group, as a client sees them afterwards. */
static void look(const struct api_service *service, json_t *seen[COUNT(views)])
{
    for (size_t i = 0; i < COUNT(views); i++)
        seen[i] = monitors_get(service, views[i], NULL, 200);
}

static void expect_same(json_t *first, json_t *second, const char *what)
{
    if (json_equal(first, second))
        return;
    char *a = json_dumps(first, JSON_SORT_KEYS), *b = json_dumps(second, JSON_SORT_KEYS);
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    at = at > 200 ? at - 200 : 0;
    cr_expect(false, "%s\n%.600s\n%.600s", what, a + at, b + at);
    free(a);
    free(b);
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
static json_t *do_at_once(size_t c, enum form form, json_t *seen[COUNT(views)])
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    make_group(&service, cases[c].query);
    append_table(&body, form, INT64_MIN, INT64_MAX, true, api_zone_find(cases[c].zone));
    json_t *result = post(&service, "POST /monitors/g/observations?time=at", form, &body);
    look(&service, seen);
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

static void compare_ways(size_t c, enum form form)
{
    json_t *seen[COUNT(views)], *others[COUNT(views)];
    size_t verdicts[4] = {0}, n;
    char line[200];
    struct api_monitor_settings settings = settings_of(c);
    json_t *result = do_at_once(c, form, seen);
    struct api_service service = monitors_new(10);
    make_group(&service, cases[c].query);
    json_t *last = post_singly(&service, &settings, form, verdicts, &n);
    look(&service, others);
    monitors_end(&service);
    cr_expect_gt(n, 5);
    expect_counts(result, verdicts);
    snprintf(line, sizeof line, "case %zu, form %d, %zu windows", c, (int)form, n);
    expect_same(json_object_get(result, "monitors"), json_object_get(last, "monitors"), line);
    for (size_t i = 0; i < COUNT(views); i++) {
        snprintf(line, sizeof line, "case %zu, form %d, %s", c, (int)form, views[i]);
        expect_same(seen[i], others[i], line);
        json_decref(seen[i]);
        json_decref(others[i]);
    }
    json_decref(result);
    json_decref(last);
}

/* One request stores and answers the same as a request for each window. */
Test(monitors_timed, is_a_request_for_each_window)
{
    for (size_t i = 0; i < COUNT(cases) * FORMS; i++) {
        seed = i + 1;
        make_rows(cases[i / FORMS].from, cases[i / FORMS].seconds);
        compare_ways(i / FORMS, (enum form)(i % FORMS));
    }
}

/* ---- Times of all kinds */

#define TABLE "POST /monitors/g/observations?time=at"

/* Numbers of JSON: seconds with a fraction, and what is no time. */
Test(monitors_timed, takes_numbers)
{
    struct api_service service = monitors_new(10);
    make_group(&service, "window=1d");
    json_t *json = monitors_get(
        &service, TABLE,
        "{\"columns\":{\"at\":[1732500000.25,1732500000123,1e-3,null,20241125,1732492799.9,true],"
        "\"age\":[1,2,3,4,5,6,7]}}",
        200);
    expect_at(json, "monitors.0.window.start", "\"2024-11-25T00:00:00Z\"");
    expect_at(json, "monitors.0.n", "3");
    expect_at(json, "warnings.1.count", "3");
    json_decref(json);
    monitors_end(&service);
}

static json_t *send_csv(const struct api_service *service, const char *line, const char *text)
{
    struct api_buffer body = {0};
    api_append_text(&body, text);
    json_t *json = post(service, line, CSV, &body);
    api_buffer_free(&body);
    return json;
}

/* Columns of times, and the start of the newest window of a day. */
static const struct {
    const char *query, *csv, *start, *n; /* n: of that window */
} columns[] = {
    {"", "at,age\n2025-03-01,1\n2025-03-02T10:00:00Z,2\n2025-03-02,3\n", "2025-03-02T00:00:00Z",
     "2"},
    {"", "age,at\n1,13/01/2025\n2,02/03/2025\n", "2025-03-02T00:00:00Z", "1"},
    {"", "age,at\n1,01/13/2025\n2,02/03/2025\n", "2025-02-03T00:00:00Z", "1"},
    {"", "age,at\n1,\"Nov 25, 2024\"\n2,25 Nov 2024\n", "2024-11-25T00:00:00Z", "2"},
    {"", "age,at\n1,1732500000\n2,1732500000123\n3,1732500000123456\n", "2024-11-25T00:00:00Z",
     "3"},
    {"", "age,at\n1,20241125\n2,20241124\n", "2024-11-25T00:00:00Z", "1"},
    {"", "age,at\n1,1732500000.25\n2,1732492800.75\n", "2024-11-25T00:00:00Z", "2"},
    {"&timezone=Europe/Berlin", "age,at\n1,2025-07-01 00:30\n2,2025-07-01 01:30\n",
     "2025-06-30T00:00:00Z", "2"},
    {"&timezone=%2B02:00", "age,at\n1,2025-07-01 01:59\n2,2025-07-01T02:00:00Z\n",
     "2025-07-01T00:00:00Z", "1"},
};

Test(monitors_timed, takes_any_form_of_time)
{
    for (size_t i = 0; i < COUNT(columns); i++) {
        struct api_service service = monitors_new(10);
        char line[200];
        make_group(&service, "window=1d");
        snprintf(line, sizeof line, TABLE "%s", columns[i].query);
        json_t *json = send_csv(&service, line, columns[i].csv);
        cr_expect_str_eq(text_at(json, "monitors.0.window.start"), columns[i].start, "%zu: %s", i,
                         text_at(json, "monitors.0.window.start"));
        expect_at(json, "monitors.0.n", columns[i].n);
        json_decref(json);
        monitors_end(&service);
    }
}

/* In Berlin's time: an hour that is skipped counts an hour later, one that occurs twice is the first. */
Test(monitors_timed, hours_that_clocks_skip_or_repeat)
{
    static const char *const cases_of[][2] = {{"2025-03-30 02:30", "2025-03-30T01:00:00Z"},
                                              {"2025-10-26 02:30", "2025-10-26T00:00:00Z"}};
    for (size_t i = 0; i < COUNT(cases_of); i++) {
        struct api_service service = monitors_new(10);
        char csv[100];
        make_group(&service, "window=1h&timezone=Europe/Berlin");
        snprintf(csv, sizeof csv, "at,age\n%s,1\n", cases_of[i][0]);
        json_t *json = send_csv(&service, TABLE, csv);
        cr_expect_str_eq(text_at(json, "monitors.0.window.start"), cases_of[i][1]);
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_timed, rows_without_a_time_are_told)
{
    struct api_service service = monitors_new(10);
    make_group(&service, "window=1d");
    json_t *json = send_csv(&service, TABLE,
                            "at,age,country\n2025-03-01,1,de\n?,2,de\n,x,fr\n2025-03-01,4,it\n");
    expect_at(json, "monitors.0.n", "2");
    expect_at(json, "windows", "{\"critical\":0,\"insufficient_data\":2,\"ok\":0,\"warning\":0}");
    expect_at(json, "warnings.0.code", "\"times_unreadable\"");
    expect_at(json, "warnings.0.column", "\"at\"");
    expect_at(json, "warnings.0.count", "2");
    expect_at(json, "warnings.0.line", "3");
    cr_expect_eq(json_array_size(json_object_get(json, "warnings")), 1);
    json_decref(json);
    json = send_csv(&service, TABLE, "at,age,country\n");
    expect_at(json, "monitors", "[]");
    expect_at(json, "windows", "{\"critical\":0,\"insufficient_data\":0,\"ok\":0,\"warning\":0}");
    json_decref(json);
    monitors_end(&service);
}

static const struct {
    const char *window, *query, *body, *problem;
} refusals[] = {
    {"batch", "time=at", "at,age\n2025-03-01,1\n", "option_invalid ?time ~set its window to 1d"},
    {"1000", "time=at", "at,age\n2025-03-01,1\n", "option_invalid ?time ~a number of values"},
    {"1d", "time=att", "at,age\n2025-03-01,1\n", "column_missing ?time ~did you mean 'at'?"},
    {"1d", "time=at&timestamp=5", "at,age\n2025-03-01,1\n", "option_conflict ?time"},
    {"1d", "timezone=UTC", "at,age\n2025-03-01,1\n", "option_conflict ?timezone"},
    {"1d", "time=at&timezone=Berlin", "at,age\n2025-03-01,1\n",
     "option_invalid ?timezone ~'Europe/Berlin'"},
    {"1d", "time=at", "at,age\nx,1\n,2\n", "timestamp_invalid ?time ~no value"},
    {"1d", "time=at", "at,age\n2025-03-01,1\n9999-12-31,2\n", "timestamp_invalid ?time ~line 3"},
    {"1d", "time=at", "at,age\n01/02/2025,1\n", "timestamp_invalid ?time ~days or months"},
    {"1d", "time=at", "at,age\n2025-03-01\n", "csv_malformed"},
    {"1d", "time=at", "at,age\n2025-03-01,1\n2025-03-02,1,2\n", "csv_malformed"},
    {"1d", "time=at", "at,size\n2025-03-01,1\n", "columns_unknown"},
    {"1d", "time=at", "{\"columns\":{\"at\":[\"2025-03-01\"],\"age\":[\"x\"]}}",
     "value_not_number #/columns/age/0"},
    {"1d", "time=at", "{\"rows\":[{\"at\":true,\"age\":1}]}", "timestamp_invalid ?time"},
};

Test(monitors_timed, refuses_what_has_no_windows_and_stores_nothing)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct api_service service = monitors_new(10);
        char line[200];
        snprintf(line, sizeof line, "window=%s", refusals[i].window);
        make_group(&service, line);
        snprintf(line, sizeof line, "POST /monitors/g/observations?%s", refusals[i].query);
        monitors_refused(&service, line, refusals[i].body, refusals[i].problem);
        json_t *json = monitors_get(&service, "GET /monitors/g/age/windows", NULL, 200);
        expect_at(json, "windows", "[]");
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_timed, refuses_too_many_windows)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    make_group(&service, "window=1m");
    api_append_text(&body, "at,age,country\n");
    for (size_t i = 0; i < 10001; i++)
        api_append_format(&body, "%zu,1,de\n", 1700000000 + 60 * i);
    api_append(&body, "", 1);
    monitors_refused(&service, TABLE, body.data, "too_many_windows ?time ~20002 windows");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Tables with rows older than the retention are refused whole; later tables go on. */
Test(monitors_timed, goes_on_where_windows_are)
{
    struct api_service service = monitors_new(10);
    make_group(&service, "window=1d&retention_days=30");
    json_decref(send_csv(&service, TABLE, "at,age\n2025-03-01,1\n2025-03-05,1\n"));
    json_t *json = send_csv(&service, TABLE, "at,age\n2025-03-01,1\n2025-03-07,1\n");
    expect_at(json, "monitors.0.window.id", "3");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/age/windows/1", NULL, 200);
    expect_at(json, "window.restated", "true");
    expect_at(json, "n", "2");
    json_decref(json);
    monitors_refused(&service, TABLE, "at,age\n2025-01-01,1\n2025-03-08,1\n", "timestamp_invalid");
    json = monitors_get(&service, "GET /monitors/g/age/windows", NULL, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "windows")), 3);
    json_decref(json);
    monitors_end(&service);
}

Test(monitors_timed, counts_once_under_a_key)
{
    struct api_service service = monitors_new(10);
    static const char csv[] = "at,age,country\n2025-03-01,1,de\n2025-03-02,2,fr\n2025-03-03,2,fr\n";
    const struct monitors_request request = {
        .line = TABLE, .type = "text/csv", .body = csv, .headers = {{"Idempotency-Key", "k"}}};
    make_group(&service, "window=1d");
    struct answer first = monitors_send(&service, &request),
                  second = monitors_send(&service, &request);
    cr_expect_eq(first.status, 200);
    cr_expect_eq(second.status, 200);
    cr_expect_str_eq(header_of_answer(&second, "Idempotent-Replayed"), "true");
    cr_expect(json_equal(first.json, second.json));
    cr_expect_eq(number_at(first.json, "windows.ok") + number_at(first.json, "windows.warning") +
                     number_at(first.json, "windows.critical") +
                     number_at(first.json, "windows.insufficient_data"),
                 6);
    answer_free(&first);
    answer_free(&second);
    json_t *json = monitors_get(&service, "GET /monitors/g/age/windows/1", NULL, 200);
    expect_at(json, "n", "1");
    json_decref(json);
    monitors_end(&service);
}

Test(monitors_timed, of_a_single_monitor)
{
    struct api_service service = monitors_new(10);
    make_group(&service, "window=1d");
    json_t *json = send_csv(&service, "POST /monitors/g/age/observations?time=at",
                            "at,age\n2025-03-02,1\n2025-03-01,2\n2025-03-02,3\n");
    expect_at(json, "n", "2");
    expect_at(json, "windows.insufficient_data", "2");
    json_decref(json);
    monitors_refused(&service, "POST /monitors/g/age/observations?time=at", "{\"counts\": [1]}",
                     "option_conflict ?time");
    monitors_refused(&service, "POST /monitors/g/evaluate?time=at", "at,age\n2025-03-02,1\n",
                     "option_unknown ?time");
    monitors_end(&service);
}

/* Monitors of a group may have windows and zones of their own. */
Test(monitors_timed, windows_of_several_sizes)
{
    struct api_service service = monitors_new(10);
    make_group(&service, "window=1d");
    monitors_expect(&service, "PATCH /monitors/g/age",
                    "{\"window\": \"1h\", \"timezone\": \"Asia/Kolkata\"}", 200);
    json_t *json = send_csv(&service, TABLE,
                            "at,age,country\n2025-03-01 23:10,1,de\n2025-03-01 "
                            "05:00,2,fr\n2025-03-01T20:00:00Z,2,fr\n");
    expect_at(json, "monitors.0.window.start", "\"2025-03-01T20:00:00Z\"");
    expect_at(json, "monitors.1.window.start", "\"2025-03-01T00:00:00Z\"");
    expect_at(json, "monitors.1.n", "3");
    expect_at(json, "windows.insufficient_data", "4");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/age/windows?limit=3", NULL, 200);
    expect_at(json, "windows.1.window.start", "\"2025-03-01T17:00:00Z\"");
    expect_at(json, "windows.2.window.start", "\"2025-02-28T23:00:00Z\"");
    json_decref(json);
    monitors_end(&service);
}

/* ---- A reference with times */

/* Puts and posts random tables in turn; a PUT with times is one without, and a POST of the same with them. */
static void put_tables(enum form form, const char *query, bool at_once, json_t *seen[COUNT(views)])
{
    struct api_service service = monitors_new(10);
    char line[300];
    for (size_t i = 0; i < 4; i++) {
        struct api_buffer body = {0};
        bool is_again = i == 2; /* the same reference, and other settings */
        seed = 77 + (is_again ? 1 : i);
        make_rows(1700000000 + (int64_t)(i / 2) * 864000, 864000);
        append_table(&body, form, INT64_MIN, INT64_MAX, true, api_zone_find("UTC"));
        snprintf(line, sizeof line, "PUT /monitors/g?min_observations=20&exclude=at&%s%s%s", query,
                 is_again ? "&fire_after=2" : "", at_once ? "&time=at" : "");
        struct answer answer = monitors_send(
            &service, &(struct monitors_request){
                          .line = line, .type = types[form], .body = body.data, .size = body.size});
        cr_assert_eq(answer.status, i == 0 ? 201 : 200, "%.*s", (int)answer.response.body.size,
                     answer.response.body.data);
        cr_expect_eq(json_is_object(json_object_get(answer.json, "windows")), at_once);
        answer_free(&answer);
        if (!at_once)
            json_decref(post(&service, TABLE, form, &body));
        api_buffer_free(&body);
    }
    look(&service, seen);
    monitors_end(&service);
}

Test(monitors_timed, a_reference_with_times_is_observed_too)
{
    static const char *const queries[] = {"window=1d", "window=6h&compare=previous:2@1d&pool=1",
                                          "window=1d&compare=previous:3", "window=1w"};
    for (size_t i = 0; i < COUNT(queries) * FORMS; i++) {
        json_t *seen[COUNT(views)], *others[COUNT(views)];
        char line[200];
        put_tables((enum form)(i % FORMS), queries[i / FORMS], true, seen);
        put_tables((enum form)(i % FORMS), queries[i / FORMS], false, others);
        for (size_t k = 0; k < COUNT(views); k++) {
            snprintf(line, sizeof line, "%s, form %zu, %s", queries[i / FORMS], i % FORMS,
                     views[k]);
            expect_same(seen[k], others[k], line);
            json_decref(seen[k]);
            json_decref(others[k]);
        }
    }
}

Test(monitors_timed, a_reference_with_times_needs_windows_of_time)
{
    struct api_service service = monitors_new(10);
    static const char csv[] = "at,age\n2025-03-01,1\n2025-03-02,2\n2025-03-03,3\n";
    static const char *const bad[][2] = {
        {"PUT /monitors/g?time=at", "option_invalid ?time ~set its window to 1d"},
        {"PUT /monitors/g?time=when&window=1d", "column_missing ?time"},
        {"PUT /monitors/g/age?time=at&window=1d", "option_unknown ?time"}};
    for (size_t i = 0; i < COUNT(bad); i++)
        monitors_refused(&service, bad[i][0], csv, bad[i][1]);
    cr_expect_eq(api_monitors_count(service.monitors), 0);
    json_t *json =
        monitors_get(&service, "PUT /monitors/g?time=at&window=1d&dry_run=true", csv, 200);
    expect_at(json, "monitors.0.name", "\"age\"");
    cr_expect_null(json_object_get(json, "windows"));
    json_decref(json);
    json = monitors_get(&service, "PUT /monitors/g?time=at&window=1d", csv, 201);
    expect_at(json, "windows.insufficient_data", "3");
    cr_expect_eq(json_array_size(json_object_get(json, "monitors")), 1);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/g?time=at&window=1d&bins=3",
                     "at,age\n2020-03-01,1\n2020-03-02,2\n", "timestamp_invalid");
    json = monitors_get(&service, "GET /monitors/g/age", NULL, 200);
    expect_at(json, "revision", "1");
    json_decref(json);
    monitors_end(&service);
}
