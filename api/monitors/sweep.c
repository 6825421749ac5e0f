#include "api/monitors/sweep.h"

#include "api/monitors/live.h"

#include <stdlib.h>

/* STEP: windows that one step deletes. */
enum { STEP = 100 };

static const double day_us = 86400e6;

struct ids {
    int64_t ids[STEP];
    size_t n;
};

static void add_id(void *context, const struct api_datum *values)
{
    struct ids *ids = context;
    if (ids->n < STEP)
        ids->ids[ids->n++] = values[0].integer;
}

/* Deletes up to STEP windows that ended before a time, open ones too if `open` is true; *n becomes
 * their number. */
static bool delete_windows(struct api_monitors *monitors, int64_t monitor, int64_t before,
                           bool open, size_t *n)
{
    const struct api_datum of[] = {API_INTEGER(monitor), API_INTEGER(before), API_INTEGER(!open),
                                   API_INTEGER(STEP)};
    struct ids ids = {.n = 0};
    bool good = api_store_run(monitors->store, API_SQL_WINDOWS_EXPIRED, of,
                              &(struct api_rows){add_id, &ids});
    for (size_t i = 0; good && i < ids.n; i++) {
        const struct api_datum window[] = {API_INTEGER(monitor), API_INTEGER(ids.ids[i])};
        good = api_store_run(monitors->store, API_SQL_COUNTS_DELETE, window, NULL) &&
               api_store_run(monitors->store, API_SQL_WINDOW_DELETE, window, NULL);
    }
    *n = ids.n;
    return good;
}

bool api_expire(struct api_monitors *monitors, const struct api_monitor *monitor,
                int64_t newest_end, size_t *n)
{
    double kept = monitor->config->settings.retention_days * day_us;
    *n = 0;
    return newest_end == API_NO_TIME ||
           delete_windows(monitors, monitor->id, newest_end - (int64_t)kept, false, n);
}

/* Takes a step with the last deleted monitor; *n becomes the number of windows that went. */
static bool sweep_dead(struct api_monitors *monitors, size_t *n)
{
    int64_t id = monitors->dead[monitors->n_dead - 1];
    const struct api_datum of[] = {API_INTEGER(id)};
    if (!delete_windows(monitors, id, INT64_MAX, true, n))
        return false;
    if (*n == STEP)
        return true;
    if (!api_store_run(monitors->store, API_SQL_EVENTS_DELETE, of, NULL) ||
        !api_store_run(monitors->store, API_SQL_REVISIONS_DELETE, of, NULL))
        return false;
    monitors->n_dead--;
    return true;
}

/* Reads what is left, so that a monitor shows no window that is gone. */
static bool forget(struct api_monitors *monitors, struct api_monitor *monitor)
{
    const struct api_datum current[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    struct api_draft *draft = api_draft_of(monitors, monitor);
    return draft && api_live_read(monitors, monitor, &draft->live) &&
           api_store_run(monitors->store, API_SQL_REVISIONS_PRUNE, current, NULL);
}

static bool sweep_monitor(struct api_monitors *monitors, struct api_monitor *monitor, size_t *n)
{
    if (!api_expire(monitors, monitor, monitor->live.newest_end, n))
        return false;
    monitor->sweep = *n == STEP;
    return *n == 0 || forget(monitors, monitor);
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
            if (!sweep_monitor(monitors, registry->monitors[i], &n))
                return false;
            done += n + 1;
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
