/* Mutes: who is muted, until when, and what shows it. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"
#define UNTIL "\"until\":\"2099-01-01T00:00:00Z\""
#define MUTED(reason, scope) "{\"reason\":\"" reason "\",\"scope\":\"" scope "\"," UNTIL "}"

/* Expects the member at a path of the answer to a GET. */
static void expect_muted(const struct api_service *service, const char *target, const char *path,
                         const char *expected)
{
    char request[100];
    snprintf(request, sizeof request, "GET %s", target);
    json_t *answer = monitors_get(service, request, NULL, 200);
    expect_at(answer, path, expected);
    json_decref(answer);
}

static void expect_metric(const struct api_service *service, const char *labels, int expected)
{
    char line[100];
    snprintf(line, sizeof line, "\nkldiv_monitor_muted%s %d\n", labels, expected);
    struct answer answer = monitors_ask(service, "GET /metrics", NULL);
    char *text = body_of(&answer);
    cr_expect(strstr(text, line), "%s in %s", line, strstr(text, "kldiv_monitor_muted"));
    free(text);
    answer_free(&answer);
}

Test(monitors_mutes, of_a_monitor_are_shown_wherever_it_is)
{
    struct api_service service = monitors_three();
    json_t *answer = monitors_get(&service, "POST /monitors/g/a/mute",
                                  "{" UNTIL ",\"reason\":\"New \\\"app\\\"\"}", 200);
    expect_at(answer, "muted", MUTED("New \\\"app\\\"", "monitor"));
    cr_expect_str_eq(text_at(answer, "name"), "a");
    json_decref(answer);
    static const char muted[] = MUTED("New \\\"app\\\"", "monitor");
    monitors_expect(&service, "POST /monitors/g/a/observations", "{\"counts\":[900,100]}", 200);
    expect_muted(&service, "/monitors/g/a", "muted", muted);
    expect_muted(&service, "/monitors/g", "monitors.0.muted", muted);
    expect_muted(&service, "/monitors/g", "monitors.1.muted", "null");
    expect_muted(&service, "/monitors", "monitors.0.muted", muted);
    expect_muted(&service, "/monitors", "monitors.1.muted", "null");
    expect_muted(&service, "/groups/g", "drifting.0.muted", muted);
    expect_muted(&service, "/groups/g", "drifting.0.state", "\"critical\"");
    expect_muted(&service, "/groups/g", "muted", "null");
    expect_metric(&service, "{group=\"g\",monitor=\"a\"}", 1);
    expect_metric(&service, "{group=\"g\",monitor=\"b\"}", 0);
    expect_metric(&service, "{group=\"h\",monitor=\"a\"}", 0);
    answer = monitors_get(&service, "PUT /monitors/g/a?warning=0.03", CONFIG, 200);
    expect_at(answer, "muted", muted);
    json_decref(answer);
    monitors_expect(&service, "DELETE /monitors/g/a/mute", NULL, 204);
    expect_muted(&service, "/monitors/g/a", "muted", "null");
    monitors_expect(&service, "DELETE /monitors/g/a/mute", NULL, 204);
    monitors_end(&service);
}

/* A monitor is muted while it or its group is: what ends last counts. */
Test(monitors_mutes, of_a_group_are_those_of_its_monitors)
{
    struct api_service service = monitors_three();
    monitors_expect(&service, "POST /groups/g/mute", "{" UNTIL "}", 200);
    expect_muted(&service, "/groups", "groups.0.muted", MUTED("", "group"));
    expect_muted(&service, "/groups", "groups.1.muted", "null");
    expect_muted(&service, "/monitors/g/b", "muted", MUTED("", "group"));
    expect_muted(&service, "/monitors/h/a", "muted", "null");
    json_t *late = monitors_get(&service, "PUT /monitors/g/late", CONFIG, 201);
    expect_at(late, "muted", MUTED("", "group"));
    json_decref(late);
    monitors_expect(&service, "POST /monitors/g/a/mute",
                    "{\"until\":\"2098-01-01T00:00:00Z\",\"reason\":\"sooner\"}", 200);
    expect_muted(&service, "/monitors/g/a", "muted.scope", "\"group\"");
    monitors_expect(&service, "DELETE /groups/g/mute", NULL, 204);
    expect_muted(&service, "/monitors/g/a", "muted.reason", "\"sooner\"");
    expect_muted(&service, "/monitors/g/b", "muted", "null");
    monitors_end(&service);
}

Test(monitors_mutes, end_by_themselves)
{
    struct api_service service = monitors_three();
    monitors_expect(&service, "POST /monitors/g/a/mute", "{\"seconds\":1}", 200);
    monitors_expect(&service, "POST /groups/h/mute", "{\"seconds\":1}", 200);
    expect_muted(&service, "/monitors/g/a", "muted.scope", "\"monitor\"");
    sleep(1);
    usleep(10000);
    expect_muted(&service, "/monitors/g/a", "muted", "null");
    expect_muted(&service, "/groups/h", "muted", "null");
    monitors_end(&service);
}

/* A mute goes with what is deleted: a monitor that is made later under the name is not muted. */
Test(monitors_mutes, go_with_what_they_are_of)
{
    static const char *const deletions[] = {"DELETE /monitors/g/a", "DELETE /monitors/g"};
    for (size_t i = 0; i < COUNT(deletions); i++) {
        struct api_service service = monitors_three();
        monitors_expect(&service, "POST /monitors/g/a/mute", "{\"seconds\":1000}", 200);
        monitors_expect(&service, "POST /groups/g/mute", "{" UNTIL "}", 200);
        monitors_expect(&service, deletions[i], NULL, 204);
        json_t *again = monitors_get(&service, "PUT /monitors/g/a", CONFIG, 201);
        expect_at(again, "muted", i == 0 ? MUTED("", "group") : "null");
        json_decref(again);
        monitors_expect(&service, "DELETE /groups/g/mute", NULL, 204);
        expect_muted(&service, "/monitors/g/a", "muted", "null");
        monitors_end(&service);
    }
}

