/* PATCH of settings, of a monitor and of a group. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG                                                                                     \
    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]},"                          \
    "\"annotations\":{\"owner\":\"risk\",\"links\":{\"a\":1,\"b\":2}}}"

static struct api_service make(void)
{
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g/a?warning=0.1&critical=0.25", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/g/b?warning=0.2&critical=0.3", CONFIG, 201);
    monitors_expect(&service, "POST /monitors/g/a/observations",
                    "{\"counts\":[60,60],\"timestamp\":1000}", 200);
    return service;
}

Test(monitors_patch, merges_as_rfc_7396_says)
{
    struct api_service service = make();
    json_t *before = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    json_t *patched =
        monitors_get(&service, "PATCH /monitors/g/a",
                     "{\"thresholds\":{\"warning\":0.15},\"fire_after\":3,"
                     "\"annotations\":{\"links\":{\"a\":null,\"c\":[3]},\"x\":\"y\"}}",
                     200);
    json_t *after = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    cr_expect(json_equal(patched, after));
    cr_expect_eq(number_at(after, "thresholds.warning"), 0.15);
    cr_expect_eq(number_at(after, "thresholds.critical"), 0.25);
    cr_expect_eq(number_at(after, "fire_after"), 3);
    expect_at(after, "annotations",
              "{\"links\":{\"b\":2,\"c\":[3]},\"owner\":\"risk\",\"x\":\"y\"}");
    static const char *const kept[] = {"bins", "reference", "revision", "state", "window"};
    for (size_t i = 0; i < COUNT(kept); i++)
        cr_expect(json_equal(at(before, kept[i]), at(after, kept[i])), "%s", kept[i]);
    json_decref(before);
    json_decref(patched);
    json_decref(after);
    json_t *windows = monitors_get(&service, "GET /monitors/g/a/windows", NULL, 200);
    cr_expect_eq(json_array_size(at(windows, "windows")), 1);
    json_decref(windows);
    monitors_end(&service);
}

/* As a query has them. */
Test(monitors_patch, takes_thresholds_by_their_names_alone)
{
    struct api_service service = make();
    json_t *patched = monitors_get(&service, "PATCH /monitors/g/a",
                                   "{\"critical\":0.5,\"thresholds\":{\"warning\":0.15}}", 200);
    expect_at(patched, "thresholds", "{\"critical\":0.5,\"significance\":0.0001,\"warning\":0.15}");
    json_decref(patched);
    patched =
        monitors_get(&service, "PATCH /monitors/g/a", "{\"critical\":null,\"warning\":0.05}", 200);
    expect_at(patched, "thresholds", "{\"critical\":0.1,\"significance\":0.0001,\"warning\":0.05}");
    json_decref(patched);
    monitors_refused(&service, "PATCH /monitors/g/a", "{\"critical\":0.01}",
                     "option_invalid #/thresholds/critical");
    monitors_refused(&service, "PATCH /monitors/g/a", "{\"bins\":5}", "option_invalid #/bins");
    monitors_end(&service);
}

/* RFC 7396: a null below a member that is no object leaves nothing behind. */
Test(monitors_patch, null_in_a_new_object_is_no_member)
{
    struct api_service service = make();
    json_t *patched = monitors_get(&service, "PATCH /monitors/g/a",
                                   "{\"compare\":{\"previous\":8,\"period\":null},"
                                   "\"annotations\":{\"owner\":{\"a\":{\"b\":null},\"c\":null}}}",
                                   200);
    expect_at(patched, "compare", "{\"previous\":8}");
    expect_at(patched, "annotations.owner", "{\"a\":{}}");
    json_decref(patched);
    monitors_end(&service);
}

