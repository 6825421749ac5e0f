/* Configs of monitors: what GET gives is what PUT takes; conditions; names. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long seed;
static size_t pick(size_t n) { return uniform_below(&seed, n); }

/* ---- Random configs */

static void append_edges(struct api_buffer *to, size_t n)
{
    double edge = (uniform(&seed) - 0.5) * (pick(2) ? 1 : pick(2) ? 1e300 : 1e-300);
    api_append_text(to, "{\"edges\":[");
    for (size_t i = 0; i <= n; i++) {
        api_append_format(to, "%s%.17g", i ? "," : "", edge);
        double next = edge + uniform(&seed) * (fabs(edge) / 100 + 1e-310);
        edge = next > edge ? next : nextafter(edge, (double)INFINITY);
    }
    api_append_text(to, "]}");
}

/* Labels differ by their numbers. */
static void append_labels(struct api_buffer *to, size_t n)
{
    static const char *const pieces[] = {"",    "NaN",   "\\u0001",       "\xf0\x9f\x98\x80",
                                         "/",   "\\\\",  "\\\"",          "other",
                                         "\\n", "\\/~1", "\\ud83d\\ude00"};
    api_append_text(to, "{\"labels\":[");
    for (size_t i = 0; i < n; i++)
        api_append_format(to, "%s\"%s%zu%s\"", i ? "," : "", pieces[pick(COUNT(pieces))], i,
                          pieces[pick(COUNT(pieces))]);
    api_append_text(to, "]}");
}

/* Appends counts that sum above 0, or probabilities, which are multiples of 1/1024. */
static void append_reference(struct api_buffer *to, size_t n, bool labelled)
{
    bool counts = pick(2);
    size_t left = 1024;
    api_append_text(to, counts ? "{\"counts\":[" : "{\"probabilities\":[");
    for (size_t i = 0; i < n; i++) {
        size_t part = i + 1 < n ? pick(left + 1) : pick(2) ? left : 0;
        left -= part;
        api_append_format(to, i ? ",%.17g" : "%.17g",
                          counts ? floor(uniform(&seed) * 0x1p40) : (double)part / 1024);
    }
    double missing = counts ? (double)pick(1000) : (double)left / 1024;
    api_append_format(to, "],\"missing\":%.17g", missing);
    if (pick(2))
        api_append_format(to, ",\"%s\":0", labelled ? "other" : "underflow");
    if (!counts && pick(2))
        api_append_format(to, ",\"n\":%.17g", pick(2) ? uniform(&seed) * 1e6 + 1 : 1024);
    api_append_text(to, "}");
}

static void append_settings(struct api_buffer *to)
{
    static const char *const some[] = {",\"window\":{\"seconds\":77,\"grace\":3}",
                                       ",\"window\":{\"count\":12}",
                                       ",\"compare\":{\"previous\":9}",
                                       ",\"pseudocount\":0.30000000000000004",
                                       ",\"min_observations\":3",
                                       ",\"thresholds\":{\"warning\":1e-17}",
                                       ",\"thresholds\":{\"significance\":5e-324}",
                                       ",\"fire_after\":5",
                                       ",\"clear_after\":6",
                                       ",\"retention_days\":1.1",
                                       ",\"annotations\":{\"z\":[1,{}],\"a\":\"\\u00e9\\n\"}"};
    for (size_t i = 0; i < COUNT(some); i++)
        if (pick(3) == 0 && !(i == 1 && memmem(to->data, to->size, "\"window\"", 8)) &&
            !(i == 6 && memmem(to->data, to->size, "\"thresholds\"", 12)))
            api_append_text(to, some[i]);
}

static void append_config(struct api_buffer *to)
{
    size_t n = 1 + pick(pick(4) ? 12 : 1000);
    bool labelled = pick(2);
    api_append_text(to, "{");
    if (pick(4) == 0) {
        api_append_text(to, "\"reference\":{\"values\":[");
        for (size_t i = 0; i <= n; i++)
            api_append_format(to, labelled ? "%s\"%zu\"" : "%s%zu", i ? "," : "", pick(200));
        api_append_format(to, "]},\"binning\":{\"bins\":%zu}", 1 + pick(30));
    } else {
        api_append_text(to, "\"bins\":");
        if (labelled)
            append_labels(to, n);
        else
            append_edges(to, n);
        api_append_text(to, ",\"reference\":");
        append_reference(to, n, labelled);
    }
    append_settings(to);
    api_append(to, "}", 2);
}

/* Cuts the warnings that the response to a PUT has at its end. */
static void cut_warnings(char *body)
{
    char *warnings = strstr(body, ",\"warnings\":[");
    if (warnings)
        strcpy(warnings, "}\n");
}

