/* Messages to receivers, in each format, whole. */
#include "api/notify/message.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SECOND: 2025-01-31T12:00:00Z, in microseconds, and later. */
#define AT(seconds) (INT64_C(1738324800000000) + (seconds)*INT64_C(1000000))

static const struct api_change drift = {.group = "credit",
                                        .name = "age & <sex>",
                                        .sentence = "missing 0 % → 12 %",
                                        .monitor = 26,
                                        .at = AT(0),
                                        .since = AT(0),
                                        .began = AT(-7200),
                                        .queued = AT(1),
                                        .from = API_OK,
                                        .to = API_CRITICAL,
                                        .kl = 0.25};

static char *body_of_message(const struct api_message *message, enum api_notify_format format)
{
    struct api_buffer out = {0};
    api_message_write(message, format, &out);
    api_append(&out, "", 1);
    cr_assert_not(out.failed);
    json_error_t error;
    json_t *json = json_loads(out.data, 0, &error);
    cr_expect(json, "%s: %s", error.text, out.data);
    json_decref(json);
    char *body = strdup(out.data);
    api_buffer_free(&out);
    return body;
}

static void expect_message(const struct api_message *message, enum api_notify_format format,
                           const char *expected)
{
    char *text = body_of_message(message, format);
    cr_expect_str_eq(text, expected, "%s", text);
    free(text);
}

static struct api_message message_of(const struct api_change *changes, size_t n)
{
    return (struct api_message){.id = "0123456789abcdef",
                                .sent_at = AT(6),
                                .public_url = "https://kldiv.example",
                                .n = n,
                                .changes = changes};
}

#define PAGE "https://kldiv.example/dashboard/?group=credit&monitor=age%20%26%20%3Csex%3E"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define OTHER_TRACE "1af7651916cd43dd8448eb211c80319c"
#define PARENT(trace)                                                                              \
    {                                                                                              \
        .text = "00-" trace "-b7ad6b7169203331-01"                                                 \
    }

