/* Requests of monitors in this process: bodies that are broken, allocations that fail. */
#include "api/monitors/monitors.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* host: a service with monitors in memory. */
struct host {
    struct api_budget budget;
    struct api_service service;
    int complaints;
};

static struct host host;

static void complain(bool is_failure, const char *sentence)
{
    (void)sentence;
    host.complaints += is_failure;
}

static void begin(void)
{
    char reason[200] = "";
    host.budget.limit = 1 << 30;
    struct api_monitors *monitors =
        api_monitors_open("memory", 1000, &host.budget, reason, sizeof reason);
    cr_assert(monitors, "%s", reason);
    cr_assert(api_monitors_start(monitors, complain));
    host.service =
        (struct api_service){.budget = &host.budget, .max_body = 1 << 20, .monitors = monitors};
}

static void end(void)
{
    api_monitors_stop(host.service.monitors);
    api_monitors_free(host.service.monitors);
    cr_expect_eq(atomic_load(&host.budget.used), 0);
}

static struct answer request(const char *method, const char *target, const char *body)
{
    char path[200];
    const char *query = strchr(target, '?');
    snprintf(path, sizeof path, "%.*s", (int)strcspn(target, "?"), target);
    const struct question question = {
        .method = method, .path = path, .query = query ? query + 1 : NULL};
    return ask_question(&question, &host.service, body, strlen(body));
}

static void expect(const char *method, const char *target, const char *body, int status)
{
    struct answer answer = request(method, target, body);
    cr_expect_eq(answer.status, status, "%s %s: %d %.300s", method, target, answer.status,
                 answer.reply.body.data);
    answer_free(&answer);
}

Test(failures, broken_bodies_of_monitors_leave_nothing_behind, .init = begin, .fini = end)
{
    static const char *const broken[] = {"{\"values\": [1], \"timestamp\": ",
                                         "{\"values\": [1], \"x\": 1, \"x\": 2}",
                                         "{\"values\": [1], \"x\": 1e999}",
                                         "{\"values\": [1], \"x\": [1, }",
                                         "{\"columns\": {\"a\": [1], \"a\": [2]}}",
                                         "a,b\n1\n",
                                         "a,a\n1,2\n",
                                         "PK\3\4 and nothing",
                                         ""};
    static const char *const targets[] = {"/monitors/g/m", "/monitors/g/m/observations",
                                          "/monitors/g/m/evaluate", "/monitors/g",
                                          "/monitors/g/observations"};
    expect("PUT", "/monitors/g/m", "{\"reference\": {\"values\": [1, 2, 3]}}", 201);
    for (size_t i = 0; i < COUNT(broken); i++)
        for (size_t j = 0; j < COUNT(targets); j++) {
            bool puts = j == 0 || j == 3;
            struct answer answer = request(puts ? "PUT" : "POST", targets[j], broken[i]);
            cr_expect(answer.status >= 400 && answer.status < 500, "%s '%s': %d", targets[j],
                      broken[i], answer.status);
            answer_free(&answer);
            expect("POST", "/monitors/g/m/observations?timestamp=2001-01-01T00:00:00Z",
                   "{\"values\": [1]}", 200);
        }
}