static const struct {
    const char *put, *body, *window, *compare;
} forms[] = {
    /* a form that the patch names replaces another form */
    {"window=60s,5s&compare=previous:7@24h", "{\"compare\":{\"previous\":3}}",
     "{\"grace\":5,\"seconds\":60}", "{\"previous\":3}"},
    {"window=60s,5s", "{\"window\":{\"count\":9}}", "{\"count\":9}", "\"reference\""},
    {"window=9", "{\"window\":{\"seconds\":60}}", "{\"grace\":0,\"seconds\":60}", "\"reference\""},
    {"window=60s&compare=previous:7@24h", "{\"window\":{\"count\":9},\"compare\":{\"previous\":2}}",
     "{\"count\":9}", "{\"previous\":2}"},
    {"window=60s&compare=previous:7@24h", "{\"compare\":\"reference\",\"window\":\"batch\"}",
     "\"batch\"", "\"reference\""},
    /* members of one form are merged */
    {"window=60s,5s", "{\"window\":{\"seconds\":120}}", "{\"grace\":5,\"seconds\":120}",
     "\"reference\""},
    {"window=60s,5s", "{\"window\":{\"grace\":6}}", "{\"grace\":6,\"seconds\":60}",
     "\"reference\""},
    {"window=60s&compare=previous:7@24h", "{\"compare\":{\"period\":3600}}",
     "{\"grace\":0,\"seconds\":60}", "{\"period\":3600,\"previous\":7}"},
    {"window=60s&compare=previous:7@24h", "{\"compare\":{\"previous\":4,\"period\":604800}}",
     "{\"grace\":0,\"seconds\":60}", "{\"period\":604800,\"previous\":4}"},
    {"window=60s&compare=previous:7@24h", "{\"compare\":{\"period\":null}}",
     "{\"grace\":0,\"seconds\":60}", "{\"previous\":7}"},
    {"window=60s,5s", "{\"window\":{\"count\":null,\"grace\":null}}",
     "{\"grace\":0,\"seconds\":60}", "\"reference\""},
};

Test(monitors_patch, a_setting_with_several_forms_has_the_one_that_is_named)
{
    struct api_service service = make();
    for (size_t i = 0; i < COUNT(forms); i++) {
        char line[200];
        snprintf(line, sizeof line, "PUT /monitors/f/%zu?%s", i, forms[i].put);
        monitors_expect(&service, line, CONFIG, 201);
        snprintf(line, sizeof line, "PATCH /monitors/f/%zu", i);
        json_t *patched = monitors_get(&service, line, forms[i].body, 200);
        expect_at(patched, "window", forms[i].window);
        expect_at(patched, "compare", forms[i].compare);
        json_decref(patched);
    }
    monitors_end(&service);
}

Test(monitors_patch, null_sets_the_default)
{
    struct api_service service = make();
    monitors_expect(&service, "PUT /monitors/g/fresh",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}", 201);
    json_t *fresh = monitors_get(&service, "GET /monitors/g/fresh", NULL, 200);
    monitors_expect(&service, "PATCH /monitors/g/a",
                    "{\"window\":{\"seconds\":60},\"fire_after\":7,\"pseudocount\":1}", 200);
    json_t *patched = monitors_get(&service, "PATCH /monitors/g/a",
                                   "{\"window\":null,\"fire_after\":null,\"pseudocount\":null,"
                                   "\"thresholds\":null,\"annotations\":null}",
                                   200);
    static const char *const same[] = {"window", "fire_after", "pseudocount", "thresholds",
                                       "annotations"};
    for (size_t i = 0; i < COUNT(same); i++)
        cr_expect(json_equal(at(fresh, same[i]), at(patched, same[i])), "%s", same[i]);
    json_decref(fresh);
    json_decref(patched);
    monitors_end(&service);
}

Test(monitors_patch, all_monitors_of_a_group_change_or_none)
{
    struct api_service service = make();
    json_t *group = monitors_get(&service, "PATCH /monitors/g",
                                 "{\"clear_after\":5,\"thresholds\":{\"critical\":0.4}}", 200);
    cr_expect_eq(json_array_size(at(group, "monitors")), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *monitor = json_array_get(at(group, "monitors"), i);
        cr_expect_eq(number_at(monitor, "clear_after"), 5);
        cr_expect_eq(number_at(monitor, "thresholds.critical"), 0.4);
        cr_expect_eq(number_at(monitor, "thresholds.warning"), i ? 0.2 : 0.1);
    }
    json_decref(group);
    monitors_refused(&service, "PATCH /monitors/g", "{\"thresholds\":{\"critical\":0.15}}",
                     "option_invalid #/thresholds/critical ~the monitor 'b'");
    json_t *a = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    cr_expect_eq(number_at(a, "thresholds.critical"), 0.4);
    json_decref(a);
    monitors_end(&service);
}

