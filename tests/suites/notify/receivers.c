/* The file of --notify: what is read, what is refused and where, and who wants which change. */
#include "api/notify/receivers.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct api_receivers *read_text(const char *text, struct api_problem *problem)
{
    *problem = (struct api_problem){.code = NULL};
    char *copy = calloc(1, strlen(text) + 64); /* with the padding that a body has */
    memcpy(copy, text, strlen(text));
    struct api_receivers *receivers = api_receivers_read(copy, strlen(text), problem);
    free(copy);
    return receivers;
}

static struct api_receivers *must_read(const char *text)
{
    struct api_problem problem;
    struct api_receivers *receivers = read_text(text, &problem);
    cr_assert(receivers, "%s: %s %s", text, problem.location, problem.detail);
    return receivers;
}

#define ONE(more) "[{\"name\":\"ops\",\"url\":\"https://h/x\",\"format\":\"json\"" more "}]"

Test(notify_receivers, read_all_members)
{
    struct api_receivers *receivers = must_read(
        "[{\"name\":\"ops\",\"url\":\"https://hooks.example:8443/a?b=c\",\"format\":\"slack\","
        "\"groups\":[\"fraud-*\",\"credit\"],\"states\":[\"critical\",\"stale\"],"
        "\"secret_file\":\"/run/secret\",\"ca_file\":\"/run/ca.pem\","
        "\"header\":{\"Authorization\":\"Bearer a b\",\"X-Team\":\"\\u00fc\"}},"
        "{\"name\":\"am\",\"url\":\"http://[fe80::1%25eth0]:9093\",\"format\":\"alertmanager\"}]");
    const struct api_receiver *ops = &receivers->list[0], *am = &receivers->list[1];
    cr_assert_eq(receivers->n, 2);
    cr_expect_str_eq(ops->url, "https://hooks.example:8443/a?b=c");
    cr_expect_eq(ops->format, API_NOTIFY_SLACK);
    cr_expect_str_eq(ops->groups[1], "credit");
    cr_expect_null(ops->groups[2]);
    cr_expect_eq(ops->states, 1 << API_CRITICAL | 1 << API_STALE);
    cr_expect_str_eq(ops->secret_file, "/run/secret");
    cr_expect_str_eq(ops->ca_file, "/run/ca.pem");
    cr_expect_str_eq(ops->headers[0], "Authorization: Bearer a b");
    cr_expect_str_eq(ops->headers[1], "X-Team: ü");
    cr_expect_eq(am->format, API_NOTIFY_ALERTMANAGER);
    cr_expect_str_eq(am->groups[0], "*");
    cr_expect_null(am->headers[0]);
    cr_expect_eq(api_receivers_find(receivers, "am"), 1);
    cr_expect_eq(api_receivers_find(receivers, "none"), 2);
    api_receivers_release(receivers);
    api_receivers_release(must_read("[]"));
}

