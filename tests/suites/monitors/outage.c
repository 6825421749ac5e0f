/* /readyz while the store fails: since when, and why. */
#include "api/monitors/monitors.h"
#include "api/text/clock.h"
#include "tests/suites/service/openapi_document.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TestSuite(monitors_outage, .init = load_document);

#define BEARER "Bearer 0123456789abcdef"

/* store: of a file that can be put away, by which the store is down. */
struct store {
    char folder[40], path[60], away[60];
    struct api_service service;
};

static void begin(struct store *store)
{
    char location[80], reason[200] = "";
    snprintf(store->folder, sizeof store->folder, "/tmp/kldiv-outage-XXXXXX");
    cr_assert(mkdtemp(store->folder));
    snprintf(store->path, sizeof store->path, "%s/store.db", store->folder);
    snprintf(store->away, sizeof store->away, "%s/away.db", store->folder);
    snprintf(location, sizeof location, "sqlite:%s", store->path);
    store->service = service_of(1 << 26);
    store->service.monitors =
        api_monitors_open(location, 10, store->service.budget, reason, sizeof reason);
    cr_assert(store->service.monitors, "%s", reason);
    cr_assert(api_monitors_start(store->service.monitors, NULL));
}

static void end(struct store *store)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    monitors_end(&store->service);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char path[80];
        snprintf(path, sizeof path, "%s%s", store->path, suffixes[i]);
        unlink(path);
    }
    cr_expect_eq(rmdir(store->folder), 0);
}

static struct answer ask_ready(const struct store *store, const char *authorization)
{
    struct question question = {.method = "GET", .path = "/readyz"};
    if (authorization)
        question.others[0] = (struct api_header){"Authorization", authorization};
    struct answer answer = ask_question(&question, &store->service, "", 0);
    check_answer(&answer, "/readyz", "GET");
    return answer;
}

static void wait_for(const struct store *store, bool works)
{
    const struct timespec pause = {0, 10000000};
    for (int i = 0; i < 1000 && api_monitors_are_stored(store->service.monitors) != works; i++)
        nanosleep(&pause, NULL);
    cr_assert_eq(api_monitors_are_stored(store->service.monitors), works);
}

static void expect_body(const struct store *store, const char *authorization, const char *body)
{
    struct answer answer = ask_ready(store, authorization);
    char *text = body_of(&answer);
    cr_expect_str_eq(text, body);
    free(text);
    answer_free(&answer);
}

/* Expects it to be down since a time between two, and gives that. */
static void expect_down(const struct store *store, const int64_t between[2], char since[40])
{
    struct answer answer = ask_ready(store, NULL);
    char error[100];
    struct tm parts = {0};
    snprintf(error, sizeof error, "%s was removed or replaced", store->path);
    cr_expect_str_eq(text_at(answer.json, "status"), "ok");
    cr_expect_str_eq(text_at(answer.json, "store"), "down");
    cr_expect_str_eq(text_at(answer.json, "store_error"), error);
    snprintf(since, 40, "%s", text_at(answer.json, "store_since"));
    cr_assert(strptime(since, "%Y-%m-%dT%H:%M:%S", &parts), "%s", since);
    int64_t seconds = timegm(&parts);
    cr_expect(seconds >= between[0] / 1000000 && seconds <= between[1] / 1000000, "%s", since);
    answer_free(&answer);
}

Test(monitors_outage, is_told_since_when_and_why)
{
    struct store store;
    int64_t between[2];
    char since[2][40];
    begin(&store);
    expect_body(&store, NULL, "{\"status\":\"ok\",\"store\":\"up\"}\n");
    between[0] = api_now();
    cr_assert_eq(rename(store.path, store.away), 0);
    wait_for(&store, false);
    between[1] = api_now();
    expect_down(&store, between, since[0]);
    monitors_expect(&store.service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}", 503);
    expect_down(&store, between, since[1]);
    cr_expect_str_eq(since[0], since[1], "a failure more does not begin another outage");
    cr_assert_eq(rename(store.away, store.path), 0);
    wait_for(&store, true);
    expect_body(&store, NULL, "{\"status\":\"ok\",\"store\":\"up\"}\n");
    end(&store);
}

Test(monitors_outage, is_explained_to_those_who_have_a_token)
{
    static const char text[] = "reader read 0123456789abcdef";
    struct api_parse_error mistake;
    struct store store;
    begin(&store);
    store.service.tokens = api_tokens_new();
    cr_assert(store.service.tokens &&
              api_tokens_read(store.service.tokens, text, strlen(text), &mistake));
    cr_assert_eq(rename(store.path, store.away), 0);
    wait_for(&store, false);
    const struct {
        const char *authorization;
        bool tells;
    } cases[] = {{NULL, false}, {"Bearer wrong", false}, {BEARER, true}};
    for (int needs = 0; needs <= 1; needs++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            store.service.ready_needs_store = needs;
            struct answer answer = ask_ready(&store, cases[i].authorization);
            char *body = body_of(&answer);
            cr_expect_eq(answer.status, needs ? 503 : 200);
            cr_expect_eq(strstr(body, store.path) != NULL, cases[i].tells, "%s", body);
            cr_expect(strstr(body, needs ? "be written since 2" : "\"store_since\":\"2"), "%s",
                      body);
            free(body);
            answer_free(&answer);
        }
    cr_assert_eq(rename(store.away, store.path), 0);
    wait_for(&store, true);
    api_tokens_free(store.service.tokens);
    store.service.tokens = NULL;
    end(&store);
}

Test(monitors_outage, has_a_reason_of_one_line)
{
    char reason[400];
    struct api_outage outage = {.since = 0};
    memset(reason, 'x', sizeof reason - 1);
    memcpy(reason, "a\nb\r\tc", 6);
    reason[sizeof reason - 1] = '\0';
    api_outage_note(&outage, 5, reason);
    api_outage_note(&outage, 6, reason);
    cr_expect_eq(outage.since, 5);
    cr_expect_eq(strlen(outage.error), sizeof outage.error - 1);
    cr_expect_eq(strncmp(outage.error, "a b  cxxx", 9), 0);
    outage.since = 0;
    api_outage_note(&outage, 7, "");
    cr_expect_eq(outage.since, 7);
}
