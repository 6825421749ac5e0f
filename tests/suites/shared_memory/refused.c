/* Triton's extension for system shared memory, in this process. */
#include "tests/suites/shared_memory/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(shared_memory_refused, .init = shared_memory_begin, .fini = shared_memory_end);

Test(shared_memory_refused, regions_are_listed_until_they_are_unregistered)
{
    char key[100];
    snprintf(key, sizeof key, "\"key\":\"%s\",\"offset\":5,\"byte_size\":100}", object);
    expect(ask_path("GET", "/v2", ""), 200, "", "\"system_shared_memory\"");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "[]");
    expect(register_region("a", object, 5, 100), 200, "", "{}");
    expect(register_region("b%20%22", object + 1, 0, OBJECT_SIZE), 200, "", "{}");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", key);
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "\"name\":\"b \\\"\"");
    expect(ask_path("GET", REGION "a/status", ""), 200, "", key);
    unregister(REGION "a/unregister");
    unregister(REGION "a/unregister");
    expect(ask_path("GET", REGION "a/status", ""), 400, "region_unknown", "'a'");
    expect(ask_path("GET", REGION "b%20%22/status", ""), 200, "", "[{");
    unregister("/v2/systemsharedmemory/unregister");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "[]");
}

Test(shared_memory_refused, no_more_regions_than_the_limit)
{
    for (int i = 0; i < 4; i++) {
        char name[10];
        snprintf(name, sizeof name, "r%d", i);
        expect(register_region(name, object, 0, OBJECT_SIZE), 200, "", "{}");
    }
    expect(ask_path("POST", REGION "r9/register", "\xef\xbb\xbf{\"key\":1}"), 400,
           "region_malformed", "key");
    expect(register_region("r3", object, 0, 1), 400, "region_registered", "'r3'");
    expect(register_region("r4", object, 0, 1), 400, "too_many_regions", "4 regions");
    unregister(REGION "r0/unregister");
    expect(register_region("r4", object, 0, 1), 200, "", "{}");
}

/* Without a bound, objects that have no memory take all addresses of the process. */
Test(shared_memory_refused, no_more_bytes_of_regions_than_addresses_allow)
{
    const size_t max = (size_t)16 << 40;
    resize_object(2 * max);
    expect(register_region("more", object, 0, max + 1), 400, "too_many_regions", "#/byte_size");
    expect(register_region("a", object, 0, max - 10), 200, "", "{}");
    expect(register_region("b", object, 0, 11), 400, "too_many_regions", "17592186044406 bytes");
    expect(register_region("b", object, max, 10), 200, "", "{}");
    unregister(REGION "a/unregister");
    expect(register_region("c", object, 0, 11), 200, "", "{}");
    resize_object(OBJECT_SIZE);
}

