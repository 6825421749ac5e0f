#include "api/monitors/state/gc.h"

#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/status.h"

/* STEP: windows that one step deletes. ROUND: windows that a round deletes, or a few more, and monitors that it looks at. */
enum { STEP = 100, ROUND = 200 };

/* expired: windows that go. */
struct expired {
    struct api_position windows[STEP];
    size_t n;
};

static void add_window(void *context, const struct api_datum *values)
{
    struct expired *expired = context;
    size_t i = expired->n;
    if (i == STEP)
        return;
    expired->windows[i] = (struct api_position){values[1].integer, values[0].integer};
    expired->n++;
}

bool api_gc_delete_window(struct api_monitors *monitors, int64_t monitor, int64_t window)
{
    const struct api_datum *of = API_ROW(monitor, window);
    return api_store_run(monitors->store, API_SQL_UNSEEN_DELETE, of) &&
           api_store_run(monitors->store, API_SQL_WINDOW_DELETE, of);
}

void api_gc_look_again(struct api_monitors *monitors, int64_t monitor)
{
    if (monitor <= monitors->gc_from)
        monitors->gc_from = monitor - 1;
}

/* Deletes up to STEP windows that ended before a time, open ones too of a monitor that was deleted, of which `monitor` is
 * NULL; *n becomes their number. */
static bool delete_windows(struct api_monitors *monitors, int64_t id, struct api_monitor *monitor,
                           int64_t before, size_t *n)
{
    struct expired expired = {.n = 0};
    bool good = api_store_read(monitors->store, API_SQL_WINDOWS_EXPIRED,
                               API_ROW(id, before, monitor != NULL, STEP), add_window, &expired);
    for (size_t i = 0; good && i < expired.n; i++)
        good = api_gc_delete_window(monitors, id, expired.windows[i].id);
    if (monitor && expired.n > 0)
        api_touch_forget_pool(monitor, expired.windows[expired.n - 1].start);
    *n = expired.n;
    return good;
}

bool api_gc_expire(struct api_monitors *monitors, struct api_monitor *monitor, bool *expired)
{
    double kept = monitor->config->settings.retention_days * API_DAY_US;
    size_t n_windows = 0, n_events = 0;
    int64_t newest;
    *expired = false;
    if (!api_status_newest_end(monitors, monitor, &newest))
        return false;
    if (newest == API_NO_TIME)
        return true;
    bool good =
        delete_windows(monitors, monitor->id, monitor, newest - (int64_t)kept, &n_windows) &&
        api_store_read(monitors->store, API_SQL_EVENTS_EXPIRE,
                       API_ROW(monitor->id, newest - (int64_t)kept), api_store_count_row,
                       &n_events);
    *expired = n_windows + n_events > 0;
    return good;
}

/* Deletes the former revisions, with their labels, of which no window is left. */
static bool prune_revisions(struct api_monitors *monitors, const struct api_monitor *monitor)
{
    size_t n = 0;
    bool good = monitor->revision == 1 ||
                api_store_read(monitors->store, API_SQL_REVISIONS_PRUNE,
                               API_ROW(monitor->id, monitor->revision), api_store_count_row, &n);
    monitors->log_has_deleted |= n > 0;
    return good;
}

/* *more becomes true if the monitor has to be looked at again. One that was not in memory does not stay there. */
static bool collect_monitor(struct api_monitors *monitors, int64_t id, bool *more)
{
    struct api_monitor *monitor;
    bool stays = api_in_memory(monitors, id) != NULL;
    *more = false;
    if (!api_touch(monitors, id, NULL, &monitor))
        return false;
    if (!monitor)
        return true;
    if (!api_gc_expire(monitors, monitor, more))
        return false;
    if (*more) {
        api_touch_all(monitor);
        return api_status_read(monitors, monitor); /* it shows no deleted window */
    }
    bool good = prune_revisions(monitors, monitor);
    if (!stays)
        api_touch_remove(monitors, monitor);
    return good;
}

/* Deletes rows of monitors that are deleted; *done becomes how much was done. */
static bool collect_orphans(struct api_monitors *monitors, size_t *done)
{
    struct api_buffer ids = {.size = 0};
    bool good = api_read_ids(monitors, API_SQL_ORPHANS, API_ROW(ROUND), &ids);
    size_t deleted, n = ids.size / sizeof(int64_t);
    for (size_t i = 0; good && i < n && *done < ROUND; i++, *done += deleted + 1) {
        int64_t id = ((const int64_t *)(const void *)ids.data)[i];
        good = delete_windows(monitors, id, NULL, INT64_MAX, &deleted) &&
               (deleted == STEP ||
                (api_store_run(monitors->store, API_SQL_EVENTS_DELETE, API_ROW(id)) &&
                 api_store_run(monitors->store, API_SQL_REVISIONS_DELETE, API_ROW(id))));
    }
    api_buffer_free(&ids);
    monitors->has_orphans = n > 0;
    monitors->log_has_deleted |= n > 0;
    return good && (n > 0 || api_store_run(monitors->store, API_SQL_OUTBOX_PRUNE, NULL));
}

/* Looks at the next monitors, of which windows or revisions may have expired. */
static bool collect_monitors(struct api_monitors *monitors, size_t *done)
{
    struct api_buffer ids = {.size = 0};
    bool more = false, good = api_read_ids(monitors, API_SQL_MONITORS_AFTER,
                                           API_ROW(monitors->gc_from, ROUND), &ids);
    size_t n = ids.size / sizeof(int64_t);
    for (size_t i = 0; good && i < n && *done < ROUND && !more && !api_touch_exceeds(monitors);
         i++) {
        int64_t id = ((const int64_t *)(const void *)ids.data)[i];
        good = collect_monitor(monitors, id, &more);
        *done += more ? STEP : 1;
        if (!more)
            monitors->gc_from = id;
    }
    if (good && n == 0)
        monitors->gc_from = INT64_MAX;
    api_buffer_free(&ids);
    return good;
}

bool api_gc(struct api_monitors *monitors)
{
    size_t done = 0;
    return (!monitors->has_orphans || collect_orphans(monitors, &done)) &&
           (done >= ROUND || monitors->gc_from == INT64_MAX || collect_monitors(monitors, &done));
}