Test(monitors_mutes, outlive_the_process)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(100, database.location);
    monitors_make_three(&service);
    monitors_expect(&service, "POST /monitors/g/a/mute", "{" UNTIL ",\"reason\":\"\u00e4\"}", 200);
    monitors_expect(&service, "POST /groups/h/mute", "{" UNTIL "}", 200);
    monitors_restart(&service, 100);
    expect_muted(&service, "/monitors/g/a", "muted", MUTED("\u00e4", "monitor"));
    expect_muted(&service, "/monitors/h/a", "muted", MUTED("", "group"));
    expect_muted(&service, "/monitors/g/b", "muted", "null");
    monitors_end(&service);
    database_free(&database);
}

/* Who mutes is the name of the token, where there are tokens; it outlives the process, and goes with another mute. */
Test(monitors_mutes, say_whose_token_muted)
{
    static const char text[] = "ann ann-ann-ann-ann-ann\nbare-bare-bare-bare\n";
    struct database database = database_new();
    struct api_service service = monitors_new_at(100, database.location);
    monitors_make_three(&service);
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error error;
    cr_assert(api_tokens_read(tokens, text, sizeof text - 1, &error), "%s", error.what);
    static const struct {
        const char *token, *line, *target, *expected;
    } cases[] = {{"Bearer ann-ann-ann-ann-ann", "POST /monitors/g/a/mute", "/monitors/g/a",
                  "{\"by\":\"ann\",\"reason\":\"x\",\"scope\":\"monitor\"," UNTIL "}"},
                 {"Bearer ann-ann-ann-ann-ann", "POST /groups/h/mute", "/monitors/h/a",
                  "{\"by\":\"ann\",\"reason\":\"x\",\"scope\":\"group\"," UNTIL "}"},
                 {"Bearer bare-bare-bare-bare", "POST /monitors/g/a/mute", "/monitors/g/a",
                  "{\"by\":\"token2\",\"reason\":\"x\",\"scope\":\"monitor\"," UNTIL "}"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        service.tokens = tokens;
        const struct monitors_request request = {cases[i].line,
                                                 "application/json",
                                                 "{" UNTIL ",\"reason\":\"x\"}",
                                                 0,
                                                 {{"Authorization", cases[i].token}}};
        struct answer answer = monitors_send(&service, &request);
        cr_expect_eq(answer.status, 200);
        expect_at(answer.json, "muted", cases[i].expected);
        answer_free(&answer);
        service.tokens = NULL;
        expect_muted(&service, cases[i].target, "muted", cases[i].expected);
        monitors_restart(&service, 100);
        expect_muted(&service, cases[i].target, "muted", cases[i].expected);
    }
    api_tokens_free(tokens);
    monitors_end(&service);
    database_free(&database);
}

Test(monitors_mutes, refuse_what_is_no_mute)
{
    static const struct {
        const char *body, *problem;
    } cases[] = {
        {"{}", "option_invalid #"},
        {"[]", "body_not_object #"},
        {"{", "json_malformed"},
        {"{\"seconds\":1,\"until\":4e9}", "option_invalid #"},
        {"{\"seconds\":0}", "option_invalid #/seconds"},
        {"{\"seconds\":-5}", "option_invalid #/seconds"},
        {"{\"seconds\":1e300}", "option_invalid #/seconds"},
        {"{\"seconds\":\"60\"}", "option_invalid #/seconds"},
        {"{\"until\":1000}", "timestamp_invalid #/until"},
        {"{\"until\":\"2099-01-01T00:00:00\"}", "timestamp_invalid #/until ~2099-01-01T00:00:00Z"},
        {"{\"until\":true}", "timestamp_invalid #/until"},
        {"{\"until\":\"ok\"}", "timestamp_invalid #/until"},
        {"{\"until\":\"9999-12-31T23:59:59-23:59\"}", "timestamp_invalid #/until"},
        {"{\"seconds\":9,\"reason\":7}", "option_invalid #/reason"},
        {"{\"seconds\":9,\"reason\":\"a\\nb\"}", "option_invalid #/reason"},
        {"{\"seconds\":9,\"resaon\":\"a\"}", "option_unknown #/resaon ~reason"}};
    struct api_service service = monitors_three();
    for (size_t i = 0; i < COUNT(cases); i++) {
        monitors_refused(&service, "POST /monitors/g/a/mute", cases[i].body, cases[i].problem);
        monitors_refused(&service, "POST /groups/g/mute", cases[i].body, cases[i].problem);
    }
    char body[400] = "{\"seconds\":9,\"reason\":\"";
    memset(body + strlen(body), 'x', 201);
    strcat(body, "\"}");
    monitors_refused(&service, "POST /monitors/g/a/mute", body, "option_invalid #/reason");
    static const char good[] = "{\"seconds\":9}";
    monitors_refused(&service, "POST /monitors/g/none/mute", good, "monitor_not_found");
    monitors_refused(&service, "POST /groups/none/mute", good, "group_not_found");
    monitors_refused(&service, "DELETE /groups/none/mute", NULL, "group_not_found");
    monitors_refused(&service, "POST /groups/g/mute?seconds=9", good, "option_unknown ?seconds");
    expect_muted(&service, "/monitors/g/a", "muted", "null");
    monitors_end(&service);
}