Test(monitors_patch, another_window_closes_those_that_are_open)
{
    struct api_service service = make();
    monitors_expect(&service, "PUT /monitors/g/c?window=1000", CONFIG, 201);
    monitors_expect(&service, "POST /monitors/g/c/observations",
                    "{\"counts\":[60,60],\"timestamp\":1000}", 200);
    monitors_expect(&service, "PATCH /monitors/g/c", "{\"window\":\"batch\"}", 200);
    json_t *window = monitors_get(&service, "GET /monitors/g/c/windows/latest", NULL, 200);
    expect_at(window, "window.closed", "true");
    json_decref(window);
    monitors_end(&service);
}

static const struct {
    const char *line, *body, *problem;
} wrong[] = {
    {"PATCH /monitors/g/a", "{\"bins\":{\"edges\":[0,1]}}", "option_invalid #/bins"},
    {"PATCH /monitors/g/a", "{\"reference\":null}", "option_invalid #/reference"},
    {"PATCH /monitors/g/a", "{\"binning\":{\"bins\":4}}", "option_invalid #/binning"},
    {"PATCH /monitors/g/a", "{\"state\":\"ok\"}", "option_invalid #/state"},
    {"PATCH /monitors/g/a", "{\"revision\":2}", "option_invalid #/revision"},
    {"PATCH /monitors/g/a", "{\"fire_afer\":2}", "option_unknown #/fire_afer ~'fire_after'"},
    {"PATCH /monitors/g/a", "{\"fire_afer\":null}", "option_unknown #/fire_afer"},
    {"PATCH /monitors/g/a", "{\"fire_after\":0}", "option_invalid #/fire_after"},
    {"PATCH /monitors/g/a", "{\"thresholds\":[1]}", "option_invalid #/thresholds"},
    {"PATCH /monitors/g/a", "{\"thresholds\":{\"warnin\":1}}",
     "option_unknown #/thresholds/warnin"},
    {"PATCH /monitors/g/a", "{\"annotations\":3}", "option_invalid #/annotations"},
    {"PATCH /monitors/g/a", "{\"fire_after\":2,\"fire_after\":3}", "json_malformed"},
    {"PATCH /monitors/g/a", "{\"fire_after\":2", "json_malformed"},
    {"PATCH /monitors/g/a", "{}]", "json_malformed"},
    {"PATCH /monitors/g/none", "{}", "monitor_not_found"},
    {"PATCH /monitors/none", "{}", "group_not_found"},
};

