#include "api/monitors/silence.h"

#include "api/json/format.h"
#include "api/monitors/state/outbox.h"
#include "api/monitors/state/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* MAX_TOLD: monitors of one transaction. Observations of the past that come to a group are told once none has come for
 * SETTLED, or after LONGEST, so that a history that is loaded monitor by monitor is told once. */
enum { MAX_TOLD = 500 };
#define SETTLED (INT64_C(10) * API_SECOND_US)
#define LONGEST (INT64_C(10) * API_MINUTE_US)

/* settling: whether those of a group are to be told, whose monitors end before the index `end`. */
struct settling {
    size_t end;
    bool is_over;
};

/* Looks at the monitors of the group from the first with observations of the past. */
static bool is_past_due(const struct api_registry *registry, size_t i, int64_t now,
                        struct settling *settling)
{
    const char *group = registry->monitors[i]->group;
    int64_t first = INT64_MAX, last = 0;
    if (i < settling->end)
        return settling->is_over;
    for (; i < registry->n && strcmp(registry->monitors[i]->group, group) == 0; i++) {
        const struct api_monitor_status *status = &registry->monitors[i]->status;
        if (status->silence != API_OF_PAST)
            continue;
        first = status->past.first < first ? status->past.first : first;
        last = status->past.last > last ? status->past.last : last;
    }
    settling->end = i;
    settling->is_over = now - last > SETTLED || now - first > LONGEST || now < last;
    return settling->is_over;
}

static bool is_silence_due(const struct api_registry *registry, size_t i, int64_t now,
                           struct settling *settling)
{
    const struct api_monitor *monitor = registry->monitors[i];
    return monitor->status.silence == API_OF_PAST
               ? is_past_due(registry, i, now, settling)
               : api_monitor_is_stale(monitor) != (monitor->status.silence != API_HEARD);
}

/* True if changes were withheld from receivers by a mute that is over. */
static bool is_withheld(const struct api_monitors *monitors, const struct api_monitor *monitor,
                        int64_t now)
{
    return monitors->notifier && monitor->status.told != API_NONE_WITHHELD &&
           !api_monitor_is_muted(&monitors->registry, monitor, now);
}

bool api_silence_is_due(const struct api_monitors *monitors)
{
    struct settling settling = {.end = 0};
    int64_t now = api_now();
    for (size_t i = 0; i < monitors->registry.n; i++)
        if (is_silence_due(&monitors->registry, i, now, &settling) ||
            is_withheld(monitors, monitors->registry.monitors[i], now))
            return true;
    return false;
}

/* The change from a state to another one that no window brings. */
static struct api_change change_of(const struct api_monitors *monitors,
                                   const struct api_monitor_status *status, int from, int to)
{
    int64_t last = status->last_observation;
    return (struct api_change){.sentence = "",
                               .at = last == API_NO_TIME ? monitors->now : last,
                               .since = last,
                               .from = from,
                               .to = to,
                               .kl = (double)NAN};
}

/* The change from silence to the state, with what makes it. */
static struct api_change end_of_silence(const struct api_monitors *monitors,
                                        const struct api_monitor_status *status)
{
    struct api_change change = change_of(monitors, status, API_STALE, (int)status->state);
    if (status->state >= API_WARNING) {
        change.since = status->since;
        change.sentence = status->sentence;
    }
    return change;
}

/* Stores the change from what receivers know to how the monitor is, after a mute. Of one that is silent the state comes
 * first, and the silence by the next call: a monitor has one change at a time. */
static bool tell_withheld(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    struct api_monitor_status *status = &pending->status;
    const bool is_silent = status->silence != API_HEARD && status->silence != API_OF_PAST;
    const int told = status->told, state = (int)status->state;
    const bool tells_silence = is_silent && told == state;
    const struct api_change change = {.sentence = status->sentence,
                                      .at = status->severity_since,
                                      .since = status->since,
                                      .from = told,
                                      .to = state,
                                      .kl = status->last.scores.drift.kl};
    const struct api_change silence = change_of(monitors, status, state, API_STALE);
    status->told = is_silent && !tells_silence ? state : API_NONE_WITHHELD;
    if (tells_silence && status->silence == API_PAST_TOLD)
        status->silence = API_PAST_FIRST;
    return api_outbox_put(monitors, pending, tells_silence ? &silence : &change);
}

/* ---- Mutes */

/* Writes who mutes, until when and why: "acknowledged by ann: new form", "muted until 2026-11-20T12:00:00Z". */
static void write_mute(const struct api_mute *mute, char sentence[API_SENTENCE])
{
    bool until_ok = mute->until == API_UNTIL_OK;
    char until[API_TIME_TEXT] = "";
    snprintf(sentence, API_SENTENCE, "%s%s%s%s%s%s%s", until_ok ? "acknowledged" : "muted",
             *mute->by ? " by " : "", mute->by, until_ok ? "" : " until ",
             until_ok ? "" : api_time_text(mute->until - mute->until % API_SECOND_US, until),
             *mute->reason ? ": " : "", mute->reason);
}

/* Worst first: critical, warning, stale; equal ones by since when. */
static bool is_worse(const struct api_monitor *a, const struct api_monitor *b)
{
    int first = api_outbox_known(&a->status) % API_STALE,
        second = api_outbox_known(&b->status) % API_STALE;
    return first != second ? first > second : a->status.since < b->status.since;
}