Test(monitors_configs, what_get_gives_put_takes_without_a_change)
{
    struct api_service service = monitors_new(1000);
    for (size_t i = 0; i < 600; i++) {
        struct api_buffer body = {0};
        seed = i;
        append_config(&body);
        struct answer put = monitors_ask(&service, "PUT /monitors/g/m", body.data);
        if (put.status == 422 && strcmp(text_of(put.json, "code"), "nothing_to_compare") == 0) {
            answer_free(&put);
            api_buffer_free(&body);
            continue;
        }
        cr_assert_leq(put.status, 201, "%d %.400s\n%s", put.status, body.data,
                      put.response.body.data);
        char *first = body_of(&put), etag[100];
        cut_warnings(first);
        struct answer get = monitors_ask(&service, "GET /monitors/g/m", NULL);
        char *second = body_of(&get);
        snprintf(etag, sizeof etag, "%s", header_of_answer(&get, "ETag"));
        struct answer again = monitors_ask(&service, "PUT /monitors/g/m", second);
        char *third = body_of(&again);
        cut_warnings(third);
        cr_expect_eq(again.status, 200);
        cr_expect_str_eq(first, second);
        cr_expect_str_eq(second, third, "%.300s\n%.300s", second, third);
        cr_expect_str_eq(etag, header_of_answer(&again, "ETag"));
        answer_free(&put);
        answer_free(&get);
        answer_free(&again);
        free(first);
        free(second);
        free(third);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* ---- Conditions */

static int status_if(const struct api_service *service, const char *line, const char *name,
                     const char *value, const char *body)
{
    struct answer answer = monitors_send(
        service, &(struct monitors_request){line, "application/json", body, 0, {{name, value}}});
    int status = answer.status;
    if (status == 412)
        cr_expect_str_eq(text_of(answer.json, "code"), "precondition_failed");
    answer_free(&answer);
    return status;
}

#define CONFIG(more) "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[1]}" more "}"

Test(monitors_configs, conditions_hold_for_the_monitor_as_it_is)
{
    struct api_service service = monitors_new(10);
    const char *line = "PUT /monitors/g/m";
    cr_expect_eq(status_if(&service, line, "If-Match", "*", CONFIG()), 412);
    cr_expect_eq(status_if(&service, line, "If-Match", "\"1-1\"", CONFIG()), 412);
    cr_expect_eq(status_if(&service, line, "If-None-Match", "\"1-1\"", CONFIG()), 201);
    cr_expect_eq(status_if(&service, line, "If-None-Match", "*", CONFIG()), 412);
    static const struct {
        const char *value;
        int match, none;
    } cases[] = {{"\"1-1\"", 200, 412},
                 {"\"x\", \"1-1\"", 200, 412},
                 {"\"1-1\",\"x\"", 200, 412},
                 {" * ", 200, 412},
                 {"\"1-2\"", 412, 200},
                 {"1-1", 412, 200},
                 {"\"11-1\"", 412, 200},
                 {"W/\"1-1\"", 412, 412},
                 {"\"x,\"1-1\"\"", 412, 200},
                 {"\"1-1\"x", 412, 200},
                 {"", 412, 200}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        int match = status_if(&service, line, "If-Match", cases[i].value, CONFIG()),
            none = status_if(&service, line, "If-None-Match", cases[i].value, CONFIG());
        cr_expect_eq(match, cases[i].match, "If-Match: %s: %d", cases[i].value, match);
        cr_expect_eq(none, cases[i].none, "If-None-Match: %s: %d", cases[i].value, none);
    }
    cr_expect_eq(status_if(&service, line, "If-Match", "\"1-1\"", CONFIG(",\"fire_after\":2")),
                 200);
    cr_expect_eq(status_if(&service, line, "If-Match", "\"1-1\"", CONFIG()), 412);
    cr_expect_eq(status_if(&service, "DELETE /monitors/g/m", "If-Match", "\"1-1\"", ""), 412);
    cr_expect_eq(status_if(&service, "DELETE /monitors/g/m", "If-Match", "\"1-2\"", ""), 204);
    monitors_end(&service);
}

Test(monitors_configs, etags_change_with_any_change_and_revisions_with_bins_or_reference)
{
    static const struct {
        const char *body, *etag, *revision;
    } steps[] = {
        {CONFIG(), "\"1-1\"", "1"},
        {CONFIG(",\"fire_after\":1"), "\"1-1\"", "1"},
        {CONFIG(",\"fire_after\":2"), "\"1-2\"", "1"},
        {CONFIG(",\"annotations\":{\"a\":1}"), "\"1-3\"", "1"},
        {"{\"bins\":{\"edges\":[0.0,1e0]},\"reference\":{\"counts\":[1.0],\"missing\":0},"
         "\"annotations\":{\"a\":1}}",
         "\"1-3\"", "1"},
        {"{\"bins\":{\"edges\":[-0.0,1]},\"reference\":{\"counts\":[2]}}", "\"1-4\"", "2"},
        {"{\"bins\":{\"edges\":[0,2]},\"reference\":{\"counts\":[2]}}", "\"1-5\"", "3"},
        {"{\"bins\":{\"edges\":[0,2]},\"compare\":\"previous:1\"}", "\"1-6\"", "4"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct answer answer = monitors_ask(&service, "PUT /monitors/g/m", steps[i].body);
        cr_expect_eq(answer.status, i ? 200 : 201);
        cr_expect_str_eq(header_of_answer(&answer, "ETag"), steps[i].etag, "step %zu: %s", i,
                         header_of_answer(&answer, "ETag"));
        expect_at(answer.json, "revision", steps[i].revision);
        answer_free(&answer);
    }
    monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
    struct answer anew = monitors_ask(&service, "PUT /monitors/g/m", CONFIG());
    cr_expect_str_eq(header_of_answer(&anew, "ETag"), "\"2-1\"");
    answer_free(&anew);
    monitors_end(&service);
}

/* ---- Names */

static const struct {
    const char *path, *problem; /* NULL: 201 */
} names[] = {
    {"g/od280%2Fod315_of_diluted_wines", NULL},
    {"g/sepal%20length%20(cm)", NULL},
    {"g/%F0%9F%98%80", NULL},
    {"a%2Fb/c", NULL},
    {"g/...", NULL},
    {"g/a%2F..%2Fb", NULL},
    {"g/windows", NULL},
    {"g/%C2%A0", NULL},
    {"g/%22%5C", NULL},
    {"observation/observation", NULL},
    {"g/%2E", "name_invalid"},
    {"g/%2E%2E", "name_invalid"},
    {"%2E/a", "name_invalid"},
    {"g/observation%73", "method_not_allowed"},
    {"observations/a", "name_invalid"},
    {"g/%01", "name_invalid"},
    {"g/a%7F", "name_invalid"},
    {"g/a%C2%80", "name_invalid"},
    {"g/a%C2%9F", "name_invalid"},
    {"g/%0A", "name_invalid"},
    {"g/%FF", "name_invalid"},
    {"g/%C3", "name_invalid"},
    {"g/%ED%A0%80", "name_invalid"},
};

Test(monitors_configs, a_dry_run_shows_what_a_put_would_make_and_stores_nothing)
{
    struct api_service service = monitors_new(2);
    const char *table = "a,b\n1,x\n2,y\n3,y\n", *line = "PUT /monitors/g?bins=2";
    struct answer dry = monitors_ask(&service, "PUT /monitors/g?bins=2&dry_run=true", table);
    cr_assert_eq(dry.status, 200);
    monitors_expect(&service, "GET /monitors/g", NULL, 404);
    struct answer real = monitors_ask(&service, line, table);
    cr_expect_eq(real.status, 201);
    char *foreseen = body_of(&dry), *made = body_of(&real);
    cr_expect_str_eq(foreseen, made);
    json_t *again = monitors_get(&service, "PUT /monitors/g?bins=2&dry_run=true", "a\n4\n5\n", 200);
    cr_expect_eq(number_at(again, "monitors.0.revision"), 2);
    json_t *kept = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    cr_expect_eq(number_at(kept, "revision"), 1);
    monitors_refused(&service, "PUT /monitors/h?dry_run=true", table, "too_many_monitors");
    monitors_refused(&service, "DELETE /monitors/g?dry_run=true", NULL, "option_unknown ?dry_run");
    monitors_refused(&service, "PUT /monitors/g?dry_run=2", table, "option_invalid ?dry_run");
    monitors_refused(&service, "PUT /monitors/g/a?dry_run=true", "{\"dry_run\": true}",
                     "option_unknown #/dry_run");
    json_decref(again);
    json_decref(kept);
    free(foreseen);
    free(made);
    answer_free(&dry);
    answer_free(&real);
    monitors_end(&service);
}

/* A name of any length is told to be too long. */
Test(monitors_configs, names_have_a_limit)
{
    static const int sizes[][2] = {{129, 1}, {1, 129}, {600, 0}, {600, 600}, {300, 300}, {1, 600}};
    struct api_service service = monitors_new(100);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct api_buffer line = {0};
        api_append_format(&line, "PUT /monitors/%0*d%s", sizes[i][0], 0, sizes[i][1] ? "/" : "");
        if (sizes[i][1])
            api_append_format(&line, "%0*d", sizes[i][1], 0);
        api_append(&line, "", 1);
        monitors_refused(&service, line.data, CONFIG(), "name_invalid");
        api_buffer_free(&line);
    }
    monitors_end(&service);
}

Test(monitors_configs, names_are_any_utf8_without_control_characters)
{
    struct api_service service = monitors_new(100);
    for (size_t i = 0; i < COUNT(names); i++) {
        char line[200];
        snprintf(line, sizeof line, "PUT /monitors/%s", names[i].path);
        if (names[i].problem) {
            monitors_refused(&service, line, CONFIG(), names[i].problem);
            continue;
        }
        monitors_expect(&service, line, CONFIG(), 201);
        memcpy(line, "GET", 3);
        monitors_expect(&service, line, NULL, 200);
    }
    for (size_t n = 126; n <= 130; n++) {
        char line[600] = "PUT /monitors/g/";
        for (size_t i = 0; i < n / 2; i++)
            strcat(line, "%C3%A9");
        strcat(line, n % 2 ? "x" : "");
        struct answer answer = monitors_ask(&service, line, CONFIG());
        cr_expect_eq(answer.status, n <= 128 ? 201 : 422, "%zu: %d", n, answer.status);
        answer_free(&answer);
    }
    monitors_end(&service);
}
