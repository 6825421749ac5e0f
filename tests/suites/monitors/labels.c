/* Labels of monitors: limits of their length, and that what was taken can always be read back. */
#include "api/json/json_load.h"
#include "api/monitors/model/bins.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long seed;
static size_t pick(size_t n) { return uniform_below(&seed, n); }

/* Appends a text in which each @ becomes `n` letters. */
static void expand(struct api_buffer *to, const char *text, size_t n)
{
    for (; *text; text++)
        for (size_t i = 0; i < (*text == '@' ? n : 1); i++)
            api_append(to, *text == '@' ? "x" : text, 1);
    api_append(to, "", 1);
}

/* ---- Limits */

/* Bodies with a text of 1025 bytes, and where it is refused; they are taken with 1024. */
static const struct {
    const char *line, *body, *problem;
} long_texts[] = {
    {"PUT /monitors/g/m", "{\"bins\":{\"labels\":[\"a\",\"@\"]},\"reference\":{\"counts\":[1,2]}}",
     "labels_too_large #/bins/labels/1 ~1024"},
    {"PUT /monitors/g/m", "{\"bins\":{\"labels\":[\"@\"]},\"compare\":\"previous:1\"}",
     "labels_too_large #/bins/labels/0"},
    {"PUT /monitors/g/m", "{\"bins\":{\"labels\":[\"@\"]},\"reference\":{\"values\":[\"@\"]}}",
     "labels_too_large #/bins/labels/0"},
    {"PUT /monitors/g/m", "{\"reference\":{\"values\":[null,\"b\",\"@\"]}}",
     "labels_too_large #/reference/values/2 ~1025"},
    {"PUT /monitors/g/m", "m\nb\n@\n", "labels_too_large ~line 3, column 'm'"},
    {"PUT /monitors/g?presence=no", "b\nx\n@\n", "reference_empty ~'b' (labels_too_large)"},
    {"PUT /monitors/g?presence=no", "{\"columns\":{\"b\":[\"x\",\"@\"]}}",
     "reference_empty ~'b' (labels_too_large)"},
    {"PUT /monitors/g?presence=no", "{\"rows\":[{\"b\":\"@\"},{}]}",
     "reference_empty ~'b' (labels_too_large)"},
};

Test(monitors_labels, texts_of_more_than_a_kilobyte_are_refused_with_their_place)
{
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(long_texts); i++) {
        struct api_buffer good = {0}, bad = {0};
        expand(&good, long_texts[i].body, API_MAX_LABEL);
        expand(&bad, long_texts[i].body, API_MAX_LABEL + 1);
        monitors_refused(&service, long_texts[i].line, bad.data, long_texts[i].problem);
        cr_expect_eq(monitors_count(&service), 0);
        monitors_expect(&service, long_texts[i].line, good.data, 201);
        monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
        api_buffer_free(&good);
        api_buffer_free(&bad);
    }
    monitors_end(&service);
}

/* The others of a table are made. */
Test(monitors_labels, texts_of_more_than_a_kilobyte_leave_their_column_out)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    expand(&body, "a,b\n1,x\n2,\"\n\"\n3,@\n", API_MAX_LABEL + 1);
    json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data, 201);
    cr_expect_eq(json_array_size(at(json, "monitors")), 1);
    expect_at(json, "warnings.0.code", "\"labels_too_large\"");
    expect_at(json, "warnings.0.column", "\"b\"");
    cr_expect(strstr(text_at(json, "warnings.0.message"), "line 5, column 'b'"));
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Appends 64 texts of 1024 bytes, and one of `more` bytes. */
static void append_texts(struct api_buffer *to, const char *between, const char *quote, size_t more)
{
    for (size_t i = 0; i <= API_MAX_LABELS / API_MAX_LABEL; i++) {
        size_t size = i < API_MAX_LABELS / API_MAX_LABEL ? API_MAX_LABEL : more;
        if (size == 0)
            return;
        api_append_format(to, "%s%s%02zu", i ? between : "", quote, i);
        for (size_t j = 2; j < size; j++)
            api_append(to, "x", 1);
        api_append_text(to, quote);
    }
}

