/* Members of the JSON of a loss: in any order, and none twice. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 200 };

static const struct {
    const char *path, *type, *text;
    size_t zeros; /* bytes after the text: binary elements */
} bodies[] = {
    {"/kl_div", "application/json",
     "{\"input\":[-1,-2,-3,-4],\"target\":[0.1,0.2,0.3,0.4],\"mask\":[1,0,1,1],\"weight\":null,"
     "\"shape\":[2,2],\"reduction\":\"none\",\"dtype\":\"float32\",\"base\":2,\"log_target\":"
     "false,"
     "\"gradient\":[\"input\",\"target\"]}",
     0},
    {"/v2/models/kl_div/infer", "application/json",
     "{\"id\":\"a\",\"model_name\":\"kl_div\",\"model_version\":\"1\",\"inputs\":["
     "{\"name\":\"target\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":[0.25,1e-7]},"
     "{\"name\":\"mask\",\"shape\":[2],\"datatype\":\"BOOL\",\"data\":[true,1]},"
     "{\"name\":\"input\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[-1,null],"
     "\"parameters\":{\"content_type\":\"np\"}}],"
     "\"parameters\":{\"reduction\":\"none\",\"gradient\":\"input\",\"non_finite\":\"bare\","
     "\"binary_data_output\":true},"
     "\"outputs\":[{\"name\":\"gradient.target\",\"parameters\":{\"binary_data\":false}},"
     "{\"name\":\"loss\",\"parameters\":{\"binary_data\":false}}]}",
     0},
    {"/v2/models/kl_div/infer", "application/octet-stream",
     "{\"inputs\":[{\"name\":\"input\",\"shape\":[2],\"datatype\":\"FP32\","
     "\"parameters\":{\"binary_data_size\":8}},"
     "{\"name\":\"target\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[0.25,0.5]},"
     "{\"name\":\"weight\",\"shape\":[2],\"datatype\":\"FP64\"}],"
     "\"parameters\":{\"reduction\":\"sum\"},\"outputs\":[{\"name\":\"loss\"}]}",
     24},
    {"/kl_div", "application/x-safetensors",
     "{\"input\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"target\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]},"
     "\"__metadata__\":{\"reduction\":\"none\",\"dim\":\"0\",\"format\":\"pt\"}}",
     24},
};

static struct answer ask_text(size_t body, const char *text)
{
    const bool is_safetensors = strstr(bodies[body].type, "safe") != NULL;
    const size_t n = strlen(text), before = is_safetensors ? 8 : 0;
    const size_t size = before + n + bodies[body].zeros;
    const struct api_service service = service_of(1 << 20);
    const uint64_t length = n;
    char header[20], *bytes = calloc(1, size);
    cr_assert(bytes);
    memcpy(bytes, &length, before);
    memcpy(bytes + before, text, n);
    snprintf(header, sizeof header, "%zu", n);
    struct question question = {.path = bodies[body].path,
                                .content_type = bodies[body].type,
                                .inference_header_length =
                                    bodies[body].zeros && !is_safetensors ? header : NULL};
    struct answer answer = ask_question(&question, &service, bytes, size);
    free(bytes);
    return answer;
}

/* A copy whose members stand in another order, at every depth. */
static json_t *shuffle(const json_t *value)
{
    size_t n = json_object_size(value), i;
    const char *names[32], *name;
    json_t *copy, *item;
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, item) json_array_append_new(copy, shuffle(item));
        return copy;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    copy = json_object();
    i = 0;
    json_object_foreach((json_t *)(uintptr_t)value, name, item) names[i++] = name;
    for (; n > 0; n--) {
        size_t chosen = (size_t)rand() % n;
        json_object_set_new(copy, names[chosen], shuffle(json_object_get(value, names[chosen])));
        names[chosen] = names[n - 1];
    }
    return copy;
}

