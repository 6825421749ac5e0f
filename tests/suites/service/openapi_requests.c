/* Requests that importers make of the OpenAPI document, and each type that Accept may name: they succeed, and answers are
 * as it says. */
#include "api/web/web.h"
#include "tests/suites/service/openapi_asked.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(openapi_requests, .init = load_document);

static struct api_service service;

/* The status of an operation's example: those that this service cannot do, and refusals that are all there is. */
static int status_of_example(const struct visit *visit)
{
    static const struct {
        const char *path;
        int status;
    } others[] = {{"/notifications/{name}/test", 404},
                  {"/v2/systemsharedmemory/region/{region}/register", 400},
                  {"/v2/systemsharedmemory/region/{region}/status", 400},
                  {"/v2/cudasharedmemory/region/{region}/register", 400},
                  {"/v2/cudasharedmemory/region/{region}/status", 400},
                  {"/v2/repository/models/kl_div/unload", 400},
                  {"/dashboard", 308}};
    static const char *const statuses[] = {"200", "201", "204"};
    const json_t *responses = json_object_get(visit->operation, "responses");
    bool is_page =
        strncmp(visit->path, "/dashboard", 10) == 0 || strncmp(visit->path, "/docs", 5) == 0;
    if (is_page && !api_file_find("docs/index.html"))
        return 404;
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(visit->path, others[i].path) == 0)
            return others[i].status;
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (json_object_get(responses, statuses[i]))
            return atoi(statuses[i]);
    return 0;
}

/* True for the parameters of a table with a column of times, which take the place of timestamp; and of one with segments. */
static bool is_of_times(const struct visit *visit, const json_t *parameter)
{
    const char *name = text_of(parameter, "name");
    return strcmp(name, "time") == 0 || strcmp(name, "by") == 0 ||
           (strstr(visit->path, "/observations") && strcmp(name, "timezone") == 0);
}

/* Sends an operation with the first example of a media type, NULL for no body, and `accept`; all parameters are filled
 * in if `full`, else those that are required. */
static void check_example(const struct visit *visit, const char *type, const json_t *media,
                          const char *accept, bool full)
{
    struct asked asked;
    size_t i;
    json_t *item;
    service = monitors_new(100);
    prepare_monitors(&service);
    begin_asked(&asked, visit);
    asked.question.content_type = type;
    asked.question.accept = accept;
    json_array_foreach(json_object_get(visit->operation, "parameters"), i, item)
    {
        char value[600];
        bool is_required = json_is_true(json_object_get(resolve(item), "required"));
        fill_in(resolve(item), value, sizeof value);
        if ((full || is_required) && !is_of_times(visit, resolve(item)))
            add_parameter(&asked, resolve(item), value);
    }
    struct answer answer = send_asked(&service, &asked, media ? first_example(media) : NULL);
    int expected = status_of_example(visit);
    if (answer.status != expected || !is_described(&answer, visit->path, visit->method))
        fail_asked(&asked, &answer, "an example");
    answer_free(&answer);
    monitors_end(&service);
}

/* Calls check_example with each media type of the body that has an example. */
static void check_bodies(const struct visit *visit, const char *accept, bool full)
{
    const json_t *body = json_object_get(visit->operation, "requestBody");
    const char *type;
    json_t *media;
    if (!body)
        check_example(visit, NULL, NULL, accept, full);
    json_object_foreach(json_object_get(body, "content"), type, media) if (first_example(media))
        check_example(visit, type, media, accept, full);
}

static void check_import(const struct visit *visit) { check_bodies(visit, NULL, true); }

Test(openapi_requests, an_operation_works_with_all_parameters_as_importers_fill_them_in)
{
    visit_operations(check_import);
}

/* The types of a response are acceptable if it is the one of the example; problems are always. */
static void check_accepts(const struct visit *visit)
{
    char status[8];
    const char *type;
    json_t *media;
    snprintf(status, sizeof status, "%d", status_of_example(visit));
    const json_t *response =
        resolve(json_object_get(json_object_get(visit->operation, "responses"), status));
    json_object_foreach(json_object_get(response, "content"), type, media)
        check_bodies(visit, type, false);
    check_bodies(visit, "application/problem+json", false);
    check_bodies(visit, "application/problem+json;q=0.1, */*;q=0", false);
    if (!json_object_get(response, "content"))
        check_bodies(visit, "text/html", false);
}

Test(openapi_requests, each_type_that_is_described_is_acceptable)
{
    visit_operations(check_accepts);
}

/* ---- Values that are empty */

static void check_empty(const struct visit *visit)
{
    const json_t *body = json_object_get(visit->operation, "requestBody");
    json_t *content = json_object_get(body, "content");
    const json_t *media = json_object_get(content, "application/json");
    const char *first = json_object_iter_key(json_object_iter(content));
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(visit->operation, "parameters"), i, item)
    {
        struct asked asked;
        if (strcmp(text_of(resolve(item), "in"), "query") != 0)
            continue;
        begin_asked(&asked, visit);
        asked.question.content_type = media ? "application/json" : first;
        add_parameter(&asked, resolve(item), "");
        struct answer answer = send_asked(&service, &asked, media ? first_example(media) : NULL);
        if (answer.status != 422 || !is_described(&answer, visit->path, visit->method))
            fail_asked(&asked, &answer, "an empty value");
        answer_free(&answer);
    }
}

Test(openapi_requests, an_empty_value_of_a_parameter_is_refused)
{
    service = monitors_new(100);
    prepare_monitors(&service);
    visit_operations(check_empty);
    monitors_end(&service);
}

/* ---- Methods */

/* A monitor may have the name of what a group has: /monitors/{group}/evaluate is its config, too; but no monitor is called
 * observations. */
static bool is_described_method(const char *path, const char *method)
{
    static const char group[] = "/monitors/{group}/";
    size_t size = sizeof group - 1;
    bool is_name = strncmp(path, group, size) == 0 && !strchr(path + size, '/') &&
                   strcmp(path + size, "observations") != 0;
    return operation(path, method) || (is_name && operation("/monitors/{group}/{name}", method));
}

/* Each method that Allow names is there, others are 405, and both responses name the same. */
static void check_methods(const struct visit *visit)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"};
    struct asked asked;
    begin_asked(&asked, visit);
    asked.question.method = "OPTIONS";
    struct answer options = send_asked(&service, &asked, NULL);
    char *allow = strdup(header_of_answer(&options, "Allow"));
    cr_expect_eq(options.status, 204, "%s: %d", visit->path, options.status);
    for (size_t i = 0; i < COUNT(methods); i++) {
        const char *documented = strcmp(methods[i], "HEAD") == 0 ? "GET" : methods[i];
        asked.question.method = methods[i];
        struct answer answer = send_asked(&service, &asked, NULL);
        bool is_there = is_described_method(visit->path, documented);
        cr_expect_eq(answer.status == 405, !is_there, "%s %s: %d", methods[i], visit->path,
                     answer.status);
        cr_expect_eq(strstr(allow, methods[i]) != NULL, is_there, "%s: %s", visit->path, allow);
        if (answer.status == 405)
            cr_expect_str_eq(header_of_answer(&answer, "Allow"), allow, "%s", visit->path);
        answer_free(&answer);
    }
    answer_free(&options);
    free(allow);
}

Test(openapi_requests, methods_are_those_that_allow_names)
{
    service = monitors_new(100);
    prepare_monitors(&service);
    visit_operations(check_methods);
    monitors_end(&service);
}
