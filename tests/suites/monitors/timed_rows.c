#include "tests/suites/monitors/timed_rows.h"

#include "tests/suites/tables/files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

unsigned long long timed_seed;
static size_t pick(size_t n) { return uniform_below(&timed_seed, n); }

struct timed_row timed_rows[TIMED_ROWS];

void timed_make_rows(int64_t from, size_t seconds)
{
    static const char *const countries[] = {"de", "fr", "it", "xx", "yy"};
    for (size_t i = 0; i < TIMED_ROWS; i++) {
        double at = uniform(&timed_seed);
        timed_rows[i].time = from + (int64_t)(at * (double)seconds);
        timed_rows[i].age = floor(200 * (uniform(&timed_seed) + (at > 0.5 ? 0.6 : 0))) / 2;
        timed_rows[i].country = countries[pick(at > 0.6 ? 5 : 3)];
    }
}

const char *const timed_types[TIMED_FORMS] = {"text/csv", "application/json", "application/json",
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

bool timed_is_wanted(const struct timed_row *row, int64_t start, int64_t end)
{
    return row->time >= start && row->time < end;
}

void timed_append(struct api_buffer *out, enum timed_form form, int64_t start, int64_t end,
                  bool timed, const struct api_zone *zone)
{
    double times[TIMED_ROWS], ages[TIMED_ROWS];
    size_t n = 0;
    char countries[TIMED_ROWS][3];
    if (form == TIMED_CSV)
        api_append_text(out, timed ? "age,at,country\n" : "age,country\n");
    for (size_t i = 0; i < TIMED_ROWS; i++) {
        const struct timed_row *row = &timed_rows[i];
        if (!timed_is_wanted(row, start, end))
            continue;
        times[n] = (double)row->time;
        ages[n] = row->age;
        memcpy(countries[n++], row->country, 3);
        if (form == TIMED_CSV) {
            api_append_format(out, "%.17g,", row->age);
            if (timed)
                append_time(out, row->time, i % 2, zone);
            api_append_format(out, "%s%s\n", timed ? "," : "", row->country);
        } else if (form == TIMED_OBJECTS || form == TIMED_LINES) {
            api_append_text(out, form == TIMED_LINES ? "" : n == 1 ? "{\"rows\":[" : ",");
            api_append_format(out, "{\"age\":%.17g,\"country\":\"%s\"", row->age, row->country);
            if (timed) {
                api_append_text(out, ",\"at\":");
                append_time(out, row->time, i % 2, zone);
            }
            api_append_text(out, form == TIMED_LINES ? "}\n" : "}");
        }
    }
    if (form == TIMED_OBJECTS)
        api_append_text(out, "]}");
    const struct tables_array arrays[] = {
        {.name = "age", .dtype = "f8", .n = n, .numbers = ages},
        {.name = "country", .dtype = "U", .n = n, .texts = *countries, .text_size = 3},
        {.name = "at", .dtype = "i8", .n = n, .numbers = times}};
    if (form == TIMED_NPZ)
        tables_npz(out, arrays, timed ? 3 : 2, false);
    for (size_t k = 0; form == TIMED_COLUMNS && k < (timed ? 3u : 2u); k++) {
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
    if (form == TIMED_COLUMNS)
        api_append_text(out, "}}");
}

void timed_make_group(const struct api_service *service, const char *query)
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

json_t *timed_post(const struct api_service *service, const char *line, enum timed_form form,
                   const struct api_buffer *body)
{
    struct answer answer = monitors_send(
        service,
        &(struct monitors_request){
            .line = line, .type = timed_types[form], .body = body->data, .size = body->size});
    cr_assert_eq(answer.status, 200, "%s %d: %.*s\n%.*s", line, (int)form,
                 (int)answer.response.body.size, answer.response.body.data, 300, body->data);
    json_t *json = json_incref(answer.json);
    answer_free(&answer);
    return json;
}

json_t *timed_send_csv(const struct api_service *service, const char *line, const char *text)
{
    struct api_buffer body = {0};
    api_append_text(&body, text);
    json_t *json = timed_post(service, line, TIMED_CSV, &body);
    api_buffer_free(&body);
    return json;
}

const char *const timed_views[TIMED_VIEWS] = {
    "GET /monitors/g/age/windows?limit=1000&counts=true",
    "GET /monitors/g/country/windows?limit=1000&counts=true",
    "GET /monitors/g/age/windows/latest",
    "GET /monitors/g/country/windows/latest",
    "GET /monitors/g/age/events",
    "GET /monitors/g/country/events",
    "GET /monitors?group=g",
    "GET /monitors/g/age",
    "GET /monitors/g/country"};

void timed_look(const struct api_service *service, json_t *seen[TIMED_VIEWS])
{
    for (size_t i = 0; i < TIMED_VIEWS; i++)
        seen[i] = monitors_get(service, timed_views[i], NULL, 200);
}

void timed_expect_same(json_t *first, json_t *second, const char *what)
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
