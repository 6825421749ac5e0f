/* Paths, methods, media types, and the headers of answers. */
#include "api/endpoints.h"
#include "api/loss/codecs.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(endpoints, deprecation_warnings_come_with_a_link)
{
    struct answer answer = ask_loss("reduce=true", "{\"input\": 1, \"target\": 1}");
    cr_expect(strstr(header_of_answer(&answer, "Link"), "rel=\"deprecation\""));
    answer_free(&answer);
    answer = ask_loss("reduction=sum", "{\"input\": 1, \"target\": 1}");
    cr_expect_str_eq(header_of_answer(&answer, "Link"), "");
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
        {"GET", "/monitors/g/observations", 405, "POST"},
        {"PUT", "/monitors/g/observations", 405, "POST"},
        {"PATCH", "/monitors/g/%6fbservations", 405, "POST"},
        {"DELETE", "/monitors/g/observations", 405, "POST"},
        {"POST", "/livez", 405, "GET, HEAD"},
        {"DELETE", "/", 405, "GET, HEAD"},
        {"GET", "/nothing", 404, ""},
        {"POST", "/kl_div//", 404, ""},
        {"GET", "//", 404, ""},
        {"POST", "/kl_div%2F", 404, ""},
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
        cr_expect_str_eq(header_of_answer(&answer, "Allow"), cases[i].allow);
        answer_free(&answer);
    }
}

/* Writes an endpoint's path without its part in brackets, and `x` for each capture. */
static void sample_path(const struct api_endpoint *e, char *to)
{
    for (const char *p = e->path; *p; p++)
        if (*p == '[' || *p == '{') {
            *to = 'x';
            to += *p == '{';
            p = strchr(p, *p == '[' ? ']' : '}');
        } else {
            *to++ = *p;
        }
    *to = '\0';
}

/* Proxies keep outsiders from these paths as they stand, which one encoded character must not get around. */
Test(endpoints, probes_have_no_encoded_character)
{
    char path[100], encoded[110];
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        sample_path(e, path);
        for (size_t i = 1; e->flags & API_PROBE && path[i]; i++) {
            snprintf(encoded, sizeof encoded, "%.*s%%%02x%s", (int)i, path, path[i], path + i + 1);
            struct answer answer = ask(e->method, encoded, NULL, NULL, NULL, 0);
            cr_expect_eq(answer.status, 404, "%s: %d", encoded, answer.status);
            answer_free(&answer);
        }
    }
}

/* Answers are those of the path without the slash: a redirection would lose the body of a POST. Pages have one address each,
 * and so have probes, which proxies keep from outsiders, and requests that write: a script's empty name would be another
 * path. */
Test(endpoints, a_slash_at_the_end_of_a_path_changes_nothing)
{
    static const char body[] = "{\"input\": [-1], \"target\": [1]}";
    char path[100];
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        sample_path(e, path);
        if (e->flags & API_PUBLIC)
            continue;
        struct answer plain = ask(e->method, path, NULL, NULL, body, strlen(body));
        strcat(path, "/");
        struct answer slash = ask(e->method, path, NULL, NULL, body, strlen(body));
        bool has_none = e->flags & (API_PROBE | API_WRITES);
        bool is_unknown = slash.status == 404 || slash.status == 405;
        cr_expect(has_none ? is_unknown : slash.status == plain.status, "%s %s: %d", e->method,
                  path, slash.status);
        cr_expect(has_none || slash.response.endpoint == plain.response.endpoint, "%s", path);
        cr_expect(has_none || slash.response.body.size == plain.response.body.size, "%s", path);
        answer_free(&plain);
        answer_free(&slash);
    }
}

Test(endpoints, refused_types_come_with_those_that_are_read)
{
    char readable[400];
    api_codec_list_readable(readable, sizeof readable);
    struct answer answer = ask("POST", "/kl_div", NULL, "text/csv", "", 0);
    cr_expect_eq(answer.status, 415);
    cr_expect_str_eq(header_of_answer(&answer, "Accept"), readable);
    cr_expect(strstr(readable, "application/octet-stream"));
    answer_free(&answer);
}

