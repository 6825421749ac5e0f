/* Paths, methods and types, and the headers that go with answers. */
#include "api/endpoints.h"
#include "api/formats/codecs.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *header_of(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->reply.n_headers; i++)
        if (strcmp(answer->reply.headers[i].name, name) == 0)
            return answer->reply.headers[i].value;
    return "";
}

Test(requests, deprecation_warnings_come_with_a_link)
{
    struct answer answer = ask_loss("reduce=true", "{\"input\": 1, \"target\": 1}");
    cr_expect(strstr(header_of(&answer, "Link"), "rel=\"deprecation\""));
    answer_free(&answer);
    answer = ask_loss("reduction=sum", "{\"input\": 1, \"target\": 1}");
    cr_expect_str_eq(header_of(&answer, "Link"), "");
    answer_free(&answer);
}

Test(endpoints, unknown_paths_and_methods_are_told_apart)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *allow;
    } cases[] = {
        {"GET", "/kl_div", 405, "POST"},
        {"PUT", "/kl_div", 405, "POST"},
        {"POST", "/livez", 405, "GET, HEAD"},
        {"DELETE", "/", 405, "GET, HEAD"},
        {"GET", "/nothing", 404, ""},
        {"POST", "/kl_div/", 404, ""},
        {"GET", "/livez", 200, ""},
        {"HEAD", "/livez", 200, ""},
        {"GET", "/healthz", 200, ""},
        {"GET", "/readyz", 200, ""},
        {"GET", "/", 200, ""},
        {"GET", "/metrics", 200, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = ask(cases[i].method, cases[i].path, NULL, NULL, NULL, 0);
        cr_expect_eq(answer.status, cases[i].status, "%s %s", cases[i].method, cases[i].path);
        cr_expect_str_eq(header_of(&answer, "Allow"), cases[i].allow);
        answer_free(&answer);
    }
}

Test(endpoints, refused_types_come_with_those_that_are_read)
{
    char readable[400];
    api_codec_list_readable(readable, sizeof readable);
    struct answer answer = ask("POST", "/kl_div", NULL, "text/csv", "", 0);
    cr_expect_eq(answer.status, 415);
    cr_expect_str_eq(header_of(&answer, "Accept"), readable);
    cr_expect(strstr(readable, "application/octet-stream"));
    answer_free(&answer);
}

Test(endpoints, bodies_are_judged_by_their_headers)
{
    static const char body[] = "{\"input\": 1, \"target\": 1}";
    static const struct {
        const char *content_type, *content_encoding, *accept, *body;
        size_t max_body; /* 0 is enough */
        int status;
    } cases[] = {
        {"application/json", NULL, NULL, body, 0, 200},
        {"Application/JSON; charset=utf-8", "identity", "*/*", body, 0, 200},
        {NULL, NULL, "", body, 0, 200},
        {"application/x-www-form-urlencoded", NULL, NULL, body, 0, 200},
        {"application/x-www-form-urlencoded", NULL, NULL, "input=1", 0, 415},
        {NULL, NULL, NULL, "input=1", 0, 415},
        {"text/csv", NULL, NULL, body, 0, 415},
        {"application/json", "br", NULL, body, 0, 415},
        {"application/json", NULL, "text/html, application/*;q=0.5", body, 0, 200},
        {"application/json", NULL, "text/html, */*; q=0.1", body, 0, 200},
        {"application/json", NULL, "text/html", body, 0, 406},
        {"application/json", NULL, "*/*, application/json;q=0", body, 0, 200},
        {"application/json", NULL, "application/safetensors;q=0.2, text/html", body, 0, 200},
        {"application/json", NULL, "text/json", body, 0, 406},
        {"application/json", NULL, NULL, body, sizeof body - 2, 413},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.content_type = cases[i].content_type,
                                          .content_encoding = cases[i].content_encoding,
                                          .accept = cases[i].accept};
        const struct api_service service = service_of(cases[i].max_body ? cases[i].max_body : 1000);
        struct answer answer =
            ask_question(&question, &service, cases[i].body, strlen(cases[i].body));
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        answer_free(&answer);
    }
}