Test(shared_memory_refused, wrong_registrations_are_refused)
{
    static const struct {
        const char *body, *code, *part;
    } cases[] = {
        {"", "json_malformed", ""},
        {"[]", "region_malformed", "#/key"},
        {"{\"key\":\"%s\"}", "region_malformed", "#/byte_size"},
        {"{\"byte_size\":1}", "region_malformed", "#/key"},
        {"{\"key\":\"%s\",\"byte_size\":-1}", "region_malformed", "#/byte_size"},
        {"{\"key\":\"%s\",\"byte_size\":1.5}", "region_malformed", "#/byte_size"},
        {"{\"key\":\"%s\",\"byte_size\":\"1\"}", "region_malformed", "#/byte_size"},
        {"{\"key\":\"%s\",\"byte_size\":1,\"offset\":-1}", "region_malformed", "#/offset"},
        {"{\"key\":\"%s\",\"byte_size\":1,\"size\":1}", "region_malformed", "#/size"},
        {"{\"key\":\"%s\",\"byte_size\":0}", "region_too_small", "at least one byte"},
        {"{\"key\":\"%s\",\"byte_size\":1048577}", "region_too_small", "1048576 bytes"},
        {"{\"key\":\"%s\",\"byte_size\":1,\"offset\":1048576}", "region_too_small", ""},
        {"{\"key\":\"%s\",\"byte_size\":9223372036854775807,\"offset\":9223372036854775807}",
         "region_too_small", ""},
        {"{\"key\":\"\",\"byte_size\":1}", "region_invalid", "not a name"},
        {"{\"key\":\"/\",\"byte_size\":1}", "region_invalid", "not a name"},
        {"{\"key\":\"//%s\",\"byte_size\":1}", "region_invalid", "not a name"},
        {"{\"key\":\"/kldiv_test_/../../etc/passwd\",\"byte_size\":1}", "region_invalid",
         "not a name"},
        {"{\"key\":\"/..\",\"byte_size\":1}", "region_invalid", "not a name"},
        {"{\"key\":\"/other\",\"byte_size\":1}", "region_invalid", "does not start with"},
        {"{\"key\":\"/kldiv_test_none\",\"byte_size\":1}", "region_invalid",
         "no shared memory object"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[300];
        const char *at = strstr(cases[i].body, "%s");
        snprintf(body, sizeof body, "%.*s%s%s", at ? (int)(at - cases[i].body) : 300, cases[i].body,
                 at ? object : "", at ? at + 2 : "");
        expect(ask_path("POST", REGION "a/register", body), 400, cases[i].code, cases[i].part);
    }
    expect(ask_path("POST", REGION "%FF%FE/register", "{}"), 400, "region_malformed", "UTF-8");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "[]");
}

Test(shared_memory_refused, registrations_are_small)
{
    static char body[40000];
    memset(body, ' ', sizeof body - 1);
    struct question question = {.path = REGION "a/register", .chunked = true};
    expect(ask_question(&question, &service, body, strlen(body)), 413, "body_too_large", "");
    question.chunked = false;
    expect(ask_question(&question, &service, body, strlen(body)), 413, "body_too_large", "");
    question.content_encoding = "gzip";
    expect(ask_question(&question, &service, body, 10), 415, "content_coding_unsupported", "");
}

/* A link or a pipe of a good name leads nowhere. */
Test(shared_memory_refused, only_regular_files_are_mapped)
{
    char path[100];
    snprintf(path, sizeof path, "/dev/shm%s_other", object);
    cr_assert_eq(symlink("/etc/passwd", path), 0);
    expect(register_region("a", path + strlen("/dev/shm"), 0, 1), 400, "region_invalid", "");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect(register_region("a", path + strlen("/dev/shm"), 0, 1), 400, "region_invalid", "");
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect(register_region("a", path + strlen("/dev/shm"), 0, 1), 400, "region_invalid", "");
    rmdir(path);
}

Test(shared_memory_refused, is_off_without_the_option)
{
    struct api_regions *regions = service.regions;
    service.regions = NULL;
    expect(ask_path("GET", "/v2", ""), 200, "", "\"logging\"]}");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "[]");
    expect(ask_path("GET", REGION "a/status", ""), 400, "region_unknown", "");
    expect(register_region("a", object, 0, 1), 400, "shared_memory_off", "--shared-memory");
    unregister("/v2/systemsharedmemory/unregister");
    service.regions = regions;
}

/* Triton's examples unregister both kinds before they begin. */
Test(shared_memory_refused, there_is_none_of_a_gpu)
{
    unregister("/v2/cudasharedmemory/unregister");
    unregister("/v2/cudasharedmemory/region/a/unregister");
    expect(ask_path("GET", "/v2/cudasharedmemory/status", ""), 200, "", "[]");
    expect(ask_path("GET", "/v2/cudasharedmemory/region/a/status", ""), 400, "region_unknown", "");
    expect(ask_path("POST", "/v2/cudasharedmemory/region/a/register", "{}"), 400,
           "shared_memory_off", "no GPU");
}

/* ---- Inferences */

static float loss_at(size_t i, size_t x_at, size_t t_at)
{
    float x, t;
    memcpy(&x, bytes + x_at + i * sizeof x, sizeof x);
    memcpy(&t, bytes + t_at + i * sizeof t, sizeof t);
    return (float)((double)t * (log((double)t) - (double)x));
}

