/* Requests of monitors in this process: bodies that are broken, allocations that fail. */
#include "api/monitors/monitors.h"
#include "api/monitors/rows/transaction.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    host.service = (struct api_service){.endpoints = api_endpoints,
                                        .budget = &host.budget,
                                        .max_body = 1 << 20,
                                        .monitors = monitors};
}

static void end(void)
{
    api_monitors_stop(host.service.monitors);
    api_monitors_free(host.service.monitors);
    cr_expect_eq(atomic_load(&host.budget.used), 0);
    expect_no_leak();
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
                 answer.response.body.data);
    answer_free(&answer);
}

Test(monitors_failures, broken_bodies_of_monitors_leave_nothing_behind)
{
    static const char *const broken[] = {"{\"values\": [1], \"timestamp\": ",
                                         "{\"values\": [1], \"x\": 1, \"x\": 2}",
                                         "{\"values\": [1], \"x\": 1e999}",
                                         "{\"values\": [1], \"x\": [1, }",
                                         "{\"rows\": [{\"a\": 1, \"a\": 2}]}",
                                         "a,b\n1\n",
                                         "PK\3\4 and nothing",
                                         ""};
    static const char *const targets[] = {"/monitors/g/m", "/monitors/g/m/observations",
                                          "/monitors/g/m/evaluate", "/monitors/g",
                                          "/monitors/g/observations"};
    begin();
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
    end();
}

/* Fails each allocation of a request in turn, in the store's thread, too, until it succeeds. The status is
 * `later` after an answer that it is done, and not before. */
static void fail_each(const char *method, const char *target, const char *body, int first,
                      int later, bool sticky)
{
    for (long n = 0; n < 2000; n++) {
        fail_allocation(n, sticky);
        struct answer answer = request(method, target, body);
        bool failed = allocation_failed();
        cr_expect(answer.status == first || (failed && answer.status == 503),
                  "%s %s, allocation %ld%s: %d", method, target, n, sticky ? " and later ones" : "",
                  answer.status);
        if (answer.status == first)
            first = later;
        cr_expect(answer.status != 503 || strcmp(answer.response.code, "out_of_memory") == 0, "%s",
                  answer.response.code);
        answer_free(&answer);
        expect("POST", "/monitors/g/m/observations", "{\"values\": [1, 2]}", 200);
        if (!failed)
            return;
    }
    cr_expect(false, "%s %s never comes through", method, target);
}

Test(monitors_failures, each_allocation_of_monitors_in_turn)
{
    static const struct {
        const char *method, *target, *body;
        int first, later; /* `later`: after it was done once */
    } requests[] = {
        {"PUT", "/monitors/t?min_observations=1&fire_after=2", "a,b\n1,x\n2,y\n2.5,z\n", 201, 200},
        {"PUT", "/monitors/t", "{\"columns\": {\"a\": [1, 2.5], \"b\": [\"x\", null]}}", 200, 200},
        {"POST", "/monitors/t/observations", "a,b,c\n1,x,3\n2,q,\n", 200, 200},
        {"POST", "/monitors/t/observations", "{\"rows\": [{\"a\": 1}, {\"b\": \"x\"}]}", 200, 200},
        {"PUT", "/monitors/g/p?compare=previous:2&window=3",
         "{\"bins\": {\"edges\": [0, 1, 2]}, \"annotations\": {\"owner\": \"risk\"}}", 201, 200},
        {"POST", "/monitors/g/p/observations", "{\"values\": [0, 1]}", 200, 200},
        {"POST", "/monitors/g/p/observations", "{\"counts\": [5, 1], \"overflow\": 2}", 200, 200},
        {"PUT", "/monitors/g/h?window=3600s", "{\"reference\": {\"values\": [1, 2, 3.5]}}", 201,
         200},
        {"POST", "/monitors/g/h/observations?timestamp=2001-01-01T00:00:00Z", "{\"values\": [1]}",
         200, 200},
        {"PUT", "/monitors/g/h?window=3600s", "{\"reference\": {\"values\": [1, 2, 4.5]}}", 200,
         200},
        {"POST", "/monitors/g/p/evaluate", "{\"values\": [0, 1]}", 200, 200},
        {"GET", "/monitors/g/p/windows", "", 200, 200},
        {"GET", "/monitors/g/h/windows", "", 200, 200},
        {"GET", "/monitors/g/p/windows?counts=true&limit=1", "", 200, 200},
        {"GET", "/monitors/g/p/windows/latest", "", 200, 200},
        {"GET", "/monitors/g/p/events", "", 200, 200},
        {"GET", "/monitors?state=ok&q=p&limit=2", "", 200, 200},
        {"GET", "/monitors/t", "", 200, 200},
        {"GET", "/monitors/g/p", "", 200, 200},
        {"GET", "/metrics", "", 200, 200},
        {"POST", "/monitors/g/reference?include=p", "{\"from\": 0, \"to\": 4000000000}", 200, 422},
        {"DELETE", "/monitors/g/h", "", 204, 404},
        {"DELETE", "/monitors/t", "", 204, 404}};
    begin();
    expect("PUT", "/monitors/g/m?window=1000000", "{\"reference\": {\"values\": [1, 2, 3]}}", 201);
    for (size_t i = 0; i < COUNT(requests); i++)
        for (int sticky = 0; sticky <= 1; sticky++)
            fail_each(requests[i].method, requests[i].target, requests[i].body,
                      sticky ? requests[i].later : requests[i].first, requests[i].later, sticky);
    cr_expect_eq(host.complaints, 0);
    end();
}

