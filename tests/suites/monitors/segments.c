/* Rows of segments: those of a table that have one value in a column. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY = 86400, BEGIN = 1767225600, TABLE = 1 << 20 };

static unsigned long long seed;

/* row: of a table; country NULL is missing. */
struct row {
    const char *country, *plan;
    double amount;
    int day;
};

static void make_rows(struct row *rows, size_t n, double shift)
{
    static const char *const countries[] = {"DE", "DE", "DE", "FR", "FR", "US", "a b", NULL};
    static const char *const plans[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k",
                                        "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v"};
    for (size_t i = 0; i < n; i++) {
        double u = uniform(&seed);
        const char *country = u < 0.01 ? "IS" : countries[(size_t)(uniform(&seed) * 8)];
        rows[i] = (struct row){
            country, plans[(size_t)(uniform(&seed) * uniform(&seed) * COUNT(plans))], 0, 0};
        for (int j = 0; j < 6; j++)
            rows[i].amount += uniform(&seed);
        if (country && strcmp(country, "FR") == 0)
            rows[i].amount += shift;
        rows[i].day = (int)(uniform(&seed) * 3);
    }
}

/* format: of a table: CSV, JSON by columns or by rows, lines of JSON. */
enum format { CSV, COLUMNS, ROWS, LINES, FORMATS };
static const char *const types[FORMATS] = {"text/csv", "application/json", "application/json",
                                           "application/x-ndjson"};

static void write_text(struct api_buffer *out, const char *text)
{
    api_append_format(out, text ? "\"%s\"" : "null", text);
}

static void write_column(struct api_buffer *out, const struct row *rows, size_t n, char column)
{
    static const char *const names[] = {"country", "plan", "amount", "day"};
    const char *name = names[strchr("cpad", column) - "cpad"];
    api_append_format(out, "%s\"%s\":[", column == 'c' ? "" : ",", name);
    for (size_t i = 0; i < n; i++) {
        api_append_text(out, i ? "," : "");
        if (column == 'c' || column == 'p')
            write_text(out, column == 'c' ? rows[i].country : rows[i].plan);
        else
            api_append_format(out, "%.6g",
                              column == 'a' ? rows[i].amount : BEGIN + (double)rows[i].day * DAY);
    }
    api_append_text(out, "]");
}

/* Writes those rows of a table whose country is of a segment; NULL: all. */
static void write_table(struct api_buffer *out, enum format format, const struct row *all,
                        size_t n_all, bool (*has)(const struct row *row, const char *segment),
                        const char *segment)
{
    struct row *rows = malloc(n_all * sizeof *rows);
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (!segment || has(&all[i], segment))
            rows[n++] = all[i];
    out->size = 0;
    api_append_text(out, format == CSV       ? "country,plan,amount,day\n"
                         : format == COLUMNS ? "{\"columns\":{"
                         : format == ROWS    ? "{\"rows\":["
                                             : "");
    for (const char *column = "cpad"; format == COLUMNS && *column; column++)
        write_column(out, rows, n, *column);
    for (size_t i = 0; i < n && format != COLUMNS; i++) {
        double day = BEGIN + (double)rows[i].day * DAY;
        if (format == CSV) {
            api_append_format(out, "%s,%s,%.6g,%.0f\n", rows[i].country ? rows[i].country : "",
                              rows[i].plan, rows[i].amount, day);
            continue;
        }
        api_append_text(out, i && format == ROWS ? ",{\"country\":" : "{\"country\":");
        write_text(out, rows[i].country);
        api_append_format(out, ",\"plan\":\"%s\",\"amount\":%.6g,\"day\":%.0f}%s", rows[i].plan,
                          rows[i].amount, day, format == LINES ? "\n" : "");
    }
    api_append_text(out, format == COLUMNS ? "}}" : format == ROWS ? "]}" : "");
    api_append(out, "", 1);
    free(rows);
}

static bool is_frequent(const char *country) { return country && strcmp(country, "IS") != 0; }

/* True if a row is of a segment, among DE, FR, US, a b, and other. */
static bool is_of(const struct row *row, const char *segment)
{
    return strcmp(segment, "other") == 0
               ? !is_frequent(row->country)
               : is_frequent(row->country) && strcmp(row->country, segment) == 0;
}

static json_t *send(const struct api_service *service, const char *line, enum format format,
                    const struct api_buffer *body, int status)
{
    return monitors_send_as(service, line, types[format], body, status);
}

/* Expects the monitors of a segment to be those of a group of its rows alone. */
static void expect_same(const json_t *segment, const json_t *alone, const char *what)
{
    json_t *a = json_deep_copy(json_object_get(segment, "monitors")),
           *b = json_deep_copy(json_object_get(alone, "monitors")), *monitor;
    size_t i;
    json_array_foreach(a, i, monitor) json_object_del(monitor, "group");
    json_array_foreach(b, i, monitor) json_object_del(monitor, "group");
    char *first = json_dumps(a, JSON_SORT_KEYS), *second = json_dumps(b, JSON_SORT_KEYS);
    cr_expect_str_eq(first, second, "%s", what);
    free(first);
    free(second);
    json_decref(a);
    json_decref(b);
}

