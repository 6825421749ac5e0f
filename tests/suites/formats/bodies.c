/* Valid and malformed bodies of every format: the table of tests/tools/golden/bodies.py, and its
 * bodies truncated or changed. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char table[] = "tests/tools/golden/bodies.jsonl";

/* Limit in bytes, which some bodies of the table exceed. */
enum { MAX_BODY = 1 << 20 };

struct row {
    json_t *json;
    const char *format, *name;
    char *body;
    size_t size;
};

/* Calls `check` for each row. */
static void for_each_row(void (*check)(const struct row *row))
{
    size_t size, rows = 0;
    char *text = read_file(table, &size);
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        struct row row = {.json = json_loadb(line, (size_t)(end - line), 0, NULL)};
        cr_assert(row.json, "line %zu of %s", rows + 1, table);
        row.format = text_of(row.json, "format");
        row.name = text_of(row.json, "name");
        row.body = decode_base64(text_of(row.json, "body"), &row.size);
        check(&row);
        free(row.body);
        json_decref(row.json);
        rows++;
        line = end + (*end == '\n');
    }
    free(text);
    cr_assert_gt(rows, 200);
}

static struct answer ask_row(const struct row *row, const char *body, size_t size)
{
    const struct api_service service = service_of(MAX_BODY);
    struct question question = {.path = text_of(row->json, "path"),
                                .query = text_of(row->json, "query"),
                                .content_type = text_of(row->json, "content_type"),
                                .content_encoding = text_of(row->json, "coding"),
                                .inference_header_length =
                                    json_string_value(json_object_get(row->json, "json_size"))};
    return ask_question(&question, &service, body, size);
}

/* Loss in an answer of /kl_div or of /v2. */
static double loss_of(const json_t *answer)
{
    const json_t *output = json_array_get(json_object_get(answer, "outputs"), 0);
    return number_of(output ? json_array_get(json_object_get(output, "data"), 0)
                            : json_object_get(answer, "loss"));
}

static const char *dtype_of(const json_t *answer)
{
    const json_t *output = json_array_get(json_object_get(answer, "outputs"), 0);
    return output ? text_of(output, "datatype") : text_of(answer, "dtype");
}

static void check_row(const struct row *row)
{
    struct answer answer = ask_row(row, row->body, row->size);
    const char *error = text_of(answer.json, "error"), *detail = text_of(answer.json, "detail");
    int status = (int)json_integer_value(json_object_get(row->json, "status"));
    detail = *error ? error : detail;
    cr_expect_eq(answer.status, status, "%s, %s: %d %s", row->format, row->name, answer.status,
                 detail);
    if (answer.status == 200 && status == 200) {
        double loss = loss_of(answer.json);
        double exact = json_number_value(json_object_get(row->json, "loss"));
        bool float32 = strstr(dtype_of(answer.json), "32") != NULL;
        cr_expect_leq(fabs(loss - exact), (float32 ? 1e-6 : 1e-14) * fabs(exact),
                      "%s, %s: %.17g is not %.17g", row->format, row->name, loss, exact);
    } else if (answer.status != 200) {
        cr_expect_str_eq(answer.response.code, text_of(row->json, "code"), "%s, %s", row->format,
                         row->name);
        cr_expect(strstr(detail, text_of(row->json, "detail")), "%s, %s: %s", row->format,
                  row->name, detail);
    }
    answer_free(&answer);
    cr_expect_eq(bytes_held(), 0, "%s, %s", row->format, row->name);
}

Test(bodies, each_is_answered_as_the_table_says) { for_each_row(check_row); }

/* A real server, whose system calls and files are bounded. */
static struct server server;

static void fetch_row(const struct row *row)
{
    char type[200], coding[80], json_size[80], target[300];
    const char *query = text_of(row->json, "query"), *headers[] = {type, coding, json_size, NULL};
    snprintf(type, sizeof type, "Content-Type: %s", text_of(row->json, "content_type"));
    snprintf(coding, sizeof coding, "Content-Encoding: %s", text_of(row->json, "coding"));
    snprintf(json_size, sizeof json_size, "Inference-Header-Content-Length: %s",
             text_of(row->json, "json_size"));
    snprintf(target, sizeof target, "%s%s%s", text_of(row->json, "path"), *query ? "?" : "", query);
    struct fetched f = fetch(&server, "POST", target, headers, row->body, row->size);
    cr_expect_eq(f.status, json_integer_value(json_object_get(row->json, "status")),
                 "%s, %s: %ld %s", row->format, row->name, f.status, f.body.data);
    fetched_free(&f);
}

