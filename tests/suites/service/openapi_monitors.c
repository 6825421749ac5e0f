/* The OpenAPI document's paths of monitors: every example succeeds, and answers are as it says. */
#include "api/endpoints.h"
#include "api/tables/table.h"
#include "tests/suites/service/openapi_document.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "/monitors/{group}"
#define MONITOR GROUP "/{name}"

TestSuite(openapi_monitors, .init = load_document);

static struct api_service service;

/* The example of an answer in JSON; NULL if it has none. */
static const json_t *answer_example(const char *method, const char *template, int status)
{
    char text[8];
    snprintf(text, sizeof text, "%d", status);
    const json_t *responses = json_object_get(operation(template, method), "responses");
    const json_t *content = json_object_get(json_object_get(responses, text), "content");
    return json_object_get(json_object_get(content, "application/json"), "example");
}

/* True if two values are equal but for the last digits of numbers, which machines differ in, and for the time when
 * something was created. */
static bool is_near(const json_t *a, const json_t *b)
{
    size_t i;
    const char *name;
    json_t *item;
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return fabs(x - y) <= 1e-12 * fabs(y) + 4e-15;
    }
    if (json_typeof(a) != json_typeof(b) || json_object_size(a) != json_object_size(b) ||
        json_array_size(a) != json_array_size(b))
        return false;
    json_array_foreach(a, i, item) if (!is_near(item, json_array_get(b, i))) return false;
    json_object_foreach((json_t *)a, name, item)
    {
        const json_t *other = json_object_get(b, name);
        if (!other || (strcmp(name, "created") != 0 && !is_near(item, other)))
            return false;
    }
    return json_is_array(a) || json_is_object(a) || json_equal(a, b);
}

/* The status of success, of which only PUT has two. */
static int success_of(const struct api_endpoint *e)
{
    static const char *const statuses[] = {"200", "201", "204"};
    const json_t *responses = json_object_get(operation(e->path, e->method), "responses");
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (json_object_get(responses, statuses[i]))
            return atoi(statuses[i]);
    return 0;
}

/* Asks with an example: a PUT of nothing makes, and once more replaces; other operations find the
 * group. `exact` if the answer must be the document's. Returns 1, so that callers can count. */
static size_t check_example(const struct api_endpoint *e, const char *type, const json_t *body,
                            bool exact)
{
    bool puts = strcmp(e->method, "PUT") == 0;
    service = monitors_new(100);
    if (!puts)
        prepare_monitors(&service);
    for (int i = 0; i <= puts; i++) {
        struct answer answer = ask_operation(&service, e->method, e->path, type, body);
        const json_t *example = answer_example(e->method, e->path, answer.status);
        cr_expect_eq(answer.status, puts ? 201 - i : success_of(e), "%s %s: %d %.*s", e->method,
                     e->path, answer.status, (int)answer.response.body.size,
                     answer.response.body.data);
        if (exact && example)
            cr_expect(is_near(answer.json, example), "%s %s: %.*s", e->method, e->path,
                      (int)answer.response.body.size, answer.response.body.data);
        answer_free(&answer);
    }
    monitors_end(&service);
    return 1;
}

static size_t check_media(const struct api_endpoint *e, const char *type, const json_t *media)
{
    const json_t *schema = json_object_get(media, "schema"), *first = first_example(media);
    const char *name;
    json_t *item;
    size_t n = 0;
    if (json_object_get(media, "example")) {
        cr_expect(matches(first, schema), "%s %s: %s", e->method, e->path, type);
        n += check_example(e, type, first, strcmp(type, "application/json") == 0);
    }
    json_object_foreach(json_object_get(media, "examples"), name, item)
    {
        const json_t *value = json_object_get(item, "value");
        cr_expect(matches(value, schema), "%s %s: %s", e->method, e->path, name);
        n += check_example(e, type, value, value == first);
    }
    return n;
}

Test(openapi_monitors, examples_succeed_and_answers_are_as_it_says)
{
    size_t n = 0;
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        const json_t *body = json_object_get(operation(e->path, e->method), "requestBody");
        const char *type;
        json_t *media;
        if (is_of_monitors(e) && !body)
            n += check_example(e, NULL, NULL, true);
        json_object_foreach(json_object_get(body, "content"), type, media) if (is_of_monitors(e))
            n += check_media(e, type, media);
    }
    cr_expect_geq(n, 25, "%zu examples", n);
}

