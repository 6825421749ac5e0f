/* partial=true: sums and divisors instead of losses, in every format, and what has none. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONES "\"input\": [-1, -2.5], \"target\": [1, 1]"

static const struct {
    const char *query, *body, *answer;
} answers[] = {
    {"partial=true&reduction=batchmean", "{" ONES "}",
     "{\"sum\":[3.5,0.0],\"divisor\":[2.0,0.0],\"dtype\":\"float64\",\"reduction\":\"batchmean\","
     "\"warnings\":[]}\n"},
    {"reduction=sum", "{" ONES ", \"partial\": true, \"dtype\": \"float16\"}",
     "{\"sum\":[3.5,0.0],\"divisor\":[1.0,0.0],\"dtype\":\"float16\",\"reduction\":\"sum\","
     "\"warnings\":[]}\n"},
    {"partial=1&dim=-1", "{" ONES ", \"weight\": 3}",
     "{\"sum\":[10.5,0.0],\"divisor\":[3.0,0.0],\"dtype\":\"float64\",\"reduction\":\"mean\","
     "\"warnings\":[]}\n"},
    {"partial=1&dim=1", "{\"input\": [[-1], [-2]], \"target\": [[1], [1]], \"mask\": [0, 1]}",
     "{\"sum\":[2.0,0.0],\"divisor\":[1.0,0.0],\"dtype\":\"float64\",\"reduction\":\"mean\","
     "\"warnings\":[]}\n"},
    {"partial=true&reduction=sum", "{\"input\": [\"-Infinity\", -1], \"target\": [1, 1]}",
     "{\"sum\":[\"Infinity\",0.0],\"divisor\":[1.0,0.0],\"dtype\":\"float64\",\"reduction\":"
     "\"sum\",\"warnings\":[]}\n"},
    {"partial=true&reduction=sum", "{\"input\": [\"NaN\", -1], \"target\": [1, 1]}",
     "{\"sum\":[\"NaN\",0.0],\"divisor\":[1.0,0.0],\"dtype\":\"float64\",\"reduction\":\"sum\","
     "\"warnings\":[]}\n"},
    {"partial=true&reduction=batchmean", "{\"input\": [], \"target\": []}",
     "{\"sum\":[0.0,0.0],\"divisor\":[0.0,0.0],\"dtype\":\"float64\",\"reduction\":\"batchmean\","
     "\"warnings\":[]}\n"},
};

Test(partial_requests, answer_sum_and_divisor_instead_of_the_loss)
{
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct answer answer = ask_loss(answers[i].query, answers[i].body);
        const struct api_buffer *body = &answer.response.body;
        cr_expect(body->size == strlen(answers[i].answer) &&
                      memcmp(body->data, answers[i].answer, body->size) == 0,
                  "case %zu: %.*s", i, (int)body->size, body->data);
        answer_free(&answer);
    }
    cr_expect_eq(bytes_held(), 0);
}

Test(partial_requests, are_diagnosed_beside)
{
    struct answer answer = ask_loss("partial=true&reduction=sum&diagnose=true", "{" ONES "}");
    cr_expect_eq(answer.status, 200);
    cr_expect_gt(json_array_size(json_object_get(answer.json, "warnings")), 0);
    answer_free(&answer);
}

static const struct {
    const char *query, *accept;
    int status;
    const char *code;
} refusals[] = {
    {"partial=true&reduction=none", NULL, 422, "partial_none"},
    {"partial=true&reduce=false", NULL, 422, "partial_none"},
    {"partial=true&gradient=input", NULL, 422, "partial_gradient"},
    {"partial=maybe", NULL, 422, "option_invalid"},
    {"partial=true", "application/x-npy", 406, "not_acceptable"},
    {"partial=true", "application/octet-stream", 422, "partial_unsupported"},
};

Test(partial_requests, of_what_does_not_add_up_are_refused)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct question question = {.query = refusals[i].query, .accept = refusals[i].accept};
        const char body[] = "{" ONES "}";
        struct answer answer = ask_question(&question, NULL, body, strlen(body));
        cr_expect_eq(answer.status, refusals[i].status, "case %zu: %d", i, answer.status);
        cr_expect_str_eq(text_of(answer.json, "code"), refusals[i].code, "case %zu", i);
        answer_free(&answer);
    }
    static const char inference[] =
        "{\"inputs\":[{\"name\":\"input\",\"shape\":[1],\"datatype\":\"FP64\",\"data\":[-1]},"
        "{\"name\":\"target\",\"shape\":[1],\"datatype\":\"FP64\",\"data\":[1]}],"
        "\"parameters\":{\"partial\":true}}";
    struct answer answer = ask("POST", "/v2/models/kl_div/infer", NULL, "application/json",
                               inference, strlen(inference));
    cr_expect_eq(answer.status, 422);
    cr_expect(strstr(text_of(answer.json, "error"), "not a partial result"));
    answer_free(&answer);
}

Test(partial_requests, are_tensors_of_binary_answers)
{
    static const char *const types[] = {"application/vnd.safetensors", "application/x-npz"};
    const double pairs[] = {3.5, 0, 2, 0};
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct question question = {.query = "partial=true&reduction=batchmean",
                                          .accept = types[i]};
        const char body[] = "{" ONES "}";
        struct answer answer = ask_question(&question, NULL, body, strlen(body));
        const struct api_response *response = &answer.response;
        struct api_buffer all = {0};
        api_append(&all, response->body.data, response->body.size);
        for (size_t j = 0; j < response->n_tensors; j++)
            api_append(&all, response->tensors[j].data, response->tensors[j].size);
        cr_expect_eq(answer.status, 200, "%s", types[i]);
        for (size_t j = 0; j < 2; j++)
            cr_expect(memmem(all.data, all.size, pairs + 2 * j, 2 * sizeof *pairs), "%s", types[i]);
        cr_expect(memmem(all.data, all.size, "sum", 3) && memmem(all.data, all.size, "divisor", 7));
        cr_expect_not(memmem(all.data, all.size, "loss", 4), "%s has a loss", types[i]);
        api_buffer_free(&all);
        answer_free(&answer);
    }
}

/* ---- The server, asked for shards */

