#include "api/notify/message.h"

#include "api/json/format.h"
#include "api/monitors/model/segment.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Words */

/* Appends a length of time: 40 s, 5 min, 2 h 5 min, 3 d 2 h. */
static void write_length(int64_t length, struct api_buffer *out)
{
    long seconds = (long)(length / API_SECOND_US), minutes = seconds / 60, hours = minutes / 60;
    if (minutes < 1)
        api_append_format(out, "%ld s", seconds);
    else if (hours < 1)
        api_append_format(out, "%ld min", minutes);
    else if (hours < 48)
        api_append_format(out, "%ld h %ld min", hours, minutes % 60);
    else
        api_append_format(out, "%ld d %ld h", hours / 24, hours % 24);
}

/* Appends words and a time, to the second. */
static void write_moment(const char *words, int64_t time, struct api_buffer *out)
{
    api_append_text(out, words);
    api_write_bare_time(out, time - time % API_SECOND_US);
}

/* Appends since when a monitor has a state, and had one that was worse or better before: "since 2026-11-20T12:00:00Z
 * (critical until then)". */
static void write_since(const struct api_change *change, struct api_buffer *out)
{
    bool is_second =
        (change->from == API_WARNING || change->from == API_CRITICAL) && change->from != change->to;
    int64_t begin = is_second ? change->at : change->since;
    if (begin != API_NO_TIME)
        write_moment(" since ", begin, out);
    if (is_second && change->from == API_CRITICAL) {
        api_append_text(out, " (critical until then)");
    } else if (is_second && change->since != API_NO_TIME) {
        write_moment(" (warning since ", change->since, out);
        api_append_text(out, ")");
    }
}

/* Appends what has happened: "is critical since 2026-11-20T12:00:00Z: missing 0 % → 12 %". */
static void write_news(const struct api_change *change, struct api_buffer *out)
{
    bool is_heard = change->from == API_STALE && change->to != API_STALE;
    api_append_format(out, "is %s", api_state_name(change->to));
    if (change->to == API_STALE && !*change->sentence)
        write_moment(": no observation since ", change->at, out);
    if (change->to == API_OK && !is_heard) {
        api_append_text(out, " again");
        if (change->since != API_NO_TIME && change->at > change->since) {
            api_append_text(out, ", after ");
            write_length(change->at - change->since, out);
        }
        return;
    }
    if (change->to == API_WARNING || change->to == API_CRITICAL)
        write_since(change, out);
    api_append_text(out, *change->sentence ? ": " : "");
    api_append_text(out, change->sentence);
    api_append_text(out, is_heard ? "; observations arrive again" : "");
}

/* Appends of what, and what has happened: "credit / age is critical …". */
static void write_subject(const struct api_change *change, struct api_buffer *out)
{
    api_append_format(out, "%s / %s ", change->group, change->name);
    write_news(change, out);
}

/* Bytes of the group of the first change; if others are of other segments, of the group of which all are. */
static size_t group_size(const struct api_message *message)
{
    const char *group = message->changes->group;
    size_t parent = api_segment_parent(group), size = strlen(group);
    for (size_t i = 1; parent > 0 && i < message->n; i++)
        if (strcmp(message->changes[i].group, group) != 0)
            return parent;
    return size;
}

/* Appends the message in a line: its change, or to which states there are how many, worst first. */
static void write_title(const struct api_message *message, struct api_buffer *out)
{
    const char *words = ": ";
    api_append_text(out, message->is_test ? "Test: " : "");
    if (message->n == 1) {
        write_subject(message->changes, out);
        return;
    }
    api_append_format(out, "%.*s: %zu changes", (int)group_size(message), message->changes->group,
                      message->n);
    for (int state = API_STATES - 1; state >= 0; state--) {
        size_t n = 0;
        for (size_t i = 0; i < message->n; i++)
            n += message->changes[i].to == state;
        if (n == 0)
            continue;
        api_append_format(out, "%s%zu %s", words, n, api_state_name(state));
        words = ", ";
    }
}

