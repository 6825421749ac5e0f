#include "api/monitors/state/close.h"

#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/status.h"

static struct api_dirty_window *add_window(struct api_monitors *monitors,
                                           struct api_monitor *monitor, int64_t start, int64_t end)
{
    struct api_window window = {.id = ++monitor->status.last_window,
                                .revision = monitor->revision,
                                .start = start,
                                .end = end,
                                .scores = api_no_window.scores};
    struct api_dirty_window *dirty =
        api_mark_dirty(monitors, monitor, api_snapshot_of(monitors, monitor, &window));
    if (dirty)
        dirty->is_new = true;
    return dirty;
}

/* Marks a window that is stored: the open one that was last added to, without reading it, or else the first
 * that a statement gives. *dirty becomes NULL if there is none. */
static bool mark_stored(struct api_monitors *monitors, struct api_monitor *monitor, bool is_open,
                        enum api_statement statement, const struct api_datum *of,
                        struct api_dirty_window **dirty)
{
    struct api_snapshot *snapshot = is_open ? api_snapshot_copy(monitor->open) : NULL;
    bool good = is_open ? snapshot || api_transaction_fail_oom(monitors)
                        : api_snapshot_read(monitors, monitor, statement, of, &snapshot);
    bool is_there = snapshot;
    *dirty = api_mark_dirty(monitors, monitor, snapshot);
    return good && (*dirty || !is_there);
}

/* True if the open window that starts then is the one that was last added to, which is in memory. */
static bool is_kept(const struct api_monitor *monitor, int64_t start)
{
    return monitor->open && monitor->open->window.start == start;
}

/* The window that observations of a time go to. Of seconds it is the one that the time is in; of a count the
 * last of this transaction, or the open one of the store, unless it is full; else a new one. NULL if the store
 * or memory fails. */
static struct api_dirty_window *find_window(struct api_monitors *monitors,
                                            struct api_monitor *monitor, int64_t time)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    bool of_seconds = settings->window == API_SECONDS, of_count = settings->window == API_COUNT;
    const struct api_window_span span = api_window_span(settings, time);
    int64_t start = span.start, end = span.end;
    struct api_dirty_window *dirty = NULL;
    for (struct api_dirty_window *t = monitor->windows; t; t = t->next)
        if (of_count || (of_seconds && t->snapshot->window.start == start))
            dirty = t;
    bool is_open = of_count ? monitor->open != NULL : is_kept(monitor, start);
    if (!dirty && (of_seconds || of_count) &&
        !mark_stored(monitors, monitor, is_open,
                     of_seconds ? API_SQL_WINDOW_AT : API_SQL_WINDOW_OPEN,
                     API_ROW(monitor->id, monitor->revision, start, end), &dirty))
        return NULL;
    if (!dirty || (of_count && dirty->closes))
        dirty = add_window(monitors, monitor, start, end);
    if (dirty && of_count) {
        struct api_window *window = &dirty->snapshot->window;
        window->start = time < window->start ? time : window->start;
        window->end = time > window->end ? time : window->end;
    }
    return dirty;
}

/* Decides if a window that was added to closes. */
static void judge_window(const struct api_monitors *monitors, struct api_monitor *monitor,
                         struct api_dirty_window *dirty)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    struct api_window *window = &dirty->snapshot->window;
    int64_t due = window->end + (int64_t)settings->grace * API_SECOND_US;
    bool full = settings->window == API_BATCH ||
                (settings->window == API_COUNT && window->n >= settings->window_size) ||
                (settings->window == API_SECONDS && due <= monitors->now);
    if (window->closed)
        window->restated = dirty->rescored = true;
    else if (full)
        dirty->closes = true;
    else if (settings->window == API_SECONDS && due < monitor->status.next_close)
        monitor->status.next_close = due;
}

/* Notes how much of the row an observation changes. */
static void note_change(struct api_monitor *monitor, const struct api_monitor_status *before,
                        const struct api_dirty_window *to)
{
    const struct api_monitor_status *now = &monitor->status;
    bool is_counted_alone = !to->is_new && !to->closes && !to->rescored && before->missed == 0 &&
                            before->silence == API_HEARD && now->silence == API_HEARD &&
                            now->next_close == before->next_close;
    if (!is_counted_alone)
        api_touch_all(monitor);
    else if (monitor->writes == API_WRITE_NOTHING)
        monitor->writes = API_WRITE_COUNTS;
}

bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor,
                 const struct api_tally *tally, int64_t time, struct api_dirty_window **dirty)
{
    const struct api_monitor_status before = monitor->status;
    const uint64_t *counts = tally->counts;
    double n = 0;
    struct api_dirty_window *to = *dirty = find_window(monitors, monitor, time);
    if (!to)
        return false;
    for (size_t i = 0; i < monitor->config->bins.n_bins; i++) {
        to->snapshot->counts[i] += (double)counts[i];
        n += (double)counts[i];
    }
    to->snapshot->window.n += n;
    api_moments_add(&to->snapshot->window.moments, &tally->moments);
    monitor->status.observations += (int64_t)n;
    monitor->status.missed = 0;
    api_monitor_see(monitor, time, monitors->now);
    judge_window(monitors, monitor, to);
    note_change(monitor, &before, to);
    return true;
}
