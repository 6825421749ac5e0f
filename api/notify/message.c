#include "api/notify/message.h"

#include "api/json/format.h"
#include "api/notify/news.h"

#include <stdio.h>
#include <string.h>

/* Has `use` take what `write` appends, as `written`. The text has a bound: names or a sentence, and words. */
#define WITH_TEXT(use, write)                                                                      \
    do {                                                                                           \
        char memory[4000];                                                                         \
        struct api_buffer text = {0};                                                              \
        api_buffer_borrow(&text, memory, sizeof memory);                                           \
        write;                                                                                     \
        api_append(&text, "", 1);                                                                  \
        const char *written = text.failed ? "" : text.data;                                        \
        use;                                                                                       \
        api_buffer_free(&text);                                                                    \
    } while (0)
#define WRITE_STRING(out, write) WITH_TEXT(api_append_json_string(out, written), write)

/* ---- JSON */

static void write_change(const struct api_message *message, const struct api_change *change,
                         struct api_buffer *out)
{
    char id[40];
    snprintf(id, sizeof id, "%llx-%llx", (unsigned long long)change->monitor,
             (unsigned long long)change->queued);
    api_write_json(
        out,
        "{'id':%s,'group':%s,'name':%s,'from':%s,'to':%s,'since':%jd,'began':%jd,'at':%jd,'kl':%g,'"
        "sentence':%s",
        id, change->group, *change->name ? change->name : NULL, api_state_name(change->from),
        api_state_name(change->to), change->since, change->began, change->at, change->kl,
        change->sentence);
    api_append_text(out, change->mutes ? ",\"mutes\":true" : "");
    api_append_text(out, ",\"url\":");
    if (message->public_url)
        WRITE_STRING(out, api_news_write_url(message, change, &text));
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
    api_write_json(out, "{'id':%s,'sent_at':%jd,'text':", message->id, message->sent_at);
    WRITE_STRING(out, api_news_write_line(message, &text));
    api_append_text(out, message->is_test ? ",\"test\":true" : "");
    api_append_text(out, message->is_reminder ? ",\"reminder\":true" : "");
    api_append_text(out, ",\"changes\":[");
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        api_append(out, ",", i > 0);
        write_change(message, &message->changes[i], out);
    }
    api_append_text(out, "]}\n");
}

/* ---- Slack, as its incoming webhooks take messages */

/* SLACK_MAX: characters of a text that Slack takes; a longer one has it refuse the message. Bytes are counted here, which are
 * as many or more. SHOWN: changes that a message for people names; of more it says how many there are. */
enum { SLACK_MAX = 3000, SHOWN = 10 };

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

/* Appends a text as a JSON string, cut to SLACK_MAX; `escapes` the three characters that Slack's mrkdwn escapes. */
static void write_string(const char *from, bool escapes, struct api_buffer *out)
{
    static const char cut[] = "…";
    enum { LONGEST = 5 }; /* "&amp;", or a character of 4 bytes */
    char memory[SLACK_MAX + 1];
    struct api_buffer text = {0};
    api_buffer_borrow(&text, memory, sizeof memory);
    for (size_t n; *from; from += n) {
        bool begins = ((unsigned char)*from & 0xc0) != 0x80;
        n = bidi_control(from);
        if (n > 0)
            continue;
        n = 1;
        if (begins && text.size > SLACK_MAX - LONGEST - sizeof cut) {
            api_append_text(&text, cut);
            break;
        }
        if (escapes && *from == '&')
            api_append_text(&text, "&amp;");
        else if (escapes && *from == '<')
            api_append_text(&text, "&lt;");
        else if (escapes && *from == '>')
            api_append_text(&text, "&gt;");
        else
            api_append(&text, from, 1);
    }
    api_append(&text, "", 1);
    api_append_json_string(out, text.failed ? "" : text.data);
    api_buffer_free(&text);
}

#define WRITE_CUT(out, escapes, write) WITH_TEXT(write_string(written, escapes, out), write)

/* A block of words of our own; and one of others' texts, which no character of theirs formats. */
#define SECTION "{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":"
#define RICH "{\"type\":\"rich_text\",\"elements\":[{\"type\":\"rich_text_section\",\"elements\":["
#define RICH_END "]}]}"

static void write_slack_change(const struct api_message *message, const struct api_change *change,
                               struct api_buffer *out)
{
    enum { LONGEST_URL = 500 }; /* with the names, encoded, less than SLACK_MAX */
    static const char *const marks[API_STATES] = {
        "white_circle", "large_green_circle", "large_yellow_circle", "red_circle", "black_circle"};
    api_append_format(
        out, RICH "{\"type\":\"emoji\",\"name\":\"%s\"},{\"type\":\"text\",\"text\":\" \"},{",
        marks[change->to]);
    if (message->public_url && strlen(message->public_url) < LONGEST_URL) {
        api_append_text(out, "\"type\":\"link\",\"url\":");
        WRITE_STRING(out, api_news_write_url(message, change, &text));
    } else {
        api_append_text(out, "\"type\":\"text\"");
    }
    api_append_text(out, ",\"style\":{\"bold\":true},\"text\":");
    WRITE_CUT(out, false, api_news_write_subject(change, &text));
    api_append_text(out, "},{\"type\":\"text\",\"text\":");
    WRITE_CUT(out, false, {
        api_append_text(&text, " ");
        api_news_write(change, &text);
    });
    api_append_text(out, "}" RICH_END);
}

/* Writes `text`, which notifications of desktops show, and blocks. */
static void write_slack(const struct api_message *message, struct api_buffer *out)
{
    bool is_incident = false;
    api_append_text(out, "{\"mrkdwn\":false,\"text\":");
    WRITE_CUT(out, true, is_incident = api_news_write_line(message, &text));
    api_append_text(out, ",\"blocks\":[");
    if (is_incident) {
        api_append_text(out, RICH "{\"type\":\"text\",\"text\":");
        WRITE_CUT(out, false, api_news_write_line(message, &text));
        api_append_text(out, "}" RICH_END ",");
    }
    if (message->is_test)
        api_append_text(out, SECTION "\"*Test* of kldiv: nothing has happened.\"}},");
    if (message->is_reminder)
        api_append_text(out, SECTION "\"*Reminder* of what is still critical.\"}},");
    for (size_t i = 0; i < message->n && i < SHOWN; i++) {
        api_append(out, ",", i > 0);
        write_slack_change(message, &message->changes[i], out);
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
    api_write_json(out,
                   "{'labels':{'alertname':%s,'group':%s,'monitor':%s,'severity':%s},'annotations':"
                   "{'summary':",
                   message->is_test     ? "KldivTest"
                   : state == API_STALE ? "KldivDriftStale"
                                        : "KldivDrift",
                   change->group, change->name,
                   api_state_name(state == API_STALE || state == API_OK ? API_WARNING : state));
    WRITE_STRING(out, {
        api_news_write_subject(change, &text);
        api_append_text(&text, " ");
        api_news_write(change, &text);
    });
    api_append_text(out, ",\"description\":");
    if (ends)
        WRITE_STRING(out, api_news_write(change, &text));
    else
        api_append_json_string(out, change->sentence);
    api_write_json(out, "},'startsAt':%jd,'endsAt':%jd", start, ends ? now : now + LASTS);
    if (message->public_url) {
        api_append_text(out, ",\"generatorURL\":");
        WRITE_STRING(out, api_news_write_url(message, change, &text));
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