/* Appends a member of a query, percent-encoded. */
static void write_member(const char *name, const char *text, size_t size, struct api_buffer *out)
{
    api_append_text(out, name);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        api_append_format(out, isalnum(c) || strchr("-._~", c) ? "%c" : "%%%02X", c);
    }
}

/* Appends the address of the page of a monitor, or of its group if `name` is NULL. */
static void write_page(const struct api_message *message, const char *group, size_t size,
                       const char *name, struct api_buffer *out)
{
    api_append_text(out, message->public_url);
    write_member("/dashboard/?group=", group, size, out);
    if (name)
        write_member("&monitor=", name, strlen(name), out);
}

/* Appends a text that was written, as a JSON string, and empties it. */
static void append_string(struct api_buffer *out, struct api_buffer *text)
{
    api_append(text, "", 1);
    api_append_json_string(out, text->failed ? "" : text->data);
    out->failed |= text->failed;
    text->size = 0;
}

/* ---- JSON */

static void write_change(const struct api_message *message, const struct api_change *change,
                         struct api_buffer *out, struct api_buffer *text)
{
    char id[40];
    snprintf(id, sizeof id, "%llx-%llx", (unsigned long long)change->monitor,
             (unsigned long long)change->queued);
    api_write_json(
        out,
        "{'id':%s,'group':%s,'name':%s,'from':%s,'to':%s,'since':%jd,'began':%jd,'at':%jd,'kl':%g,'"
        "sentence':%s,'url':",
        id, change->group, change->name, api_state_name(change->from), api_state_name(change->to),
        change->since, change->began, change->at, change->kl, change->sentence);
    if (message->public_url) {
        write_page(message, change->group, strlen(change->group), change->name, text);
        append_string(out, text);
    } else {
        api_append_text(out, "null");
    }
    if (api_trace_is_set(&change->trace)) {
        char trace_id[API_TRACE_ID], span_id[API_SPAN_ID];
        api_trace_ids(&change->trace, trace_id, span_id);
        api_write_json(out, ",'trace_id':%s", trace_id);
    }
    api_append_text(out, "}");
}

static void write_json(const struct api_message *message, struct api_buffer *out,
                       struct api_buffer *text)
{
    api_write_json(out, "{'id':%s,'sent_at':%jd,'text':", message->id, message->sent_at);
    write_title(message, text);
    append_string(out, text);
    api_append_text(out, message->is_test ? ",\"test\":true,\"changes\":[" : ",\"changes\":[");
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        api_append(out, ",", i > 0);
        write_change(message, &message->changes[i], out, text);
    }
    api_append_text(out, "]}\n");
}

/* ---- Slack, as its incoming webhooks take messages */

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

/* Appends a line that was written, and empties it: cut, and with the characters escaped that Slack reads as its own. */
static void append_line(struct api_buffer *text, struct api_buffer *line, size_t max)
{
    size_t size = line->size > 0 ? api_utf8_cut(line->data, line->size, max) : 0;
    bool is_cut = size < line->size;
    api_append(line, "\0\0", 3); /* for bidi_control */
    for (size_t i = 0; i < size && !line->failed; i++) {
        const char *p = line->data + i;
        size_t control = bidi_control(p);
        if (control > 0)
            i += control - 1;
        else if (*p == '&')
            api_append_text(text, "&amp;");
        else if (*p == '<' || *p == '>')
            api_append_text(text, *p == '<' ? "&lt;" : "&gt;");
        else
            api_append(text, p, 1);
    }
    api_append_text(text, is_cut ? "…\n" : "\n");
    text->failed |= line->failed;
    line->size = 0;
}