Test(shared_memory_refused, outputs_are_written_in_place_at_any_offset)
{
    enum { N = 1003, X = 1, T = X + 4 * N + 6, LOSS = T + 4 * N + 3, REGION_AT = 4097 };
    expect(register_region("a", object, REGION_AT, OBJECT_SIZE - REGION_AT), 200, "", "{}");
    fill(N, REGION_AT + X, REGION_AT + T);
    memset(bytes + REGION_AT + LOSS, 0x55, 4 * N + 1);
    const struct location locations[] = {{"a", X, 4 * N}, {"a", T, 4 * N}, {"a", LOSS, 4 * N + 1}};
    expect(infer(N, locations, "none"), 200, "",
           "\"outputs\":[{\"name\":\"loss\",\"datatype\":\"FP32\",\"shape\":[1003]}]}");
    for (size_t i = 0; i < N; i++) {
        float got, due = loss_at(i, REGION_AT + X, REGION_AT + T);
        memcpy(&got, bytes + REGION_AT + LOSS + 4 * i, sizeof got);
        cr_assert(fabsf(got - due) <= 1e-6F * fabsf(due) + 1e-7F, "%zu: %g, not %g", i, (double)got,
                  (double)due);
    }
    cr_expect_eq(bytes[REGION_AT + LOSS + 4 * N], 0x55, "beyond the output nothing is written");
}

Test(shared_memory_refused, wrong_places_are_refused)
{
    static const struct {
        struct location locations[3];
        const char *code, *part;
    } cases[] = {
        {{{"b", 0, 40}, {"a", 40, 40}}, "region_unknown", "#/inputs/0/parameters/shared_memory_r"},
        {{{"a", 0, 40}, {"a", 40, 36}}, "inference_malformed", "#/inputs/1/parameters/shared_"},
        {{{"a", 0, 44}, {"a", 40, 40}}, "inference_malformed", "shared_memory_byte_size is 44"},
        {{{"a", 0, 40}, {"a", OBJECT_SIZE - 39, 40}}, "region_too_small", "#/inputs/1/"},
        {{{"a", 0, 40}, {"a", OBJECT_SIZE + 1, 40}}, "region_too_small", "shared_memory_offset"},
        {{{"a", 0, 40}, {"a", SIZE_MAX / 4, 40}}, "region_too_small", "shared_memory_offset"},
        {{{"a", 0, 40}, {"a", 40, 40}, {"b", 80, 40}}, "region_unknown", "#/outputs/0/parameters"},
        {{{"a", 0, 40}, {"a", 40, 40}, {"a", 80, 39}}, "region_too_small", "#/outputs/0/param"},
        {{{"a", 0, 40}, {"a", 40, 40}, {"a", 79, 40}}, "region_invalid", "over input 1"},
        {{{"a", 40, 40}, {"a", 80, 40}, {"a", 4, 40}}, "region_invalid", "over input 0"},
    };
    register_whole();
    for (size_t i = 0; i < COUNT(cases); i++)
        expect(infer(10, cases[i].locations, "none"), 400, cases[i].code, cases[i].part);
}

Test(shared_memory_refused, wrong_parameters_are_refused)
{
    static const struct {
        const char *input, *code, *part;
    } cases[] = {
        {"\"shared_memory_region\":\"a\"", "inference_malformed", "shared_memory_byte_size"},
        {"\"shared_memory_byte_size\":4", "inference_malformed", "shared_memory_region"},
        {"\"shared_memory_offset\":4", "inference_malformed", "shared_memory_region is missing"},
        {"\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":4,\"shared_memory_ofset\":4",
         "inference_malformed", "did you mean 'shared_memory_offset'"},
        {"\"shared_memory_x\":4", "inference_malformed", "no parameter 'shared_memory_x'"},
        {"\"shared_memory_region\":1,\"shared_memory_byte_size\":4", "inference_malformed", ""},
        {"\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":-4", "inference_malformed",
         ""},
        {"\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":4,\"shared_memory_offset\":-1",
         "inference_malformed", "shared_memory_offset"},
        {"\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":4,\"binary_data_size\":4",
         "inference_malformed", "binary_data_size"},
        {"\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":4},\"data\":[1],\"name\":{",
         "json_malformed", ""},
    };
    register_whole();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[500];
        snprintf(body, sizeof body,
                 "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1],"
                 "\"parameters\":{%s}}]}",
                 cases[i].input);
        expect(ask_path("POST", INFER, body), 400, cases[i].code, cases[i].part);
    }
    expect(ask_path("POST", INFER,
                    "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1],"
                    "\"data\":[1],\"parameters\":{\"shared_memory_region\":\"a\","
                    "\"shared_memory_byte_size\":4}}]}"),
           400, "inference_malformed", "#/inputs/0/data");
}

