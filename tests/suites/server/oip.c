/* Byte sequences of Triton's clients for the Open Inference Protocol, sent to the real server. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

/* Requests of Triton's clients: two FP32 tensors of shape [2], whose bytes follow. */
#define TENSOR(name)                                                                               \
    "{\"name\":\"" name "\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":"                   \
    "{\"binary_data_size\":8}}"
#define INPUTS "\"inputs\":[" TENSOR("input") "," TENSOR("target") "]"
#define OUTPUTS "\"outputs\":[{\"name\":\"loss\",\"parameters\":{\"binary_data\":true}}]"

static const char python_json[] =
    "{\"id\":\"1\"," INPUTS "," OUTPUTS ",\"parameters\":{\"reduction\":\"none\"}}";

/* C++: parameters first, and binary_data_output instead of outputs. */
static const char cpp_json[] =
    "{\"id\":\"\",\"parameters\":{\"binary_data_output\":true,\"reduction\":\"none\"}," INPUTS "}";

static const char java_json[] =
    "{\"id\":\"\",\"parameters\":{\"reduction\":\"none\"}," INPUTS "," OUTPUTS "}";

static const float values[] = {-1, -2, 0.5f, 0.5f};

static const struct dialect {
    const char *name, *headers, *json;
} dialects[] = {
    {"Python", "", python_json},
    {"Python, asynchronous", "accept: */*\r\naccept-encoding: identity\r\nuser-agent: aiohttp\r\n",
     python_json},
    {"C++", "Accept: */*\r\nContent-Type: application/octet-stream\r\n", cpp_json},
    {"Java", "Content-Type: application/json\r\nUser-Agent: Apache-HttpAsyncClient/4.1.4\r\n",
     java_json},
};

/* Splits a raw answer; returns its status. */
static int split_answer(char *answer, size_t size, char **head, char **body, size_t *body_size)
{
    char *end = memmem(answer, size, "\r\n\r\n", 4);
    cr_assert(end, "%s", answer);
    *end = '\0';
    *head = answer;
    *body = end + 4;
    *body_size = size - (size_t)(*body - answer);
    return atoi(answer + strlen("HTTP/1.1 "));
}

static size_t header_number(const char *head, const char *name)
{
    const char *line = strcasestr(head, name);
    return line ? strtoul(line + strlen(name) + 1, NULL, 10) : 0;
}

static void infer_as(const struct server *server, const struct dialect *dialect, const char *path)
{
    char request[2000], answer[4000], *head, *body;
    size_t body_size, json_size = strlen(dialect->json);
    int n = snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%sinference-header-content-length: "
                     "%zu\r\ncontent-length: %zu\r\nconnection: close\r\n\r\n%s",
                     path, server->port, dialect->headers, json_size, json_size + sizeof values,
                     dialect->json);
    memcpy(request + n, values, sizeof values);
    size_t size = talk(server, request, (size_t)n + sizeof values, answer, sizeof answer, 5);
    int status = split_answer(answer, size, &head, &body, &body_size);
    cr_assert_eq(status, 200, "%s: %.*s", dialect->name, (int)body_size, body);
    size_t header_size = header_number(head, "Inference-Header-Content-Length");
    cr_expect(strcasestr(head, "content-type: application/octet-stream"), "%s", head);
    cr_assert_eq(body_size, header_size + 2 * sizeof(float), "%s", dialect->name);
    json_t *json = json_loadb(body, header_size, 0, NULL);
    cr_assert(json);
    const json_t *output = json_array_get(json_object_get(json, "outputs"), 0);
    cr_expect_str_eq(text_of(output, "name"), "loss");
    cr_expect_str_eq(text_of(output, "datatype"), "FP32");
    cr_expect_eq(json_object_get(json, "id") != NULL, dialect->json == python_json);
    float losses[2];
    memcpy(losses, body + header_size, sizeof losses);
    for (int i = 0; i < 2; i++)
        cr_expect_lt(fabs((double)losses[i] - 0.5 * (log(0.5) - (double)values[i])), 1e-7);
    json_decref(json);
}