/* Writes a title, which notifications of desktops show, too; a line for each of several changes, worst first; and a link. */
static void write_slack(const struct api_message *message, struct api_buffer *out,
                        struct api_buffer *line)
{
    /* SHOWN: changes. MAX_LINE: bytes. Slack cuts a text at 40,000 characters; an escaped one may be five. */
    enum { SHOWN = 10, MAX_LINE = 500 };
    static const int order[] = {API_CRITICAL, API_WARNING, API_STALE, API_OK};
    struct api_buffer text = {.budget = out->budget};
    const struct api_change *first = message->changes;
    size_t shown = message->n > 1 ? 0 : SHOWN;
    write_title(message, line);
    append_line(&text, line, MAX_LINE);
    for (size_t i = 0; i < sizeof order / sizeof *order * message->n && shown < SHOWN; i++) {
        const struct api_change *change = &first[i % message->n];
        if (change->to != order[i / message->n])
            continue;
        write_subject(change, line);
        append_line(&text, line, MAX_LINE);
        shown++;
    }
    if (message->n > SHOWN)
        api_append_format(&text, "… and %zu more\n", message->n - SHOWN);
    if (message->public_url) {
        write_page(message, first->group, group_size(message), message->n > 1 ? NULL : first->name,
                   line);
        append_line(&text, line, line->size);
    }
    api_append_text(out, "{\"mrkdwn\":false,\"text\":");
    text.size -= text.size > 0; /* the last line's end */
    append_string(out, &text);
    api_append_text(out, "}\n");
    api_buffer_free(&text);
}

/* ---- Alertmanager */

/* LASTS: microseconds for which an alert fires unless it is told again, each minute. */
#define LASTS (INT64_C(4) * API_MINUTE_US)

/* Appends an alert: of a state that ends now, or that lasts. Its labels are those of the rules of Prometheus, but for the
 * job and the name of the alert. */
static void write_alert(const struct api_message *message, const struct api_change *change,
                        int state, bool ends, struct api_buffer *out, struct api_buffer *text)
{
    int64_t now = message->sent_at, start = change->at < now ? change->at : now;
    if (ends && change->since != API_NO_TIME && change->since < start)
        start = change->since;
    api_append_text(out, out->size > 0 && out->data[out->size - 1] == '}' ? "," : "");
    api_write_json(out,
                   "{'labels':{'alertname':%s,'group':%s,'monitor':%s,'severity':%s},'annotations':"
                   "{'summary':",
                   message->is_test     ? "KldivTest"
                   : state == API_STALE ? "KldivDriftStale"
                                        : "KldivDrift",
                   change->group, change->name,
                   api_state_name(state == API_STALE || state == API_OK ? API_WARNING : state));
    write_subject(change, text);
    append_string(out, text);
    api_append_text(out, ",\"description\":");
    if (ends)
        write_news(change, text);
    else
        api_append_text(text, change->sentence);
    append_string(out, text);
    if (change->began != API_NO_TIME)
        api_write_json(out, ",'began':%jd", change->began);
    api_write_json(out, "},'startsAt':%jd,'endsAt':%jd", start, ends ? now : now + LASTS);
    if (message->public_url) {
        api_append_text(out, ",\"generatorURL\":");
        write_page(message, change->group, strlen(change->group), change->name, text);
        append_string(out, text);
    }
    api_append_text(out, "}");
}

/* True if a later change of the message decides this alert: an Alertmanager gets only the last state of an alert. */
static bool is_superseded(const struct api_message *message, const struct api_change *change,
                          int state)
{
    for (const struct api_change *later = change + 1; later < message->changes + message->n;
         later++)
        if (later->monitor == change->monitor && (later->from == state || later->to == state))
            return true;
    return false;
}

static void write_alerts(const struct api_message *message, struct api_buffer *out,
                         struct api_buffer *text)
{
    api_append_text(out, "[");
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        const struct api_change *change = &message->changes[i];
        int from = change->from, to = change->to;
        /* one that is stale keeps its state */
        if (from >= API_WARNING && from != to && to != API_STALE &&
            !is_superseded(message, change, from))
            write_alert(message, change, from, true, out, text);
        if (to >= API_WARNING && !is_superseded(message, change, to))
            write_alert(message, change, to, message->is_test, out, text);
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
    static void (*const writers[API_NOTIFY_FORMATS])(const struct api_message *,
                                                     struct api_buffer *, struct api_buffer *) = {
        write_json, write_slack, write_alerts};
    struct api_buffer text = {.budget = out->budget};
    writers[format](message, out, &text);
    api_buffer_free(&text);
}
