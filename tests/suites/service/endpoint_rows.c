/* An endpoint for tests in one file and two rows: a row of the table suffices for a resource. */
#include "api/endpoints.h"
#include "api/request/response.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int counted; /* status of the response */
static int dropped; /* states */

/* Handles PUT /things/{group}/{name} of text/csv, with If-Match. */
static bool check_put(struct api_exchange *x)
{
    const char *type = api_request_header(&x->request, "content-type");
    const char *match = api_request_header(&x->request, "If-Match");
    if (!type || strcmp(type, "text/csv") != 0)
        return api_fail(&x->problem, "media_type_unsupported", "things are text/csv");
    return !match || strcmp(match, "\"1\"") == 0 ||
           api_fail(&x->problem, "precondition_failed", "there is another revision");
}

static bool put(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    response->status = 201;
    response->content_type = "text/plain";
    for (size_t i = 0; i < x->captures.n; i++)
        api_append_format(&response->body, "<%s>", x->captures.value[i]);
    api_append(&response->body, x->request.body, x->request.body_size);
    api_response_header(response, "ETag", "\"1\"");
    return true;
}

static void count_put(const struct api_exchange *x) { counted = x->response.status; }

static void drop_put(struct api_exchange *x) { dropped += *(char *)x->state == 0; }

static bool delete (struct api_exchange *x)
{
    x->response.status = 204;
    return true;
}

/* Responds to POST /headers/{n} with n header fields of its own. */
static bool add_headers(struct api_exchange *x)
{
    for (int n = atoi(x->captures.value[0]); n > 0; n--)
        api_response_header(&x->response, "X-Own", "1");
    x->response.status = 204;
    return true;
}

static const struct api_steps put_steps = {
    .state = 1, .check = check_put, .write = put, .count = count_put, .drop = drop_put};
static const struct api_steps delete_steps = {.write = delete},
                              header_steps = {.write = add_headers};
static const struct api_endpoint rows[] = {
    {"PUT", "/things/{group}/{name}", "A thing", API_HEAVY | API_WRITES, &put_steps},
    {"DELETE", "/things/{group}/{name}[/now]", "No thing", API_WRITES, &delete_steps},
    {"POST", "/headers/{n}", "Header fields", 0, &header_steps},
    {0},
};

static struct answer ask_rows(const struct question *question, const char *body)
{
    struct api_service service = service_of(1 << 20);
    service.endpoints = rows;
    service.cors_origin = "https://friend.example";
    return ask_question(question, &service, body, strlen(body));
}