Test(oip, speaks_as_the_clients_of_triton_do)
{
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(dialects); i++) {
        infer_as(&server, &dialects[i], "/v2/models/kl_div/infer");
        infer_as(&server, &dialects[i], "/v2/models/kl%5Fdiv/versions/1/infer");
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* POST without body and length, as for the index of models. */
Test(oip, takes_a_post_without_a_body)
{
    static const char request[] = "POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n";
    struct server server = server_start(NULL);
    char answer[2000] = "";
    talk(&server, request, strlen(request), answer, sizeof answer - 1, 5);
    cr_expect(strstr(answer, " 200 ") && strstr(answer, "READY"), "%s", answer);
    cr_expect_eq(server_stop(&server, false), 0);
}

static size_t inflate_answer(const struct fetched *f, char *to, size_t room)
{
    z_stream z = {.next_in = (unsigned char *)f->body.data,
                  .avail_in = (unsigned)f->body.size,
                  .next_out = (unsigned char *)to,
                  .avail_out = (unsigned)room};
    cr_assert_eq(inflateInit2(&z, 15 + 32), Z_OK);
    cr_expect_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
    return z.total_out;
}

Test(oip, compresses_inferences_and_nothing_else)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[2],\"datatype\":\"FP32\","
        "\"data\":[-1,-2]},{\"name\":\"target\",\"shape\":[2],\"datatype\":"
        "\"FP32\",\"data\":[0.5,0.5]}]}";
    static const struct {
        const char *accept, *coding;
    } cases[] = {{"Accept-Encoding: gzip", "gzip"},
                 {"Accept-Encoding: deflate", "deflate"},
                 {"Accept-Encoding: deflate, gzip;q=0.5", "deflate"},
                 {"Accept-Encoding: gzip;q=0", ""},
                 {"Accept-Encoding: br", ""},
                 {"Accept-Encoding: identity, gzip;q=0.5", ""}};
    struct server server = server_start(NULL);
    char value[100], inflated[2000];
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const headers[] = {cases[i].accept, NULL};
        struct fetched f = fetch(&server, "POST", "/v2/models/kl_div/infer?reduction=sum", headers,
                                 body, strlen(body));
        cr_expect_eq(f.status, 200);
        cr_expect_str_eq(header_in(&f, "Content-Encoding", value, sizeof value), cases[i].coding,
                         "%s", cases[i].accept);
        if (*cases[i].coding) {
            size_t size = inflate_answer(&f, inflated, sizeof inflated - 1);
            inflated[size] = '\0';
            cr_expect(strstr(inflated, "\"data\":[0.8068528"), "%s", inflated);
        }
        fetched_free(&f);
        f = fetch(&server, "POST", "/v2/models/kl_div/infer", headers, "{}", 2);
        cr_expect_str_eq(header_in(&f, "Content-Encoding", value, sizeof value), "");
        cr_expect_str_eq(header_in(&f, "Content-Type", value, sizeof value), "application/json");
        cr_expect_eq(json_object_size(f.json), 1);
        cr_expect(*text_of(f.json, "error"));
        fetched_free(&f);
        f = fetch(&server, "GET", "/v2/models/kl_div", headers, NULL, 0);
        cr_expect_str_eq(header_in(&f, "Content-Encoding", value, sizeof value), "");
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(oip, counts_inferences)
{
    static const char good[] =
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[],\"datatype\":\"FP32\","
        "\"data\":[-1]},{\"name\":\"target\",\"shape\":[],\"datatype\":"
        "\"FP32\",\"data\":[0.5]}]}";
    struct server server = server_start(NULL);
    for (int i = 0; i < 3; i++) {
        struct fetched f = post_json(&server, "/v2/models/kl_div/infer", i < 2 ? good : "{}");
        fetched_free(&f);
    }
    struct fetched f = fetch(&server, "GET", "/v2/models/kl_div/stats", NULL, NULL, 0);
    const json_t *stats = json_array_get(json_object_get(f.json, "model_stats"), 0);
    const json_t *durations = json_object_get(stats, "inference_stats");
    cr_expect_eq(json_integer_value(json_object_get(stats, "inference_count")), 2);
    cr_expect_eq(
        json_integer_value(json_object_get(json_object_get(durations, "success"), "count")), 2);
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(durations, "fail"), "count")),
                 1);
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(durations, "queue"), "count")),
                 2, "perf_analyzer tells the server's version by it");
    cr_expect_gt(json_integer_value(json_object_get(stats, "last_inference")), 1600000000000);
    const json_int_t quick =
        json_integer_value(json_object_get(json_object_get(durations, "fail"), "ns"));
    fetched_free(&f);
    enum { SIZE = 2 << 20 }; /* decoded for more than a millisecond before it is refused */
    char *large = malloc(SIZE + 100);
    size_t n = (size_t)sprintf(large, "{\"inputs\":[{\"name\":\"input\",\"shape\":[1],\"datatype\":"
                                      "\"FP32\",\"data\":[1");
    while (n < SIZE)
        n += (size_t)sprintf(large + n, ",1");
    sprintf(large + n, "]}]}");
    f = post_json(&server, "/v2/models/kl_div/infer", large);
    cr_expect_eq(f.status, 422, "%d", f.status);
    free(large);
    fetched_free(&f);
    f = fetch(&server, "GET", "/v2/models/kl_div/stats", NULL, NULL, 0);
    stats = json_array_get(json_object_get(f.json, "model_stats"), 0);
    durations = json_object_get(json_object_get(stats, "inference_stats"), "fail");
    cr_expect_eq(json_integer_value(json_object_get(durations, "count")), 2);
    cr_expect_gt(json_integer_value(json_object_get(durations, "ns")) - quick, 1000000);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(oip, announces_what_perf_analyzer_looks_for)
{
    static const char *const extensions[] = {
        "binary_tensor_data", "statistics", "model_configuration",
        "parameters",         "trace",      "logging"};
    struct answer answer = ask("GET", "/v2", NULL, NULL, NULL, 0);
    const json_t *list = json_object_get(answer.json, "extensions");
    cr_expect_eq(json_array_size(list), COUNT(extensions));
    for (size_t i = 0; i < COUNT(extensions); i++)
        cr_expect_str_eq(json_string_value(json_array_get(list, i)), extensions[i]);
    answer_free(&answer);
}

