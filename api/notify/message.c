#include "api/notify/message.h"

#include "api/json/format.h"
#include "api/notify/summary.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Texts */

/* Appends a length of time: 40 s, 5 min, 2 h 5 min, 3 d 2 h. */
static void write_length(int64_t length, struct api_buffer *out)
{
    int64_t seconds = length / API_SECOND_US, minutes = seconds / 60, hours = minutes / 60;
    if (minutes < 1)
        api_append_format(out, "%d s", (int)seconds);
    else if (hours < 1)
        api_append_format(out, "%d min", (int)minutes);
    else if (hours < 48)
        api_append_format(out, "%d h %d min", (int)hours, (int)(minutes % 60));
    else
        api_append_format(out, "%lld d %d h", (long long)(hours / 24), (int)(hours % 24));
}

/* Appends a time to the second. */
static void write_moment(struct api_buffer *out, int64_t time)
{
    api_write_bare_time(out, time - time % API_SECOND_US);
}

/* Appends since when a monitor has a state, and had one that was worse or better before: "since 2026-11-20T12:00:00Z
 * (critical until then)". */
static void write_since(const struct api_change *change, struct api_buffer *out)
{
    bool is_second =
        (change->from == API_WARNING || change->from == API_CRITICAL) && change->from != change->to;
    int64_t begin = is_second ? change->at : change->since;
    if (begin == API_NO_TIME)
        return;
    api_append_text(out, " since ");
    write_moment(out, begin);
    if (is_second && change->from == API_CRITICAL) {
        api_append_text(out, " (critical until then)");
    } else if (is_second && change->since != API_NO_TIME) {
        api_append_text(out, " (warning since ");
        write_moment(out, change->since);
        api_append_text(out, ")");
    }
}

/* Appends what has happened: "is critical since 2026-11-20T12:00:00Z: missing 0 % → 12 %". */
static void write_news(const struct api_change *change, struct api_buffer *out)
{
    if (change->to == API_STALE) {
        api_append_text(out, "is stale: ");
        api_append_text(out, *change->sentence ? change->sentence : "no observation since ");
        if (!*change->sentence)
            write_moment(out, change->at);
        return;
    }
    api_append_text(out, "is ");
    api_append_text(out, api_state_name(change->to));
    if (change->from == API_STALE) {
        api_append_text(out, "; observations arrive again");
        return;
    }
    if (change->to == API_OK) {
        api_append_text(out, " again");
        if (change->since != API_NO_TIME && change->at > change->since) {
            api_append_text(out, ", after ");
            write_length(change->at - change->since, out);
        }
        return;
    }
    write_since(change, out);
    api_append_text(out, *change->sentence ? ": " : "");
    api_append_text(out, change->sentence);
}

/* Appends what the message says in a line; true if that is an incident of several monitors. */
static bool write_text(const struct api_message *message, struct api_buffer *out)
{
    const struct api_change *first = message->changes;
    api_append_text(out, message->is_test ? "Test: " : message->is_reminder ? "Reminder: " : "");
    if (message->is_reminder && message->n > 1) {
        api_append_format(out, "%zu monitors are still critical", message->n);
        return false;
    }
    if (message->n > 1)
        return api_summary_write(message->changes, message->n, out);
    api_append_text(out, first->group);
    api_append_text(out, " / ");
    api_append_text(out, first->name);
    api_append_text(out, " ");
    write_news(first, out);
    return false;
}

/* Appends the bytes of a query, percent-encoded. */
static void write_encoded(const char *text, struct api_buffer *out)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (isalnum(*p) || strchr("-._~", *p))
            api_append(out, p, 1);
        else
            api_append_format(out, "%%%02X", *p);
}

/* Appends the address of a monitor's page. */
static void write_url(const struct api_message *message, const struct api_change *change,
                      struct api_buffer *out)
{
    api_append_text(out, message->public_url);
    api_append_text(out, "/dashboard/?group=");
    write_encoded(change->group, out);
    api_append_text(out, "&monitor=");
    write_encoded(change->name, out);
}

/* Appends as a JSON string what `write` appends. The text has a bound: a name or a sentence, and words. */
#define WRITE_STRING(out, write)                                                                   \
    do {                                                                                           \
        char memory[3000];                                                                         \
        struct api_buffer text = {0};                                                              \
        api_buffer_borrow(&text, memory, sizeof memory);                                           \
        write;                                                                                     \
        api_append(&text, "", 1);                                                                  \
        api_append_json_string(out, text.failed ? "" : text.data);                                 \
        api_buffer_free(&text);                                                                    \
    } while (0)

/* ---- JSON */