bool api_silence_tell_mute(struct api_monitors *monitors, const char *group, const char *name,
                           const struct api_mute *mute)
{
    const struct api_registry *registry = &monitors->registry;
    const struct api_mute before = api_mutes_find(&registry->mutes, group, name, monitors->now);
    const struct api_monitor *worst = NULL;
    char sentence[API_SENTENCE];
    size_t n, first = api_registry_group(registry, group, &n);
    bool is_told = before.until != API_NO_TIME && strcmp(before.by, mute->by) == 0 &&
                   strcmp(before.reason, mute->reason) == 0;
    for (size_t i = first; monitors->notifier && !is_told && i < first + n; i++) {
        const struct api_monitor *monitor = registry->monitors[i];
        if ((!name || strcmp(monitor->name, name) == 0) &&
            api_outbox_known(&monitor->status) >= API_WARNING &&
            (!worst || is_worse(monitor, worst)))
            worst = monitor;
    }
    if (!worst)
        return true;
    int known = api_outbox_known(&worst->status);
    struct api_change change = change_of(monitors, &worst->status, known, known);
    if (known == (int)worst->status.state) {
        change.since = worst->status.since;
        change.at = monitors->now;
    }
    write_mute(mute, sentence);
    change.sentence = sentence;
    change.monitor = worst->id;
    change.group = group;
    change.name = name ? name : "";
    if (monitors->trace)
        change.trace = *monitors->trace;
    return api_outbox_store(monitors, &change);
}

/* ---- Silence */

static const char missed[] = "the last 3 tables for its group lack its column";
_Static_assert(API_MISSED == 3, "the sentence says so");

/* Stores the event that a monitor has become stale, or is not stale any more, and the change for receivers. */
static bool tell_silence(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    struct api_monitor_status *status = &pending->status;
    bool begins = status->silence == API_HEARD;
    int state = (int)status->state;
    struct api_change change =
        begins ? change_of(monitors, status, state, API_STALE) : end_of_silence(monitors, status);
    if (begins && isinf(api_settings_stale_after(&pending->monitor->config->settings)))
        change.sentence = missed;
    status->silence = begins ? API_SILENT : API_HEARD;
    return api_event_store(monitors, pending, monitors->now, 0, &change);
}

/* ---- Observations of the past */

/* past: monitors of a group, one after another, that are stale since long ago. */
struct past {
    struct api_pending_monitor *first;
    size_t n;
    int64_t newest;
};

/* Stores the one change of them all, and begins anew. */
static bool tell_past(struct api_monitors *monitors, struct past *past)
{
    struct api_pending_monitor *first = past->first;
    char sentence[API_SENTENCE], others[80] = "", newest[API_TIME_TEXT];
    if (!first)
        return true;
    struct api_change change =
        change_of(monitors, &first->status, (int)first->status.state, API_STALE);
    if (past->n > 1)
        snprintf(others, sizeof others, " and of %zu more monitors of the group", past->n - 1);
    snprintf(sentence, sizeof sentence, "the newest observation of it%s is of %s", others,
             api_time_text(past->newest, newest));
    change.sentence = sentence;
    *past = (struct past){.newest = API_NO_TIME};
    return api_outbox_put(monitors, first, &change);
}

/* Adds a monitor to those of its group; one that is muted is told of at the end of its mute. */
static bool add_to_past(struct api_monitors *monitors, struct api_pending_monitor *pending,
                        struct past *past)
{
    if (api_monitor_is_muted(&monitors->registry, pending->monitor, monitors->now)) {
        const struct api_change change =
            change_of(monitors, &pending->status, (int)pending->status.state, API_STALE);
        pending->status.silence = API_PAST_TOLD;
        return api_outbox_put(monitors, pending, &change);
    }
    const struct api_pending_monitor *first = past->first;
    if (first && strcmp(first->monitor->group, pending->monitor->group) != 0 &&
        !tell_past(monitors, past))
        return false;
    if (!past->first)
        past->first = pending;
    if (pending->status.last_observation > past->newest)
        past->newest = pending->status.last_observation;
    pending->status.silence = past->n++ == 0 ? API_PAST_FIRST : API_PAST_TOLD;
    return true;
}

/* ---- All */

/* Stores what is to be told of a monitor. */
static bool tell(struct api_monitors *monitors, struct api_monitor *monitor, struct past *past)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (!pending)
        return false;
    enum api_silence silence = pending->status.silence;
    if (is_withheld(monitors, monitor, monitors->now))
        return tell_withheld(monitors, pending);
    if (silence == API_SILENT || (silence == API_HEARD && !api_monitor_is_long_stale(monitor)))
        return tell_silence(monitors, pending);
    if (api_monitor_is_stale(monitor))
        return add_to_past(monitors, pending, past);
    pending->status.silence = API_HEARD;
    const struct api_change end = end_of_silence(monitors, &pending->status);
    return silence != API_PAST_FIRST || api_outbox_put(monitors, pending, &end);
}

bool api_silence_watch(struct api_monitors *monitors)
{
    struct past past = {.newest = API_NO_TIME};
    struct settling settling = {.end = 0};
    size_t told = 0;
    for (size_t i = 0; i < monitors->registry.n && told < MAX_TOLD; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[i];
        if (!is_silence_due(&monitors->registry, i, monitors->now, &settling) &&
            !is_withheld(monitors, monitor, monitors->now))
            continue;
        if (!tell(monitors, monitor, &past))
            return false;
        told++;
    }
    return tell_past(monitors, &past);
}