Test(monitors_patch, refusals_change_nothing)
{
    struct api_service service = make();
    json_t *before = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    for (size_t i = 0; i < COUNT(wrong); i++)
        monitors_refused(&service, wrong[i].line, wrong[i].body, wrong[i].problem);
    size_t size = 70000;
    char *large = malloc(size + 1);
    memset(large, ' ', size);
    memcpy(large, "{\"fire_after\":2", 15);
    large[size - 1] = '}';
    large[size] = '\0';
    monitors_refused(&service, "PATCH /monitors/g/a", large, "body_too_large");
    free(large);
    const struct monitors_request csv = {
        .line = "PATCH /monitors/g/a", .type = "text/csv", .body = "a\n1\n"};
    struct answer answer = monitors_send(&service, &csv);
    cr_expect_eq(answer.status, 415);
    cr_expect_str_eq(header_of_answer(&answer, "Accept-Patch"), "application/merge-patch+json");
    answer_free(&answer);
    json_t *after = monitors_get(&service, "GET /monitors/g/a", NULL, 200);
    cr_expect(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    monitors_end(&service);
}

Test(monitors_patch, only_the_monitor_that_was_seen)
{
    struct api_service service = make();
    const struct monitors_request stale = {.line = "PATCH /monitors/g/a",
                                           .type = "application/merge-patch+json",
                                           .body = "{\"fire_after\":2}",
                                           .headers = {{"If-Match", "\"1-9\""}}};
    const struct monitors_request fresh = {.line = "PATCH /monitors/g/a",
                                           .type = "application/merge-patch+json",
                                           .body = "{\"fire_after\":2}",
                                           .headers = {{"If-Match", "\"1-1\""}}};
    struct answer answer = monitors_send(&service, &stale);
    cr_expect_eq(answer.status, 412);
    answer_free(&answer);
    const struct monitors_request unseen = {.line = "PATCH /monitors/g/a",
                                            .type = "application/merge-patch+json",
                                            .body = "{\"pool\":3}",
                                            .headers = {{"If-Match", "\"1-9\""}}};
    answer = monitors_send(&service, &unseen);
    cr_expect_eq(answer.status, 412, "%d", answer.status);
    answer_free(&answer);
    answer = monitors_send(&service, &fresh);
    cr_expect_eq(answer.status, 200);
    cr_expect_str_eq(header_of_answer(&answer, "ETag"), "\"1-2\"");
    answer_free(&answer);
    monitors_end(&service);
}

/* A change between the configs that a patch makes and its transaction is not lost: they are made again. */
Test(monitors_patch, of_monitors_that_change_meanwhile)
{
    static const struct {
        const char *path, *change, *body, *annotations;
        int status;
    } cases[] = {
        {"/monitors/g/a", "PATCH /monitors/g/a", "{\"annotations\":{\"owner\":\"new\"}}",
         "{\"links\":{\"a\":1,\"b\":2},\"owner\":\"new\",\"x\":1}", 200},
        {"/monitors/g", "PATCH /monitors/g/b", "{\"annotations\":{\"owner\":\"new\"}}",
         "{\"links\":{\"a\":1,\"b\":2},\"owner\":\"risk\",\"x\":1}", 200},
        {"/monitors/g", "PUT /monitors/g/c", CONFIG,
         "{\"links\":{\"a\":1,\"b\":2},\"owner\":\"risk\",\"x\":1}", 200},
        {"/monitors/g", "DELETE /monitors/g/b", NULL,
         "{\"links\":{\"a\":1,\"b\":2},\"owner\":\"risk\",\"x\":1}", 200},
        {"/monitors/g/a", "DELETE /monitors/g/a", NULL, NULL, 404},
        {"/monitors/g", "DELETE /monitors/g", NULL, NULL, 404},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static char body[100] = "{\"annotations\":{\"x\":1}}";
        struct api_service service = make();
        const struct question question = {.method = "PATCH", .path = cases[i].path};
        struct api_exchange x = question_exchange(&question, &service, strlen(body));
        cr_assert(api_begin(&x));
        x.request.body = body;
        x.request.body_size = strlen(body);
        cr_assert_not(api_handle(&x, HUGE_VAL));
        struct answer answer = monitors_ask(&service, cases[i].change, cases[i].body);
        cr_expect_lt(answer.status, 300, "case %zu: %d", i, answer.status);
        answer_free(&answer);
        bool done = false;
        while (!done && x.work && api_wait(&x))
            done = api_handle(&x, HUGE_VAL);
        cr_expect_eq(x.response.status, cases[i].status, "case %zu: %d", i, x.response.status);
        api_end(&x);
        json_t *all =
            cases[i].annotations ? monitors_get(&service, "GET /monitors/g", NULL, 200) : NULL;
        for (size_t m = 0; m < json_array_size(at(all, "monitors")); m++)
            cr_expect((m > 0 && strcmp(cases[i].path, "/monitors/g/a") == 0) ||
                          number_at(json_array_get(at(all, "monitors"), m), "annotations.x") == 1,
                      "case %zu: monitor %zu", i, m);
        if (all)
            expect_at(json_array_get(at(all, "monitors"), 0), "annotations", cases[i].annotations);
        json_decref(all);
        monitors_end(&service);
    }
}

/* A group that changes before each attempt is patched in the end. */
Test(monitors_patch, of_monitors_that_change_all_the_time)
{
    static char body[100] = "{\"annotations\":{\"x\":1}}";
    static const struct question question = {.method = "PATCH", .path = "/monitors/g"};
    struct api_service service = make();
    struct api_exchange x = question_exchange(&question, &service, strlen(body));
    cr_assert(api_begin(&x));
    x.request.body = body;
    x.request.body_size = strlen(body);
    bool done = api_handle(&x, HUGE_VAL);
    int attempts = 0;
    for (; !done && attempts < 10; attempts++) {
        char change[60];
        snprintf(change, sizeof change, "{\"annotations\":{\"owner\":\"%d\"}}", attempts);
        monitors_expect(&service, "PATCH /monitors/g/b", change, 200);
        cr_assert(api_wait(&x));
        done = api_handle(&x, HUGE_VAL);
    }
    cr_expect_leq(attempts, 5); /* on a store that servers share, one is a look */
    cr_expect_eq(x.response.status, 200);
    api_end(&x);
    char expected[60];
    snprintf(expected, sizeof expected, "\"%d\"", attempts - 1);
    json_t *after = monitors_get(&service, "GET /monitors/g/b", NULL, 200);
    expect_at(after, "annotations.owner", expected);
    expect_at(after, "annotations.x", "1");
    json_decref(after);
    monitors_end(&service);
}
