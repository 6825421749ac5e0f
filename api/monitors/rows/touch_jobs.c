/* Locks and reads the monitors of a batch, for one wait each. */
#include "api/monitors/rows/touch.h"

#include "api/monitors/rows/window_load.h"
#include "api/store/counts.h"
#include "api/text/hash.h"

#include <stdlib.h>
#include <string.h>

static int compare_known(const void *a, const void *b)
{
    const struct api_known *const *first = a, *const *second = b;
    return ((*first)->id > (*second)->id) - ((*first)->id < (*second)->id);
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* ---- Idempotency keys */

/* Locks the keys of jobs, so that no other server takes the same at the same time. */
static bool lock_keys(struct api_monitors *monitors, const struct api_store_job *jobs)
{
    struct api_buffer keys = {.size = 0};
    for (const struct api_store_job *job = jobs; job; job = job->next)
        if (job->key)
            api_append(&keys, job->key, sizeof(int64_t));
    size_t n = keys.size / sizeof(int64_t);
    if (n > 0)
        qsort(keys.data, n, sizeof(int64_t), compare_numbers);
    bool good = (!keys.failed || api_transaction_fail_oom(monitors)) &&
                api_store_lock(monitors->store, (const void *)keys.data, n);
    api_buffer_free(&keys);
    return good;
}

/* ---- Rows */

/* touching: the monitors of a batch, in order of their ids. */
struct touching {
    struct api_monitors *monitors;
    const struct api_known *const *known;
    size_t n;
    struct api_call *calls; /* room for two of each: what locks them is the first */
    size_t n_counted;       /* in which others have counted */
    struct api_buffer rows; /* struct api_monitor: those that are not as they are in memory */
    struct api_window_list windows;
};

/* Gives the monitors that jobs change, in order of their ids, each once: *n of them, in a buffer. */
static bool list(struct api_monitors *monitors, const struct api_store_job *jobs,
                 struct api_buffer *to, size_t *n)
{
    for (const struct api_store_job *job = jobs; job; job = job->next)
        if (job->n_touches > 0)
            api_append(to, job->touches, job->n_touches * sizeof *job->touches);
    const struct api_known **all = (void *)to->data;
    size_t n_all = to->size / sizeof *all;
    if (to->failed)
        return api_transaction_fail_oom(monitors);
    if (n_all > 0)
        qsort(all, n_all, sizeof *all, compare_known);
    *n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (*n == 0 || all[i]->id != all[*n - 1]->id)
            all[(*n)++] = all[i];
    return true;
}

/* Reads the counts of an open window to which another server has added. */
static void renew_open(void *context, const struct api_datum *values)
{
    struct api_monitors *monitors = context;
    struct api_monitor *monitor = api_in_memory(monitors, values[0].integer);
    struct api_snapshot *open = monitor->open;
    if (open->window.n == api_datum_number(&values[3]))
        return;
    monitor->open = api_snapshot_copy(open); /* requests may hold the one before */
    api_snapshot_release(open);
    if (!(open = monitor->open)) {
        api_transaction_fail_oom(monitors);
        return;
    }
    open->window.start = values[1].integer;
    open->window.end = values[2].integer;
    open->window.n = api_datum_number(&values[3]);
    open->window.moments = (struct api_moments){.n = 0};
    api_moments_read(&values[4], &open->window.moments);
    memset(open->counts, 0, open->config->bins.n_bins * sizeof *open->counts);
    api_counts_add(values[5].text, values[5].size, open->counts, open->config->bins.n_bins);
}

/* Touches a monitor that is in memory, in which others may have counted; another is read later. */
static void take_locked(void *context, const struct api_datum *values)
{
    struct touching *touching = context;
    struct api_monitor *monitor = api_in_memory(touching->monitors, values[0].integer);
    if (!monitor || monitor->changed != values[1].integer)
        return;
    if (monitor->open && monitor->status.observations != values[2].integer)
        touching->calls[touching->n + 1 + touching->n_counted++] =
            (struct api_call){API_SQL_WINDOW_COUNTED,
                              {API_INTEGER(monitor->id), API_INTEGER(monitor->open->window.id)},
                              {renew_open, touching->monitors}};
    monitor->status.observations = values[2].integer;
    monitor->status.last_observation = api_time_of(&values[3]);
    api_touch_known(touching->monitors, monitor);
}

static void add_row(void *context, const struct api_datum *values)
{
    struct touching *touching = context;
    struct api_monitor row = {.id = 0};
    api_monitor_read(&row, values);
    api_append(&touching->rows, &row, sizeof row);
}

/* Locks all; then reads the numbers of open windows in which others have counted. */
static bool lock_all(struct touching *t)
{
    struct api_monitors *monitors = t->monitors;
    int64_t schema[2] = {0};
    for (size_t i = 0; i < t->n; i++)
        t->calls[i] = (struct api_call){
            API_SQL_MONITOR_LOCKED, {API_INTEGER(t->known[i]->id)}, {take_locked, t}};
    t->calls[t->n] = (struct api_call){API_SQL_SCHEMA, .rows = {api_datum_read_integers, schema}};
    return api_store_read_all(monitors->store, t->calls, t->n + 1) &&
           api_store_knows(monitors->store, schema[0], schema[1]) &&
           (t->n_counted == 0 ||
            api_store_read_all(monitors->store, t->calls + t->n + 1, t->n_counted)) &&
           !monitors->out_of_memory;
}

/* Reads and touches the others. */
static bool read_others(struct touching *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct api_monitor *monitor = api_in_memory(t->monitors, t->known[i]->id);
        if (!monitor || !monitor->is_touched)
            t->calls[n++] =
                (struct api_call){API_SQL_MONITOR, {API_INTEGER(t->known[i]->id)}, {add_row, t}};
    }
    if (n == 0)
        return true;
    if (!api_store_read_all(t->monitors->store, t->calls, n))
        return false;
    const struct api_monitor *rows = (const void *)t->rows.data;
    if (t->rows.failed)
        return api_transaction_fail_oom(t->monitors);
    for (size_t i = 0, j = 0; i < t->rows.size / sizeof *rows; i++) {
        struct api_monitor *monitor;
        while (j + 1 < t->n && t->known[j]->id < rows[i].id)
            j++;
        if (!api_touch_row(t->monitors, &rows[i], t->known[j], &monitor))
            return false;
    }
    return true;
}

