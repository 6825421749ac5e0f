/* The driver of requests: each outcome of each step, at an endpoint that does what a case says and notes what is called. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* script: what parse and run give in turn; `fails` names a step that fails. */
static struct script {
    enum api_outcome parse[3], run[3];
    size_t n_parse, n_run;
    char fails;
    bool here; /* parse says that there is nothing to do in the store */
    char called[200];
} script;

static bool note(struct api_exchange *x, char step)
{
    script.called[strlen(script.called)] = step;
    return script.fails != step || api_fail(&x->problem, "option_invalid", "as the script says");
}

static enum api_outcome next(struct api_exchange *x, char step, const enum api_outcome *outcomes,
                             size_t *n)
{
    if (!note(x, step))
        return API_FAILED;
    enum api_outcome outcome = *n < 3 && outcomes[*n] ? outcomes[*n] : API_DONE;
    ++*n;
    return outcome;
}

static bool check(struct api_exchange *x) { return note(x, 'c'); }
static bool estimate(struct api_exchange *x) { return note(x, 'e'); }

/* The state is zeroed each time, and what it points to freed. */
static enum api_outcome parse(struct api_exchange *x)
{
    char **state = x->state;
    cr_expect_null(*state);
    *state = strdup("parsed");
    if (script.here)
        x->place = API_HERE;
    return next(x, 'p', script.parse, &script.n_parse);
}

static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    cr_expect_eq(monitors != NULL, x->place != API_HERE);
    return next(x, 'r', script.run, &script.n_run);
}

static bool read_back(struct api_exchange *x, struct api_monitors *monitors)
{
    cr_expect(monitors);
    return note(x, 'b');
}

static bool write_answer(struct api_exchange *x)
{
    api_append_text(&x->response.body, "{}");
    return note(x, 'w');
}

static void count(const struct api_exchange *x)
{
    script.called[strlen(script.called)] = x->response.status == 200 ? 'n' : 'N';
}

static void drop(struct api_exchange *x)
{
    note(x, 'd');
    free(*(char **)x->state);
}

#define STEPS(where)                                                                               \
    {                                                                                              \
        .place = where, .state = sizeof(char *), .check = check, .estimate = estimate,             \
        .parse = parse, .run = run, .read_back = read_back, .write = write_answer, .count = count, \
        .drop = drop                                                                               \
    }
static const struct api_steps places[] = {STEPS(API_HERE), STEPS(API_STORE_READS),
                                          STEPS(API_STORE_ADDS), STEPS(API_STORE_WRITES)};
static const struct api_endpoint rows[] = {
    {"POST", "/here", "", 0, &places[0]},
    {"POST", "/reads", "", 0, &places[1]},
    {"POST", "/adds", "", 0, &places[2]},
    {"POST", "/writes", "", API_WRITES, &places[3]},
    {0},
};

/* A letter for each step: check, estimate, parse, run, read back, write, count (n; N of a problem), drop. */
Test(steps, are_taken_in_order)
{
    static const struct {
        const char *path;
        struct script script;
        const char *called;
        int status;
    } cases[] = {
        {"/here", {.fails = 0}, "ceprwnd", 200},
        {"/reads", {.fails = 0}, "ceprbwnd", 200},
        {"/adds", {.fails = 0}, "ceprbwnd", 200},
        {"/writes", {.fails = 0}, "ceprbwnd", 200},
        {"/writes", {.here = true}, "cepwnd", 200},
        {"/here", {.fails = 'c'}, "c", 422},
        {"/here", {.fails = 'e'}, "ceN", 422},
        {"/here", {.fails = 'p'}, "cepNd", 422},
        {"/here", {.fails = 'r'}, "ceprNd", 422},
        {"/here", {.fails = 'w'}, "ceprwNd", 422},
        {"/writes", {.fails = 'r'}, "ceprNd", 422},
        {"/writes", {.fails = 'b'}, "ceprbNd", 422},
        {"/writes", {.fails = 'w'}, "ceprbwNd", 422},
        {"/reads", {.parse = {API_REFRESH}}, "cepdeprbwnd", 200},
        {"/here", {.parse = {API_REFRESH}}, "cepdeprwnd", 200},
        {"/adds", {.run = {API_PARSE_AGAIN}}, "ceprdeprbwnd", 200},
        {"/adds", {.run = {API_PARSE_AGAIN, API_PARSE_AGAIN}}, "ceprdeprdeprbwnd", 200},
        {"/adds", {.parse = {API_REFRESH}, .run = {API_PARSE_AGAIN}}, "cepdeprdeprbwnd", 200},
    };
    struct api_service service = monitors_new(10);
    service.endpoints = rows;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[40];
        snprintf(line, sizeof line, "POST %s", cases[i].path);
        script = cases[i].script;
        struct answer answer = monitors_ask(&service, line, "{}");
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        cr_expect_str_eq(script.called, cases[i].called, "case %zu: %s", i, script.called);
        answer_free(&answer);
    }
    monitors_end(&service);
}

/* Work above what the thread may spend is left to others, with its cost. */
static enum api_outcome parse_for_long(struct api_exchange *x)
{
    x->cost_ns = 5e6;
    return parse(x);
}

