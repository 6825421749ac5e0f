#include "api/monitors/state/gc.h"

#include "api/monitors/state/status.h"
#include "api/monitors/state/window_load.h"

#include <stdlib.h>

/* STEP: windows that one step deletes. */
enum { STEP = 100 };

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

/* Deletes up to STEP windows that ended before a time, open ones too if `open` is true; *n becomes
 * their number. `pending` is the monitor's, or NULL if it was deleted. */
static bool delete_windows(struct api_monitors *monitors, int64_t monitor,
                           struct api_pending_monitor *pending, int64_t before, size_t *n)
{
    struct expired expired = {.n = 0};
    bool good =
        api_store_read(monitors->store, API_SQL_WINDOWS_EXPIRED,
                       API_ROW(monitor, before, pending != NULL, STEP), add_window, &expired);
    for (size_t i = 0; good && i < expired.n; i++)
        good = api_gc_delete_window(monitors, monitor, expired.windows[i].id);
    if (pending && expired.n > 0)
        api_pending_forget_pool(pending, expired.windows[expired.n - 1].start);
    *n = expired.n;
    return good;
}

bool api_gc_expire(struct api_monitors *monitors, struct api_pending_monitor *pending,
                   bool *expired)
{
    const struct api_monitor *monitor = pending->monitor;
    double kept = monitor->config->settings.retention_days * API_DAY_US;
    size_t n_windows = 0, n_events = 0;
    int64_t newest;
    *expired = false;
    if (!api_status_newest_end(monitors, monitor, &pending->status, &newest))
        return false;
    if (newest == API_NO_TIME)
        return true;
    bool good =
        delete_windows(monitors, monitor->id, pending, newest - (int64_t)kept, &n_windows) &&
        api_store_read(monitors->store, API_SQL_EVENTS_EXPIRE,
                       API_ROW(monitor->id, newest - (int64_t)kept), api_store_count_row,
                       &n_events);
    *expired = n_windows + n_events > 0;
    return good;
}

/* Takes a step with the last deleted monitor; *n becomes the number of windows that were deleted. */
static bool collect_tombstone(struct api_monitors *monitors, size_t *n)
{
    int64_t id = monitors->tombstones[monitors->n_tombstones - 1];
    const struct api_datum *of = API_ROW(id);
    if (!delete_windows(monitors, id, NULL, INT64_MAX, n))
        return false;
    if (*n == STEP)
        return true;
    if (!api_store_run(monitors->store, API_SQL_EVENTS_DELETE, of) ||
        !api_store_run(monitors->store, API_SQL_REVISIONS_DELETE, of) ||
        (monitors->n_tombstones == 1 &&
         !api_store_run(monitors->store, API_SQL_OUTBOX_PRUNE, NULL)))
        return false;
    monitors->n_tombstones--;
    monitors->log_has_deleted = true;
    return true;
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

/* A monitor without expired windows gets no pending monitor, which would be written. */
static bool collect_monitor(struct api_monitors *monitors, struct api_monitor *monitor)
{
    bool is_new = !monitor->pending;
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (!pending || !api_gc_expire(monitors, pending, &monitor->may_have_expired))
        return false;
    if (monitor->may_have_expired) /* it shows no deleted window */
        return api_status_read(monitors, monitor, &pending->status);
    if (is_new)
        api_pending_drop(monitors);
    return prune_revisions(monitors, monitor);
}

/* ROUND: windows that a round deletes, or a few more, and monitors that it looks at. */
enum { ROUND = 200 };

bool api_gc(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    size_t done = 0, n;
    for (; monitors->n_tombstones > 0 && done < ROUND; done += n + 1)
        if (!collect_tombstone(monitors, &n))
            return false;
    for (size_t i = 0; i < registry->n && done < ROUND; i++)
        if (registry->monitors[i]->may_have_expired) {
            if (!collect_monitor(monitors, registry->monitors[i]))
                return false;
            done += registry->monitors[i]->may_have_expired ? STEP : 1;
        }
    monitors->gc_unfinished = done >= ROUND;
    return true;
}

bool api_gc_add_tombstone(struct api_monitors *monitors, int64_t monitor)
{
    int64_t *tombstones =
        realloc(monitors->tombstones, (monitors->n_tombstones + 1) * sizeof *tombstones);
    if (!tombstones)
        return false;
    monitors->tombstones = tombstones;
    tombstones[monitors->n_tombstones++] = monitor;
    return true;
}

void api_gc_read_deleted(void *context, const struct api_datum *values)
{
    struct api_monitors *monitors = context;
    monitors->out_of_memory |= !api_gc_add_tombstone(monitors, values[0].integer);
}

bool api_gc_delete_left_out(struct api_monitors *monitors, const char *group, const char *name,
                            size_t *n)
{
    size_t before = monitors->n_tombstones;
    if (!api_store_read(monitors->store, name ? API_SQL_MONITOR_REMOVE : API_SQL_GROUP_REMOVE,
                        API_ROW(group, name ? name : ""), api_gc_read_deleted, monitors))
        return false;
    *n += monitors->n_tombstones - before;
    return !monitors->out_of_memory;
}