static const char *const segments[] = {"DE", "FR", "US", "a b", "other"};

/* Each segment is as a group that gets its rows alone, in every format, with times of rows and without. */
Test(monitors_segments, are_as_groups_of_their_rows_alone)
{
    enum { N = 3000 };
    struct row *rows = calloc(N, sizeof *rows);
    struct api_buffer body = {0};
    for (size_t round = 0; round < 2 * FORMATS; round++) {
        enum format format = (enum format)(round % FORMATS);
        bool timed = round >= FORMATS;
        const char *query = timed ? "window=1d&exclude=day" : "window=batch&exclude=day";
        const char *time = timed ? "time=day" : "timestamp=2026-01-05";
        struct api_service service = monitors_new(1000);
        char line[200], path[100];
        seed = round + 1;
        make_rows(rows, N, 0);
        write_table(&body, format, rows, N, NULL, NULL);
        snprintf(line, sizeof line, "PUT /monitors/g?by=country&%s", query);
        json_t *whole = send(&service, line, format, &body, 201);
        cr_assert_eq(json_array_size(json_object_get(whole, "segments")), COUNT(segments));
        for (size_t i = 0; i < COUNT(segments); i++) {
            snprintf(path, sizeof path, "g[country=%s]", segments[i]);
            write_table(&body, format, rows, N, is_of, segments[i]);
            snprintf(line, sizeof line, "PUT /monitors/alone%zu?%s,country", i, query);
            json_t *alone = send(&service, line, format, &body, 201);
            for (size_t j = 0; j < COUNT(segments); j++) {
                const json_t *segment = json_array_get(json_object_get(whole, "segments"), j);
                if (strcmp(text_at(segment, "group"), path) == 0)
                    expect_same(segment, alone, path);
            }
            json_decref(alone);
        }
        json_decref(whole);
        make_rows(rows, N, 1);
        write_table(&body, format, rows, N, NULL, NULL);
        snprintf(line, sizeof line, "POST /monitors/g/observations?by=country&%s", time);
        whole = send(&service, line, format, &body, 200);
        size_t critical = 0, found = 0;
        for (size_t i = 0; i < COUNT(segments); i++) {
            snprintf(path, sizeof path, "g[country=%s]", segments[i]);
            write_table(&body, format, rows, N, is_of, segments[i]);
            snprintf(line, sizeof line, "POST /monitors/alone%zu/observations?%s", i, time);
            json_t *alone = send(&service, line, format, &body, 200);
            for (size_t j = 0; j < COUNT(segments); j++) {
                const json_t *segment = json_array_get(json_object_get(whole, "segments"), j);
                if (strcmp(text_at(segment, "group"), path) != 0)
                    continue;
                found++;
                expect_same(segment, alone, path);
                if (timed)
                    cr_expect(json_equal(json_object_get(segment, "windows"),
                                         json_object_get(alone, "windows")));
                critical += strcmp(text_at(segment, "monitors.1.verdict"), "critical") == 0;
                cr_expect_eq(strcmp(text_at(segment, "monitors.1.verdict"), "critical") == 0,
                             strcmp(segments[i], "FR") == 0, "%s", path);
            }
            json_decref(alone);
        }
        cr_expect_eq(found, COUNT(segments));
        cr_expect_eq(critical, 1);
        json_decref(whole);
        monitors_end(&service);
    }
    api_buffer_free(&body);
    free(rows);
}

/* At most 50 values seen 50 times or more; names that no group can have, rare and missing values are `other`. */
Test(monitors_segments, are_of_frequent_values)
{
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    char name[200];
    api_append_text(&body, "c,x\n");
    for (int value = 0; value < 70; value++)
        for (int i = 0; i < 49 + value; i++)
            api_append_format(&body, "v%d,%d\n", value, i % 9);
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 300; i++)
        api_append_format(&body, "%.125s,%d\n,%d\nother,%d\n", name, i % 9, i % 9, i % 9);
    api_append(&body, "", 1);
    json_t *json = send(&service, "PUT /monitors/g?by=c", CSV, &body, 201);
    size_t n = json_array_size(json_object_get(json, "segments"));
    cr_expect_eq(n, 51, "%zu", n); /* v20 to v69, and `other` */
    json_decref(json);
    json = monitors_get(&service, "GET /groups?segment_of=g&limit=100", NULL, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "groups")), n);
    expect_at(json, "groups.0.segment_of", "\"g\"");
    json_decref(json);
    json = monitors_get(&service, "GET /groups/g", NULL, 200);
    expect_at(json, "segment_of", "null");
    json_decref(json);
    json = send(&service, "POST /monitors/g/observations?by=c", CSV, &body, 200);
    double observed = 0;
    for (size_t i = 0; i < n; i++)
        observed += number_at(json_array_get(json_object_get(json, "segments"), i), "monitors.0.n");
    cr_expect_eq(observed, number_at(json, "monitors.0.n"));
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* A request that is repeated with its key, also after a restart, has the same response. */
Test(monitors_segments, keep_a_key_and_count_once)
{
    enum { N = 1000 };
    struct row rows[N];
    struct api_buffer body = {0};
    char folder[] = "/tmp/kldiv-segments-XXXXXX", path[60], location[80];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(location, sizeof location, "sqlite:%s", path);
    struct api_service service = monitors_new_at(1000, location);
    seed = 3;
    make_rows(rows, N, 0);
    write_table(&body, CSV, rows, N, NULL, NULL);
    json_decref(send(&service, "PUT /monitors/g?by=country&exclude=day", CSV, &body, 201));
    const struct monitors_request request = {.line = "POST /monitors/g/observations?by=country",
                                             .type = "text/csv",
                                             .body = body.data,
                                             .size = body.size - 1,
                                             .headers = {{"Idempotency-Key", "k"}}};
    char *first = NULL;
    for (size_t i = 0; i < 3; i++) {
        struct answer answer = monitors_send(&service, &request);
        char *text = body_of(&answer);
        cr_expect_eq(answer.status, 200, "%s", text);
        answer_free(&answer);
        cr_expect(!first || strcmp(text, first) == 0);
        free(first);
        first = text;
        if (i == 1)
            monitors_restart(&service, 1000);
    }
    free(first);
    json_t *json =
        monitors_get(&service, "GET /monitors/g%5Bcountry=DE%5D/plan/windows", NULL, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "windows")), 1);
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
    unlink(path);
    rmdir(folder);
}

