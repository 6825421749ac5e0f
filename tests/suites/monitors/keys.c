/* Idempotency keys of observations. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"
#define OBSERVE "POST /monitors/g/m/observations"

static struct answer send_with(const struct api_service *service, const char *line, const char *key,
                               const char *body)
{
    return monitors_send(
        service, &(struct monitors_request){line, NULL, body, 0, {{"Idempotency-Key", key}}});
}

/* Sends a body with a key; expects "STATUS n", with "replayed" before it, or "STATUS CODE". */
static void expect_keyed(const struct api_service *service, const char *line, const char *key,
                         const char *body, const char *expected)
{
    char got[100], number[30];
    struct answer answer = send_with(service, line, key, body);
    const json_t *n =
        at(answer.json, "monitors") ? at(answer.json, "monitors.0.n") : at(answer.json, "n");
    snprintf(number, sizeof number, "%g", n ? json_number_value(n) : 0.0);
    snprintf(got, sizeof got, "%s%d %s",
             *header_of_answer(&answer, "Idempotent-Replayed") ? "replayed " : "", answer.status,
             answer.status == 200 ? number : text_of(answer.json, "code"));
    cr_expect_str_eq(got, expected, "%s %s %s: %s and not %s", line, key, body, got, expected);
    answer_free(&answer);
}

static struct api_service with_monitors(void)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=1000000&retention_days=36500", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/g/o?window=1000000&retention_days=36500", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/h/m?window=1000000&retention_days=36500", CONFIG, 201);
    return service;
}

#define TWO "{\"counts\":[1,1]}"
#define ONE "{\"counts\":[1,0]}"

static const struct {
    const char *line, *key, *body, *expected;
} repeats[] = {
    {OBSERVE, "a", TWO, "200 2"},
    {OBSERVE, "a", TWO, "replayed 200 2"},
    {OBSERVE, "b", TWO, "200 4"},
    {OBSERVE, "a", TWO, "replayed 200 4"},
    {OBSERVE, "a", ONE, "422 idempotency_key_reused"},
    {OBSERVE, "a", TWO " ", "422 idempotency_key_reused"},
    /* and to its parameters, however they are written */
    {OBSERVE "?timestamp=0", "a", TWO, "200 6"},
    {OBSERVE "?timestamp=0&", "a", TWO, "replayed 200 6"},
    {OBSERVE "?%74imestamp=%30", "a", TWO, "replayed 200 6"},
    {OBSERVE "?timestamp=60", "a", TWO, "200 8"},
    {OBSERVE "?timestamp=60", "a", ONE, "422 idempotency_key_reused"},
    {OBSERVE "?", "a", TWO, "replayed 200 8"},
    {OBSERVE, "A", TWO, "200 10"},
    /* a key belongs to its path */
    {"POST /monitors/g/o/observations", "a", ONE, "200 1"},
    {"POST /monitors/h/m/observations", "a", ONE, "200 1"},
    {"POST /monitors/g/observations", "a", "m,z\n0,1\n", "200 11"},
    {"POST /monitors/g/observations", "a", "m,z\n0,1\n", "replayed 200 11"},
    {"POST /monitors/g/observations", "a", "m\n0\n", "422 idempotency_key_reused"},
    {"POST /monitors/g/observations", "a", "o\n0\n", "422 idempotency_key_reused"},
    /* a request that is refused leaves its key free */
    {OBSERVE, "c", "{\"counts\":[1]}", "422 counts_invalid"},
    {OBSERVE, "c", "{\"counts\":[0,0]}", "422 observations_empty"},
    {OBSERVE, "c", ONE, "200 12"},
    {"POST /monitors/g/observations", "d", "m,o\n0\n", "400 csv_malformed"},
    {"POST /monitors/g/observations", "d", "m,o\n0,0\n", "200 13"},
    {"POST /monitors/g/observations", "e", "m,o\n", "200 0"},
    {"POST /monitors/g/observations", "e", "m,o\n0,0\n", "200 14"},
    /* nothing is stored by an evaluation */
    {"POST /monitors/g/m/evaluate", "a", ONE, "200 1"},
    {"POST /monitors/g/m/evaluate", "f", ONE, "200 1"},
    {OBSERVE, "f", TWO, "200 16"},
    {OBSERVE, "", TWO, "400 idempotency_key_invalid"},
};

Test(monitors_keys, repeats_count_once_and_show_the_window_as_it_is)
{
    struct api_service service = with_monitors();
    for (size_t i = 0; i < COUNT(repeats); i++)
        expect_keyed(&service, repeats[i].line, repeats[i].key, repeats[i].body,
                     repeats[i].expected);
    char key[258] = "";
    memset(key, 'k', 256);
    expect_keyed(&service, OBSERVE, key, TWO, "400 idempotency_key_invalid");
    key[255] = '\0';
    expect_keyed(&service, OBSERVE, key, TWO, "200 18");
    expect_keyed(&service, OBSERVE, key, TWO, "replayed 200 18");
    monitors_end(&service);
}

/* ---- Against a model */