/* BF16 has the decimals of float32: clients hold it as float32, and some truncate that to its
 * upper half. */
Test(oip, decimals_of_bf16_are_exact_in_float32)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[3],\"datatype\":\"BF16\",\"data\":[-0.1,-2,"
        "-3.3]},{\"name\":\"target\",\"shape\":[3],\"datatype\":\"BF16\",\"data\":[0.1,0.3,0.6]}]}";
    struct answer answer =
        ask("POST", "/v2/models/kl_div/infer", "reduction=none", NULL, body, sizeof body - 1);
    const json_t *output = json_array_get(json_object_get(answer.json, "outputs"), 0);
    const json_t *data = json_object_get(output, "data");
    cr_expect_str_eq(text_of(output, "datatype"), "BF16");
    cr_expect_eq(json_array_size(data), 3);
    for (size_t i = 0; i < 3; i++) {
        float value = (float)json_number_value(json_array_get(data, i));
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        cr_expect_eq(bits & 0xffff, 0, "%.9g", (double)value);
    }
    answer_free(&answer);
}

/* Errors below /v2 have one form, for every cause. */
/* R's jsonlite makes an array of every scalar. */
Test(oip, takes_parameters_in_arrays_of_one)
{
    static const struct {
        const char *reduction;
        int status;
    } cases[] = {{"\"sum\"", 200},
                 {"[\"sum\"]", 200},
                 {"[ \"sum\" ]", 200},
                 {"[\"sum\",\"sum\"]", 422},
                 {"[]", 422}};
    static const char format[] =
        "{\"parameters\":{\"reduction\":%s},\"inputs\":["
        "{\"name\":\"input\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[-1,-1]},"
        "{\"name\":\"target\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[1,1]}]}";
    const struct api_service service = service_of(1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[500];
        snprintf(body, sizeof body, format, cases[i].reduction);
        const struct question question = {.path = "/v2/models/kl_div/infer"};
        struct answer answer = ask_question(&question, &service, body, strlen(body));
        const json_t *output = json_array_get(json_object_get(answer.json, "outputs"), 0);
        const json_t *loss = json_array_get(json_object_get(output, "data"), 0);
        cr_expect_eq(answer.status, cases[i].status, "%s: %d %s", body, answer.status,
                     text_of(answer.json, "error"));
        cr_expect(answer.status != 200 || json_number_value(loss) == 2, "%s", body);
        answer_free(&answer);
    }
}

