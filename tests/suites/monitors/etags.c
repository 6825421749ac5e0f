/* ETags of what pages poll: a response that the client has already is 304. */
#include "api/endpoints.h"
#include "api/request/response.h"
#include "api/request/route.h"
#include "tests/suites/service/openapi_document.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(monitors_etags, .init = load_document);

#define CONFIG                                                                                     \
    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]},\"min_observations\":1,"   \
    "\"pool\":1}"
#define OBSERVE "POST /monitors/g/m/observations"

static const struct {
    const char *path, *template, *query;
} polled[] = {{"/monitors", "/monitors", NULL},
              {"/monitors", "/monitors", "limit=1"},
              {"/monitors/g", "/monitors/{group}", NULL},
              {"/groups", "/groups", NULL},
              {"/groups/g", "/groups/{group}", NULL},
              {"/events", "/events", NULL},
              {"/monitors/g/m/events", "/monitors/{group}/{name}/events", NULL},
              {"/monitors/g/m/windows", "/monitors/{group}/{name}/windows", NULL},
              {"/monitors/g/m/windows", "/monitors/{group}/{name}/windows", "counts=true"},
              {"/monitors/g/m/windows/latest", "/monitors/{group}/{name}/windows/{window}", NULL},
              {"/monitors/g/m/notes", "/monitors/{group}/{name}/notes", NULL},
              {"/groups/g/notes", "/groups/{group}/notes", NULL}};

static struct answer poll(const struct api_service *service, size_t i, const char *method,
                          const char *known)
{
    struct question question = {.method = method, .path = polled[i].path, .query = polled[i].query};
    if (known)
        question.others[0] = (struct api_header){"If-None-Match", known};
    struct answer answer = ask_question(&question, service, "", 0);
    check_answer(&answer, polled[i].template, "GET");
    return answer;
}

static void get_etag(const struct api_service *service, size_t i, char to[40])
{
    struct answer answer = poll(service, i, "GET", NULL);
    cr_expect_eq(answer.status, 200);
    cr_expect_gt(api_response_size(&answer.response), 0);
    snprintf(to, 40, "%s", header_of_answer(&answer, "ETag"));
    cr_expect(strncmp(to, "W/\"", 3) == 0 && strlen(to) == 20, "%s: %s", polled[i].path, to);
    answer_free(&answer);
}

/* Makes a monitor and two windows, the second of which is an event. */
static struct api_service make(void)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", CONFIG, 201);
    monitors_expect(&service, OBSERVE, "{\"counts\":[50,50],\"timestamp\":1000}", 200);
    monitors_expect(&service, OBSERVE, "{\"counts\":[99,1],\"timestamp\":2000}", 200);
    return service;
}

Test(monitors_etags, tell_a_client_that_it_has_the_response)
{
    struct api_service service = make();
    for (size_t i = 0; i < COUNT(polled); i++) {
        char etag[40], listed[100];
        get_etag(&service, i, etag);
        snprintf(listed, sizeof listed, "\"x\", W/\"y\" ,%s", etag);
        const struct {
            const char *known;
            int status;
        } cases[] = {{etag, 304},      {etag + 2, 304}, {listed, 304},     {"*", 304},
                     {"W/\"0\"", 200}, {"\"0\"", 200},  {"nonsense", 200}, {"", 200}};
        for (size_t j = 0; j < 2 * COUNT(cases); j++) {
            struct answer answer = poll(&service, i, j % 2 ? "HEAD" : "GET", cases[j / 2].known);
            cr_expect_eq(answer.status, cases[j / 2].status, "%s: %s", polled[i].path,
                         cases[j / 2].known);
            cr_expect_str_eq(header_of_answer(&answer, "ETag"), etag);
            cr_expect_str_eq(answer.response.cache_control, "private, no-cache");
            cr_expect_eq(api_response_size(&answer.response) == 0, answer.status == 304);
            cr_expect_eq(answer.response.content_type == NULL, answer.status == 304);
            answer_free(&answer);
        }
    }
    monitors_end(&service);
}

