#include "api/monitors/state/gc.h"

#include "api/monitors/state/status.h"
#include "api/monitors/state/window_load.h"

#include <stdlib.h>

/* STEP: windows that one step deletes. */
enum { STEP = 100 };

static const double day_us = 86400e6;

/* expired: windows that go; `revision` is of closed ones. */
struct expired {
    struct {
        struct api_position position;
        int64_t revision;
        bool closed;
    } windows[STEP];
    size_t n;
};

static void add_window(void *context, const struct api_datum *values)
{
    struct expired *expired = context;
    size_t i = expired->n;
    if (i == STEP)
        return;
    expired->windows[i].position = (struct api_position){values[1].integer, values[0].integer};
    expired->windows[i].revision = values[2].integer;
    expired->windows[i].closed = values[3].integer != 0;
    expired->n++;
}

/* Deletes up to STEP windows that ended before a time, open ones too if `open` is true; *n becomes
 * their number. `draft` is the monitor's, or NULL if it was deleted. */
static bool delete_windows(struct api_monitors *monitors, int64_t monitor, struct api_draft *draft,
                           int64_t before, size_t *n)
{
    const struct api_datum of[] = {API_INTEGER(monitor), API_INTEGER(before),
                                   API_INTEGER(draft != NULL), API_INTEGER(STEP)};
    struct expired expired = {.n = 0};
    bool good = api_store_run(monitors->store, API_SQL_WINDOWS_EXPIRED, of,
                              &(struct api_rows){add_window, &expired});
    for (size_t i = 0; good && i < expired.n; i++) {
        struct api_position position = expired.windows[i].position;
        const struct api_datum window[] = {API_INTEGER(monitor), API_INTEGER(position.id)};
        bool counts = draft && expired.windows[i].closed &&
                      expired.windows[i].revision == draft->monitor->revision;
        good = (!counts || (api_draft_previous(monitors, draft, false) &&
                            api_previous_delete(&draft->previous, monitors->store, position))) &&
               api_store_run(monitors->store, API_SQL_COUNTS_DELETE, window, NULL) &&
               api_store_run(monitors->store, API_SQL_WINDOW_DELETE, window, NULL);
    }
    *n = expired.n;
    return good && (!draft || *n == 0 || api_previous_refill(&draft->previous, monitors->store));
}

static void count_row(void *context, const struct api_datum *values)
{
    (void)values;
    ++*(size_t *)context;
}

bool api_expire(struct api_monitors *monitors, struct api_draft *draft, bool *expired)
{
    const struct api_monitor *monitor = draft->monitor;
    double kept = monitor->config->settings.retention_days * day_us;
    size_t n_windows = 0, n_events = 0;
    int64_t newest;
    *expired = false;
    if (!api_live_newest_end(monitors, monitor, &draft->live, &newest))
        return false;
    if (newest == API_NO_TIME)
        return true;
    const struct api_datum events[] = {API_INTEGER(monitor->id),
                                       API_INTEGER(newest - (int64_t)kept)};
    bool good = delete_windows(monitors, monitor->id, draft, newest - (int64_t)kept, &n_windows) &&
                api_store_run(monitors->store, API_SQL_EVENTS_EXPIRE, events,
                              &(struct api_rows){count_row, &n_events});
    *expired = n_windows + n_events > 0;
    return good;
}

/* Takes a step with the last deleted monitor; *n becomes the number of windows that went. */
static bool sweep_dead(struct api_monitors *monitors, size_t *n)
{
    int64_t id = monitors->dead[monitors->n_dead - 1];
    const struct api_datum of[] = {API_INTEGER(id)};
    if (!delete_windows(monitors, id, NULL, INT64_MAX, n))
        return false;
    if (*n == STEP)
        return true;
    if (!api_store_run(monitors->store, API_SQL_EVENTS_DELETE, of, NULL) ||
        !api_store_run(monitors->store, API_SQL_SUM_DELETE, of, NULL) ||
        !api_store_run(monitors->store, API_SQL_REVISIONS_DELETE, of, NULL))
        return false;
    monitors->n_dead--;
    return true;
}

/* Reads what is left, so that a monitor shows no window that is gone. */
static bool forget(struct api_monitors *monitors, struct api_draft *draft)
{
    const struct api_monitor *monitor = draft->monitor;
    const struct api_datum current[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    return api_live_read(monitors, monitor, &draft->live) &&
           api_store_run(monitors->store, API_SQL_REVISIONS_PRUNE, current, NULL);
}

/* A monitor of which nothing expires has no draft, which would be written. */
static bool sweep_monitor(struct api_monitors *monitors, struct api_monitor *monitor)
{
    bool is_new = !monitor->draft;
    struct api_draft *draft = api_draft_of(monitors, monitor);
    if (!draft || !api_expire(monitors, draft, &monitor->sweep))
        return false;
    if (monitor->sweep)
        return forget(monitors, draft);
    if (is_new)
        api_draft_drop(monitors);
    return true;
}

/* ROUND: windows that a round deletes, or a few more, and monitors that it looks at. */
enum { ROUND = 200 };

bool api_sweep(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    size_t done = 0, n;
    for (; monitors->n_dead > 0 && done < ROUND; done += n + 1)
        if (!sweep_dead(monitors, &n))
            return false;
    for (size_t i = 0; i < registry->n && done < ROUND; i++)
        if (registry->monitors[i]->sweep) {
            if (!sweep_monitor(monitors, registry->monitors[i]))
                return false;
            done += registry->monitors[i]->sweep ? STEP : 1;
        }
    monitors->sweeps = done >= ROUND;
    return true;
}

bool api_add_dead(struct api_monitors *monitors, int64_t monitor)
{
    int64_t *dead = realloc(monitors->dead, (monitors->n_dead + 1) * sizeof *dead);
    if (!dead)
        return false;
    monitors->dead = dead;
    dead[monitors->n_dead++] = monitor;
    return true;
}

/* left_out: monitors that are deleted. */
struct left_out {
    struct api_monitors *monitors;
    size_t n;
    bool failed;
};

static void add_left_out(void *context, const struct api_datum *values)
{
    struct left_out *left_out = context;
    left_out->n++;
    left_out->failed |= !api_add_dead(left_out->monitors, values[0].integer);
}

bool api_delete_left_out(struct api_monitors *monitors, const char *group, const char *name,
                         size_t *n)
{
    struct left_out left_out = {.monitors = monitors};
    const struct api_datum names[] = {API_TEXT_DATUM(group), API_TEXT_DATUM(name ? name : "")};
    if (!api_store_run(monitors->store, name ? API_SQL_MONITOR_REMOVE : API_SQL_GROUP_REMOVE, names,
                       &(struct api_rows){add_left_out, &left_out}))
        return false;
    *n += left_out.n;
    return !left_out.failed || api_work_out_of_memory(monitors);
}