/* Values are there ten times, so that each is a label. */
Test(monitors_labels, those_of_a_monitor_have_64_kilobytes_in_all)
{
    static const struct {
        const char *line, *before, *between, *quote, *after, *problem;
    } cases[] = {
        {"PUT /monitors/g/m", "{\"bins\":{\"labels\":[", ",", "\"",
         "]},\"compare\":\"previous:1\"}", "labels_too_large #/bins/labels ~65538"},
        {"PUT /monitors/g/m?method=labels", "{\"reference\":{\"values\":[", ",", "\"", "]}}",
         "labels_too_large #/reference/values"},
        {"PUT /monitors/g?method=labels&presence=no", "{\"columns\":{\"b/c\":[", ",", "\"", "]}}",
         "reference_empty ~'b/c' (labels_too_large)"},
        {"PUT /monitors/g?method=labels&presence=no", "b\n", "\n", "", "\n",
         "reference_empty ~'b' (labels_too_large)"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t more = 0; more <= 2; more += 2) {
            struct api_buffer body = {0};
            api_append_text(&body, cases[i].before);
            for (int times = 0; times < (i == 0 ? 1 : 10); times++) {
                api_append_text(&body, times ? cases[i].between : "");
                append_texts(&body, cases[i].between, cases[i].quote, more);
            }
            api_append(&body, cases[i].after, strlen(cases[i].after) + 1);
            if (more)
                monitors_refused(&service, cases[i].line, body.data, cases[i].problem);
            else
                monitors_expect(&service, cases[i].line, body.data, 201);
            monitors_expect(&service, "DELETE /monitors/g", NULL, more ? 404 : 204);
            api_buffer_free(&body);
        }
    monitors_end(&service);
}

/* A column of numbers has no labels, and a long text in it is one more field that is no number. */
Test(monitors_labels, long_texts_are_missing_or_other)
{
    struct api_service service = monitors_new(10);
    struct api_buffer table = {0}, values = {0};
    expand(&table, "a\n1\n2.5\n@\n", 5000);
    json_t *json = monitors_get(&service, "PUT /monitors/g?method=width&bins=2", table.data, 201);
    expect_counts_at(json, "monitors.0.reference",
                     "{\"counts\":[1,1],\"missing\":1,\"overflow\":0,\"underflow\":0}");
    expect_at(json, "warnings.0.line", "4");
    json_decref(json);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"labels\":[\"x\"]},\"reference\":{\"counts\":[1]}}", 201);
    expand(&values, "{\"values\":[\"x\",\"@\",\"@\",null]}", 5000);
    json = monitors_get(&service, "POST /monitors/g/m/observations", values.data, 200);
    expect_at(json, "bins.1.name", "\"other\"");
    expect_at(json, "bins.1.current", "0.5");
    json_decref(json);
    api_buffer_free(&table);
    api_buffer_free(&values);
    monitors_end(&service);
}

/* ---- Read back */

/* Appends a text of about `size` bytes that begins with `i`. */
static void append_label(struct api_buffer *to, size_t i, size_t size)
{
    static const char *const pieces[] = {"\\u0001", "\\u001f", "\\\"",     "\\\\",
                                         "x",       "/",       "\xc3\xa9", "\xf0\x9f\x98\x80"};
    const char *piece = pieces[pick(COUNT(pieces))];
    size_t bytes = *piece == '\\' ? 1 : strlen(piece), n = 4;
    api_append_format(to, "%s\"%04zu", i ? "," : "", i);
    for (; n + bytes <= size; n += bytes)
        api_append_text(to, piece);
    api_append_text(to, "\"");
}

/* Appends a config of labels of about the most bytes; `size` each, or 0 for lengths that differ.
 * Values are there six times, so that they can be compared. */
static void append_config(struct api_buffer *to, size_t size)
{
    bool is_made = pick(2);
    api_append_text(to, is_made ? "{\"reference\":{\"values\":[" : "{\"bins\":{\"labels\":[");
    size_t n = 0, left = API_MAX_LABELS, before = to->size;
    while (n < API_MAX_BINS) {
        size_t each = size ? size : 4 + pick(pick(2) ? 60 : API_MAX_LABEL - 3);
        if (each > left)
            break;
        append_label(to, n++, each);
        left -= each;
    }
    size_t bytes = to->size - before;
    for (int times = 1; is_made && times < 6; times++) {
        char *values = strndup(to->data + before, bytes);
        api_append_text(to, ",");
        api_append(to, values, bytes);
        free(values);
    }
    api_append_text(to, is_made ? "]}" : "]},\"reference\":{\"counts\":[");
    for (size_t i = 0; !is_made && i < n; i++)
        api_append_format(to, i ? ",%zu" : "%zu", pick(1000000));
    api_append_text(to, is_made ? ",\"annotations\":{\"a\":\"" : "]},\"annotations\":{\"a\":\"");
    for (size_t i = pick(15000); i > 0; i--)
        api_append_text(to, "y");
    api_append(to, "\"}}", 4);
}

static char *get_text(const struct api_service *service, const char *line, const char *body,
                      int status)
{
    struct answer answer = monitors_ask(service, line, body);
    char *text = body_of(&answer);
    cr_assert_eq(answer.status, status, "%s: %d %.300s", line, answer.status, text);
    answer_free(&answer);
    return text;
}

static struct api_service open_file(const char *location, struct api_budget *budget)
{
    char reason[200] = "";
    struct api_service service = {
        .endpoints = api_endpoints, .budget = budget, .max_body = 4 << 20};
    service.monitors = api_monitors_open(location, 100, budget, reason, sizeof reason);
    cr_assert(service.monitors, "%s", reason);
    cr_assert(api_monitors_start(service.monitors, NULL));
    return service;
}