Test(monitors_etags, are_the_same_of_a_coded_response)
{
    struct api_service service = make();
    char etag[40];
    get_etag(&service, 7, etag);
    const struct question coded = {
        .method = "GET", .path = "/monitors/g/m/windows", .accept_encoding = "gzip"};
    struct answer answer = ask_question(&coded, &service, "", 0);
    cr_expect_str_eq(header_of_answer(&answer, "Content-Encoding"), "gzip");
    cr_expect_str_eq(header_of_answer(&answer, "ETag"), etag);
    cr_assert(answer.response.cache_control);
    cr_expect_str_eq(answer.response.cache_control, "private, no-cache");
    answer_free(&answer);
    monitors_end(&service);
}

Test(monitors_etags, change_with_the_response)
{
    struct api_service service = make();
    char before[COUNT(polled)][40], after[40];
    for (size_t i = 0; i < COUNT(polled); i++)
        get_etag(&service, i, before[i]);
    cr_expect_str_neq(before[7], before[8], "with counts it is another");
    cr_expect_str_neq(before[7], before[9], "CSV is another");
    monitors_expect(&service, OBSERVE, "{\"counts\":[50,50],\"timestamp\":3000}", 200);
    for (size_t i = 0; i < 3; i++)
        monitors_expect(&service, OBSERVE, "{\"counts\":[50,50],\"timestamp\":4000}", 200);
    monitors_expect(&service, "PATCH /monitors/g/m", "{\"fire_after\":2}", 200);
    monitors_expect(&service, "POST /groups/g/notes", "{\"text\":\"a\"}", 201);
    for (size_t i = 0; i < COUNT(polled); i++) {
        struct answer answer = poll(&service, i, "GET", before[i]);
        cr_expect_eq(answer.status, 200, "%s", polled[i].path);
        answer_free(&answer);
        get_etag(&service, i, after);
        cr_expect_str_neq(after, before[i], "%s", polled[i].path);
    }
    monitors_end(&service);
}

/* A monitor becomes stale without any change but of the time. */
Test(monitors_etags, change_with_the_clock)
{
    struct api_service service = monitors_new(10);
    const struct timespec second = {1, 200000000};
    char before[40], after[40];
    monitors_expect(&service, "PUT /monitors/g/m?stale_after=1", CONFIG, 201);
    monitors_expect(&service, OBSERVE, "{\"counts\":[50,50]}", 200);
    get_etag(&service, 0, before);
    nanosleep(&second, NULL);
    get_etag(&service, 0, after);
    cr_expect_str_neq(after, before);
    monitors_end(&service);
}

/* The config of a monitor has the ETag of its version, which If-Match takes; problems have none. */
Test(monitors_etags, are_those_of_lists_alone)
{
    struct api_service service = make();
    size_t tagged = 0;
    struct answer config = monitors_ask(&service, "GET /monitors/g/m", NULL);
    cr_expect_str_eq(header_of_answer(&config, "ETag"), "\"1-1\"");
    cr_expect_null(config.response.cache_control);
    answer_free(&config);
    const struct monitors_request same = {.line = "GET /monitors/g/m",
                                          .headers = {{"If-None-Match", "\"1-1\""}}};
    config = monitors_send(&service, &same);
    cr_expect_eq(config.status, 200);
    answer_free(&config);
    struct answer problem = monitors_ask(&service, "GET /monitors?limit=0", NULL);
    cr_expect_eq(problem.status, 422);
    cr_expect_str_eq(header_of_answer(&problem, "ETag"), "");
    cr_expect_null(problem.response.cache_control);
    answer_free(&problem);
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        tagged += (e->flags & API_TAGGED) != 0;
    cr_expect_eq(tagged, 10);
    monitors_end(&service);
}