Test(formats_members, may_stand_in_any_order)
{
    for (size_t i = 0; i < COUNT(bodies); i++) {
        json_t *json = json_loads(bodies[i].text, 0, NULL);
        struct answer usual = ask_text(i, bodies[i].text);
        cr_assert_eq(usual.status, 200, "%s", usual.response.body.data);
        for (int j = 0; j < ORDERS; j++) {
            json_t *other = shuffle(json);
            char *text = json_dumps(other, JSON_COMPACT | JSON_REAL_PRECISION(9));
            struct answer answer = ask_text(i, text);
            const struct api_buffer *a = &usual.response.body, *b = &answer.response.body;
            cr_expect(a->size == b->size && memcmp(a->data, b->data, a->size) == 0, "%s: %s", text,
                      b->data);
            answer_free(&answer);
            free(text);
            json_decref(other);
        }
        answer_free(&usual);
        json_decref(json);
    }
}

/* Each member of each object, given again right after itself, is refused unless it means nothing here. */
Test(formats_members, may_not_be_repeated)
{
    static const char *const ignored[] = {"\"content_type\"", "\"format\""};
    for (size_t i = 0; i < COUNT(bodies); i++)
        for (const char *p = bodies[i].text; (p = strchr(p, ':')); p++) {
            const char *key = p - 1, *end = p + 1;
            while (*--key != '"')
                ;
            for (int depth = 0; depth > 0 || !strchr(",}", *end); end++)
                depth += (*end == '[' || *end == '{') - (*end == ']' || *end == '}');
            char text[2000];
            snprintf(text, sizeof text, "%.*s,%.*s%s", (int)(end - bodies[i].text), bodies[i].text,
                     (int)(end - key), key, end);
            bool means = true;
            for (size_t j = 0; j < COUNT(ignored); j++)
                means &= strncmp(key, ignored[j], strlen(ignored[j])) != 0;
            struct answer answer = ask_text(i, text);
            cr_expect_eq(answer.status, means ? 400 : 200, "%s: %d", text, answer.status);
            answer_free(&answer);
        }
}

/* Data are counted in line and column, also where they stand before the name of their tensor. */
Test(formats_members, malformed_ones_have_their_place_in_the_body)
{
    static const struct {
        size_t body;
        const char *text, *says;
    } cases[] = {
        {1, "{\"inputs\":[{\"data\":[0.5, 0.25],\"", "line 1, column 33: expected the end of a"},
        {1, "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\n\"data\":[1,2],shape",
         "line 2, column 14"},
        {1,
         "{\"inputs\":[{\"data\":[1] [2],\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
         "line 1, column 24: expected ',' or '}', found '['"},
        {2, "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"data\":[1,",
         "line 1, column 56"},
        {0, "{\"input\":[1,2],\"target\":[1,2],\"reduction\":[\"sum\"",
         "expected ',' or ']', found the end"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = ask_text(cases[i].body, cases[i].text);
        const char *detail = text_of(answer.json, cases[i].body ? "error" : "detail");
        cr_expect_eq(answer.status, 400, "%s", cases[i].text);
        cr_expect(strstr(detail, cases[i].says), "%s: %s", cases[i].text, detail);
        answer_free(&answer);
    }
}

/* A string that is longer than any value of an option is refused, though its start is a valid value. */
Test(formats_members, that_are_long_are_no_options)
{
    static const char *const starts[] = {"\"gradient\":\"input", "\"dim\":\"0",
                                         "\"temperature\":\"1.", "\"reduction\":\"sum",
                                         "\"reduction"};
    for (size_t i = 0; i < COUNT(starts); i++) {
        char text[3000];
        size_t n =
            (size_t)snprintf(text, sizeof text, "{\"input\":[1],\"target\":[1],%s", starts[i]);
        memset(text + n, strstr(starts[i], "1.") ? '0' : ',', 1500);
        strcpy(text + n + 1500, strstr(starts[i], ":\"") ? "\"}" : "\":1}");
        struct answer answer = ask_text(0, text);
        cr_expect_eq(answer.status, 422, "%s: %d", starts[i], answer.status);
        answer_free(&answer);
    }
}
