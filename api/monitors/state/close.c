#include "api/monitors/state/close.h"

#include "api/monitors/state/gc.h"
#include "api/monitors/state/rejudge.h"
#include "api/monitors/state/status.h"
#include "api/monitors/state/window_load.h"

#include <stdlib.h>
#include <string.h>

/* Scores a window that closes, or is restated, by the present settings; `is_compared` with what it has been compared with. */
static bool score(struct api_monitors *monitors, struct api_pending_monitor *pending,
                  struct api_snapshot *snapshot, bool is_compared)
{
    snapshot->settings = pending->monitor->config->settings;
    snapshot->window.closed = false; /* so that earlier windows are counted as they are now */
    return (is_compared || api_snapshot_compare(monitors, pending->monitor->id,
                                                api_position_of(&snapshot->window), snapshot)) &&
           api_snapshot_pool(monitors, pending->monitor, snapshot) &&
           api_score_closed(monitors, pending, snapshot);
}

/* True for a window that was made, and compared, by this transaction, in which no other one of the monitor has changed or gone. */
static bool is_compared(const struct api_pending_monitor *pending,
                        const struct api_dirty_window *dirty)
{
    return dirty->is_new && pending->windows == dirty && !dirty->next && !pending->has_expired &&
           pending->monitor->config->settings.window != API_COUNT; /* whose start may move */
}

/* ---- Writing */

/* Judges the newest window, which was closed earlier. Pools may hold it with the counts that it was compared with
 * then. */
static bool judge_again(struct api_monitors *monitors, struct api_pending_monitor *pending,
                        struct api_snapshot *snapshot)
{
    if (!score(monitors, pending, snapshot, false) ||
        !api_update_state(monitors, pending, snapshot))
        return false;
    if (snapshot->settings.period > 0)
        api_pending_forget_pool(pending, snapshot->window.start);
    return true;
}

/* Judges the newest window again, after one before it has changed. */
static bool judge_newest(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    struct api_snapshot *newest;
    bool good = api_snapshot_read(monitors, pending->monitor, API_SQL_WINDOW,
                                  API_ROW(pending->monitor->id, pending->status.last.id), &newest);
    good = good && newest && judge_again(monitors, pending, newest);
    api_snapshot_release(newest);
    return good;
}

/* Writes a window that was closed or restated, with its scores, and the state that follows from them. */
static bool write_closed(struct api_monitors *monitors, struct api_pending_monitor *pending,
                         const struct api_dirty_window *dirty)
{
    struct api_snapshot *snapshot = dirty->snapshot;
    struct api_window *window = &snapshot->window;
    bool closes = dirty->closes;
    if (!closes && window->id == pending->status.last.id)
        return judge_again(monitors, pending, snapshot);
    if (!score(monitors, pending, snapshot, is_compared(pending, dirty)))
        return false;
    if (api_settings_pool(&snapshot->settings) == 1 || api_status_is_last(&pending->status, window))
        return api_update_state(monitors, pending, snapshot) &&
               (!closes || api_pending_add_to_pool(monitors, pending, snapshot));
    if (closes)
        window->state = pending->status.state;
    snapshot->state = window->state;
    api_pending_forget_pool(pending, window->start);
    return api_window_store(monitors->store, pending->monitor->id, snapshot) &&
           judge_newest(monitors, pending);
}

static bool write_window(struct api_monitors *monitors, struct api_pending_monitor *pending,
                         struct api_dirty_window *dirty)
{
    struct api_snapshot *snapshot = dirty->snapshot;
    int64_t monitor = pending->monitor->id;
    if (dirty->closes || dirty->rescored)
        return write_closed(monitors, pending, dirty);
    snapshot->state = pending->status.state;
    return (snapshot->settings.previous == 0 || is_compared(pending, dirty) ||
            api_snapshot_compare(monitors, monitor, api_position_of(&snapshot->window),
                                 snapshot)) &&
           api_snapshot_pool(monitors, pending->monitor, snapshot) &&
           (dirty->is_new ? api_window_store(monitors->store, monitor, snapshot)
                          : api_window_store_n(monitors->store, monitor, snapshot));
}

/* Deletes windows that are too old beside the newest; if they are many, the rest is deleted later. While the newest
 * window lies ahead of the clock, nothing tells which windows are too old, so each flush has to look. */
static bool expire(struct api_monitors *monitors, struct api_pending_monitor *pending,
                   bool *expired)
{
    int64_t newest = pending->status.newest_end;
    for (const struct api_dirty_window *t = pending->windows; t; t = t->next)
        newest = t->snapshot->window.end > newest ? t->snapshot->window.end : newest;
    *expired = false;
    if (newest == pending->status.newest_end &&
        !api_end_is_ahead(monitors, pending->monitor, newest))
        return true;
    pending->status.newest_end = newest;
    return api_gc_expire(monitors, pending, expired);
}

static bool write_windows(struct api_monitors *monitors, struct api_pending_monitor *pending,
                          bool *closed)
{
    for (struct api_dirty_window *t = pending->windows; t; t = t->next) {
        if (!t->rescored || t->closes)
            continue;
        if (!api_window_store_n(monitors->store, pending->monitor->id, t->snapshot))
            return false;
        api_pending_forget_pool(pending, t->snapshot->window.start);
    }
    for (struct api_dirty_window *t = pending->windows; t; t = t->next) {
        if (!write_window(monitors, pending, t))
            return false;
        *closed |= t->closes;
    }
    return true;
}

static bool flush_monitor(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    bool closed = false, expired;
    if (api_start_is_ahead(monitors, pending->status.last.start) &&
        !api_status_read_recent(monitors, pending->monitor, &pending->status))
        return false;
    if (!expire(monitors, pending, &expired))
        return false;
    pending->monitor->may_have_expired |= expired;
    pending->has_expired |= expired;
    return write_windows(monitors, pending, &closed) &&
           (!closed || api_status_read_next_close(monitors, pending->monitor, &pending->status)) &&
           (!expired || api_status_read_recent(monitors, pending->monitor, &pending->status)) &&
           api_status_store(monitors, pending);
}

bool api_flush(struct api_monitors *monitors)
{
    bool good = true;
    for (struct api_pending_monitor *pending = monitors->staged; good && pending;
         pending = pending->next)
        good = flush_monitor(monitors, pending);
    return good;
}

bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone)
{
    int64_t end = monitors->now - (int64_t)monitor->config->settings.grace * API_SECOND_US;
    struct api_window_list list;
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    bool good =
        pending && api_window_list_run(&list, monitors->store,
                                       due_alone ? API_SQL_WINDOWS_DUE : API_SQL_WINDOWS_OPEN,
                                       API_ROW(monitor->id, monitor->revision, end));
    if (!pending)
        return false;
    if (good && list.n == 0) /* another window than was thought is due */
        good = api_status_read_next_close(monitors, monitor, &pending->status);
    for (size_t i = 0; good && i < list.n; i++) {
        struct api_dirty_window *dirty =
            api_mark_dirty(monitors, pending, api_snapshot_of(monitors, monitor, &list.windows[i]));
        good = dirty != NULL;
        if (dirty)
            dirty->closes = true;
    }
    api_window_list_free(&list);
    return good;
}