Test(openapi_monitors, tables_come_in_the_formats_that_are_read)
{
    char readable[400];
    size_t n = 0;
    api_table_list_formats(readable, sizeof readable);
    const json_t *body = json_object_get(operation(GROUP, "PUT"), "requestBody");
    const json_t *content = json_object_get(body, "content");
    for (char *rest = readable, *type; (type = strtok_r(rest, ", ", &rest)); n++)
        cr_expect(json_object_get(content, type), "%s", type);
    cr_expect_eq(json_object_size(content), n);
}

/* Bodies and queries that are refused, by every path that takes them. */
Test(openapi_monitors, problems_are_as_it_says)
{
    static const char *const bodies[] = {"[]",
                                         "{",
                                         "{\"columns\": {\"age\": [[1]]}}",
                                         "{\"what\": 1}",
                                         "{\"values\": []}",
                                         "{\"counts\": [1]}",
                                         "{\"from\": 1, \"to\": 2}",
                                         "a,b\n1\n",
                                         "age\n\xff\n"};
    static const char *const queries[] = {NULL,        "nonsense=1",      "limit=0",    "cursor=x",
                                          "window=no", "timestamp=never", "from=never", "%zz"};
    char path[200];
    service = monitors_new(100);
    prepare_monitors(&service);
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        bool has_body = json_object_get(operation(e->path, e->method), "requestBody");
        if (!is_of_monitors(e) || strcmp(e->method, "DELETE") == 0)
            continue;
        fill_path(operation(e->path, e->method), e->path, path, sizeof path);
        for (size_t i = 0; i < (has_body ? COUNT(bodies) : 1); i++)
            for (size_t j = 0; j < COUNT(queries); j++) {
                const struct question question = {
                    .method = e->method, .path = path, .query = queries[j]};
                const char *body = has_body ? bodies[i] : "";
                struct answer answer = ask_question(&question, &service, body, strlen(body));
                check_answer(&answer, e->path, e->method);
                answer_free(&answer);
            }
    }
    monitors_end(&service);
}

/* Names that are absent, and conditions that do not hold. */
Test(openapi_monitors, absent_monitors_and_conditions_are_as_it_says)
{
    static const struct api_header none = {"If-Match", "\"0-0\""};
    service = monitors_new(100);
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        char path[200];
        bool puts = strcmp(e->method, "PUT") == 0;
        if (!is_of_monitors(e) || !strchr(e->path, '{') || (puts && !strstr(e->path, "{name}")))
            continue;
        fill_path(operation(e->path, e->method), e->path, path, sizeof path);
        const char *body = puts
                               ? "{\"bins\": {\"edges\": [0, 1]}, \"reference\": {\"counts\": [1]}}"
                           : strstr(e->path, "/notes") ? "{\"text\": \"a\"}"
                           : strstr(e->path, "/mute")  ? "{\"seconds\": 60}"
                                                       : "{}";
        const struct question question = {.method = e->method, .path = path, .others = {none}};
        struct answer answer = ask_question(&question, &service, body, strlen(body));
        cr_expect_eq(answer.status, puts ? 412 : 404, "%s %s: %d", e->method, path, answer.status);
        check_answer(&answer, e->path, e->method);
        answer_free(&answer);
    }
    monitors_end(&service);
}

Test(openapi_monitors, formats_of_windows_are_as_it_says)
{
    static const struct {
        const char *accept;
        int status;
        const char *type;
    } cases[] = {{NULL, 200, "application/json"},
                 {"text/csv", 406, "application/problem+json"},
                 {"text/html", 406, "application/problem+json"}};
    static const char template[] = MONITOR "/windows";
    char path[200];
    service = monitors_new(100);
    prepare_monitors(&service);
    fill_path(operation(template, "GET"), template, path, sizeof path);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.method = "GET", .path = path, .accept = cases[i].accept};
        struct answer answer = ask_question(&question, &service, "", 0);
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        cr_expect_eq(strncmp(answer.response.content_type, cases[i].type, strlen(cases[i].type)),
                     0);
        check_answer(&answer, template, "GET");
        answer_free(&answer);
    }
    monitors_end(&service);
}