static void close_file(struct api_service *service)
{
    api_monitors_stop(service->monitors);
    api_monitors_free(service->monitors);
}

/* The store's next process has no more memory than this one. */
Test(monitors_labels, what_was_taken_is_read_back_with_as_little_memory)
{
    enum { MONITORS = 40 };
    struct api_budget budget = {.limit = 64 << 20};
    char folder[] = "/tmp/kldiv_labels_XXXXXX", location[80], line[60], *first[MONITORS];
    cr_assert(mkdtemp(folder));
    snprintf(location, sizeof location, "sqlite:%s/store", folder);
    struct api_service service = open_file(location, &budget);
    for (size_t i = 0; i < MONITORS; i++) {
        struct api_buffer body = {0};
        seed = i;
        append_config(&body, i == 0 ? API_MAX_LABEL : i == 1 ? 65 : 0);
        snprintf(line, sizeof line, "PUT /monitors/g/%zu", i);
        free(get_text(&service, line, body.data, 201));
        snprintf(line, sizeof line, "GET /monitors/g/%zu", i);
        first[i] = get_text(&service, line, NULL, 200);
        api_buffer_free(&body);
    }
    close_file(&service);
    service = open_file(location, &budget);
    for (size_t i = 0; i < MONITORS; i++) {
        snprintf(line, sizeof line, "GET /monitors/g/%zu", i);
        char *second = get_text(&service, line, NULL, 200);
        snprintf(line, sizeof line, "PUT /monitors/g/%zu", i);
        char *third = get_text(&service, line, second, 200);
        cr_expect_str_eq(first[i], second);
        cr_expect_str_eq(second, third);
        free(first[i]);
        free(second);
        free(third);
    }
    close_file(&service);
    api_budget_trim(&budget, 0);
    cr_expect_eq(atomic_load(&budget.used), 0);
    snprintf(line, sizeof line, "rm -r %s", folder);
    cr_assert_eq(system(line), 0);
}

/* ---- Memory of JSON */

static void append_value(struct api_buffer *to, size_t depth)
{
    static const char *const scalars[] = {
        "1",          "-1.5e3", "true", "null", "\"\"", "\"\\u0041\\n\"", "\"sixteen letters.\"",
        "12345678901"};
    size_t kind = depth > 0 ? pick(4) : 3;
    if (kind == 3) {
        api_append_text(to, scalars[pick(COUNT(scalars))]);
        return;
    }
    api_append_text(to, kind ? "[" : "{");
    for (size_t i = 0, n = pick(pick(4) ? 3 : 40); i < n; i++) {
        api_append_text(to, i ? "," : "");
        if (!kind)
            api_append_format(to, "\"%zu%.*s\":", i, (int)pick(40),
                              "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop");
        append_value(to, depth - 1);
    }
    api_append_text(to, kind ? "]" : "}");
}

static int ignore(const char *bytes, size_t size, void *to)
{
    (void)bytes;
    *(size_t *)to += size;
    return 0;
}

/* Reads a text, and writes it again in the memory that was asked for. */
static void expect_enough(const struct api_buffer *text)
{
    struct api_json json = {.budget = NULL};
    size_t written = 0;
    bool good = api_json_load(&json, text->data, text->size);
    cr_expect(good && !json.out_of_memory, "%zu of %zu for %.200s", json.used, json.size,
              text->data);
    if (good)
        cr_expect_eq(json_dump_callback(json.root, ignore, &written, 0), 0, "%.200s", text->data);
    api_json_free(&json);
}

Test(monitors_labels, memory_for_json_is_enough_for_any)
{
    static const char *const repeated[] = {
        "[],",  "{},", "1,", "\"\",", "{\"\":1},", "[[]],", "{\"a\":{}},", "{\"a\":1,\"b\":2},",
        "-0.1,"};
    for (seed = 0; seed < SOME_OF(2000); seed++) {
        struct api_buffer text = {0};
        append_value(&text, 6);
        if (*text.data == '[' || *text.data == '{')
            expect_enough(&text);
        api_buffer_free(&text);
    }
    for (size_t i = 0; i < COUNT(repeated); i++)
        for (size_t n = 1; n < 70000; n = 2 * n + 1) {
            struct api_buffer text = {0};
            api_append_text(&text, "[");
            for (size_t j = 0; j < n; j++)
                api_append_text(&text, repeated[i]);
            api_append_text(&text, "0]");
            expect_enough(&text);
            api_buffer_free(&text);
        }
    for (size_t depth = 1; depth < 2048; depth += 97) {
        struct api_buffer text = {0};
        for (size_t i = 0; i < depth; i++)
            api_append_text(&text, depth % 2 ? "[" : "{\"a\":");
        api_append_text(&text, "0");
        for (size_t i = 0; i < depth; i++)
            api_append_text(&text, depth % 2 ? "]" : "}");
        expect_enough(&text);
        api_buffer_free(&text);
    }
}