Test(bodies, each_has_its_status_from_a_server)
{
    static const char *const flags[] = {"--max-body", "1M", NULL};
    server = server_start(flags);
    for_each_row(fetch_row);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* An archive, or a safetensors file, is recognized by its first bytes. */
static bool is_recognized(const struct row *row)
{
    return !*text_of(row->json, "coding") &&
           ((row->size > 4 && memcmp(row->body, "PK\3\4", 4) == 0) ||
            (row->size > 10 && memcmp(row->body + 5, "\0\0\0{\"", 5) == 0));
}

/* Sends the body with types that clients make up: none, curl's, and that of any bytes. */
static void omit_type(const struct row *row)
{
    static const char *const types[] = {NULL, "application/x-www-form-urlencoded", "text/plain",
                                        "application/octet-stream"};
    const struct api_service service = service_of(MAX_BODY);
    for (size_t i = 0; i < COUNT(types) && is_recognized(row); i++) {
        struct question question = {.query = text_of(row->json, "query"), .content_type = types[i]};
        struct answer typed = ask_row(row, row->body, row->size);
        struct answer answer = ask_question(&question, &service, row->body, row->size);
        cr_expect_eq(answer.status, typed.status, "%s, %s: %d", row->format, row->name,
                     answer.status);
        cr_expect(json_equal(answer.json, typed.json), "%s, %s", row->format, row->name);
        answer_free(&typed);
        answer_free(&answer);
    }
}

Test(bodies, of_recognized_formats_need_no_type) { for_each_row(omit_type); }

/* Sends an inference after a byte order mark, which changes nothing. */
static void add_mark(const struct row *row)
{
    const char *length = text_of(row->json, "json_size");
    char json_size[40] = "", *body = malloc(row->size + 3);
    if (strcmp(row->format, "inference") != 0 || *text_of(row->json, "coding") ||
        strstr(row->name, "a JSON length of") || row->size + 3 > MAX_BODY) {
        free(body);
        return;
    }
    memcpy(body, "\xef\xbb\xbf", 3);
    memcpy(body + 3, row->body, row->size);
    if (*length)
        snprintf(json_size, sizeof json_size, "%zu", strtoul(length, NULL, 10) + 3);
    json_object_set_new(row->json, "json_size", *length ? json_string(json_size) : json_null());
    struct row marked = {row->json, row->format, row->name, body, row->size + 3};
    check_row(&marked);
    free(body);
}

Test(bodies, inferences_may_begin_with_a_byte_order_mark) { for_each_row(add_mark); }

static void expect_an_answer(const struct row *row, const char *body, size_t size)
{
    struct answer answer = ask_row(row, body, size);
    cr_expect(answer.response.body.size > 0 && (answer.status == 200 || answer.status == 400 ||
                                                answer.status == 413 || answer.status == 422),
              "%s, %s, changed: %d", row->format, row->name, answer.status);
    answer_free(&answer);
    cr_expect_eq(bytes_held(), 0);
}

static void cut_and_change(const struct row *row)
{
    enum { MAX = 1200 };
    static char body[MAX];
    if (json_integer_value(json_object_get(row->json, "status")) != 200 || row->size > MAX)
        return;
    memcpy(body, row->body, row->size);
    for (size_t i = 0; i < row->size; i++) {
        static const char changes[] = {'\0', '\xff', '"', '9'};
        expect_an_answer(row, body, i);
        for (size_t j = 0; j < COUNT(changes); j++) {
            body[i] = changes[j];
            expect_an_answer(row, body, row->size);
        }
        body[i] = row->body[i];
    }
}

Test(bodies, cut_anywhere_or_changed_anywhere_get_an_answer) { for_each_row(cut_and_change); }

/* Fails every allocation of the code under test, once alone and once with all later ones, until
 * the answer is normal. */
static void run_out_of_memory(const struct row *row)
{
    int expected = (int)json_integer_value(json_object_get(row->json, "status"));
    for (int sticky = 0; sticky <= 1; sticky++)
        for (long n = 0;; n++) {
            cr_assert_lt(n, 500, "%s, %s never comes through", row->format, row->name);
            /* the first is the test's copy of the body */
            fail_allocation(n + 1, sticky);
            struct answer answer = ask_row(row, row->body, row->size);
            bool failed = allocation_failed();
            fail_allocation(-1, false);
            int status = answer.response.status;
            answer_free(&answer);
            cr_expect_eq(bytes_held(), 0);
            cr_expect(status == expected || (failed && status == 503), "%s, %s, allocation %ld: %d",
                      row->format, row->name, n, status);
            if (!failed)
                break;
        }
}

Test(bodies, without_memory_get_503_and_nothing_leaks) { for_each_row(run_out_of_memory); }
