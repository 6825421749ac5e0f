#include "api/notify/news.h"

#include "api/json/format.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
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

/* ---- Several changes */

/* NAMED: monitors that a line names. */
enum { NAMED = 5 };

/* outcome: what the changes of one monitor are together. */
struct outcome {
    const struct api_change *last;
    bool has_left; /* it was ok, or not known, and drifts */
};

static double divergence_of(const struct api_change *change)
{
    return isnan(change->kl) ? -1 : change->kl;
}

/* By monitor, and of one monitor in order: changes are in one array. */
static int compare_monitors(const void *a, const void *b)
{
    const struct api_change *first = ((const struct outcome *)a)->last,
                            *second = ((const struct outcome *)b)->last;
    if (first->monitor != second->monitor)
        return first->monitor < second->monitor ? -1 : 1;
    return (first > second) - (first < second);
}

/* Orders monitors that have left ok before others, worst first. */
static int compare_outcomes(const void *a, const void *b)
{
    const struct outcome *first = a, *second = b;
    double p = divergence_of(first->last), q = divergence_of(second->last);
    if (first->has_left != second->has_left)
        return first->has_left ? -1 : 1;
    if (first->last->to != second->last->to)
        return first->last->to > second->last->to ? -1 : 1;
    if (p != q)
        return p > q ? -1 : 1;
    return (first->last->monitor > second->last->monitor) -
           (first->last->monitor < second->last->monitor);
}

/* Makes an outcome for each monitor; gives their number. */
static size_t find_outcomes(const struct api_change *changes, size_t n_changes,
                            struct outcome *outcomes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_changes; i++)
        outcomes[i] = (struct outcome){.last = &changes[i]};
    qsort(outcomes, n_changes, sizeof *outcomes, compare_monitors);
    for (size_t i = 0, begin = 0; i < n_changes; i++) {
        const struct api_change *first = outcomes[begin].last, *last = outcomes[i].last;
        if (i + 1 < n_changes && outcomes[i + 1].last->monitor == last->monitor)
            continue;
        bool was_ok = first->from == API_OK || first->from == API_INSUFFICIENT;
        bool drifts = last->to == API_WARNING || last->to == API_CRITICAL;
        outcomes[n++] = (struct outcome){last, was_ok && drifts};
        begin = i + 1;
    }
    qsort(outcomes, n, sizeof *outcomes, compare_outcomes);
    return n;
}

/* Appends "5 columns of credit since 2026-11-20T12:00:00Z: age, income …; first was age". */
static void write_incident(const struct outcome *outcomes, size_t n, struct api_buffer *out)
{
    const struct api_change *first = outcomes[0].last;
    size_t n_first = 0;
    for (size_t i = 1; i < n; i++)
        first = outcomes[i].last->since < first->since ? outcomes[i].last : first;
    for (size_t i = 0; i < n; i++)
        n_first += outcomes[i].last->since / API_SECOND_US == first->since / API_SECOND_US;
    api_append_format(out, "%zu columns of ", n);
    api_append_text(out, first->group);
    if (first->since != API_NO_TIME) {
        api_append_text(out, " since ");
        api_write_bare_time(out, first->since - first->since % API_SECOND_US);
    }
    for (size_t i = 0; i < n && i < NAMED; i++) {
        api_append_text(out, i ? ", " : ": ");
        api_append_text(out, outcomes[i].last->name);
    }
    api_append_text(out, n > NAMED ? " …" : "");
    if (n_first == 1) {
        api_append_text(out, "; first was ");
        api_append_text(out, first->name);
    }
}

/* Appends how many changes there are to each state, worst first: "3 critical, 2 warning". */
static void write_states(const size_t states[API_STATES], struct api_buffer *out)
{
    const char *before = "";
    for (int state = API_STATES - 1; state >= 0; state--)
        if (states[state] > 0) {
            api_append_format(out, "%s%zu %s", before, states[state], api_state_name(state));
            before = ", ";
        }
}

/* Appends how many changes there are, and to which states. */
static void write_counts(const struct api_change *changes, size_t n, struct api_buffer *out)
{
    size_t states[API_STATES] = {0};
    for (size_t i = 0; i < n; i++)
        states[changes[i].to]++;
    api_append_text(out, changes->group);
    api_append_format(out, ": %zu changes: ", n);
    write_states(states, out);
}

bool api_summary_write(const struct api_change *changes, size_t n_changes, struct api_buffer *out)
{
    struct outcome *outcomes = malloc((n_changes + 1) * sizeof *outcomes);
    size_t n = outcomes ? find_outcomes(changes, n_changes, outcomes) : 0, n_left = 0;
    size_t left[API_STATES] = {0}, others[API_STATES] = {0};
    for (size_t i = 0; i < n; i++) {
        (outcomes[i].has_left ? left : others)[outcomes[i].last->to]++;
        n_left += outcomes[i].has_left;
    }
    if (n_left > 1) {
        write_incident(outcomes, n_left, out);
        api_append_text(out, "; ");
        write_states(left, out);
        api_append_text(out, n > n_left ? "; besides: " : "");
        write_states(others, out);
    } else {
        write_counts(changes, n_changes, out);
    }
    free(outcomes);
    return n_left > 1;
}

/* ---- Messages */

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