Test(endpoint_rows, carry_captures_headers_statuses_and_flags)
{
    static const struct {
        struct question question;
        int status;
        const char *content;
    } cases[] = {
        {{.method = "PUT", .path = "/things/a/b", .content_type = "text/csv"}, 201, "<a><b>1,2"},
        {{.method = "PUT", .path = "/things/a%2Fb/%C3%A9+%41", .content_type = "text/csv"},
         201,
         "<a/b><\u00e9+A>1,2"},
        {{.method = "PUT", .path = "/thin%67s/100%/x", .content_type = "text/csv"},
         201,
         "<100%><x>1,2"},
        {{.method = "PUT",
          .path = "/things/a/b",
          .content_type = "text/csv",
          .others = {{"If-Match", "\"1\""}}},
         201,
         "<a><b>1,2"},
        {{.method = "PUT",
          .path = "/things/a/b",
          .content_type = "text/csv",
          .others = {{"If-Match", "\"2\""}}},
         412,
         NULL},
        {{.method = "PUT", .path = "/things/a/b", .content_type = "text/html"}, 415, NULL},
        {{.method = "PUT", .path = "/things/a/", .content_type = "text/csv"}, 404, NULL},
        {{.method = "PUT", .path = "/things/a", .content_type = "text/csv"}, 404, NULL},
        {{.method = "PUT", .path = "/things/a/b/c", .content_type = "text/csv"}, 404, NULL},
        {{.method = "PUT", .path = "/things%2Fa/b", .content_type = "text/csv"}, 404, NULL},
        {{.method = "DELETE", .path = "/things/a/b"}, 204, ""},
        {{.method = "DELETE", .path = "/things/a/b/now"}, 204, ""},
        {{.method = "GET", .path = "/things/a/b"}, 405, NULL},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Host", "[::1]:80"}, {"Sec-Fetch-Site", "same-origin"}}},
         204,
         ""},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Host", "[::1]:80"}, {"Sec-Fetch-Site", "none"}}},
         204,
         ""},
        {{.method = "DELETE", .path = "/things/a/b", .others = {{"Sec-Fetch-Site", "cross-site"}}},
         403,
         NULL},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://friend.example"}}},
         204,
         ""},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://other.example"}}},
         403,
         NULL},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Origin", "http://LocalHost:8080"}, {"Host", "localhost:8080"}}},
         204,
         ""},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Origin", "http://here.example:8080"}, {"Host", "here.example:8080"}}},
         421,
         NULL},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Origin", "https://friend.example"}, {"Host", "here.example"}}},
         204,
         ""},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Origin", "http://other.example"}, {"Host", "here.example"}}},
         403,
         NULL},
        {{.method = "DELETE",
          .path = "/things/a/b",
          .others = {{"Origin", "null"}, {"Host", "here.example"}}},
         403,
         NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        counted = dropped = 0;
        struct answer answer = ask_rows(&cases[i].question, "1,2");
        bool is_made = strcmp(cases[i].question.method, "PUT") == 0 && answer.status == 201;
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        cr_expect_eq(counted, is_made ? answer.status : 0, "case %zu", i);
        cr_expect_eq(dropped, is_made, "case %zu", i);
        cr_expect_eq(answer.handed_over, answer.status == 201,
                     "heavy rows are never handled inline");
        if (cases[i].content && *cases[i].content)
            cr_expect(answer.response.body.size == strlen(cases[i].content) &&
                          memcmp(answer.response.body.data, cases[i].content,
                                 answer.response.body.size) == 0,
                      "%.*s", (int)answer.response.body.size, answer.response.body.data);
        else if (cases[i].content)
            cr_expect_eq(answer.response.body.size, 0);
        if (answer.status == 201)
            cr_expect_str_eq(header_of_answer(&answer, "ETag"), "\"1\"");
        if (answer.status == 405)
            cr_expect_str_eq(header_of_answer(&answer, "Allow"), "PUT, DELETE");
        answer_free(&answer);
    }
}

Test(endpoint_rows, preflights_list_their_methods)
{
    const struct question question = {.method = "OPTIONS", .path = "/things/a/b"};
    struct answer answer = ask_rows(&question, "");
    cr_expect_eq(answer.status, 204);
    cr_expect_str_eq(header_of_answer(&answer, "Access-Control-Allow-Methods"), "PUT, DELETE");
    const char *allowed = header_of_answer(&answer, "Access-Control-Allow-Headers");
    cr_expect(strstr(allowed, "If-Match") && strstr(allowed, "If-None-Match"), "%s", allowed);
    answer_free(&answer);
}

/* Captures that exceed the limit are cut: their endpoint says what is wrong with such a name. */
Test(endpoint_rows, long_captures_are_cut)
{
    char path[1000] = "/things/";
    memset(path + 8, 'a', 600);
    strcpy(path + 608, "/b");
    const struct question question = {.method = "DELETE", .path = path};
    struct answer answer = ask_rows(&question, "");
    cr_expect_eq(answer.status, 204);
    answer_free(&answer);
}

/* A response has all of its header fields, or is another one. */
Test(endpoint_rows, no_header_field_is_left_out)
{
    int refused = 0;
    for (int n = 0; n <= 40; n++) {
        char path[20];
        snprintf(path, sizeof path, "/headers/%d", n);
        struct answer answer = ask_rows(&(struct question){.method = "POST", .path = path}, "");
        int own = 0;
        for (size_t i = 0; i < answer.response.n_headers; i++)
            own += strcmp(answer.response.headers[i].name, "X-Own") == 0;
        bool is_whole = answer.response.status == 204 && own == n &&
                        *header_of_answer(&answer, "X-Content-Type-Options") &&
                        *header_of_answer(&answer, "Access-Control-Expose-Headers");
        bool is_refused = answer.response.status == 500 && own == 0 &&
                          strcmp(answer.response.code, "internal_error") == 0;
        cr_expect(n <= 8 ? is_whole : is_whole || is_refused, "%d: status %d, %d of them", n,
                  answer.response.status, own);
        refused += is_refused;
        answer_free(&answer);
    }
    cr_expect_gt(refused, 0);
}
