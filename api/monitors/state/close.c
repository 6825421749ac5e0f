#include "api/monitors/state/close.h"

#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/rejudge.h"
#include "api/monitors/state/status.h"

#include <stdlib.h>
#include <string.h>

/* Scores a window that closes, or is restated, by the present settings; `is_compared` with what it has been compared with. */
static bool score(struct api_monitors *monitors, struct api_monitor *monitor,
                  struct api_snapshot *snapshot, bool is_compared)
{
    snapshot->settings = monitor->config->settings;
    snapshot->window.closed = false; /* so that earlier windows are counted as they are now */
    return (is_compared || api_snapshot_compare(monitors, monitor->id,
                                                api_position_of(&snapshot->window), snapshot)) &&
           api_snapshot_pool(monitors, monitor, snapshot) &&
           api_snapshot_volume(monitors, monitor->id, snapshot) &&
           api_score_closed(monitors, monitor, snapshot);
}

/* True for a window that was made, and compared, by this transaction, in which no other one of the monitor has changed or gone. */
static bool is_compared(const struct api_monitor *monitor, const struct api_dirty_window *dirty)
{
    return dirty->is_new && monitor->windows == dirty && !dirty->next && !monitor->has_expired &&
           monitor->config->settings.window != API_COUNT; /* whose start may move */
}

/* ---- Writing */

/* Judges the newest window, which was closed earlier. Pools may hold it with the counts that it was compared with
 * then. */
static bool judge_again(struct api_monitors *monitors, struct api_monitor *monitor,
                        struct api_snapshot *snapshot)
{
    if (!score(monitors, monitor, snapshot, false) ||
        !api_update_state(monitors, monitor, snapshot))
        return false;
    if (snapshot->settings.period > 0)
        api_touch_forget_pool(monitor, snapshot->window.start);
    return true;
}

/* Judges the newest window again, after one before it has changed. */
static bool judge_newest(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_snapshot *newest;
    bool good = api_snapshot_read(monitors, monitor, API_SQL_WINDOW,
                                  API_ROW(monitor->id, monitor->status.last.id), &newest);
    good = good && newest && judge_again(monitors, monitor, newest);
    api_snapshot_release(newest);
    return good;
}

/* Writes a window that was closed or restated, with its scores, and the state that follows from them. */
static bool write_closed(struct api_monitors *monitors, struct api_monitor *monitor,
                         const struct api_dirty_window *dirty)
{
    struct api_snapshot *snapshot = dirty->snapshot;
    struct api_window *window = &snapshot->window;
    bool closes = dirty->closes;
    if (!closes && window->id == monitor->status.last.id)
        return judge_again(monitors, monitor, snapshot);
    if (!score(monitors, monitor, snapshot, is_compared(monitor, dirty)))
        return false;
    if (api_settings_pool(&snapshot->settings) == 1 || api_status_is_last(&monitor->status, window))
        return api_update_state(monitors, monitor, snapshot) &&
               (!closes || api_touch_add_to_pool(monitors, monitor, snapshot));
    if (closes)
        window->state = monitor->status.state;
    snapshot->state = window->state;
    api_touch_forget_pool(monitor, window->start);
    return api_window_store(monitors->store, monitor->id, snapshot) &&
           judge_newest(monitors, monitor);
}

static bool write_window(struct api_monitors *monitors, struct api_monitor *monitor,
                         struct api_dirty_window *dirty)
{
    struct api_snapshot *snapshot = dirty->snapshot;
    int64_t id = monitor->id;
    if (dirty->closes || dirty->rescored)
        return write_closed(monitors, monitor, dirty);
    snapshot->state = monitor->status.state;
    return (snapshot->settings.previous == 0 || is_compared(monitor, dirty) ||
            api_snapshot_compare(monitors, id, api_position_of(&snapshot->window), snapshot)) &&
           api_snapshot_pool(monitors, monitor, snapshot) &&
           (dirty->is_new ? api_window_store(monitors->store, id, snapshot)
                          : api_window_store_n(monitors->store, id, snapshot));
}

/* Deletes windows that are too old beside the newest; if they are many, the rest is deleted later. While the newest
 * window lies ahead of the clock, nothing tells which windows are too old, so each flush has to look. */
static bool expire(struct api_monitors *monitors, struct api_monitor *monitor, bool *expired)
{
    int64_t newest = monitor->status.newest_end;
    for (const struct api_dirty_window *t = monitor->windows; t; t = t->next)
        newest = t->snapshot->window.end > newest ? t->snapshot->window.end : newest;
    *expired = false;
    if (newest == monitor->status.newest_end && !api_end_is_ahead(monitors, monitor, newest))
        return true;
    monitor->status.newest_end = newest;
    api_touch_all(monitor);
    return api_gc_expire(monitors, monitor, expired);
}

static bool write_windows(struct api_monitors *monitors, struct api_monitor *monitor, bool *closed)
{
    for (struct api_dirty_window *t = monitor->windows; t; t = t->next) {
        if (!t->rescored || t->closes)
            continue;
        if (!api_window_store_n(monitors->store, monitor->id, t->snapshot))
            return false;
        api_touch_forget_pool(monitor, t->snapshot->window.start);
    }
    for (struct api_dirty_window *t = monitor->windows; t; t = t->next) {
        if (!write_window(monitors, monitor, t))
            return false;
        *closed |= t->closes;
    }
    return true;
}

bool api_flush_monitor(struct api_monitors *monitors, struct api_monitor *monitor)
{
    bool closed = false, expired;
    if (!monitor->windows && monitor->writes == API_WRITE_NOTHING)
        return true;
    if (api_start_is_ahead(monitors, monitor->status.last.start) &&
        !api_status_read_recent(monitors, monitor))
        return false;
    if (!expire(monitors, monitor, &expired))
        return false;
    if (expired)
        api_gc_look_again(monitors, monitor->id);
    monitor->has_expired |= expired;
    if (!write_windows(monitors, monitor, &closed) ||
        (closed && !api_status_read_next_close(monitors, monitor)) ||
        (expired && !api_status_read_recent(monitors, monitor)))
        return false;
    if (closed || expired)
        api_touch_all(monitor);
    return api_touch_write(monitors, monitor);
}

bool api_flush(struct api_monitors *monitors)
{
    bool good = true;
    for (struct api_monitor *monitor = monitors->newest; good && monitor && monitor->is_touched;
         monitor = monitor->older)
        good = api_flush_monitor(monitors, monitor);
    return good;
}

bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone)
{
    int64_t end = monitors->now - (int64_t)monitor->config->settings.grace * API_SECOND_US;
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store,
                                    due_alone ? API_SQL_WINDOWS_DUE : API_SQL_WINDOWS_OPEN,
                                    API_ROW(monitor->id, monitor->revision, end));
    if (good && due_alone && list.n == 0) { /* another window than was thought is due */
        good = api_status_read_next_close(monitors, monitor);
        api_touch_all(monitor);
    }
    for (size_t i = 0; good && i < list.n; i++) {
        struct api_dirty_window *dirty =
            api_mark_dirty(monitors, monitor, api_snapshot_of(monitors, monitor, &list.windows[i]));
        good = dirty != NULL;
        if (dirty)
            dirty->closes = true;
    }
    api_window_list_free(&list);
    return good;
}