enum { ROWS = 60, LENGTH = 7 };

/* Appends rows [from, to) of a tensor as JSON. */
static void append_rows(struct api_buffer *out, const char *name, const double *v, size_t from,
                        size_t to)
{
    char number[40];
    api_append_text(out, name);
    for (size_t i = from * LENGTH; i < to * LENGTH; i++) {
        snprintf(number, sizeof number, "%s%.17g",
                 i % LENGTH          ? ","
                 : i > from * LENGTH ? "],["
                                     : "[[",
                 v[i]);
        api_append_text(out, number);
    }
    api_append_text(out, "]]");
}

static struct fetched ask_rows(const struct server *server, const char *target, const double *x,
                               const double *t, size_t from, size_t to)
{
    struct api_buffer body = {0};
    append_rows(&body, "{\"input\":", x, from, to);
    append_rows(&body, ",\"target\":", t, from, to);
    api_append(&body, "}", 2);
    struct fetched fetched = post_json(server, target, body.data);
    cr_expect_eq(fetched.status, 200, "%s", body.data);
    api_buffer_free(&body);
    return fetched;
}

static void add_pair(const json_t *json, const char *name, __float128 *sum)
{
    for (size_t i = 0; i < 2; i++)
        *sum += (__float128)number_of(json_array_get(json_object_get(json, name), i));
}

#define LOGITS "/kl_div?input_space=logit&target_space=logit&base=2&reduction=batchmean"

Test(partial_requests, partial_results_of_shards_add_up_to_the_bits_of_one_request)
{
    double x[ROWS * LENGTH], t[ROWS * LENGTH];
    struct server server = server_start(NULL);
    srand(5);
    for (int call = 0; call < 20; call++) {
        __float128 sum = 0, divisor = 0;
        for (size_t i = 0; i < ROWS * LENGTH; i++)
            x[i] = rand() * 1e-8, t[i] = rand() * 1e-8;
        for (size_t from = 0, to; from < ROWS; from = to) {
            to = from + 1 + (size_t)rand() % (ROWS - from);
            struct fetched part = ask_rows(&server, LOGITS "&partial=true", x, t, from, to);
            add_pair(part.json, "sum", &sum);
            add_pair(part.json, "divisor", &divisor);
            fetched_free(&part);
        }
        struct fetched whole = ask_rows(&server, LOGITS, x, t, 0, ROWS);
        cr_expect_eq(number_of(json_object_get(whole.json, "loss")), (double)sum / (double)divisor);
        fetched_free(&whole);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}
