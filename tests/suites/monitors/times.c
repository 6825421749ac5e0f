/* Columns of times: their forms, what is refused, and how tables with times follow one another. */
#include "tests/suites/monitors/timed_rows.h"

#include <criterion/criterion.h>

#define TABLE "POST /monitors/g/observations?time=at"

/* Numbers of JSON: seconds with a fraction, and what is no time. */
Test(monitors_times, takes_numbers)
{
    struct api_service service = monitors_new(10);
    timed_make_group(&service, "window=1d");
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

Test(monitors_times, takes_any_form_of_time)
{
    for (size_t i = 0; i < COUNT(columns); i++) {
        struct api_service service = monitors_new(10);
        char line[200];
        timed_make_group(&service, "window=1d");
        snprintf(line, sizeof line, TABLE "%s", columns[i].query);
        json_t *json = timed_send_csv(&service, line, columns[i].csv);
        cr_expect_str_eq(text_at(json, "monitors.0.window.start"), columns[i].start, "%zu: %s", i,
                         text_at(json, "monitors.0.window.start"));
        expect_at(json, "monitors.0.n", columns[i].n);
        json_decref(json);
        monitors_end(&service);
    }
}

/* In Berlin's time: an hour that is skipped counts an hour later, one that occurs twice is the first. */
Test(monitors_times, hours_that_clocks_skip_or_repeat)
{
    static const char *const cases_of[][2] = {{"2025-03-30 02:30", "2025-03-30T01:00:00Z"},
                                              {"2025-10-26 02:30", "2025-10-26T00:00:00Z"}};
    for (size_t i = 0; i < COUNT(cases_of); i++) {
        struct api_service service = monitors_new(10);
        char csv[100];
        timed_make_group(&service, "window=1h&timezone=Europe/Berlin");
        snprintf(csv, sizeof csv, "at,age\n%s,1\n", cases_of[i][0]);
        json_t *json = timed_send_csv(&service, TABLE, csv);
        cr_expect_str_eq(text_at(json, "monitors.0.window.start"), cases_of[i][1]);
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_times, rows_without_a_time_are_told)
{
    struct api_service service = monitors_new(10);
    timed_make_group(&service, "window=1d");
    json_t *json = timed_send_csv(
        &service, TABLE, "at,age,country\n2025-03-01,1,de\n?,2,de\n,x,fr\n2025-03-01,4,it\n");
    expect_at(json, "monitors.0.n", "2");
    expect_at(json, "windows", "{\"critical\":0,\"insufficient_data\":2,\"ok\":0,\"warning\":0}");
    expect_at(json, "warnings.0.code", "\"times_unreadable\"");
    expect_at(json, "warnings.0.column", "\"at\"");
    expect_at(json, "warnings.0.count", "2");
    expect_at(json, "warnings.0.line", "3");
    cr_expect_eq(json_array_size(json_object_get(json, "warnings")), 1);
    json_decref(json);
    json = timed_send_csv(&service, TABLE, "at,age,country\n");
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

Test(monitors_times, refuses_what_has_no_windows_and_stores_nothing)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct api_service service = monitors_new(10);
        char line[200];
        snprintf(line, sizeof line, "window=%s", refusals[i].window);
        timed_make_group(&service, line);
        snprintf(line, sizeof line, "POST /monitors/g/observations?%s", refusals[i].query);
        monitors_refused(&service, line, refusals[i].body, refusals[i].problem);
        json_t *json = monitors_get(&service, "GET /monitors/g/age/windows", NULL, 200);
        expect_at(json, "windows", "[]");
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_times, refuses_too_many_windows)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    timed_make_group(&service, "window=1m");
    api_append_text(&body, "at,age,country\n");
    for (size_t i = 0; i < 10001; i++)
        api_append_format(&body, "%zu,1,de\n", 1700000000 + 60 * i);
    api_append(&body, "", 1);
    monitors_refused(&service, TABLE, body.data, "too_many_windows ?time ~20002 windows");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Tables with rows older than the retention are refused whole; later tables go on. */
Test(monitors_times, goes_on_where_windows_are)
{
    struct api_service service = monitors_new(10);
    timed_make_group(&service, "window=1d&retention_days=30");
    json_decref(timed_send_csv(&service, TABLE, "at,age\n2025-03-01,1\n2025-03-05,1\n"));
    json_t *json = timed_send_csv(&service, TABLE, "at,age\n2025-03-01,1\n2025-03-07,1\n");
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

Test(monitors_times, counts_once_under_a_key)
{
    struct api_service service = monitors_new(10);
    static const char csv[] = "at,age,country\n2025-03-01,1,de\n2025-03-02,2,fr\n2025-03-03,2,fr\n";
    const struct monitors_request request = {
        .line = TABLE, .type = "text/csv", .body = csv, .headers = {{"Idempotency-Key", "k"}}};
    timed_make_group(&service, "window=1d");
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

Test(monitors_times, of_a_single_monitor)
{
    struct api_service service = monitors_new(10);
    timed_make_group(&service, "window=1d");
    json_t *json = timed_send_csv(&service, "POST /monitors/g/age/observations?time=at",
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
Test(monitors_times, windows_of_several_sizes)
{
    struct api_service service = monitors_new(10);
    timed_make_group(&service, "window=1d");
    monitors_expect(&service, "PATCH /monitors/g/age",
                    "{\"window\": \"1h\", \"timezone\": \"Asia/Kolkata\"}", 200);
    json_t *json = timed_send_csv(&service, TABLE,
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