/* ---- What is stored, and what the answer says */

/* Values that all monitors have counted. */
static int64_t stored(void)
{
    static const char line[] = "\nkldiv_monitor_observations_total{";
    struct answer answer = request("GET", "/metrics", "");
    char *text = body_of(&answer);
    int64_t n = 0;
    for (const char *p = text; (p = strstr(p, line)); p++)
        n += atoll(strstr(p, "} ") + 2);
    free(text);
    answer_free(&answer);
    return n;
}

/* Fails each allocation of an observation; expects 200 if it was stored, and 503 if not. */
static void fail_each_observation(const char *target, const char *body, bool sticky)
{
    char path[200], key[40];
    const char *query = strchr(target, '?');
    snprintf(path, sizeof path, "%.*s", (int)strcspn(target, "?"), target);
    bool failed = true;
    for (long n = 0; failed; n++) {
        snprintf(key, sizeof key, "%ld %d %.20s", n, sticky, body);
        const struct question question = {.path = path,
                                          .query = query ? query + 1 : NULL,
                                          .accept_encoding = "gzip",
                                          .others = {{"Idempotency-Key", n % 2 ? key : NULL}}};
        int64_t before = stored();
        cr_assert_lt(n, 2000);
        fail_allocation(n, sticky);
        struct answer answer = ask_question(&question, &host.service, body, strlen(body));
        failed = allocation_failed();
        bool is_stored = stored() > before;
        cr_expect(answer.status == (is_stored ? 200 : 503),
                  "%s %s, allocation %ld%s: %d, and it is %sstored", target, body, n,
                  sticky ? " and later ones" : "", answer.status, is_stored ? "" : "not ");
        cr_expect(answer.status != 200 || answer.response.body.size > 20);
        answer_free(&answer);
    }
}

/* Makes a monitor of three long labels, whose names as its top take more of the answer than is reserved,
 * and a table for it. */
static void make_labels(char *config, size_t size, char *table)
{
    enum { LONG = 400 };
    int n =
        snprintf(config, size, "{\"reference\": {\"counts\": [9, 9, 9]}, \"bins\": {\"labels\": [");
    strcpy(table, "labels\n");
    for (int label = 0; label < 3; label++) {
        n += snprintf(config + n, size - (size_t)n, "%s\"%d", label ? "," : "", label);
        sprintf(table + strlen(table), "%d", label % 2);
        for (int i = 0; i < LONG; i++) {
            n += snprintf(config + n, size - (size_t)n, "\\u0001");
            strcat(table, "\1");
        }
        n += snprintf(config + n, size - (size_t)n, "\"");
        strcat(table, "\n");
    }
    snprintf(config + n, size - (size_t)n, "]}}");
}