Test(notify_receivers, tell_what_is_wrong_and_where)
{
    static const struct {
        const char *text, *location, *words;
    } cases[] = {
        {"{}", "#", "array"},
        {"[", "", "line 1"},
        {"[1]", "#/0", "object"},
        {"[{}]", "#/0/name", "missing"},
        {"[{\"name\":\"a\",\"format\":\"json\"}]", "#/0/url", "missing"},
        {"[{\"name\":\"a\",\"url\":\"http://h\"}]", "#/0/format", "missing"},
        {"[{\"name\":\"\",\"url\":\"http://h\",\"format\":\"json\"}]", "#/0/name", "1 to 128"},
        {ONE(",\"grups\":[]"), "#/0/grups", "did you mean 'groups'? They are name"},
        {"[{\"name\":\"a\",\"url\":\"ftp://h\",\"format\":\"json\"}]", "#/0/url", "http://"},
        {"[{\"name\":\"a\",\"url\":\"file:///etc/passwd\",\"format\":\"json\"}]", "#/0/url",
         "http://"},
        {"[{\"name\":\"a\",\"url\":\"http:///x\",\"format\":\"json\"}]", "#/0/url", "host"},
        {"[{\"name\":\"a\",\"url\":\"http://h:65536/\",\"format\":\"json\"}]", "#/0/url", "port"},
        {"[{\"name\":\"a\",\"url\":\"http://h:0\",\"format\":\"json\"}]", "#/0/url", "port"},
        {"[{\"name\":\"a\",\"url\":\"http://h:80a\",\"format\":\"json\"}]", "#/0/url", "port"},
        {"[{\"name\":\"a\",\"url\":\"http://h:/x\",\"format\":\"json\"}]", "#/0/url", "port"},
        {"[{\"name\":\"a\",\"url\":\"http://:80/x\",\"format\":\"json\"}]", "#/0/url", "host"},
        {"[{\"name\":\"a\",\"url\":\"http://[::1:80/x\",\"format\":\"json\"}]", "#/0/url",
         "brackets"},
        {"[{\"name\":\"a\",\"url\":\"http://::1]/x\",\"format\":\"json\"}]", "#/0/url", "brackets"},
        {"[{\"name\":\"a\",\"url\":\"http://[:::]/\",\"format\":\"json\"}]", "#/0/url", "brackets"},
        {"[{\"name\":\"a\",\"url\":\"http://[::1]80\",\"format\":\"json\"}]", "#/0/url", "port"},
        {"[{\"name\":\"a\",\"url\":\"http://u:p@h/\",\"format\":\"json\"}]", "#/0/url", "password"},
        {"[{\"name\":\"a\",\"url\":\"http://h/a b\",\"format\":\"json\"}]", "#/0/url", "blanks"},
        {"[{\"name\":\"a\",\"url\":\"http://h/#x\",\"format\":\"json\"}]", "#/0/url", "fragment"},
        {"[{\"name\":\"a\",\"url\":\"http://h\",\"format\":\"mail\"}]", "#/0/format", "slack"},
        {ONE(",\"groups\":[]"), "#/0/groups", "1 to 64"},
        {ONE(",\"groups\":[7]"), "#/0/groups", "text"},
        {ONE(",\"states\":[]"), "#/0/states", "stale"},
        {ONE(",\"states\":[\"insufficient_data\"]"), "#/0/states", "stale"},
        {ONE(",\"remind\":\"24h\""), "#/0/remind", "repeat_interval"},
        {ONE(",\"header\":{\"Host\":\"x\"}"), "#/0/header/Host", "may be set"},
        {ONE(",\"header\":{\"idempotency-key\":\"x\"}"), "#/0/header/idempotency-key",
         "may be set"},
        {ONE(",\"header\":{\"x-kldiv-signature\":\"x\"}"), "#/0/header/x-kldiv-signature",
         "may be set"},
        {ONE(",\"header\":{\"a b\":\"x\"}"), "#/0/header/a%20b", "may be set"},
        {ONE(",\"header\":{\"A\":\"x\\r\\nB: y\"}"), "#/0/header/A", "control"},
        {"[{\"name\":\"a\",\"url\":\"http://h\",\"format\":\"json\"},"
         "{\"name\":\"a\",\"url\":\"http://h\",\"format\":\"json\"}]",
         "#/1/name", "another"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_problem problem;
        cr_expect_null(read_text(cases[i].text, &problem), "%s", cases[i].text);
        cr_expect_str_eq(problem.location, cases[i].location, "%s: %s", cases[i].text,
                         problem.location);
        cr_expect(strstr(problem.detail, cases[i].words), "%s: %s", cases[i].text, problem.detail);
    }
}

Test(notify_receivers, want_groups_and_states)
{
    static const struct {
        const char *more, *group;
        int from, to;
        bool wants;
    } cases[] = {{"", "g", API_OK, API_CRITICAL, true},
                 {"", "g", API_OK, API_STALE, true},
                 {",\"groups\":[\"fraud-*\"]", "fraud-eu", API_OK, API_CRITICAL, true},
                 {",\"groups\":[\"fraud-*\"]", "credit", API_OK, API_CRITICAL, false},
                 {",\"groups\":[\"a\",\"credit\"]", "credit", API_OK, API_CRITICAL, true},
                 {",\"states\":[\"critical\"]", "g", API_OK, API_WARNING, false},
                 {",\"states\":[\"critical\"]", "g", API_WARNING, API_CRITICAL, true},
                 {",\"states\":[\"critical\"]", "g", API_CRITICAL, API_OK, false},
                 {",\"states\":[\"ok\"]", "g", API_CRITICAL, API_OK, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[300];
        snprintf(text, sizeof text, ONE("%s"), cases[i].more);
        struct api_receivers *receivers = must_read(text);
        cr_expect_eq(
            api_receiver_wants(&receivers->list[0], cases[i].group, cases[i].from, cases[i].to),
            cases[i].wants, "case %zu", i);
        receivers->list[0].format =
            API_NOTIFY_ALERTMANAGER; /* is told the end of what it was told */
        cr_expect_eq(
            api_receiver_wants(&receivers->list[0], cases[i].group, cases[i].from, cases[i].to),
            cases[i].wants || i == 7, "case %zu", i);
        api_receivers_release(receivers);
    }
}