Test(oip, errors_are_an_object_with_error_alone)
{
    static const struct {
        const char *method, *path, *header, *body;
        long status;
    } cases[] = {
        {"GET", "/v2/models/other", NULL, NULL, 404},
        {"GET", "/v2/models/kl_div/versions/2", NULL, NULL, 404},
        {"GET", "/v2/nothing", NULL, NULL, 404},
        {"GET", "/v2/models/kl_div/infer", NULL, NULL, 405},
        {"POST", "/v2/models/kl_div/infer", "Content-Encoding: br", "{}", 415},
        {"POST", "/v2/models/kl_div/infer", "Content-Encoding: gzip", "{}", 400},
        {"POST", "/v2/models/kl_div/infer", "Expect: miracles", "{}", 417},
        {"POST", "/v2/models/kl_div/infer", NULL, "", 400},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const headers[] = {cases[i].header, NULL};
        char value[100];
        struct fetched f = fetch(&server, cases[i].method, cases[i].path, headers, cases[i].body,
                                 cases[i].body ? strlen(cases[i].body) : 0);
        cr_expect_eq(f.status, cases[i].status, "%s: %ld", cases[i].path, f.status);
        cr_expect_str_eq(header_in(&f, "Content-Type", value, sizeof value), "application/json");
        cr_expect_eq(json_object_size(f.json), 1, "%s", f.body.data);
        cr_expect(*text_of(f.json, "error"), "%s", f.body.data);
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- What generic clients read */

/* Names of an array's objects, with commas between them. */
static void list_names(const json_t *array, char *to)
{
    size_t i;
    json_t *item;
    *to = '\0';
    json_array_foreach(array, i, item)
    {
        strcat(to, i ? "," : "");
        strcat(to, text_of(item, "name"));
    }
}

/* Clients of any model send each input that is listed. */
Test(oip, metadata_and_config_list_required_inputs_alone)
{
    static const char optional[] = "weight,mask,grad_output,indices,log_normalizer";
    char names[200];
    struct answer model = ask("GET", "/v2/models/kl_div", NULL, NULL, NULL, 0);
    struct answer config = ask("GET", "/v2/models/kl_div/config", NULL, NULL, NULL, 0);
    const json_t *parameters = json_object_get(model.json, "parameters");
    const json_t *strings = json_object_get(config.json, "parameters");
    list_names(json_object_get(model.json, "inputs"), names);
    cr_expect_str_eq(names, "input,target");
    list_names(json_object_get(config.json, "input"), names);
    cr_expect_str_eq(names, "input,target");
    list_names(json_object_get(model.json, "outputs"), names);
    cr_expect_str_eq(names, "loss,gradient.input,gradient.target");
    cr_expect_str_eq(text_of(parameters, "optional_inputs"), optional);
    cr_expect_str_eq(text_of(json_object_get(strings, "optional_inputs"), "string_value"),
                     optional);
    cr_expect(strstr(text_of(parameters, "request_parameters"), "non_finite,"));
    cr_expect(strstr(text_of(parameters, "request_parameters"), ",log_target,"));
    cr_expect_str_eq(text_of(json_object_get(strings, "request_parameters"), "string_value"),
                     text_of(parameters, "request_parameters"));
    answer_free(&model);
    answer_free(&config);
}

/* An inference of one row whose losses are NaN, inf and -inf, and two numbers. */
#define NON_FINITE(parameters)                                                                     \
    "{\"inputs\":[{\"name\":\"input\",\"shape\":[5],\"datatype\":\"FP64\",\"data\":"               \
    "[null,-Infinity,\"Infinity\",-1,-2]},{\"name\":\"target\",\"shape\":[5],\"datatype\":"        \
    "\"FP64\",\"data\":[1,1,1,1,1]}]" parameters "}"

static struct answer infer(const char *query, const char *body)
{
    return ask("POST", "/v2/models/kl_div/infer", query, NULL, body, strlen(body));
}

Test(oip, requests_choose_how_json_writes_nan_and_infinities)
{
    static const struct {
        const char *query, *parameters, *data;
    } cases[] = {
        {"", "", "[NaN,Infinity,-Infinity,1.0,2.0]"},
        {"", "{\"non_finite\":\"bare\"}", "[NaN,Infinity,-Infinity,1.0,2.0]"},
        {"", "{\"non_finite\":\"string\"}", "[\"NaN\",\"Infinity\",\"-Infinity\",1.0,2.0]"},
        {"", "{\"non_finite\":[\"null\"]}", "[null,null,null,1.0,2.0]"},
        {"&non_finite=null", "", "[null,null,null,1.0,2.0]"},
        {"&non_finite=null&x=%", "{\"non_finite\":\"null\"}", "[null,null,null,1.0,2.0]"},
        {"&non_finite=null", "{\"non_finite\":\"bare\"}", "twice"},
        {"&non_finite=null&non_finite=bare", "", "twice"},
        {"&non_finite=", "", "must be"},
        {"&non_finite=%", "", "must be"},
        {"", "{\"non_finite\":\"Null\"}", "must be"},
        {"", "{\"non_finite\":null}", "must be"},
        {"", "{\"non_finite\":true}", "must be"},
        {"", "{\"non_finite\":[]}", "must be"},
        {"", "{\"non_finite\":[\"null\",\"bare\"]}", "must be"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char query[100], body[600];
        snprintf(query, sizeof query, "reduction=none%s", cases[i].query);
        snprintf(body, sizeof body, NON_FINITE("%s%s"),
                 *cases[i].parameters ? ",\"parameters\":" : "", cases[i].parameters);
        struct answer answer = infer(query, body);
        const struct api_buffer *got = &answer.response.body;
        cr_expect_eq(answer.status, *cases[i].data == '[' ? 200 : 400, "%s", cases[i].parameters);
        cr_expect(memmem(got->data, got->size, cases[i].data, strlen(cases[i].data)), "%s: %.*s",
                  cases[i].parameters, (int)got->size, got->data);
        answer_free(&answer);
    }
}

Test(oip, null_is_nan_in_data_of_inferences_and_nowhere_else)
{
    static const char mask[] =
        "{\"inputs\":[{\"name\":\"mask\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[null]}]}";
    static const char loss[] = "{\"input\":[null],\"target\":[1]}";
    struct answer answer = infer(NULL, mask);
    cr_expect_eq(answer.status, 422);
    answer_free(&answer);
    answer = ask_loss(NULL, loss);
    cr_expect_eq(answer.status, 422);
    answer_free(&answer);
}

/* Triton passes over them. */
Test(oip, unknown_query_parameters_are_passed_over)
{
    static const struct {
        const char *query;
        int status;
    } cases[] = {
        {"reduction=none", 200}, {"reduction=none&token=a&reduct=sum", 200},
        {"x=%&y=%zz&%=1", 200},  {"reduction=nothing", 422},
        {"reduction=%", 400},    {"dim[]=0", 200},
    };
    char query[3000] = "x=";
    memset(query + 2, 'x', sizeof query - 3);
    struct answer answer = infer(query, NON_FINITE(""));
    cr_expect_eq(answer.status, 200);
    answer_free(&answer);
    for (size_t i = 0; i < COUNT(cases); i++) {
        answer = infer(cases[i].query, NON_FINITE(""));
        cr_expect_eq(answer.status, cases[i].status, "%s: %d", cases[i].query, answer.status);
        answer_free(&answer);
    }
    answer = ask("GET", "/v2/models/kl_div", "verbose=1", NULL, NULL, 0);
    cr_expect_eq(answer.status, 200);
    answer_free(&answer);
}
