#include "api/notify/news.h"

#include "api/json/format.h"
#include "api/notify/summary.h"

#include <ctype.h>
#include <string.h>

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

/* Appends how a monitor is: "is critical since 2026-11-20T12:00:00Z: missing 0 % → 12 %". */
static void write_state(const struct api_change *change, const char *cause, struct api_buffer *out)
{
    if (change->to == API_STALE) {
        api_append_text(out, "is stale: ");
        api_append_text(out, *cause ? cause : "no observation since ");
        if (!*cause)
            write_moment(out, change->at);
        return;
    }
    api_append_text(out, "is ");
    api_append_text(out, api_state_name(change->to));
    if (change->to == API_OK && change->from != API_STALE) {
        api_append_text(out, " again");
        if (change->since != API_NO_TIME && change->at > change->since) {
            api_append_text(out, ", after ");
            write_length(change->at - change->since, out);
        }
        return;
    }
    if (change->to != API_OK)
        write_since(change, out);
    api_append_text(out, *cause ? ": " : "");
    api_append_text(out, cause);
}

void api_news_write(const struct api_change *change, struct api_buffer *out)
{
    write_state(change, change->mutes ? "" : change->sentence, out);
    api_append_text(out, change->mutes ? "; " : "");
    api_append_text(out, change->mutes ? change->sentence : "");
    if (change->from == API_STALE && change->to != API_STALE)
        api_append_text(out, "; observations arrive again");
}

void api_news_write_subject(const struct api_change *change, struct api_buffer *out)
{
    api_append_text(out, change->group);
    api_append_text(out, *change->name ? " / " : "");
    api_append_text(out, change->name);
}

bool api_news_write_line(const struct api_message *message, struct api_buffer *out)
{
    const struct api_change *first = message->changes;
    api_append_text(out, message->is_test ? "Test: " : message->is_reminder ? "Reminder: " : "");
    if (message->is_reminder && message->n > 1) {
        api_append_format(out, "%zu monitors are still critical", message->n);
        return false;
    }
    if (message->n > 1)
        return api_summary_write(message->changes, message->n, out);
    api_news_write_subject(first, out);
    api_append_text(out, " ");
    api_news_write(first, out);
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

void api_news_write_url(const struct api_message *message, const struct api_change *change,
                        struct api_buffer *out)
{
    api_append_text(out, message->public_url);
    api_append_text(out, "/dashboard/?group=");
    write_encoded(change->group, out);
    api_append_text(out, *change->name ? "&monitor=" : "");
    write_encoded(change->name, out);
}
