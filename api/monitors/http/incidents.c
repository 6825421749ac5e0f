#include "api/monitors/http/incidents.h"

#include "api/text/clock.h"

#include <stdlib.h>

/* LISTED: monitors that an incident lists. REACH: microseconds around an onset where windows are not of time. */
enum { LISTED = 50 };
#define REACH (INT64_C(60) * API_MINUTE_US)

/* incident: onsets of one chain, worst first. */
struct incident {
    struct api_onset *onsets;
    size_t n;
    int64_t since;
    const struct api_monitor *first; /* NULL if several were, to the second */
};

struct api_onset api_onset_of(const struct api_monitor *monitor, size_t rank)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    int64_t since = monitor->status.since;
    struct api_onset onset = {
        .monitor = monitor, .rank = rank, .since = since, .reach = {since, since}};
    if (since == API_NO_TIME)
        return onset;
    if (settings->window == API_SECONDS)
        onset.reach = (struct api_window_span){api_window_span(settings, since - 1).start,
                                               api_window_span(settings, since).end};
    else
        onset.reach = (struct api_window_span){since - REACH, since + REACH};
    return onset;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct api_onset *first = a, *second = b;
    return (first->rank > second->rank) - (first->rank < second->rank);
}

static int compare_times(const void *a, const void *b)
{
    const struct api_onset *first = a, *second = b;
    if (first->since != second->since)
        return first->since < second->since ? -1 : 1;
    return compare_ranks(a, b);
}

/* Onsets between two that reach each other are within that reach, too. So a chain is a run of the sorted onsets, and
 * ends where none of those before reaches the next one, and none from there on reaches back. */
void api_incidents_link(struct api_onset *onsets, size_t n)
{
    int64_t earliest = INT64_MAX, latest = INT64_MIN;
    qsort(onsets, n, sizeof *onsets, compare_times);
    for (size_t i = n; i-- > 0;) {
        onsets[i].is_last = earliest > onsets[i].since;
        if (onsets[i].reach.start < earliest)
            earliest = onsets[i].reach.start;
    }
    for (size_t i = 0; i < n; i++) {
        if (onsets[i].reach.end > latest)
            latest = onsets[i].reach.end;
        if (i + 1 < n && latest >= onsets[i + 1].since)
            onsets[i].is_last = false;
    }
}

/* Cuts linked onsets into incidents; gives their number. */
static size_t cut(struct api_onset *onsets, size_t n, struct incident *incidents)
{
    size_t n_incidents = 0;
    for (size_t begin = 0, i = 0; i < n; i++) {
        if (!onsets[i].is_last)
            continue;
        struct api_onset *first = &onsets[begin];
        bool is_alone =
            i == begin || first[1].since / API_SECOND_US != first->since / API_SECOND_US;
        incidents[n_incidents++] =
            (struct incident){first, i + 1 - begin, first->since, is_alone ? first->monitor : NULL};
        qsort(first, i + 1 - begin, sizeof *first, compare_ranks);
        begin = i + 1;
    }
    return n_incidents;
}

static enum api_verdict state_of(const struct incident *incident)
{
    return incident->onsets[0].monitor->status.state;
}

/* Worst first, then newest. */
static int compare_incidents(const void *a, const void *b)
{
    const struct incident *first = a, *second = b;
    if (state_of(first) != state_of(second))
        return state_of(first) > state_of(second) ? -1 : 1;
    return (first->since < second->since) - (first->since > second->since);
}

static void write_monitor(const struct api_registry *registry, const struct api_monitor *monitor,
                          struct api_buffer *out)
{
    const struct api_mute mute =
        api_mutes_find(&registry->mutes, monitor->group, monitor->name, api_now());
    api_write_json(out, "{'name':%s,'state':%s,'since':%jd,'muted':", monitor->name,
                   api_verdict_names[monitor->status.state], monitor->status.since);
    api_mute_write(&mute, out);
    api_append(out, "}", 1);
}

static void write_incident(const struct api_registry *registry, const struct incident *incident,
                           struct api_buffer *out)
{
    const struct api_monitor *cause =
        incident->first ? incident->first : incident->onsets[0].monitor;
    api_write_json(out, "{'state':%s,'since':%jd,'first':%s,'sentence':%s,'count':%zu,'monitors':[",
                   api_verdict_names[state_of(incident)], incident->since,
                   incident->first ? incident->first->name : NULL, cause->status.sentence,
                   incident->n);
    for (size_t i = 0; i < incident->n && i < LISTED; i++) {
        api_append(out, ",", i > 0);
        write_monitor(registry, incident->onsets[i].monitor, out);
    }
    api_append_text(out, "]}");
}

bool api_incidents_write(const struct api_registry *registry, struct api_onset *onsets, size_t n,
                         struct api_buffer *out)
{
    struct incident *incidents = malloc((n + 1) * sizeof *incidents);
    if (!incidents)
        return false;
    api_incidents_link(onsets, n);
    n = cut(onsets, n, incidents);
    qsort(incidents, n, sizeof *incidents, compare_incidents);
    api_append_text(out, ",\"incidents\":[");
    for (size_t i = 0; i < n; i++) {
        api_append(out, ",", i > 0);
        write_incident(registry, &incidents[i], out);
    }
    api_append_text(out, "]");
    free(incidents);
    return true;
}