enum { KEYS = 3, PATHS = 3, QUERIES = 5, FORMS = 3 };

/* A request is new if its key, path and time were not seen together: its body counts then. */
Test(monitors_keys, random_requests_count_once_for_each_key_path_and_time)
{
    static const char *const paths[PATHS] = {OBSERVE, "POST /monitors/g/o/observations",
                                             "POST /monitors/h/m/observations"};
    static const char *const queries[QUERIES][FORMS] = {
        {"", "?", "?&"},
        {"?timestamp=0", "?%74imestamp=%30", "?timestamp=0&"},
        {"?timestamp=86400", "?timestamp=%386400", "?&timestamp=86400"},
        {"?timestamp=1970-01-02", "?timestamp=1970%2d01-02", "?timestamp=1970-01-02&"},
        {"?timestamp=1", "?&&timestamp=1", "?timestamp=%31"}};
    struct api_service service = with_monitors();
    struct {
        bool seen, both;
    } model[KEYS][PATHS][QUERIES] = {{{{0}}}};
    double n[PATHS] = {0};
    srand(7);
    for (int i = 0; i < 500; i++) {
        int k = rand() % KEYS, p = rand() % PATHS, q = rand() % QUERIES;
        bool both = rand() % 2, seen = model[k][p][q].seen;
        bool refused = seen && model[k][p][q].both != both;
        char line[100], expected[60] = "422 idempotency_key_reused";
        snprintf(line, sizeof line, "%s%s", paths[p], queries[q][rand() % FORMS]);
        if (!seen) {
            model[k][p][q].seen = true;
            model[k][p][q].both = both;
            n[p] += 1 + both;
        }
        if (!refused)
            snprintf(expected, sizeof expected, "%s200 %g", seen ? "replayed " : "", n[p]);
        expect_keyed(&service, line, (const char[]){(char)('a' + k), '\0'}, both ? TWO : ONE,
                     expected);
    }
    monitors_end(&service);
}

Test(monitors_keys, outlive_a_revision_and_a_timestamp_that_grew_old)
{
    struct api_service service = with_monitors();
    expect_keyed(&service, OBSERVE "?timestamp=1000000000", "a", TWO, "200 2");
    monitors_expect(&service, "PUT /monitors/g/m?retention_days=1",
                    "{\"bins\":{\"edges\":[0,1,3]},\"reference\":{\"counts\":[5,5]}}", 200);
    expect_keyed(&service, OBSERVE "?timestamp=1000000000", "a", TWO, "replayed 200 2");
    expect_keyed(&service, OBSERVE "?timestamp=1000080000", "b", TWO, "200 2");
    expect_keyed(&service, OBSERVE "?timestamp=1000000000", "a", TWO, "replayed 200 2");
    expect_keyed(&service, OBSERVE "?timestamp=1000000000", "a", ONE, "422 idempotency_key_reused");
    monitors_end(&service);
}

Test(monitors_keys, are_free_once_their_monitor_is_gone)
{
    struct api_service service = with_monitors();
    expect_keyed(&service, OBSERVE, "a", TWO, "200 2");
    monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
    expect_keyed(&service, OBSERVE, "a", TWO, "404 monitor_not_found");
    monitors_expect(&service, "PUT /monitors/g/m?window=1000000&retention_days=36500", CONFIG, 201);
    expect_keyed(&service, OBSERVE, "a", TWO, "200 2");
    expect_keyed(&service, OBSERVE, "a", TWO, "replayed 200 2");
    expect_keyed(&service, OBSERVE, "a", ONE, "422 idempotency_key_reused");
    monitors_end(&service);
}

/* ---- At once */

enum { THREADS = 8, EACH = 30 };

struct client {
    const struct api_service *service;
    size_t fresh, replayed, others;
};

static void *repeat(void *argument)
{
    struct client *client = argument;
    for (int i = 0; i < EACH; i++) {
        char key[20];
        snprintf(key, sizeof key, "%d", i);
        struct answer answer = send_with(client->service, OBSERVE, key, TWO);
        bool replayed = *header_of_answer(&answer, "Idempotent-Replayed");
        client->replayed += answer.status == 200 && replayed;
        client->fresh += answer.status == 200 && !replayed;
        client->others += answer.status != 200;
        answer_free(&answer);
    }
    return NULL;
}

Test(monitors_keys, count_once_when_they_come_at_once)
{
    struct api_service service = with_monitors();
    struct client clients[THREADS] = {{0}};
    pthread_t threads[THREADS];
    size_t fresh = 0, replayed = 0, others = 0;
    for (size_t i = 0; i < THREADS; i++) {
        clients[i].service = &service;
        cr_assert_eq(pthread_create(&threads[i], NULL, repeat, &clients[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        fresh += clients[i].fresh;
        replayed += clients[i].replayed;
        others += clients[i].others;
    }
    cr_expect_eq(fresh, EACH);
    cr_expect_eq(replayed, EACH * (THREADS - 1));
    cr_expect_eq(others, 0);
    expect_keyed(&service, OBSERVE, "last", TWO, "200 62");
    monitors_end(&service);
}