/* The message is of a trace if no change is of another one; those without say nothing. */
Test(notify_messages, are_of_the_trace_that_their_changes_have)
{
    static const struct api_trace none = {.text = ""}, trace = PARENT(TRACE),
                                  other = PARENT(OTHER_TRACE),
                                  same = {.text = "00-" TRACE "-1111111111111111-00"};
    const struct {
        struct api_trace traces[3];
        bool is_one;
    } cases[] = {
        {{none, none, none}, false},   {{none, trace, none}, true},    {{trace, same, none}, true},
        {{trace, other, none}, false}, {{trace, trace, other}, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_change changes[3];
        for (size_t j = 0; j < 3; j++) {
            changes[j] = drift;
            changes[j].trace = cases[i].traces[j];
        }
        const struct api_message message = message_of(changes, 3);
        const struct api_trace *found = api_message_trace(&message);
        cr_expect_eq(found != NULL, cases[i].is_one, "case %zu", i);
        cr_expect(!found || api_trace_is_same(found, &trace), "case %zu", i);
    }
    struct api_change change = drift;
    change.trace = trace;
    const struct api_message message = message_of(&change, 1);
    char *text = body_of_message(&message, API_NOTIFY_JSON);
    cr_expect(strstr(text, PAGE "\",\"trace_id\":\"" TRACE "\"}]}\n"), "%s", text);
    free(text);
}

Test(notify_messages, of_one_change)
{
    struct api_message message = message_of(&drift, 1);
    expect_message(
        &message, API_NOTIFY_JSON,
        "{\"id\":\"0123456789abcdef\",\"sent_at\":\"2025-01-31T12:00:06Z\","
        "\"text\":\"credit / age & <sex> is critical since 2025-01-31T12:00:00Z: missing 0 % → 12 "
        "%\",\"changes\":[{\"id\":\"1a-62cff48449240\",\"group\":\"credit\",\"name\":\"age & "
        "<sex>\","
        "\"from\":\"ok\",\"to\":\"critical\",\"since\":\"2025-01-31T12:00:00Z\",\"began\":\"2025-"
        "01-31T10:00:00Z\","
        "\"at\":\"2025-01-31T12:00:00Z\",\"kl\":0.25,\"sentence\":\"missing 0 % → 12 %\","
        "\"url\":\"" PAGE "\"}]}\n");
    expect_message(
        &message, API_NOTIFY_SLACK,
        "{\"mrkdwn\":false,\"text\":\"credit / age &amp; &lt;sex&gt; is critical since "
        "2025-01-31T12:00:00Z: missing 0 % → 12 %\",\"blocks\":[{\"type\":\"rich_text\","
        "\"elements\":[{\"type\":\"rich_text_section\",\"elements\":["
        "{\"type\":\"emoji\",\"name\":\"red_circle\"},{\"type\":\"text\",\"text\":\" \"},"
        "{\"type\":\"link\",\"url\":\"" PAGE "\",\"style\":{\"bold\":true},"
        "\"text\":\"credit / age & <sex>\"},{\"type\":\"text\",\"text\":\" is critical since "
        "2025-01-31T12:00:00Z: missing 0 % → 12 %\"}]}]}]}\n");
    expect_message(
        &message, API_NOTIFY_ALERTMANAGER,
        "[{\"labels\":{\"alertname\":\"KldivDrift\",\"group\":\"credit\",\"monitor\":\"age & "
        "<sex>\",\"severity\":\"critical\"},\"annotations\":{\"summary\":\"credit / age & <sex> is "
        "critical since 2025-01-31T12:00:00Z: missing 0 % → 12 %\",\"description\":\"missing 0 % → "
        "12 %\"},\"startsAt\":\"2025-01-31T12:00:00Z\",\"endsAt\":\"2025-01-31T12:04:06Z\","
        "\"generatorURL\":\"" PAGE "\"}]\n");
    message.public_url = NULL;
    char *text = body_of_message(&message, API_NOTIFY_JSON);
    cr_expect(strstr(text, "\"url\":null"), "%s", text);
    free(text);
}

/* Expects the text of a message of one change. */
static void expect_text(int from, int to, int64_t since, int64_t at, const char *expected)
{
    struct api_change change = drift;
    change.name = "age";
    change.from = from;
    change.to = to;
    change.since = since;
    change.at = at;
    if (to == API_OK || to == API_STALE)
        change.sentence = "";
    const struct api_message message = message_of(&change, 1);
    char *body = body_of_message(&message, API_NOTIFY_JSON);
    json_t *json = json_loads(body, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    cr_expect_str_eq(text, expected, "%s", text);
    json_decref(json);
    free(body);
}

/* The text of the element of a block for Slack. */
static const char *text_in(const json_t *blocks, size_t block, size_t element)
{
    const json_t *section =
        json_array_get(json_object_get(json_array_get(blocks, block), "elements"), 0);
    return json_string_value(
        json_object_get(json_array_get(json_object_get(section, "elements"), element), "text"));
}

Test(notify_messages, say_what_happened)
{
    expect_text(API_WARNING, API_OK, AT(0), AT(40), "credit / age is ok again, after 40 s");
    expect_text(API_WARNING, API_OK, AT(0), AT(300), "credit / age is ok again, after 5 min");
    expect_text(API_WARNING, API_OK, AT(0), AT(7500), "credit / age is ok again, after 2 h 5 min");
    expect_text(API_WARNING, API_OK, AT(0), AT(3 * 86400 + 7200),
                "credit / age is ok again, after 3 d 2 h");
    expect_text(API_WARNING, API_OK, AT(0), AT(0), "credit / age is ok again");
    expect_text(API_CRITICAL, API_WARNING, AT(0), AT(60),
                "credit / age is warning since 2025-01-31T12:01:00Z (critical until then): missing "
                "0 % → 12 %");
    expect_text(API_WARNING, API_CRITICAL, AT(0), AT(60),
                "credit / age is critical since 2025-01-31T12:01:00Z (warning since "
                "2025-01-31T12:00:00Z): missing 0 % → 12 %");
    expect_text(API_CRITICAL, API_CRITICAL, AT(0), AT(60),
                "credit / age is critical since 2025-01-31T12:00:00Z: missing 0 % → 12 %");
    expect_text(API_OK, API_STALE, AT(0), AT(0),
                "credit / age is stale: no observation since 2025-01-31T12:00:00Z");
    expect_text(API_STALE, API_OK, AT(0), AT(9), "credit / age is ok; observations arrive again");
    expect_text(API_STALE, API_CRITICAL, AT(0), AT(9),
                "credit / age is critical since 2025-01-31T12:00:00Z: missing 0 % → 12 %; "
                "observations arrive again");
}

/* Alerts that a change ends and begins: "severity name ends|lasts", in order. */
static void expect_alerts(const struct api_change *changes, size_t n, const char *expected)
{
    const struct api_message message = message_of(changes, n);
    char *body = body_of_message(&message, API_NOTIFY_ALERTMANAGER), got[400] = "";
    json_t *json = json_loads(body, 0, NULL), *alert;
    size_t i;
    json_array_foreach(json, i, alert)
    {
        const json_t *labels = json_object_get(alert, "labels");
        const char *end = json_string_value(json_object_get(alert, "endsAt"));
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%s %s %s", i ? ", " : "",
                 json_string_value(json_object_get(labels, "alertname")),
                 json_string_value(json_object_get(labels, "severity")),
                 strcmp(end, "2025-01-31T12:00:06Z") == 0 ? "ends" : "lasts");
    }
    cr_expect_str_eq(got, expected, "%s", body);
    json_decref(json);
    free(body);
}

Test(notify_messages, to_an_alertmanager_are_what_has_become)
{
    static const struct {
        int states[5]; /* one after another, -1 at the end */
        const char *expected;
    } cases[] = {
        {{API_OK, API_WARNING, -1}, "KldivDrift warning lasts"},
        {{API_WARNING, API_CRITICAL, -1}, "KldivDrift warning ends, KldivDrift critical lasts"},
        {{API_CRITICAL, API_OK, -1}, "KldivDrift critical ends"},
        {{API_OK, API_CRITICAL, API_OK, -1}, "KldivDrift critical ends"},
        {{API_OK, API_CRITICAL, API_OK, API_CRITICAL, -1}, "KldivDrift critical lasts"},
        {{API_CRITICAL, API_STALE, -1}, "KldivDriftStale warning lasts"},
        {{API_STALE, API_OK, -1}, "KldivDriftStale warning ends"},
        {{API_CRITICAL, API_CRITICAL, -1}, "KldivDrift critical lasts"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_change changes[4];
        size_t n = 0;
        for (; cases[i].states[n + 1] >= 0; n++) {
            changes[n] = drift;
            changes[n].from = cases[i].states[n];
            changes[n].to = cases[i].states[n + 1];
        }
        expect_alerts(changes, n, cases[i].expected);
    }
}

/* Many changes are one message: people read ten of them, programs all. */
Test(notify_messages, of_many_changes)
{
    enum { N = 10000 };
    struct api_change *changes = calloc(N, sizeof *changes);
    for (int64_t i = 0; i < N; i++) {
        changes[i] = drift;
        changes[i].monitor = i;
        changes[i].to = i % 4 ? API_CRITICAL : API_WARNING;
    }
    const struct api_message message = message_of(changes, N);
    char *json = body_of_message(&message, API_NOTIFY_JSON);
    cr_expect(strstr(
        json,
        "\"text\":\"10000 columns of credit since 2025-01-31T12:00:00Z: age & <sex>, "
        "age & <sex>, age & <sex>, age & <sex>, age & <sex> …; 7500 critical, 2500 warning\""));
    cr_expect(strstr(json, "\"id\":\"270f-"));
    free(json);
    char *slack = body_of_message(&message, API_NOTIFY_SLACK);
    cr_expect(strstr(slack, "… and 9990 more"), "%s", slack);
    cr_expect_lt(strlen(slack), 8000);
    free(slack);
    free(body_of_message(&message, API_NOTIFY_ALERTMANAGER));
    free(changes);
}

/* In Slack the line stands above the changes, its characters escaped; a message of other changes has none. */
Test(notify_messages, of_an_incident_begin_with_it_in_slack)
{
    struct api_change changes[2] = {drift, drift};
    changes[1].monitor++;
    changes[1].name = "c";
    for (int is_incident = 1; is_incident >= 0; is_incident--) {
        const struct api_message message = message_of(changes, COUNT(changes));
        char *slack = body_of_message(&message, API_NOTIFY_SLACK);
        json_t *json = json_loads(slack, 0, NULL), *blocks = json_object_get(json, "blocks");
        const char *text = json_string_value(json_object_get(json, "text")),
                   *first = text_in(blocks, 0, 0);
        cr_expect_eq(json_array_size(blocks), COUNT(changes) + (size_t)is_incident, "%s", slack);
        cr_expect_eq(first != NULL, is_incident, "%s", slack);
        cr_expect(!first || strcmp(first, "2 columns of credit since 2025-01-31T12:00:00Z: "
                                          "age & <sex>, c; 2 critical") == 0,
                  "%s", first);
        cr_expect_str_eq(text, is_incident ? "2 columns of credit since 2025-01-31T12:00:00Z: "
                                             "age &amp; &lt;sex&gt;, c; 2 critical"
                                           : "credit: 2 changes: 2 critical");
        json_decref(json);
        free(slack);
        changes[1].from = API_WARNING;
    }
}

/* An alert that ends says why, not because of what it began. */
Test(notify_messages, that_end_an_alert_say_how)
{
    struct api_change change = drift;
    change.from = API_CRITICAL;
    change.to = API_OK;
    change.at = AT(300);
    const struct api_message message = message_of(&change, 1);
    char *text = body_of_message(&message, API_NOTIFY_ALERTMANAGER);
    cr_expect(strstr(text, "\"description\":\"is ok again, after 5 min\""), "%s", text);
    free(text);
}

/* Slack refuses a text of more than 3,000 characters, and shows names as their bidirectional controls say. */
Test(notify_messages, for_slack_are_cut_and_plain)
{
    char name[129], group[129], sentence[4000], url[1900];
    struct api_change change = drift;
    memset(name, '&', 128), memset(group, '>', 128), memset(url, 'u', sizeof url - 1);
    for (size_t i = 0; i + 4 < sizeof sentence; i += 4)
        strcpy(sentence + i, "\xf0\x9f\x98\x80");
    name[128] = group[128] = url[sizeof url - 1] = '\0';
    change.name = name, change.group = group, change.sentence = sentence;
    for (size_t url_size = 0; url_size < sizeof url; url_size += 131) {
        struct api_message message = message_of(&change, 1);
        message.public_url = url + sizeof url - 1 - url_size;
        char *slack = body_of_message(&message, API_NOTIFY_SLACK);
        json_t *json = json_loads(slack, 0, NULL), *blocks = json_object_get(json, "blocks");
        const char *texts[] = {json_string_value(json_object_get(json, "text")),
                               text_in(blocks, 0, 3)};
        for (size_t i = 0; i < COUNT(texts); i++) {
            cr_expect_leq(strlen(texts[i]), 3000);
            cr_expect_str_eq(texts[i] + strlen(texts[i]) - 3, "…");
        }
        json_decref(json);
        free(slack);
    }
    struct api_change changes[8];
    for (size_t i = 0; i < COUNT(changes); i++) {
        changes[i] = change;
        changes[i].monitor = (int64_t)i;
        changes[i].since = AT(i > 0);
    }
    const struct api_message incident = message_of(changes, COUNT(changes));
    char *slack = body_of_message(&incident, API_NOTIFY_SLACK);
    json_t *json = json_loads(slack, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "text"));
    cr_expect_leq(strlen(text), 3000);
    cr_expect_str_eq(text + strlen(text) - 3, "…");
    json_decref(json);
    free(slack);
    change.name = "a\u202eb\u2066c\u200fd\u061ce\u2020f";
    change.sentence = "";
    const struct api_message message = message_of(&change, 1);
    slack = body_of_message(&message, API_NOTIFY_SLACK);
    cr_expect(strstr(slack, "/ abcde†f"), "%s", slack);
    free(slack);
}

/* Who mutes a monitor, or a group, and why, beside how it is. */
Test(notify_messages, of_mutes_say_who_and_why)
{
    static const struct {
        const char *name;
        int state;
        const char *text;
    } cases[] = {
        {"age", API_CRITICAL,
         "credit / age is critical since 2025-01-31T12:00:00Z; acknowledged by ann: new form"},
        {"age", API_STALE,
         "credit / age is stale: no observation since 2025-01-31T12:00:00Z; acknowledged by ann: "
         "new form"},
        {"", API_WARNING,
         "credit is warning since 2025-01-31T12:00:00Z; acknowledged by ann: new form"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_change change = drift;
        change.name = cases[i].name;
        change.from = change.to = cases[i].state;
        change.mutes = true;
        change.kl = (double)NAN;
        change.sentence = "acknowledged by ann: new form";
        const struct api_message message = message_of(&change, 1);
        char *body = body_of_message(&message, API_NOTIFY_JSON);
        json_t *json = json_loads(body, 0, NULL);
        const json_t *told = json_array_get(json_object_get(json, "changes"), 0),
                     *name = json_object_get(told, "name");
        cr_expect_str_eq(json_string_value(json_object_get(json, "text")), cases[i].text);
        cr_expect(json_is_true(json_object_get(told, "mutes")), "%s", body);
        cr_expect(*change.name ? strcmp(json_string_value(name), "age") == 0 : json_is_null(name),
                  "%s", body);
        cr_expect_str_eq(json_string_value(json_object_get(told, "url")),
                         *change.name ? "https://kldiv.example/dashboard/?group=credit&monitor=age"
                                      : "https://kldiv.example/dashboard/?group=credit");
        json_decref(json);
        free(body);
    }
}

/* No character of a name or a sentence formats: each is shown as it is. */
Test(notify_messages, for_slack_show_each_character)
{
    static const char hostile[] = "*a* _b_ ~c~ `d` <https://e.example|f> @here :bomb: > & |";
    struct api_change change = drift;
    change.name = change.sentence = hostile;
    const struct api_message message = message_of(&change, 1);
    char *slack = body_of_message(&message, API_NOTIFY_SLACK), expected[200];
    json_t *json = json_loads(slack, 0, NULL), *blocks = json_object_get(json, "blocks");
    snprintf(expected, sizeof expected, "credit / %s", hostile);
    cr_expect_str_eq(text_in(blocks, 0, 2), expected);
    snprintf(expected, sizeof expected, " is critical since 2025-01-31T12:00:00Z: %s", hostile);
    cr_expect_str_eq(text_in(blocks, 0, 3), expected);
    cr_expect(json_is_false(json_object_get(json, "mrkdwn")), "%s", slack);
    json_decref(json);
    free(slack);
}

/* A test says that it is one. */
Test(notify_messages, of_tests_are_marked)
{
    struct api_message message = message_of(&drift, 1);
    message.is_test = true;
    static const char *const marks[] = {"\"test\":true", "*Test* of kldiv", "KldivTest"};
    for (int format = 0; format < API_NOTIFY_FORMATS; format++) {
        char *text = body_of_message(&message, (enum api_notify_format)format);
        cr_expect(strstr(text, marks[format]), "%s", text);
        free(text);
    }
}
