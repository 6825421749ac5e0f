#include "api/notify/message.h"

#include "api/json/format.h"
#include "api/notify/news.h"
#include "api/notify/slack.h"

#include <stdio.h>

/* ---- JSON */

static void write_change(const struct api_message *message, const struct api_change *change,
                         struct api_buffer *out)
{
    char id[40];
    snprintf(id, sizeof id, "%llx-%llx", (unsigned long long)change->monitor,
             (unsigned long long)change->queued);
    api_write_json(out,
                   "{'id':%s,'group':%s,'name':%s,'from':%s,'to':%s,'since':%jd,'at':%jd,'kl':%g,'"
                   "sentence':%s",
                   id, change->group, *change->name ? change->name : NULL,
                   api_state_name(change->from), api_state_name(change->to), change->since,
                   change->at, change->kl, change->sentence);
    api_append_text(out, change->mutes ? ",\"mutes\":true" : "");
    api_append_text(out, ",\"url\":");
    if (message->public_url)
        API_WRITE_STRING(out, api_news_write_url(message, change, &text));
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
    API_WRITE_STRING(out, api_news_write_line(message, &text));
    api_append_text(out, message->is_test ? ",\"test\":true" : "");
    api_append_text(out, message->is_reminder ? ",\"reminder\":true" : "");
    api_append_text(out, ",\"changes\":[");
    for (size_t i = 0; i < message->n && !out->failed; i++) {
        api_append(out, ",", i > 0);
        write_change(message, &message->changes[i], out);
    }
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
    API_WRITE_STRING(out, {
        api_news_write_subject(change, &text);
        api_append_text(&text, " ");
        api_news_write(change, &text);
    });
    api_append_text(out, ",\"description\":");
    if (ends)
        API_WRITE_STRING(out, api_news_write(change, &text));
    else
        api_append_json_string(out, change->sentence);
    api_write_json(out, "},'startsAt':%jd,'endsAt':%jd", start, ends ? now : now + LASTS);
    if (message->public_url) {
        api_append_text(out, ",\"generatorURL\":");
        API_WRITE_STRING(out, api_news_write_url(message, change, &text));
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
        const struct api_message *, struct api_buffer *) = {write_json, api_slack_write,
                                                            write_alerts};
    writers[format](message, out);
}