/* Nothing is stored if a segment is refused, of which the whole table says nothing. */
Test(monitors_segments, are_all_or_none)
{
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    api_append_text(&body, "{\"columns\":{\"c\":[");
    for (int i = 0; i < 200; i++)
        api_append_format(&body, "%s\"%s\"", i ? "," : "", i % 2 ? "a" : "b");
    api_append_text(&body, "],\"x\":[");
    for (int i = 0; i < 200; i++) /* labels in a, numbers in b */
        api_append_format(&body, i % 2 ? ",\"%s\"" : "%s%d",
                          i % 2 ? (i % 4 == 1 ? "u" : "v")
                          : i   ? ","
                                : "",
                          i * 7 % 31);
    api_append_text(&body, "]}}");
    api_append(&body, "", 1);
    json_t *json = send(&service, "PUT /monitors/g?by=c", COLUMNS, &body, 201);
    json_decref(json);
    monitors_expect(&service, "POST /monitors/g/observations?by=c",
                    "{\"columns\":{\"c\":[\"a\",\"b\"],\"x\":[\"u\",3]}}", 200);
    monitors_refused(&service, "POST /monitors/g/observations?by=c",
                     "{\"columns\":{\"c\":[\"a\",\"a\",\"b\"],\"x\":[\"u\",\"v\",\"w\"]}}",
                     "value_not_number #/columns/x/2 ~in g[c=b]");
    static const char *const paths[] = {"g", "g%5Bc=a%5D", "g%5Bc=b%5D"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /monitors/%s/x/windows", paths[i]);
        json = monitors_get(&service, line, NULL, 200);
        cr_expect_eq(json_array_size(json_object_get(json, "windows")), 1, "%s", paths[i]);
        json_decref(json);
    }
    monitors_refused(&service, "PUT /monitors/h?by=nope", body.data, "column_missing ?by");
    monitors_refused(&service, "PUT /monitors/h?by=b%3Dc", body.data, "option_invalid ?by");
    monitors_refused(&service, "PUT /monitors/h?by=c&window=1x", body.data,
                     "option_invalid #/window");
    monitors_refused(&service, "POST /monitors/g/observations?by=x",
                     "{\"columns\":{\"c\":[\"a\"],\"x\":[\"u\"]}}", "segments_missing ?by");
    monitors_refused(&service, "POST /monitors/g/observations?by=c",
                     "{\"columns\":{\"x\":[\"u\"]}}", "column_missing ?by");
    monitors_refused(&service, "POST /monitors/g/x/observations?by=c", "{\"values\":[1]}",
                     "option_unknown ?by");
    monitors_refused(&service, "POST /monitors/g/evaluate?by=c", "{\"columns\":{\"x\":[\"u\"]}}",
                     "option_unknown ?by");
    monitors_expect(&service, "PUT /monitors/g?by=c", body.data, 200);
    monitors_expect(&service, "DELETE /monitors/g%5Bc=a%5D", NULL, 204);
    monitors_expect(&service, "PUT /monitors/g?by=c", body.data, 201);
    json = monitors_get(&service, "PUT /monitors/h?by=c&dry_run=true", body.data, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 2);
    json_decref(json);
    monitors_expect(&service, "GET /groups/h", NULL, 404);
    monitors_end(&service);
    service = monitors_new(3); /* the group has c and x, each segment x */
    monitors_refused(&service, "PUT /monitors/h?by=c&dry_run=true", body.data, "too_many_monitors");
    monitors_refused(&service, "PUT /monitors/h?by=c", body.data, "too_many_monitors");
    api_buffer_free(&body);
    monitors_end(&service);
}
