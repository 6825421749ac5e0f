#include "api/monitors/silence.h"

#include "api/json/format.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/state/outbox.h"
#include "api/monitors/state/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* MAX_TOLD: monitors of one transaction. */
enum { MAX_TOLD = 500 };

/* Between two looks: for the end of a mute; for what other servers have changed. */
#define MUTED_PAUSE (API_SECOND_US / 2)
#define SHARED_PAUSE (2 * API_SECOND_US)

bool api_silence_is_due(const struct api_monitors *monitors, int64_t now)
{
    return monitors->looks_for_silence || monitors->next_silence <= now;
}

/* The change from a state to another one that no window brings. */
static struct api_change change_of(const struct api_monitors *monitors,
                                   const struct api_monitor_status *status, int from, int to)
{
    int64_t last = status->last_observation;
    return (struct api_change){.sentence = "",
                               .at = last == API_NO_TIME ? monitors->now : last,
                               .since = last,
                               .began = API_NO_TIME,
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
        change.began = status->began;
        change.sentence = status->sentence;
    }
    return change;
}

/* Stores the change from what receivers know to how the monitor is, after a mute. Of one that is silent the state comes
 * first, and the silence by the next call: a monitor has one change at a time. */
static bool tell_withheld(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
    const bool is_silent = status->silence == API_SILENT;
    const int told = status->told, state = (int)status->state;
    const bool tells_silence = is_silent && told == state;
    const struct api_change change = {.sentence = status->sentence,
                                      .at = status->severity_since,
                                      .since = status->since,
                                      .began = status->began,
                                      .from = told,
                                      .to = state,
                                      .kl = status->last.scores.drift.kl};
    const struct api_change silence = change_of(monitors, status, state, API_STALE);
    status->told = is_silent && !tells_silence ? state : API_NONE_WITHHELD;
    return api_outbox_put(monitors, monitor, tells_silence ? &silence : &change);
}

/* ---- Silence */

static const char missed[] = "the last 3 tables for its group lack its column";
_Static_assert(API_MISSED == 3, "the sentence says so");

/* Stores the event that a monitor has become stale, or is not stale any more, and the change for receivers. */
static bool tell_silence(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
    bool begins = status->silence == API_HEARD;
    int state = (int)status->state;
    struct api_change change =
        begins ? change_of(monitors, status, state, API_STALE) : end_of_silence(monitors, status);
    if (begins && monitor->stale_after == INT64_MAX)
        change.sentence = missed;
    status->silence = begins ? API_SILENT : API_HEARD;
    return api_event_store(monitors, monitor, monitors->now, 0, &change);
}

/* True if the last observation of a monitor came when the clock was ahead by more than servers' clocks differ. */
static bool was_seen_ahead(const struct api_monitor *monitor, int64_t now)
{
    return monitor->status.last_observation > now + API_MINUTE_US;
}

/* True if changes were withheld from receivers by a mute that is over. */
static bool is_withheld(const struct api_monitors *monitors, const struct api_monitor *monitor)
{
    return monitors->notifier && monitor->status.told != API_NONE_WITHHELD &&
           api_mutes_find(&monitors->mutes, monitor->group, monitor->name, monitors->now).until ==
               API_NO_TIME;
}

static bool is_due(const struct api_monitors *monitors, const struct api_monitor *monitor)
{
    return was_seen_ahead(monitor, monitors->now) || is_withheld(monitors, monitor) ||
           api_monitor_is_stale(monitor) != (monitor->status.silence != API_HEARD);
}

/* Stores what is to be told of a monitor. */
static bool tell(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
    api_touch_all(monitor);
    if (was_seen_ahead(monitor, monitors->now))
        api_monitor_see(monitor, monitors->now, monitors->now);
    if (is_withheld(monitors, monitor))
        return tell_withheld(monitors, monitor);
    bool is_stale = api_monitor_is_stale(monitor);
    if (is_stale == (status->silence != API_HEARD))
        return true;
    if (status->silence == API_SILENT || (is_stale && !api_monitor_is_long_stale(monitor)))
        return tell_silence(monitors, monitor);
    status->silence = is_stale ? API_PAST : API_HEARD;
    return true;
}

/* ---- All */

/* due: rows of monitors of which there is something to tell; `more` than that may be later. */
struct due {
    const struct api_monitors *monitors;
    struct api_buffer rows;
    size_t n;
    bool more;
};

static void add_due(void *context, const struct api_datum *values)
{
    struct due *due = context;
    struct api_monitor row = {.id = 0};
    api_monitor_read(&row, values);
    bool is_now = is_due(due->monitors, &row);
    due->more |= !is_now || due->n == MAX_TOLD;
    if (!is_now || due->n == MAX_TOLD)
        return;
    api_append(&due->rows, &row, sizeof row);
    due->n++;
}

/* Finds when the next look is due. */
static bool plan(struct api_monitors *monitors, bool more)
{
    int64_t soon = more                                   ? monitors->now + MUTED_PAUSE
                   : api_store_is_shared(monitors->store) ? monitors->now + SHARED_PAUSE
                                                          : INT64_MAX;
    monitors->looks_for_silence = false;
    if (!api_store_number(monitors->store, API_SQL_NEXT_SILENCE, NULL, &monitors->next_silence))
        return false;
    if (monitors->next_silence > soon)
        monitors->next_silence = soon;
    return true;
}

bool api_silence_watch(struct api_monitors *monitors)
{
    struct due due = {.monitors = monitors};
    struct api_monitor *monitor;
    bool good =
        api_mutes_read(monitors, &monitors->mutes) && api_mutes_end(monitors) &&
        api_store_read(monitors->store, API_SQL_MONITORS_SILENT,
                       API_ROW(monitors->now, monitors->now + API_MINUTE_US), add_due, &due);
    if (due.rows.failed)
        good = api_transaction_fail_oom(monitors);
    const struct api_monitor *rows = (const void *)due.rows.data;
    for (size_t i = 0; good && i < due.n && !api_touch_exceeds(monitors); i++) {
        good = api_touch_row(monitors, &rows[i], NULL, &monitor) &&
               (!monitor || tell(monitors, monitor));
        due.more |= monitor != NULL;
    }
    api_buffer_free(&due.rows);
    return good && plan(monitors, due.more);
}