/* Reads the open windows of those that have none in memory. */
static bool read_open(struct touching *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct api_monitor *monitor = api_in_memory(t->monitors, t->known[i]->id);
        if (monitor && monitor->is_touched && !monitor->open &&
            monitor->config->settings.window != API_BATCH)
            t->calls[n++] =
                (struct api_call){API_SQL_WINDOW_OPEN,
                                  {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)},
                                  {api_window_list_add, &t->windows}};
    }
    bool good = n == 0 || api_store_read_all(t->monitors->store, t->calls, n);
    good = api_window_list_end(&t->windows, t->monitors->store) && good;
    for (size_t i = 0; good && i < t->windows.n; i++) {
        struct api_window *window = &t->windows.windows[i];
        struct api_monitor *monitor = api_in_memory(t->monitors, window->monitor);
        good = (monitor->open = api_snapshot_of(t->monitors, monitor, window)) != NULL;
    }
    return good;
}

bool api_touch_jobs(struct api_monitors *monitors, const struct api_store_job *jobs)
{
    struct api_buffer known = {.size = 0};
    struct touching t = {.monitors = monitors};
    bool good = lock_keys(monitors, jobs) && list(monitors, jobs, &known, &t.n);
    t.known = (const void *)known.data;
    t.calls = good ? calloc(2 * t.n + 2, sizeof *t.calls) : NULL;
    if (t.calls)
        good = lock_all(&t) && read_others(&t) && read_open(&t);
    else if (good)
        good = api_transaction_fail_oom(monitors);
    free(t.calls);
    api_buffer_free(&t.rows);
    api_window_list_free(&t.windows);
    api_buffer_free(&known);
    return good;
}
