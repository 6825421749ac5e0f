/* Random requests made of the OpenAPI document: each is answered with a status, a type and JSON that it describes. */
#include "tests/suites/service/openapi_asked.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(openapi_random, .init = load_document);

static struct api_service service;

static unsigned long long state;

static size_t pick(size_t n) { return uniform_below(&state, n); }

/* Texts that some parameter may find hard; the second half is not UTF-8, or has what headers cannot have. */
static const char *const hard[] = {"",
                                   "x",
                                   "0",
                                   "1",
                                   "-1",
                                   "1e9",
                                   "1.5",
                                   "99999999999999999999",
                                   "null",
                                   "true",
                                   "False",
                                   "NaN",
                                   "0,1",
                                   "[0]",
                                   "[\"input\"]",
                                   "input,target",
                                   "*",
                                   "\"0-0\"",
                                   "W/\"x\"",
                                   "previous:3",
                                   "previous:2@1h",
                                   "3600s",
                                   "1w,2h",
                                   "batch",
                                   "2025-01-31T12:00:00Z",
                                   "2025-01-31",
                                   "1738324800",
                                   "1_2",
                                   "1_2_3",
                                   "-1_0_0",
                                   "ok",
                                   "csv",
                                   "age",
                                   "gzip",
                                   "gzip;q=0",
                                   "\xc3\xa9",
                                   "a\nb",
                                   "\xff",
                                   "%00"};
enum { HEADER_SAFE = 35 };

static void random_value(const json_t *parameter, char *to, size_t size)
{
    const json_t *words = json_object_get(resolve(json_object_get(parameter, "schema")), "enum");
    bool is_header = strcmp(text_of(parameter, "in"), "header") == 0;
    size_t kind = pick(10);
    if (kind < 3)
        fill_in(parameter, to, size);
    else if (kind < 6 && words)
        write_value(json_array_get(words, pick(json_array_size(words))), to, size);
    else if (kind == 9) {
        memset(to, 'a', size - 1);
        to[pick(size)] = '\0';
        to[size - 1] = '\0';
    } else
        snprintf(to, size, "%s", hard[pick(is_header ? HEADER_SAFE : COUNT(hard))]);
}

static void random_path(struct asked *asked, const struct visit *visit)
{
    char value[300];
    size_t i;
    json_t *item;
    json_t *of = json_deep_copy(visit->operation);
    json_array_foreach(json_object_get(of, "parameters"), i, item)
    {
        if (strcmp(text_of(resolve(item), "in"), "path") != 0 || pick(8))
            continue;
        json_t *changed = json_deep_copy(resolve(item));
        char encoded[900] = "";
        random_value(resolve(item), value, sizeof value);
        append_encoded(encoded, sizeof encoded, *value ? value : "none");
        json_object_set_new(changed, "example", json_string(encoded));
        json_array_set_new(json_object_get(of, "parameters"), i, changed);
    }
    fill_path(of, visit->path, asked->path, sizeof asked->path);
    json_decref(of);
}

static void random_parameters(struct asked *asked, const struct visit *visit)
{
    size_t i, often = pick(3) ? 9 : 2;
    json_t *item;
    json_array_foreach(json_object_get(visit->operation, "parameters"), i, item)
    {
        char value[300];
        random_value(resolve(item), value, sizeof value);
        bool twice = pick(20) == 0 && strcmp(text_of(resolve(item), "in"), "query") == 0;
        for (size_t n = pick(often) ? 0 : 1 + twice; n > 0; n--)
            add_parameter(asked, resolve(item), value);
    }
    if (pick(40) == 0)
        add_query(asked, "nonsense", "1");
}

/* A type of some response of the operation, or another. */
static const char *random_accept(const struct visit *visit)
{
    static const char *const others[] = {
        "*/*", "application/*",        "text/html",           "application/problem+json",
        "",    "image/png, */*;q=0.1", "application/json;q=0"};
    json_t *responses = json_object_get(visit->operation, "responses");
    void *response = json_object_iter(responses);
    for (size_t n = pick(json_object_size(responses)); n > 0; n--)
        response = json_object_iter_next(responses, response);
    json_t *content = json_object_get(resolve(json_object_iter_value(response)), "content");
    if (pick(3) == 0)
        return NULL;
    if (json_object_size(content) == 0 || pick(4) == 0)
        return others[pick(COUNT(others))];
    void *media = json_object_iter(content);
    for (size_t n = pick(json_object_size(content)); n > 0; n--)
        media = json_object_iter_next(content, media);
    return json_object_iter_key(media);
}

