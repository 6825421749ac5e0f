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
        "2025-01-31T12:00:00Z: missing 0 % → 12 %\\u000a"
        "https://kldiv.example/dashboard/?group=credit&amp;monitor=age%20%26%20%3Csex%3E\"}\n");
    expect_message(
        &message, API_NOTIFY_ALERTMANAGER,
        "[{\"labels\":{\"alertname\":\"KldivDrift\",\"group\":\"credit\",\"monitor\":\"age & "
        "<sex>\",\"severity\":\"critical\"},\"annotations\":{\"summary\":\"credit / age & <sex> is "
        "critical since 2025-01-31T12:00:00Z: missing 0 % → 12 %\",\"description\":\"missing 0 % → "
        "12 %\",\"began\":\"2025-01-31T10:00:00Z\"},\"startsAt\":\"2025-01-31T12:00:00Z\","
        "\"endsAt\":\"2025-01-31T12:04:06Z\","
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

/* Lines of the text that Slack gets. */
enum { MAX_LINES = 20 };
struct lines {
    char *body, *line[MAX_LINES];
    json_t *json;
    size_t n;
};

static struct lines lines_of(const struct api_message *message)
{
    struct lines lines = {.body = body_of_message(message, API_NOTIFY_SLACK)};
    char *end;
    lines.json = json_loads(lines.body, 0, NULL);
    cr_assert(json_is_false(json_object_get(lines.json, "mrkdwn")), "%s", lines.body);
    cr_assert_eq(json_object_size(lines.json), 2);
    free(lines.body);
    lines.body = strdup(json_string_value(json_object_get(lines.json, "text")));
    for (char *line = lines.body; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        lines.line[lines.n++] = line;
    }
    return lines;
}

static void free_lines(struct lines *lines)
{
    json_decref(lines->json);
    free(lines->body);
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
    cr_expect(strstr(json, "\"text\":\"credit: 10000 changes: 7500 critical, 2500 warning\""));
    cr_expect(strstr(json, "\"id\":\"270f-"));
    free(json);
    struct lines lines = lines_of(&message);
    cr_expect_str_eq(lines.line[0], "credit: 10000 changes: 7500 critical, 2500 warning");
    for (size_t i = 1; i <= 10; i++)
        cr_expect(strncmp(lines.line[i], "credit / age &amp; &lt;sex&gt; is critical since ", 46) ==
                      0,
                  "%s", lines.line[i]);
    cr_expect_str_eq(lines.line[11], "… and 9990 more");
    cr_expect_str_eq(lines.line[12], "https://kldiv.example/dashboard/?group=credit");
    cr_expect_eq(lines.n, 13);
    free_lines(&lines);
    free(body_of_message(&message, API_NOTIFY_ALERTMANAGER));
    free(changes);
}

/* In Slack each of several changes has a line with its monitor's name, worst first. */
Test(notify_messages, for_slack_name_each_monitor)
{
    struct api_change changes[] = {drift, drift, drift, drift};
    static const char *const names[] = {"a", "b", "c", "d"};
    static const int states[] = {API_OK, API_WARNING, API_STALE, API_CRITICAL};
    for (size_t i = 0; i < COUNT(changes); i++) {
        changes[i].from = API_WARNING;
        changes[i].name = names[i];
        changes[i].to = states[i];
        changes[i].sentence = "";
    }
    struct api_message message = message_of(changes, COUNT(changes));
    message.public_url = NULL;
    struct lines lines = lines_of(&message);
    static const char *const expected[] = {
        "credit: 4 changes: 1 stale, 1 critical, 1 warning, 1 ok",
        "credit / d is critical since 2025-01-31T12:00:00Z (warning since 2025-01-31T12:00:00Z)",
        "credit / b is warning since 2025-01-31T12:00:00Z",
        "credit / c is stale: no observation since 2025-01-31T12:00:00Z", "credit / a is ok again"};
    cr_assert_eq(lines.n, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        cr_expect_str_eq(lines.line[i], expected[i]);
    free_lines(&lines);
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
    change.began = API_NO_TIME;
    text = body_of_message(&message, API_NOTIFY_ALERTMANAGER);
    cr_expect_null(strstr(text, "began"), "%s", text);
    free(text);
}

/* Slack cuts a text of more than 40,000 characters, and shows names as their bidirectional controls say. No other character of
 * a name or a sentence formats. */
Test(notify_messages, for_slack_are_cut_and_plain)
{
    enum { N = 20 };
    static const char hostile[] = "*a* _b_ ~c~ `d` <https://e.example|f> @here > & |",
                      escaped[] = "*a* _b_ ~c~ `d` &lt;https://e.example|f&gt; @here &gt; &amp; |";
    char name[129], group[129], sentence[4000], url[1900], expected[200];
    struct api_change change = drift, changes[N];
    memset(name, '&', 128), memset(group, '>', 128), memset(url, 'u', sizeof url - 1);
    memset(sentence, '&', sizeof sentence - 1);
    name[128] = group[128] = url[sizeof url - 1] = sentence[sizeof sentence - 1] = '\0';
    change.name = name, change.group = group, change.sentence = sentence;
    for (size_t i = 0; i < N; i++)
        changes[i] = change;
    for (size_t n = 1; n <= N; n += N - 1) {
        struct api_message message = message_of(changes, n);
        message.public_url = url;
        struct lines lines = lines_of(&message);
        size_t size = 0;
        for (size_t i = 0; i < lines.n; i++)
            size += strlen(lines.line[i]) + 1;
        cr_expect_leq(size, 40000);
        cr_expect_eq(lines.n, n == 1 ? 2 : 13);
        cr_expect(strncmp(lines.line[lines.n - 1], url, strlen(url)) == 0);
        cr_expect_str_eq(lines.line[n > 1] + strlen(lines.line[n > 1]) - 3, "…");
        free_lines(&lines);
    }
    change = drift;
    change.name = "a\u202eb\u2066c\u200fd\u061ce\u2020f";
    change.sentence = hostile;
    const struct api_message message = message_of(&change, 1);
    struct lines lines = lines_of(&message);
    snprintf(expected, sizeof expected,
             "credit / abcde†f is critical since 2025-01-31T12:00:00Z: %s", escaped);
    cr_expect_str_eq(lines.line[0], expected);
    free_lines(&lines);
}

/* A test says that it is one. */
Test(notify_messages, of_tests_are_marked)
{
    struct api_message message = message_of(&drift, 1);
    message.is_test = true;
    static const char *const marks[] = {"\"test\":true", "\"Test: credit", "KldivTest"};
    for (int format = 0; format < API_NOTIFY_FORMATS; format++) {
        char *text = body_of_message(&message, (enum api_notify_format)format);
        cr_expect(strstr(text, marks[format]), "%s", text);
        free(text);
    }
}