static void write_change(const struct api_message *message, const struct api_change *change,
                         struct api_buffer *out)
{
    api_append_format(out, "{\"id\":\"%llx-%llx\",\"group\":", (unsigned long long)change->monitor,
                      (unsigned long long)change->queued);
    api_append_json_string(out, change->group);
    api_append_text(out, ",\"name\":");
    api_append_json_string(out, change->name);
    api_append_format(out,
                      ",\"from\":\"%s\",\"to\":\"%s\",\"since\":", api_state_name(change->from),
                      api_state_name(change->to));
    api_write_time(out, change->since);
    api_append_text(out, ",\"at\":");
    api_write_time(out, change->at);
    api_write_member(out, "kl", change->kl);
    api_append_text(out, ",\"sentence\":");
    api_append_json_string(out, change->sentence);
    api_append_text(out, ",\"url\":");
    if (message->public_url)
        WRITE_STRING(out, write_url(message, change, &text));
    else
        api_append_text(out, "null");
    if (api_trace_is_set(&change->trace)) {
        char trace_id[API_TRACE_ID], span_id[API_SPAN_ID];
        api_trace_ids(&change->trace, trace_id, span_id);
        api_append_format(out, ",\"trace_id\":\"%s\"", trace_id);
    }
    api_append(out, "}", 1);
}

static void write_json(const struct api_message *message, struct api_buffer *out)
{
    api_append_format(out, "{\"id\":\"%s\",\"sent_at\":", message->id);
    api_write_time(out, message->sent_at);
    api_append_text(out, ",\"text\":");
    WRITE_STRING(out, write_text(message, &text));
    api_append_text(out, message->is_test ? ",\"test\":true" : "");
    api_append_text(out, message->is_reminder ? ",\"reminder\":true" : "");
    api_append_text(out, ",\"changes\":[");
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        api_append(out, ",", i > 0);
        write_change(message, &message->changes[i], out);
    }
    api_append_text(out, "]}\n");
}

/* ---- Slack */

/* SLACK_MAX: characters of a text that Slack takes; a longer one has it refuse the message. Bytes are counted here, which are
 * as many or more. */
enum { SLACK_MAX = 3000 };

/* Bytes of a control character that turns the direction of a text in UTF-8 (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066
 * to U+2069); 0 for others. */
static size_t bidi_control(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] == 0xd8 && p[1] == 0x9c)
        return 2;
    bool is_one =
        p[0] == 0xe2 &&
        ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
         (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
    return is_one ? 3 : 0;
}

/* Appends a text as Slack's mrkdwn wants it: three characters have escapes. It is cut where `out` would have more than
 * SLACK_MAX bytes. */
static void write_escaped(const char *from, struct api_buffer *out)
{
    static const char cut[] = "…";
    enum { LONGEST = 5 }; /* "&amp;", or a character of 4 bytes */
    for (size_t n; *from; from += n) {
        bool begins = ((unsigned char)*from & 0xc0) != 0x80;
        n = bidi_control(from);
        if (n > 0)
            continue;
        n = 1;
        if (begins && out->size > SLACK_MAX - LONGEST - sizeof cut) {
            api_append_text(out, cut);
            return;
        }
        if (*from == '&')
            api_append_text(out, "&amp;");
        else if (*from == '<')
            api_append_text(out, "&lt;");
        else if (*from == '>')
            api_append_text(out, "&gt;");
        else
            api_append(out, from, 1);
    }
}

static void write_slack_line(const struct api_message *message, const struct api_change *change,
                             struct api_buffer *out)
{
    enum { LONGEST_URL = 500 }; /* with the names, encoded and as text, less than SLACK_MAX */
    static const char *const marks[API_STATES] = {
        ":white_circle:", ":large_green_circle:", ":large_yellow_circle:", ":red_circle:",
        ":black_circle:"};
    char memory[1000];
    struct api_buffer news = {0};
    api_buffer_borrow(&news, memory, sizeof memory);
    write_news(change, &news);
    api_append(&news, "", 1);
    api_append_text(out, marks[change->to]);
    api_append_text(out, " *");
    bool has_link = message->public_url && strlen(message->public_url) < LONGEST_URL;
    if (has_link) {
        api_append_text(out, "<");
        write_url(message, change, out);
        api_append_text(out, "|");
    }
    write_escaped(change->group, out);
    api_append_text(out, " / ");
    write_escaped(change->name, out);
    api_append_text(out, has_link ? ">* " : "* ");
    write_escaped(news.failed ? "" : news.data, out);
    api_buffer_free(&news);
}

/* A section of mrkdwn, around a text that is written as a JSON string. */
#define SECTION "{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"verbatim\":true,\"text\":"

/* SHOWN: changes that a message for people names; of more it says how many there are. */
enum { SHOWN = 10 };

/* Appends the line as a JSON string; true if it is of an incident. */
static bool write_slack_text(const struct api_message *message, struct api_buffer *out)
{
    char line[3000];
    struct api_buffer plain = {0};
    api_buffer_borrow(&plain, line, sizeof line);
    bool is_incident = write_text(message, &plain);
    api_append(&plain, "", 1);
    WRITE_STRING(out, write_escaped(plain.failed ? "" : plain.data, &text));
    api_buffer_free(&plain);
    return is_incident;
}

