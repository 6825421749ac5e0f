/* Requests that wait for the store: how many may, and that each is told once. */
#include "api/monitors/batch.h"
#include "api/monitors/rows/transaction.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* MOST: requests that may wait. */
enum { MAX = 4000 };

static atomic_size_t resumed;

static void resume(struct api_exchange *x)
{
    (void)x;
    atomic_fetch_add(&resumed, 1);
}

/* Brings a request to where it waits for the store. */
static bool begin(struct api_exchange *x, const struct question *question,
                  const struct api_service *service, char *body)
{
    *x = question_exchange(question, service, strlen(body));
    x->resume = resume;
    cr_assert(api_begin(x));
    x->request.body = body;
    x->request.body_size = strlen(body);
    cr_assert_not(api_handle(x, HUGE_VAL));
    cr_assert(x->work);
    return api_wait(x);
}

static const char *header_of(const struct api_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->response.n_headers; i++)
        if (strcmp(x->response.headers[i].name, name) == 0)
            return x->response.headers[i].value;
    return "";
}

Test(monitors_queue, is_bounded_and_loses_nothing)
{
    static const struct question question = {.path = "/monitors/g/m/observations"};
    static char body[64] = "{\"counts\":[1,2]}";
    struct api_service service = monitors_new(10);
    struct api_exchange *waiting = calloc(MAX, sizeof *waiting), refused;
    cr_assert(waiting);
    monitors_expect(&service, "PUT /monitors/g/m?window=3600s",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
    monitors_expect(&service, "POST /monitors/g/m/evaluate", body, 200); /* it is in memory now */
    api_monitors_stop(service.monitors);
    for (size_t i = 0; i < MAX; i++)
        cr_assert(begin(&waiting[i], &question, &service, body));
    cr_expect_not(begin(&refused, &question, &service, body));
    cr_expect_eq(refused.response.status, 503);
    cr_expect_str_eq(refused.response.code, "overloaded");
    cr_expect_str_eq(header_of(&refused, "Retry-After"), "1");
    cr_expect_eq(atomic_load(&resumed), 0);
    api_end(&refused);

    cr_assert(api_monitors_start(service.monitors, NULL));
    for (int i = 0; i < 1000 && atomic_load(&resumed) < MAX; i++)
        usleep(10000);
    cr_assert_eq(atomic_load(&resumed), MAX);
    for (size_t i = 0; i < MAX; i++) {
        cr_assert(api_handle(&waiting[i], HUGE_VAL));
        cr_expect_eq(waiting[i].response.status, 200);
        api_end(&waiting[i]);
    }
    json_t *current = monitors_get(&service, "GET /monitors/g/m/windows/current", NULL, 200);
    cr_expect_eq(number_at(current, "n"), 3 * MAX);
    json_decref(current);
    free(waiting);
    monitors_end(&service);
}

/* ---- Turns */

/* LARGE: requests for COLUMNS monitors of 1,000 bins; SMALL: for one of two bins. */
enum { LARGE = 4, SMALL = 3, COLUMNS = 9 };

static struct api_exchange *order[LARGE + SMALL];

static void note_order(struct api_exchange *x) { order[atomic_fetch_add(&resumed, 1)] = x; }

static void make_monitors(const struct api_service *service)
{
    struct api_buffer bins = {0};
    api_append_text(&bins, "{\"reference\":{\"counts\":[1");
    for (int i = 1; i < 1000; i++)
        api_append_text(&bins, ",1");
    api_append_text(&bins, "]},\"bins\":{\"edges\":[0");
    for (int i = 1; i <= 1000; i++)
        api_append_format(&bins, ",%d", i);
    api_append(&bins, "]}}", 4);
    for (int i = 0; i < COLUMNS; i++) {
        char line[40];
        snprintf(line, sizeof line, "PUT /monitors/large/c%d", i);
        monitors_expect(service, line, bins.data, 201);
    }
    monitors_expect(service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
    api_buffer_free(&bins);
}

/* Expects that small requests that came after large ones wait for one of these, and the rest for them. */
Test(monitors_queue, small_requests_and_large_ones_take_turns)
{
    static const struct question large = {.path = "/monitors/large/observations"},
                                 small = {.path = "/monitors/g/m/observations"};
    static char table[64 + API_PADDING] = "c0,c1,c2,c3,c4,c5,c6,c7,c8\n1,1,1,1,1,1,1,1,1\n";
    static char counts[64 + API_PADDING] = "{\"counts\":[1,2]}";
    struct api_service service = monitors_new(10);
    struct api_exchange waiting[LARGE + SMALL];
    make_monitors(&service);
    monitors_expect(&service, "POST /monitors/g/m/evaluate", counts,
                    200); /* they are in memory now */
    monitors_expect(&service, "POST /monitors/large/observations", table, 200);
    api_monitors_stop(service.monitors);
    atomic_store(&resumed, 0);
    for (size_t i = 0; i < LARGE + SMALL; i++) {
        cr_assert(
            begin(&waiting[i], i < LARGE ? &large : &small, &service, i < LARGE ? table : counts));
        waiting[i].resume = note_order;
    }
    cr_assert(api_monitors_start(service.monitors, NULL));
    while (atomic_load(&resumed) < LARGE + SMALL)
        usleep(1000);
    size_t first = 0;
    while (order[first] < &waiting[LARGE])
        first++;
    cr_expect_eq(first, 1, "%zu of %d large requests were first", first, LARGE);
    for (size_t i = 0; i < LARGE + SMALL; i++) {
        cr_expect(api_handle(&waiting[i], HUGE_VAL));
        cr_expect_eq(waiting[i].response.status, 200);
        api_end(&waiting[i]);
    }
    monitors_end(&service);
}

/* ---- Again */

/* failing: a job that fails as the store does, the first time that it reads back. */
struct failing {
    struct api_store_job job;
    struct api_problem problem;
    int calls;
};

static bool fail_once(struct api_store_job *job, struct api_monitors *monitors)
{
    (void)monitors;
    return ((struct failing *)job)->calls++ > 0;
}

/* Asks a question in a transaction that fails after it has read, and is run again; gives the body. */
static char *ask_twice(struct api_service *service, const struct question *question)
{
    static char none[API_PADDING];
    struct failing failing = {.job = {.read_back = fail_once}};
    struct api_exchange x;
    failing.job.problem = &failing.problem;
    api_monitors_stop(service->monitors);
    atomic_store(&resumed, 0);
    cr_assert(begin(&x, question, service, none));
    cr_assert(api_monitors_submit(service->monitors, &failing.job));
    cr_assert(api_monitors_start(service->monitors, NULL));
    api_store_job_wait(&failing.job);
    while (atomic_load(&resumed) == 0)
        usleep(1000);
    cr_assert(api_handle(&x, HUGE_VAL));
    cr_expect_eq(x.response.status, 200);
    cr_expect_eq(failing.calls, 2);
    char *body = strndup(x.response.body.data, x.response.body.size);
    api_end(&x);
    return body;
}

/* A list that is read again, because its transaction failed, is the same. */
Test(monitors_queue, what_is_read_again_is_the_same)
{
    static const struct question lists[] = {
        {.method = "GET", .path = "/monitors/g/m/notes", .query = "limit=2"},
        {.method = "GET", .path = "/monitors/g/m/events", .query = "limit=2"},
        {.method = "GET", .path = "/events", .query = "limit=2"},
        {.method = "GET", .path = "/monitors/g/m/windows", .query = "limit=2"},
        {.method = "GET", .path = "/monitors/g/m/windows/latest"},
        {.method = "GET", .path = "/monitors/g/m/compare"},
        {.method = "GET", .path = "/groups/g"}};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?min_observations=10&pool=1&clear_after=1",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}", 201);
    for (int i = 0; i < 6; i++) {
        monitors_expect(&service, "POST /monitors/g/m/observations",
                        i % 2 ? "{\"counts\":[50,50]}" : "{\"counts\":[100,0]}", 200);
        monitors_expect(&service, "POST /monitors/g/m/notes", "{\"text\":\"a\"}", 201);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char line[100];
        snprintf(line, sizeof line, "GET %s%s%s", lists[i].path, lists[i].query ? "?" : "",
                 lists[i].query ? lists[i].query : "");
        struct answer answer = monitors_ask(&service, line, NULL);
        char *again = ask_twice(&service, &lists[i]);
        char *once = strndup(answer.response.body.data, answer.response.body.size);
        cr_expect_str_eq(again, once, "%s\n%s\n%s", line, again, once);
        free(again);
        free(once);
        answer_free(&answer);
    }
    monitors_end(&service);
}