/* An output that is written is a change: it wants the scope, and a page's own origin. */
Test(shared_memory_refused, outputs_are_written_for_those_who_may_write)
{
    static const struct {
        const char *token, *origin;
        int status_in, status_out;
    } cases[] = {{"reader-0123456789", NULL, 200, 403},
                 {"writer-0123456789", NULL, 200, 200},
                 {"writer-0123456789", "http://evil.example", 200, 403},
                 {"writer-0123456789", "http://localhost", 200, 200}};
    static const char tokens[] = "r read reader-0123456789\nw read,write writer-0123456789\n";
    const struct location locations[] = {{"a", 0, 40}, {"a", 100, 40}, {"a", 200, 40}};
    const struct location answered[] = {locations[0], locations[1], {NULL}};
    struct api_parse_error mistake;
    fill(10, 0, 100);
    register_whole();
    service.tokens = api_tokens_new();
    cr_assert(api_tokens_read(service.tokens, tokens, strlen(tokens), &mistake));
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[2000], authorization[60];
        snprintf(authorization, sizeof authorization, "Bearer %s", cases[i].token);
        const struct question question = {
            .path = INFER,
            .others = {{"Authorization", authorization},
                       {"Host", "localhost"},
                       {cases[i].origin ? "Origin" : NULL, cases[i].origin}}};
        write_request(body, sizeof body, 10, answered, "none");
        struct answer answer = ask_question(&question, &service, body, strlen(body));
        cr_expect_eq(answer.status, cases[i].status_in, "%zu: %d", i, answer.status);
        answer_free(&answer);
        write_request(body, sizeof body, 10, locations, "none");
        answer = ask_question(&question, &service, body, strlen(body));
        cr_expect_eq(answer.status, cases[i].status_out, "%zu: %d", i, answer.status);
        answer_free(&answer);
    }
    api_tokens_free(service.tokens);
    service.tokens = NULL;
}

Test(shared_memory_refused, an_output_that_is_named_twice_goes_where_it_is_named_last)
{
    const struct location locations[] = {{"a", 0, 40}, {"a", 100, 40}, {"a", 200, 40}};
    char body[2000];
    fill(10, 0, 100);
    register_whole();
    write_request(body, sizeof body, 10, locations, "none");
    strcpy(strrchr(body, ']'), ",{\"name\":\"loss\"}]}");
    expect(ask_path("POST", INFER, body), 200, "", "\"data\":[");
}

/* Answers in other formats do not tell of shared memory. */
Test(shared_memory_refused, outputs_need_an_inference_answer)
{
    enum { N = 10 };
    const struct location locations[] = {{"a", 0, 4 * N}, {"a", 100, 4 * N}, {"a", 200, 4 * N}};
    char body[2000], size[20];
    register_whole();
    fill(N, 0, 100);
    write_request(body, sizeof body, N, locations, "none");
    snprintf(size, sizeof size, "%zu", strlen(body));
    struct question question = {.content_type = "application/octet-stream",
                                .inference_header_length = size};
    expect(ask_question(&question, &service, body, strlen(body)), 406, "not_acceptable",
           "shared memory");
    question.accept = "application/octet-stream";
    expect(ask_question(&question, &service, body, strlen(body)), 200, "", "\"shape\":[10]");
}
