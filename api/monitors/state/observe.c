#include "api/monitors/state/observe.h"

#include "api/monitors/state/window_load.h"

#include <stdlib.h>
#include <string.h>

/* Marks a window as changed; takes it. */
static struct api_dirty_window *mark_window(struct api_monitors *monitors,
                                            struct api_pending_monitor *pending,
                                            struct api_window *window)
{
    return api_mark_dirty(monitors, pending, api_snapshot_of(monitors, pending->monitor, window));
}

/* Marks the open window that was last added to, without reading it from the store. */
static struct api_dirty_window *mark_open(struct api_monitors *monitors,
                                          struct api_pending_monitor *pending)
{
    struct api_snapshot *copy = api_snapshot_copy(pending->monitor->open);
    if (!copy)
        api_transaction_fail_oom(monitors);
    return api_mark_dirty(monitors, pending, copy);
}

static struct api_dirty_window *add_window(struct api_monitors *monitors,
                                           struct api_pending_monitor *pending, int64_t start,
                                           int64_t end)
{
    struct api_window window = {.id = ++pending->status.last_window,
                                .revision = pending->monitor->revision,
                                .start = start,
                                .end = end,
                                .scores = api_no_window.scores};
    struct api_dirty_window *dirty = mark_window(monitors, pending, &window);
    if (dirty)
        dirty->is_new = true;
    return dirty;
}

/* Marks the first window of a list, which it empties; NULL without a failure if there is none. */
static bool mark_first(struct api_monitors *monitors, struct api_pending_monitor *pending,
                       struct api_window_list *list, struct api_dirty_window **dirty)
{
    *dirty = list->n > 0 ? mark_window(monitors, pending, &list->windows[0]) : NULL;
    bool good = list->n == 0 || *dirty;
    api_window_list_free(list);
    return good;
}

static int64_t start_of_seconds(const struct api_monitor_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * API_SECOND_US;
    return time - ((time % size) + size) % size;
}

int64_t api_window_end(const struct api_monitor_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * API_SECOND_US;
    return settings->window == API_SECONDS ? start_of_seconds(settings, time) + size : time;
}

/* The window of seconds that a time is in: one of this transaction, of the store, or a new one. */
static bool window_of_seconds(struct api_monitors *monitors, struct api_pending_monitor *pending,
                              int64_t time, struct api_dirty_window **dirty)
{
    const struct api_monitor *monitor = pending->monitor;
    const struct api_monitor_settings *settings = &monitor->config->settings;
    int64_t start = start_of_seconds(settings, time), end = api_window_end(settings, time);
    const struct api_datum at[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                   API_INTEGER(start), API_INTEGER(end)};
    struct api_window_list list;
    for (*dirty = pending->windows; *dirty; *dirty = (*dirty)->next)
        if ((*dirty)->snapshot->window.start == start)
            return true;
    if (monitor->open && monitor->open->window.start == start) {
        *dirty = mark_open(monitors, pending);
        return *dirty != NULL;
    }
    if (!api_window_list_run(&list, monitors->store, API_SQL_WINDOW_AT, at) ||
        !mark_first(monitors, pending, &list, dirty))
        return false;
    if (!*dirty)
        *dirty = add_window(monitors, pending, start, end);
    return *dirty != NULL;
}

/* The window that still counts: the last of this transaction, the open one of the store, or a new
 * one. */
static bool window_of_count(struct api_monitors *monitors, struct api_pending_monitor *pending,
                            int64_t time, struct api_dirty_window **dirty)
{
    const struct api_monitor *monitor = pending->monitor;
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    struct api_window_list list;
    *dirty = NULL;
    for (struct api_dirty_window *t = pending->windows; t; t = t->next)
        *dirty = t;
    if (!*dirty && monitor->open) {
        *dirty = mark_open(monitors, pending);
        if (!*dirty)
            return false;
    }
    if (!*dirty && (!api_window_list_run(&list, monitors->store, API_SQL_WINDOW_OPEN, of) ||
                    !mark_first(monitors, pending, &list, dirty)))
        return false;
    if (!*dirty || (*dirty)->closes)
        *dirty = add_window(monitors, pending, time, time);
    if (!*dirty)
        return false;
    struct api_window *window = &(*dirty)->snapshot->window;
    window->start = time < window->start ? time : window->start;
    window->end = time > window->end ? time : window->end;
    return true;
}

static bool find_window(struct api_monitors *monitors, struct api_pending_monitor *pending,
                        int64_t time, struct api_dirty_window **dirty)
{
    switch ((enum api_window_kind)pending->monitor->config->settings.window) {
    case API_SECONDS:
        return window_of_seconds(monitors, pending, time, dirty);
    case API_COUNT:
        return window_of_count(monitors, pending, time, dirty);
    default:
        *dirty = add_window(monitors, pending, time, time);
        return *dirty != NULL;
    }
}

/* Decides what becomes of a window to which was added. */
static void judge_window(const struct api_monitors *monitors, struct api_pending_monitor *pending,
                         struct api_dirty_window *dirty)
{
    const struct api_monitor_settings *settings = &pending->monitor->config->settings;
    struct api_window *window = &dirty->snapshot->window;
    int64_t due = window->end + (int64_t)settings->grace * API_SECOND_US;
    bool full = settings->window == API_BATCH ||
                (settings->window == API_COUNT && window->n >= settings->window_size) ||
                (settings->window == API_SECONDS && due <= monitors->now);
    if (window->closed)
        window->restated = dirty->rescored = true;
    else if (full)
        dirty->closes = true;
    else if (settings->window == API_SECONDS && due < pending->status.next_close)
        pending->status.next_close = due;
}

bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor, const uint64_t *counts,
                 int64_t time, struct api_dirty_window **dirty)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    size_t n_bins = monitor->config->bins.n_bins;
    double n = 0;
    if (!pending || !find_window(monitors, pending, time, dirty))
        return false;
    if (!(*dirty)->added)
        (*dirty)->added = calloc(n_bins, sizeof *(*dirty)->added);
    if (!(*dirty)->added)
        return api_transaction_fail_oom(monitors);
    for (size_t i = 0; i < n_bins; i++) {
        (*dirty)->added[i] += (double)counts[i];
        (*dirty)->snapshot->counts[i] += (double)counts[i];
        n += (double)counts[i];
    }
    (*dirty)->snapshot->window.n += n;
    pending->status.observations += (int64_t)n;
    if (time > pending->status.last_observation)
        pending->status.last_observation = time;
    judge_window(monitors, pending, *dirty);
    return true;
}