/* Changes a member, or one of a member, to another kind of value, or removes it. */
static void mutate(json_t *value)
{
    static const char *const texts[] = {"null",      "1",    "-1",    "\"x\"", "\"NaN\"",
                                        "[]",        "{}",   "[[1]]", "true",  "1e400",
                                        "[1,\"x\"]", "\"\"", "0"};
    size_t n = json_is_object(value) ? json_object_size(value) : json_array_size(value),
           at = pick(n);
    if (n == 0)
        return;
    void *member = json_object_iter(value);
    for (size_t i = 0; json_is_object(value) && i < at; i++)
        member = json_object_iter_next(value, member);
    const char *name = json_is_object(value) ? json_object_iter_key(member) : NULL;
    json_t *inner = name ? json_object_iter_value(member) : json_array_get(value, at);
    json_t *other = json_loads(texts[pick(COUNT(texts))], JSON_DECODE_ANY, NULL);
    if ((json_is_object(inner) || json_is_array(inner)) && pick(3))
        mutate(inner);
    else if (name && pick(3) == 0)
        json_object_del(value, name);
    else if (name)
        json_object_set(value, name, other ? other : json_null());
    else
        json_array_set(value, at, other ? other : json_null());
    json_decref(other);
}

/* A new reference: an example, with changes, or text; NULL for no body. */
static json_t *random_body(struct asked *asked, const struct visit *visit)
{
    static const char *const others[] = {"",         "{",           "{}",     "[]", "null",
                                         "a,b\n1\n", "age\n\xff\n", "PK\3\4", "1"};
    json_t *content = json_object_get(json_object_get(visit->operation, "requestBody"), "content");
    void *media = json_object_iter(content);
    if (!media)
        return NULL;
    for (size_t n = pick(json_object_size(content)); n > 0; n--)
        media = json_object_iter_next(content, media);
    asked->question.content_type = pick(15)  ? json_object_iter_key(media)
                                   : pick(2) ? "text/html"
                                             : NULL;
    json_t *examples = json_object_get(json_object_iter_value(media), "examples");
    void *one = json_object_iter(examples);
    for (size_t n = pick(json_object_size(examples) + 1);
         n > 0 && one && json_object_iter_next(examples, one); n--)
        one = json_object_iter_next(examples, one);
    json_t *example = one ? json_object_get(json_object_iter_value(one), "value")
                          : json_object_get(json_object_iter_value(media), "example");
    if (!example || pick(10) == 0) {
        const char *text = others[pick(COUNT(others))];
        return json_stringn_nocheck(text, strlen(text));
    }
    json_t *body = json_deep_copy(example);
    for (size_t n = pick(3); n > 0; n--)
        mutate(body);
    return body;
}

static size_t n_asked, n_good, n_undescribed;

static void ask_randomly(const struct visit *visit)
{
    struct asked asked = {.question = {.method = visit->method, .path = asked.path}};
    random_path(&asked, visit);
    random_parameters(&asked, visit);
    asked.question.accept = random_accept(visit);
    json_t *body = random_body(&asked, visit);
    struct answer answer = send_asked(&service, &asked, body);
    n_asked++;
    n_good += answer.status < 300;
    if (!is_described(&answer, visit->path, visit->method) && n_undescribed++ < 20)
        fail_asked(&asked, &answer, "not described");
    answer_free(&answer);
    json_decref(body);
}

Test(openapi_random, requests_are_answered_as_described, .timeout = 120)
{
    enum { REQUESTS = 8000, ROUNDS = 4 };
    for (state = 1; n_asked < REQUESTS;) {
        service = monitors_new(100);
        prepare_monitors(&service);
        for (int i = 0; i < ROUNDS; i++)
            visit_operations(ask_randomly);
        monitors_end(&service);
    }
    cr_expect_eq(n_undescribed, 0, "%zu of %zu", n_undescribed, n_asked);
    cr_expect_gt(n_good, n_asked / 4, "%zu of %zu", n_good, n_asked);
}