Test(steps, are_left_where_they_cost_too_much)
{
    static const struct api_steps costly = {.state = sizeof(char *),
                                            .parse = parse_for_long,
                                            .run = run,
                                            .write = write_answer,
                                            .drop = drop};
    static const struct api_endpoint row[] = {{"POST", "/long", "", 0, &costly}, {0}};
    static const struct question question = {.path = "/long"};
    struct api_service service = service_of(1 << 20);
    service.endpoints = row;
    char body[API_PADDING + 1] = "";
    struct api_exchange x = question_exchange(&question, &service, 0);
    script = (struct script){.fails = 0};
    cr_assert(api_begin(&x));
    x.request.body = body;
    cr_expect_not(api_handle(&x, API_LIGHT_NS));
    cr_expect_eq(x.cost_ns, 5e6);
    cr_expect_null(x.work);
    cr_expect_not(api_handle(&x, 4e6));
    cr_expect_str_eq(script.called, "p");
    cr_expect(api_handle(&x, 6e6));
    cr_expect_str_eq(script.called, "prwd");
    cr_expect_eq(x.response.status, 200);
    api_end(&x);
}

/* A monitor that is replaced again and again while a body waits ends the request. */
static enum api_outcome run_stale(struct api_exchange *x, struct api_monitors *monitors)
{
    (void)monitors;
    note(x, 'r');
    return API_PARSE_AGAIN;
}

Test(steps, are_not_repeated_for_ever)
{
    static const struct api_steps stale = {.place = API_STORE_ADDS,
                                           .state = sizeof(char *),
                                           .parse = parse,
                                           .run = run_stale,
                                           .write = write_answer,
                                           .drop = drop};
    static const struct api_endpoint row[] = {{"POST", "/stale", "", 0, &stale}, {0}};
    struct api_service service = monitors_new(10);
    service.endpoints = row;
    script = (struct script){.fails = 0};
    struct answer answer = monitors_ask(&service, "POST /stale", "{}");
    cr_expect_eq(answer.status, 503);
    cr_expect_str_eq(text_of(answer.json, "code"), "overloaded");
    cr_expect_eq(strlen(script.called), 3 * 20);
    answer_free(&answer);
    monitors_end(&service);
}

/* A response either has all header fields that its endpoint gave it, or is an error: none is lost in silence. */
static size_t n_fields;

static bool write_fields(struct api_exchange *x)
{
    for (size_t i = 0; i < n_fields; i++)
        api_response_header(&x->response, "X-Field", "value");
    return write_answer(x);
}

Test(steps, have_all_header_fields_or_fail)
{
    static const struct api_steps wide = {
        .state = sizeof(char *), .parse = parse, .write = write_fields, .drop = drop};
    static const struct api_endpoint row[] = {{"POST", "/wide", "", 0, &wide}, {0}};
    static const struct question question = {.path = "/wide"};
    struct api_service service = service_of(1 << 20);
    service.endpoints = row;
    size_t failed = 0;
    for (n_fields = 1; n_fields < 20; n_fields++) {
        char body[API_PADDING + 1] = "";
        size_t found = 0;
        struct api_exchange x = question_exchange(&question, &service, 0);
        script = (struct script){.fails = 0};
        cr_assert(api_begin(&x));
        x.request.body = body;
        cr_expect(api_handle(&x, API_LIGHT_NS));
        for (size_t i = 0; i < x.response.n_headers; i++)
            found += strcmp(x.response.headers[i].name, "X-Field") == 0;
        failed += x.response.status == 500;
        cr_expect_eq(x.response.status == 200 ? found : n_fields, n_fields, "%zu of %zu", found,
                     n_fields);
        cr_expect(x.response.status == 200 || strcmp(x.problem.code, "internal_error") == 0);
        api_end(&x);
    }
    cr_expect(failed > 0 && failed < 10, "%zu", failed);
}

/* Bodies are held to what their endpoint takes, also when they come without a length. */
Test(steps, hold_bodies_to_their_limit)
{
    static const struct {
        const char *method, *path;
        size_t max;
        const char *what;
    } cases[] = {
        {"POST", "/monitors/g/m/notes", 16 << 10, "a note"},
        {"POST", "/monitors/g/m/mute", 16 << 10, "a mute"},
        {"PATCH", "/monitors/g/m", 64 << 10, "a patch"},
        {"POST", "/v2/logging", 16 << 10, "a body of settings"},
        {"GET", "/monitors", 16 << 10, "needs no body"},
        {"DELETE", "/monitors/g/m", 16 << 10, "needs no body"},
        {"GET", "/livez", 16 << 10, "needs no body"},
        {"POST", "/kl_div", 1 << 20, NULL},
        {"PUT", "/monitors/g/m", 1 << 20, NULL},
        {"POST", "/monitors/g/m/observations", 1 << 20, NULL},
        {"POST", "/monitors/g/m/evaluate", 1 << 20, NULL},
    };
    struct api_service service = monitors_new(10);
    service.max_body = 1 << 20;
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t over = 0; over < 2; over++) {
            const struct question question = {.method = cases[i].method, .path = cases[i].path};
            struct api_exchange x = question_exchange(&question, &service, cases[i].max + over);
            cr_expect_eq(api_begin(&x), !over, "case %zu", i);
            cr_expect(over || x.max_body == cases[i].max, "case %zu: %zu", i, x.max_body);
            if (over) {
                cr_expect_eq(x.response.status, 413, "case %zu: %d", i, x.response.status);
                cr_expect(!cases[i].what || strstr(x.response.body.data, cases[i].what),
                          "case %zu: %.*s", i, (int)x.response.body.size, x.response.body.data);
            }
            api_end(&x);
        }
    monitors_end(&service);
}