static void write_slack(const struct api_message *message, struct api_buffer *out)
{
    api_append_text(out, "{\"text\":");
    bool is_incident = write_slack_text(message, out);
    api_append_text(out, ",\"blocks\":[");
    if (is_incident) {
        api_append_text(out, SECTION);
        write_slack_text(message, out);
        api_append_text(out, "}},");
    }
    if (message->is_test)
        api_append_text(out, SECTION "\"*Test* of kldiv: nothing has happened.\"}},");
    if (message->is_reminder)
        api_append_text(out, SECTION "\"*Reminder* of what is still critical.\"}},");
    for (size_t i = 0; i < message->n && i < SHOWN; i++) {
        api_append_text(out, i ? "," SECTION : SECTION);
        WRITE_STRING(out, write_slack_line(message, &message->changes[i], &text));
        api_append_text(out, "}}");
    }
    if (message->n > SHOWN)
        api_append_format(out, "," SECTION "\"… and %zu more\"}}", message->n - SHOWN);
    api_append_text(out, "]}\n");
}

/* ---- Alertmanager */

/* LASTS: microseconds for which an alert fires unless it is told again, each minute. */
#define LASTS (INT64_C(4) * API_MINUTE_US)

/* Appends an alert: of a state that ends now, or that lasts. Its labels are those of the rules of Prometheus, but for the
 * job and the name of the alert. */
static void write_alert(const struct api_message *message, const struct api_change *change,
                        int state, bool ends, struct api_buffer *out)
{
    int64_t now = message->sent_at, start = change->at < now ? change->at : now;
    if (ends)
        start = change->since != API_NO_TIME && change->since < start ? change->since : start;
    api_append_format(out, "{\"labels\":{\"alertname\":\"%s\",\"group\":",
                      message->is_test     ? "KldivTest"
                      : state == API_STALE ? "KldivDriftStale"
                                           : "KldivDrift");
    api_append_json_string(out, change->group);
    api_append_text(out, ",\"monitor\":");
    api_append_json_string(out, change->name);
    api_append_format(out, ",\"severity\":\"%s\"},\"annotations\":{\"summary\":",
                      api_state_name(state == API_STALE || state == API_OK ? API_WARNING : state));
    WRITE_STRING(out, {
        api_append_text(&text, change->group);
        api_append_text(&text, " / ");
        api_append_text(&text, change->name);
        api_append_text(&text, " ");
        write_news(change, &text);
    });
    api_append_text(out, ",\"description\":");
    if (ends)
        WRITE_STRING(out, write_news(change, &text));
    else
        api_append_json_string(out, change->sentence);
    api_append_text(out, "},\"startsAt\":");
    api_write_time(out, start);
    api_append_text(out, ",\"endsAt\":");
    api_write_time(out, ends ? now : now + LASTS);
    if (message->public_url) {
        api_append_text(out, ",\"generatorURL\":");
        WRITE_STRING(out, write_url(message, change, &text));
    }
    api_append(out, "}", 1);
}

/* True if a later change of the message decides this alert: an Alertmanager gets only the last state of an alert. */
static bool is_superseded(const struct api_message *message, size_t i, int state)
{
    const struct api_change *this = &message->changes[i];
    for (const struct api_change *later = this + 1; later < message->changes + message->n; later++)
        if (later->monitor == this->monitor && (later->from == state || later->to == state))
            return true;
    return false;
}

static void write_alerts(const struct api_message *message, struct api_buffer *out)
{
    size_t n = 0;
    api_append(out, "[", 1);
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        const struct api_change *change = &message->changes[i];
        /* one that is stale keeps its state */
        bool ends =
            change->from >= API_WARNING && change->from != change->to && change->to != API_STALE;
        bool begins = change->to >= API_WARNING;
        if (ends && !is_superseded(message, i, change->from)) {
            api_append(out, ",", n++ > 0);
            write_alert(message, change, change->from, true, out);
        }
        if (begins && !is_superseded(message, i, change->to)) {
            api_append(out, ",", n++ > 0);
            write_alert(message, change, change->to, message->is_test, out);
        }
    }
    api_append_text(out, "]\n");
}

const struct api_trace *api_message_trace(const struct api_message *message)
{
    const struct api_trace *found = NULL;
    for (size_t i = 0; i < message->n; i++) {
        const struct api_trace *trace = &message->changes[i].trace;
        if (found && api_trace_is_set(trace) && !api_trace_is_same(found, trace))
            return NULL;
        if (api_trace_is_set(trace))
            found = trace;
    }
    return found;
}

void api_message_write(const struct api_message *message, enum api_notify_format format,
                       struct api_buffer *out)
{
    static void (*const writers[API_NOTIFY_FORMATS])(
        const struct api_message *, struct api_buffer *) = {write_json, write_slack, write_alerts};
    writers[format](message, out);
}