Test(endpoints, bodies_are_judged_by_their_headers)
{
    static const char body[] = "{\"input\": 1, \"target\": 1}";
    static const struct {
        const char *content_type, *content_encoding, *accept, *body;
        size_t max_body; /* 0 is the default */
        int status;
    } cases[] = {
        {"application/json", NULL, NULL, body, 0, 200},
        {"Application/JSON; charset=utf-8", "identity", "*/*", body, 0, 200},
        {NULL, NULL, "", body, 0, 200},
        {"application/x-www-form-urlencoded", NULL, NULL, body, 0, 200},
        {"application/x-www-form-urlencoded", NULL, NULL, "input=1", 0, 415},
        {NULL, NULL, NULL, "input=1", 0, 415},
        {"text/csv", NULL, NULL, body, 0, 415},
        {"text/plain;charset=UTF-8", NULL, NULL, body, 0, 200},
        {"text/plain", NULL, NULL, "input=1", 0, 415},
        {"application/octet-stream", NULL, NULL, body, 0, 200},
        {"application/octet-stream", NULL, NULL, "{\"inputs\": []}", 0, 422},
        {"application/json", NULL, "application/x-npz", body, 0, 200},
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

/* Bodies of another format than the Content-Type says. */
Test(endpoints, bodies_that_look_like_another_format_are_told)
{
    static const struct {
        const char *content_type, *body;
        size_t size;
        const char *says;
    } cases[] = {
        {NULL, "\x93NUMPY....", 10, "numpy.savez"},
        {"application/octet-stream", "\x93NUMPY....", 10, "numpy.savez"},
        {"text/plain", "PK\5\6", 4, "application/x-npz"},
        {NULL, "1,2,3", 5, "application/json"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer =
            ask("POST", "/kl_div", NULL, cases[i].content_type, cases[i].body, cases[i].size);
        cr_expect_eq(answer.status, 415, "case %zu: %d", i, answer.status);
        cr_expect(strstr(text_of(answer.json, "detail"), cases[i].says), "case %zu: %s", i,
                  text_of(answer.json, "detail"));
        cr_expect(strstr(header_of_answer(&answer, "Accept"), "application/x-npz"), "case %zu", i);
        answer_free(&answer);
    }
}

/* The type asked for does not matter to the body's. */
Test(endpoints, bodies_of_any_bytes_are_recognized_whatever_is_accepted)
{
    static const char body[] = "{\"input\": [-1], \"target\": [1]}";
    static const char *const accept[] = {NULL, "application/octet-stream", "application/x-npy"};
    for (size_t i = 0; i < COUNT(accept); i++) {
        struct api_service service = service_of(1000);
        struct question question = {.content_type = "application/octet-stream",
                                    .accept = accept[i]};
        struct answer answer = ask_question(&question, &service, body, strlen(body));
        cr_expect_eq(answer.status, 200, "%zu: %d", i, answer.status);
        answer_free(&answer);
        answer = ask_question(&question, &service, "\x93NUMPY....", 10);
        cr_expect_eq(answer.status, 415, "%zu: %d", i, answer.status);
        answer_free(&answer);
    }
}

#define SAFETENSORS "{\"input\":{\"dtype\":\"%s\",\"shape\":[0],\"data_offsets\":[0,0]}}"
#define INFERENCE                                                                                  \
    "{\"inputs\":[{\"name\":\"input\",\"shape\":[1],\"datatype\":\"%s\",\"data\":[1]}]}"

/* PyTorch's words for dtypes that the loss is not defined for, in every format that has them. */
Test(endpoints, tensors_of_integers_and_complex_numbers_are_refused_in_pytorchs_words)
{
    static const char integral[] = "kl_div: Integral inputs not supported.";
    static const char complex_[] = "kl_div: Complex inputs not supported.";
    static const struct {
        const char *content_type, *format, *dtype, *says;
    } cases[] = {
        {"application/vnd.safetensors", SAFETENSORS, "I64", integral},
        {"application/vnd.safetensors", SAFETENSORS, "U8", integral},
        {"application/vnd.safetensors", SAFETENSORS, "BOOL", integral},
        {"application/vnd.safetensors", SAFETENSORS, "C64", complex_},
        {"application/vnd.safetensors", SAFETENSORS, "F8_E4M3", NULL},
        {"application/octet-stream", INFERENCE, "INT32", integral},
        {"application/octet-stream", INFERENCE, "UINT16", integral},
        {"application/octet-stream", INFERENCE, "BOOL", integral},
        {"application/octet-stream", INFERENCE, "BYTES", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[300] = "";
        snprintf(body + 8, sizeof body - 8, cases[i].format, cases[i].dtype);
        size_t size = strlen(body + 8);
        size_t prefix = strcmp(cases[i].format, SAFETENSORS) == 0 ? 8 : 0;
        memcpy(body, &(uint64_t){size}, 8);
        struct answer answer =
            ask("POST", "/kl_div", NULL, cases[i].content_type, body + 8 - prefix, size + prefix);
        const char *detail = text_of(answer.json, "detail");
        cr_expect_str_eq(text_of(answer.json, "code"), "dtype_unsupported", "%s", detail);
        cr_expect(cases[i].says ? strstr(detail, cases[i].says) != NULL : !strstr(detail, "kl_div"),
                  "%s: %s", cases[i].dtype, detail);
        answer_free(&answer);
    }
}

/* In each format that a loss is answered in. */
Test(endpoints, a_negative_divergence_is_told_of)
{
    static const char probs[] = "{\"input\": [[0.7, 0.3]], \"target\": [[0.4, 0.6]]}",
                      fine[] = "{\"input\": [[-0.7, -0.7]], \"target\": [[0.4, 0.6]]}";
    static const struct {
        const char *query, *accept, *body;
        bool is_told;
    } cases[] = {
        {"reduction=sum", NULL, probs, true},
        {"reduction=sum", "application/vnd.safetensors", probs, true},
        {"reduction=sum", "application/x-npy", probs, true},
        {"reduction=sum", "application/x-npz", probs, true},
        {"dim=-1&reduction=none", NULL, probs, true},
        {"reduction=sum&target_space=logit", NULL, probs, true},
        {"reduction=none", NULL, probs, false},
        {"reduction=sum&partial=true", NULL, probs, false},
        {"input_space=prob&reduction=sum", NULL, probs, false},
        {"divergence=reverse&reduction=sum", NULL, probs, false},
        {"reduction=sum", NULL, fine, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.query = cases[i].query, .accept = cases[i].accept};
        struct answer answer = ask_question(&question, NULL, cases[i].body, strlen(cases[i].body));
        cr_assert_eq(answer.status, 200, "case %zu: %d", i, answer.status);
        bool is_told =
            memmem(answer.response.body.data, answer.response.body.size, "loss_negative", 13) ||
            strstr(header_of_answer(&answer, "KL-Div-Warnings"), "loss_negative");
        cr_expect_eq(is_told, cases[i].is_told, "case %zu", i);
        cr_expect_eq(*header_of_answer(&answer, "Link"), '\0', "case %zu: no deprecation", i);
        answer_free(&answer);
    }
}

Test(endpoints, a_gradient_has_no_room_in_npy)
{
    static const char body[] = "{\"input\": 1, \"target\": 1}";
    const struct question question = {.query = "gradient=input", .accept = "application/x-npy"};
    struct answer answer = ask_question(&question, NULL, body, strlen(body));
    cr_expect_eq(answer.status, 406);
    cr_expect(strstr(text_of(answer.json, "detail"), "application/x-npz"), "%s",
              text_of(answer.json, "detail"));
    answer_free(&answer);
}

/* JSON of at least 1 KiB is compressed if the client accepts it; metadata of the inference
 * protocol is not. */
Test(endpoints, large_json_answers_are_compressed)
{
    static const struct {
        const char *method, *path, *accept_encoding;
        size_t elements;
        const char *coding, *vary;
    } cases[] = {
        {"POST", "/kl_div", "gzip", 500, "gzip", "Accept-Encoding"},
        {"POST", "/kl_div", "deflate", 500, "deflate", "Accept-Encoding"},
        {"POST", "/kl_div", "br", 500, "", "Accept-Encoding"},
        {"POST", "/kl_div", NULL, 500, "", "Accept-Encoding"},
        {"POST", "/kl_div", "gzip", 10, "", ""},
        {"GET", "/openapi.json", "gzip, br", 0, "gzip", "Accept-Encoding"},
        {"GET", "/livez", "gzip", 0, "", ""},
        {"GET", "/v2/models/kl_div/config", "gzip", 0, "", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        for (int tensor = 0; tensor < 2 && cases[i].elements; tensor++) {
            api_append_text(&body, tensor ? "],\"target\":[1" : "{\"input\":[1");
            for (size_t j = 1; j < cases[i].elements; j++)
                api_append_text(&body, ",1");
        }
        api_append_text(&body, cases[i].elements ? "]}" : "");
        const struct question question = {.method = cases[i].method,
                                          .path = cases[i].path,
                                          .query = "reduction=none",
                                          .accept_encoding = cases[i].accept_encoding};
        struct answer answer = ask_question(&question, NULL, body.data, body.size);
        cr_expect_eq(answer.status, 200);
        cr_expect_str_eq(header_of_answer(&answer, "Content-Encoding"), cases[i].coding, "case %zu",
                         i);
        cr_expect_str_eq(header_of_answer(&answer, "Vary"), cases[i].vary, "case %zu", i);
        cr_expect_eq(answer.json == NULL, *cases[i].coding != 0);
        answer_free(&answer);
        api_buffer_free(&body);
    }
}

Test(endpoints, what_is_not_there_is_told_with_what_is)
{
    static const struct {
        const char *path, *says;
    } cases[] = {
        {"/v2/models/nope", "unknown model 'nope': this server has kl_div"},
        {"/v2/models/nope/infer", "unknown model 'nope': this server has kl_div"},
        {"/v2/models/kl_div2/config", "unknown model 'kl_div2': this server has kl_div"},
        {"/v2/models/kl_div/versions/2/infer",
         "unknown version '2' of model kl_div: this server has 1"},
        {"/v2/models/kl_div/nope", "the model has nothing at '/v2/models/kl_div/nope'"},
        {"/v2/nope", "there is nothing at '/v2/nope'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = ask("GET", cases[i].path, NULL, NULL, NULL, 0);
        cr_expect_eq(answer.status, 404);
        cr_expect_str_eq(text_of(answer.json, "error"), cases[i].says);
        answer_free(&answer);
    }
}