Test(monitors_failures, observations_are_stored_and_answered_or_neither)
{
    static const char config[] =
        "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [5, 5]}}";
    static const char *const bodies[] = {"{\"values\": [1, 2]}", "{\"counts\": [5, 1]}"};
    static const char *const single[] = {"batch", "hour", "count", "previous"};
    char target[100], past[40], labels[9000], table[2000] = "";
    snprintf(past, sizeof past, "?timestamp=%ld", time(NULL) - 7200);
    make_labels(labels, sizeof labels, table);
    begin();
    expect("PUT", "/monitors/g/batch", config, 201);
    expect("PUT", "/monitors/g/hour?window=3600s", config, 201);
    expect("PUT", "/monitors/g/count?window=5", config, 201);
    expect("PUT", "/monitors/g/previous?compare=previous:3", config, 201);
    expect("PUT", "/monitors/g/labels", labels, 201);
    expect("PUT", "/monitors/t", "a,\"b \xc3\xbc\"\n1,x\n2,y\n2.5,z\n", 201);
    for (int sticky = 0; sticky <= 1; sticky++) {
        for (size_t i = 0; i < COUNT(single); i++)
            for (size_t j = 0; j < COUNT(bodies); j++) {
                snprintf(target, sizeof target, "/monitors/g/%s/observations%s", single[i],
                         i == 1 && j == 1 ? past : "");
                fail_each_observation(target, bodies[j], sticky);
            }
        fail_each_observation("/monitors/g/labels/observations", table, sticky);
        fail_each_observation("/monitors/t/observations",
                              "a,\"b \xc3\xbc\",c,\n1,x,3,1\n2,q,,1\n\"\",q,,1\n", sticky);
    }
    cr_expect_eq(host.complaints, 0);
    end();
}

/* ---- Changes */

/* change: `body` has a place for a number, by which each one changes what is there. */
struct change {
    const char *method, *path, *body;
};

/* A number that grows with each change: the sum of versions, which ETags have. */
static int64_t versions(void)
{
    struct answer list = request("GET", "/monitors?limit=1000", "");
    int64_t sum = 0;
    size_t i;
    const json_t *monitor;
    json_array_foreach(at(list.json, "monitors"), i, monitor)
    {
        char path[100];
        snprintf(path, sizeof path, "/monitors/%s/%s", text_at(monitor, "group"),
                 text_at(monitor, "name"));
        struct answer answer = request("GET", path, "");
        sum += atoll(strchr(header_of_answer(&answer, "ETag"), '-') + 1);
        answer_free(&answer);
    }
    answer_free(&list);
    return sum;
}

/* Fails each allocation of a change; expects 200 if it was stored, and 503 if not. */
static void fail_each_change(const struct change *change, bool sticky)
{
    static int number;
    char body[4000];
    bool failed = true;
    for (long n = 0; failed; n++) {
        expect("POST", "/monitors/g/m/observations", "{\"values\": [\"0\", \"1\"]}", 200);
        const struct question question = {
            .method = change->method, .path = change->path, .accept_encoding = "gzip"};
        snprintf(body, sizeof body, change->body, ++number);
        int64_t before = versions();
        cr_assert_lt(n, 2000);
        fail_allocation(n, sticky);
        struct answer answer = ask_question(&question, &host.service, body, strlen(body));
        failed = allocation_failed();
        bool is_stored = versions() > before;
        cr_expect(answer.status == (is_stored ? 200 : 503),
                  "%s %s, allocation %ld%s: %d, and it is %sstored", change->method, change->path,
                  n, sticky ? " and later ones" : "", answer.status, is_stored ? "" : "not ");
        answer_free(&answer);
    }
}

/* Writes a config of so many labels that the answer is compressed. */
static void write_labels(char *to)
{
    to += sprintf(to, "{\"annotations\": {\"n\": \"%%d\"}, \"bins\": {\"labels\": [\"0\"");
    for (int label = 1; label < 200; label++)
        to += sprintf(to, ", \"%d\"", label);
    strcpy(to, "]}, \"compare\": {\"previous\": 2}}");
}

Test(monitors_failures, changes_are_stored_and_answered_or_neither)
{
    char labels[4000];
    const struct change changes[] = {
        {"PUT", "/monitors/g/m", labels},
        {"PUT", "/monitors/t", "a,\"b \xc3\xbc\"\n1,x\n%d,y\n2.5,z\n"},
        {"POST", "/monitors/g/reference", "{\"from\": 0, \"to\": 4%09d}"}};
    write_labels(labels);
    begin();
    expect("PUT", "/monitors/g/m", labels, 201);
    expect("PUT", "/monitors/t", "a,\"b \xc3\xbc\"\n0,x\n", 201);
    for (size_t i = 0; i < COUNT(changes); i++)
        for (int sticky = 0; sticky <= 1; sticky++)
            fail_each_change(&changes[i], sticky);
    cr_expect_eq(host.complaints, 0);
    end();
}
