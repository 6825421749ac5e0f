#include "api/monitors/rows/touch.h"

#include "api/monitors/model/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Monitors in memory: by id, and in the order in which they were touched */

static struct api_monitor **bucket_of(struct api_monitors *monitors, int64_t id)
{
    return &monitors->by_id[(uint64_t)id % API_HASHED];
}

static struct api_monitor *find(const struct api_monitors *monitors, int64_t id)
{
    struct api_monitor *monitor = monitors->by_id[(uint64_t)id % API_HASHED];
    while (monitor && monitor->id != id)
        monitor = monitor->next_of_hash;
    return monitor;
}

static void link_newest(struct api_monitors *monitors, struct api_monitor *monitor)
{
    monitor->older = monitors->newest;
    monitor->newer = NULL;
    *(monitors->newest ? &monitors->newest->newer : &monitors->oldest) = monitor;
    monitors->newest = monitor;
}

static void unlink(struct api_monitors *monitors, struct api_monitor *monitor)
{
    if (monitor->newer)
        monitor->newer->older = monitor->older;
    else
        monitors->newest = monitor->older;
    if (monitor->older)
        monitor->older->newer = monitor->newer;
    else
        monitors->oldest = monitor->newer;
}

static void clear_windows(struct api_monitor *monitor)
{
    for (struct api_dirty_window *t = monitor->windows, *next; t; t = next) {
        next = t->next;
        api_snapshot_release(t->snapshot);
        free(t);
    }
    monitor->windows = NULL;
    monitor->last_window = &monitor->windows;
}

static void forget_open(struct api_monitor *monitor)
{
    api_snapshot_release(monitor->open);
    monitor->open = NULL;
}

static void forget_windows(struct api_monitor *monitor)
{
    forget_open(monitor);
    api_pool_release(monitor->pool);
    monitor->pool = NULL;
}

void api_touch_remove(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor **at = bucket_of(monitors, monitor->id);
    while (*at != monitor)
        at = &(*at)->next_of_hash;
    *at = monitor->next_of_hash;
    unlink(monitors, monitor);
    monitors->bytes -= monitor->bytes;
    clear_windows(monitor);
    forget_windows(monitor);
    api_config_release(monitor->config);
    free(monitor);
}

static struct api_monitor *add(struct api_monitors *monitors, int64_t id)
{
    struct api_monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor) {
        api_transaction_fail_oom(monitors);
        return NULL;
    }
    monitor->id = id;
    monitor->last_window = &monitor->windows;
    monitor->next_of_hash = *bucket_of(monitors, id);
    *bucket_of(monitors, id) = monitor;
    link_newest(monitors, monitor);
    return monitor;
}

/* Forgets monitors until they have no more than so many bytes. */
static void remove_oldest(struct api_monitors *monitors, size_t room)
{
    for (struct api_monitor *oldest = monitors->oldest, *newer;
         oldest && (room == 0 || monitors->bytes > room); oldest = newer) {
        newer = oldest->newer;
        api_touch_remove(monitors, oldest);
    }
}

/* Bytes of a monitor that stays in memory. */
static size_t size_of(const struct api_monitor *monitor)
{
    enum { SNAPSHOTS = 2 };
    const struct api_config *config = monitor->config;
    return sizeof *monitor + config->retained +
           (monitor->open
                ? SNAPSHOTS * (sizeof *monitor->open + config->bins.n_bins * 2 * sizeof(double))
                : 0) +
           (monitor->pool ? api_pool_size(&config->settings, &config->bins) : 0);
}

/* Bytes that monitors may keep in memory after a transaction. */
static size_t room_of(const struct api_monitors *monitors)
{
    /* SHARE: of --max-memory; MAX: without a limit. */
    enum { SHARE = 8 };
    static const size_t max = (size_t)64 << 20;
    const struct api_budget *budget = monitors->budget;
    return budget && budget->limit ? budget->limit / SHARE : max;
}

bool api_touch_exceeds(const struct api_monitors *monitors)
{
    size_t bytes = 0;
    for (const struct api_monitor *monitor = monitors->newest; monitor && monitor->is_touched;
         monitor = monitor->older)
        bytes += monitor->config ? size_of(monitor) : 0;
    return bytes > room_of(monitors);
}

void api_touch_end(struct api_monitors *monitors, bool is_committed)
{
    for (struct api_monitor *monitor = monitors->newest, *older; monitor && monitor->is_touched;
         monitor = older) {
        older = monitor->older;
        if (!is_committed || !monitor->config) {
            api_touch_remove(monitors, monitor);
            continue;
        }
        api_touch_clear(monitor);
        monitor->is_touched = false;
        monitors->bytes -= monitor->bytes;
        monitor->bytes = size_of(monitor);
        monitors->bytes += monitor->bytes;
    }
    remove_oldest(monitors, room_of(monitors));
    monitors->mutes.rows.size = 0;
    monitors->mutes.is_read = false;
}

void api_touch_forget(struct api_monitors *monitors)
{
    remove_oldest(monitors, 0);
    api_config_release(monitors->former);
    monitors->former = NULL;
}

void api_touch_forget_deleted(struct api_monitors *monitors, const char *group, const char *name)
{
    for (struct api_monitor *monitor = monitors->newest, *older; monitor; monitor = older) {
        older = monitor->older;
        if (strcmp(monitor->group, group) == 0 && (!name || strcmp(monitor->name, name) == 0))
            api_touch_remove(monitors, monitor);
    }
}

struct api_monitor *api_in_memory(const struct api_monitors *monitors, int64_t id)
{
    struct api_monitor *monitor = find(monitors, id);
    return monitor && monitor->config ? monitor : NULL;
}

void api_touch_known(struct api_monitors *monitors, struct api_monitor *monitor)
{
    if (monitor->is_touched)
        return;
    unlink(monitors, monitor);
    link_newest(monitors, monitor);
    monitor->is_touched = true;
    monitor->writes = API_WRITE_NOTHING;
    monitor->has_expired = false;
    monitor->trace = (struct api_trace){.text = ""};
}

/* True if the row of a monitor in memory is as it was. */
static bool is_as_stored(const struct api_monitor *monitor, int64_t changed, int64_t observations)
{
    return monitor->changed == changed && monitor->status.observations == observations;
}

const struct api_monitor *api_touched_row(const struct api_monitors *monitors, int64_t id,
                                          int64_t changed, int64_t observations)
{
    const struct api_monitor *monitor = find(monitors, id);
    return monitor && monitor->config && is_as_stored(monitor, changed, observations) ? monitor
                                                                                      : NULL;
}

/* ---- Configs */

struct api_config *api_touched_config(const struct api_monitors *monitors, int64_t id,
                                      int64_t version)
{
    const struct api_monitor *monitor = find(monitors, id);
    return monitor && monitor->config && monitor->version == version
               ? api_config_hold(monitor->config)
               : NULL;
}

bool api_is_unreadable(const struct api_monitors *monitors, int64_t id, int64_t version)
{
    const int64_t *pairs = (const void *)monitors->unreadable.data;
    for (size_t i = 0; i < monitors->unreadable.size / (2 * sizeof *pairs); i++)
        if (pairs[2 * i] == id && pairs[2 * i + 1] == version)
            return true;
    return false;
}

static void tell_unreadable(struct api_monitors *monitors, const struct api_monitor *row,
                            const struct api_problem *problem)
{
    const int64_t pair[] = {row->id, row->version};
    char sentence[700];
    if (api_is_unreadable(monitors, row->id, row->version))
        return;
    api_append(&monitors->unreadable, pair, sizeof pair);
    snprintf(sentence, sizeof sentence,
             "the monitor '%.128s' of the group '%.128s' cannot be read, and is left out until it "
             "is replaced or deleted: %.200s",
             row->name, row->group, problem->detail);
    api_tell(monitors, sentence);
}

/* Makes the config of a monitor from its texts; NULL if it cannot be read, which is told, or without memory. */
static struct api_config *load_config(struct api_monitors *monitors, const struct api_monitor *row,
                                      const struct api_datum *settings,
                                      const struct api_datum *definition)
{
    struct api_problem problem = {0};
    char *texts[] = {strndup(definition->text, definition->size),
                     strndup(settings->text, settings->size)};
    struct api_config *config =
        texts[0] && texts[1] ? api_config_load(texts[0], texts[1], &problem) : NULL;
    if (config && !api_config_retain(config, monitors->budget, API_MONITOR_BYTES, &problem)) {
        api_config_release(config);
        config = NULL;
    }
    if (!config && (!problem.code || strcmp(problem.code, "out_of_memory") == 0))
        api_transaction_fail_oom(monitors);
    else if (!config)
        tell_unreadable(monitors, row, &problem);
    free(texts[0]);
    free(texts[1]);
    return config;
}

/* loading: the config of a row. */
struct loading {
    struct api_monitors *monitors;
    const struct api_monitor *row;
    struct api_config *config;
};

static void load_row(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    loading->config = load_config(loading->monitors, loading->row, &values[0], &values[1]);
}

struct api_config *api_read_config(struct api_monitors *monitors, const struct api_monitor *row,
                                   bool *good)
{
    struct loading loading = {monitors, row, NULL};
    *good = api_store_read(monitors->store, API_SQL_TEXTS, API_ROW(row->id), load_row, &loading) &&
            !monitors->out_of_memory;
    return loading.config;
}

/* checking: all monitors. */
struct checking {
    struct api_monitors *monitors;
    const struct api_zone *told;
    size_t n;
};

/* Tells that a time zone is known by its last rule alone; once for the monitors that follow one another. */
static void tell_of_zone(struct checking *checking, const struct api_zone *zone)
{
    char sentence[400];
    if (!api_zone_is_kept(zone) || zone == checking->told)
        return;
    checking->told = zone;
    snprintf(sentence, sizeof sentence,
             "there is no time zone '%s' in %s any more; monitors that have it go on by its last "
             "rule, %.100s: install tzdata",
             api_zone_name(zone), api_zone_folder(), api_zone_rule(zone));
    api_tell(checking->monitors, sentence);
}

static void check_row(void *context, const struct api_datum *values)
{
    struct checking *checking = context;
    struct api_monitor row = {.id = 0};
    api_monitor_read(&row, values);
    struct api_config *config =
        load_config(checking->monitors, &row, &values[API_SETTINGS], &values[API_DEFINITION]);
    if (config)
        tell_of_zone(checking, config->settings.zone);
    api_config_release(config);
    checking->n++;
}

bool api_check_all(struct api_monitors *monitors, size_t *n)
{
    struct checking checking = {.monitors = monitors};
    monitors->unreadable.size = 0;
    bool good = api_store_read(monitors->store, API_SQL_TEXTS_OF_ALL, NULL, check_row, &checking) &&
                !monitors->out_of_memory;
    *n = checking.n;
    return good;
}

/* ---- Touching */

/* Takes a row into a monitor that may be known from a transaction before. */
static bool take_row(struct api_monitors *monitors, struct api_monitor *monitor,
                     const struct api_monitor *row, const struct api_known *known)
{
    bool good = true, is_same = monitor->config && monitor->version == row->version;
    if (!is_same || monitor->changed != row->changed)
        forget_windows(monitor);
    if (!is_as_stored(monitor, row->changed, row->status.observations))
        forget_open(monitor);
    if (row != monitor)
        memcpy(monitor, row, offsetof(struct api_monitor, config));
    monitor->writes = API_WRITE_NOTHING;
    monitor->has_expired = false;
    monitor->trace = monitors->trace ? *monitors->trace : (struct api_trace){.text = ""};
    if (is_same)
        return true;
    struct api_config *config = known && known->config && known->version == row->version
                                    ? api_config_hold(known->config)
                                    : api_read_config(monitors, row, &good);
    api_config_release(monitor->config);
    monitor->config = NULL;
    if (config)
        api_monitor_set_config(monitor, config);
    return good;
}

bool api_touch_row(struct api_monitors *monitors, const struct api_monitor *row,
                   const struct api_known *known, struct api_monitor **found)
{
    struct api_monitor *monitor = find(monitors, row->id);
    *found = NULL;
    if (monitor && monitor->is_touched) {
        if (monitors->trace && api_trace_is_set(monitors->trace))
            monitor->trace = *monitors->trace;
        *found = monitor->config ? monitor : NULL;
        return true;
    }
    if (monitor) {
        unlink(monitors, monitor);
        link_newest(monitors, monitor);
    } else if (!(monitor = add(monitors, row->id))) {
        return false;
    }
    monitor->is_touched = true;
    bool good = take_row(monitors, monitor, row, known);
    *found = good && monitor->config ? monitor : NULL;
    return good;
}

static void append_id(void *context, const struct api_datum *values)
{
    api_append(context, &values[0].integer, sizeof values[0].integer);
}

bool api_read_ids(struct api_monitors *monitors, enum api_statement statement,
                  const struct api_datum *of, struct api_buffer *ids)
{
    return api_store_read(monitors->store, statement, of, append_id, ids) &&
           (!ids->failed || api_transaction_fail_oom(monitors));
}

static void read_row(void *context, const struct api_datum *values)
{
    api_monitor_read(context, values);
}

bool api_touch(struct api_monitors *monitors, int64_t id, const struct api_known *known,
               struct api_monitor **monitor)
{
    struct api_monitor *touched = find(monitors, id), row = {.id = 0};
    int64_t now[2] = {INT64_MIN};
    *monitor = NULL;
    if (touched && !touched->is_touched &&
        !api_store_read(monitors->store, API_SQL_MONITOR_CHANGED, API_ROW(id),
                        api_datum_read_integers, now))
        return false;
    if (touched && (touched->is_touched || is_as_stored(touched, now[0], now[1])))
        return api_touch_row(monitors, touched, known, monitor);
    return api_store_read(monitors->store, API_SQL_MONITOR, API_ROW(id), read_row, &row) &&
           (row.id == 0 || api_touch_row(monitors, &row, known, monitor));
}

bool api_touch_named(struct api_monitors *monitors, const char *group, const char *name,
                     struct api_monitor **monitor)
{
    struct api_monitor row = {.id = 0};
    *monitor = NULL;
    return api_store_read(monitors->store, API_SQL_MONITOR_NAMED, API_ROW(group, name), read_row,
                          &row) &&
           (row.id == 0 || api_touch_row(monitors, &row, NULL, monitor));
}

void api_touch_set_config(struct api_monitor *monitor, struct api_config *config)
{
    clear_windows(monitor);
    forget_windows(monitor);
    api_monitor_set_config(monitor, config);
    api_touch_all(monitor);
}

bool api_touch_write(struct api_monitors *monitors, struct api_monitor *monitor)
{
    const struct api_monitor_status *status = &monitor->status;
    struct api_datum values[API_MONITOR_VALUES + 2];
    struct api_buffer names = {0};
    if (monitor->writes == API_WRITE_NOTHING)
        return true;
    bool is_counted_alone = monitor->writes == API_WRITE_COUNTS;
    monitor->writes = API_WRITE_NOTHING;
    if (is_counted_alone)
        return api_store_run(monitors->store, API_SQL_MONITOR_COUNTED,
                             API_ROW(status->observations, status->last_observation, monitor->id));
    monitor->changed++;
    api_monitor_values(monitor, values);
    api_top_write(status->last.scores.top, &monitor->config->bins, &names);
    values[API_MONITOR_VALUES] =
        (struct api_datum){.kind = API_SQL_TEXT, .text = names.data, .size = names.size};
    values[API_MONITOR_VALUES + 1] = (struct api_datum)API_INTEGER(monitor->id);
    monitors->looks_for_silence = true;
    if (status->next_close < monitors->next_close)
        monitors->next_close = status->next_close;
    bool good = !names.failed || api_transaction_fail_oom(monitors);
    good = good && api_store_run(monitors->store, API_SQL_MONITOR_PUT, values);
    api_buffer_free(&names);
    return good;
}

/* ---- Windows */

void api_touch_forget_pool(struct api_monitor *monitor, int64_t start)
{
    const struct api_pool *pool = monitor->pool;
    if (!pool || (pool->n > 0 && pool->n == pool->max && start < pool->starts[pool->n - 1]))
        return;
    api_pool_release(monitor->pool);
    monitor->pool = NULL;
}

struct api_dirty_window *api_mark_dirty(struct api_monitors *monitors, struct api_monitor *monitor,
                                        struct api_snapshot *snapshot)
{
    struct api_dirty_window *dirty = snapshot ? calloc(1, sizeof *dirty) : NULL;
    if (snapshot && !dirty)
        api_transaction_fail_oom(monitors);
    if (!dirty) {
        api_snapshot_release(snapshot);
        return NULL;
    }
    dirty->snapshot = snapshot;
    *monitor->last_window = dirty;
    monitor->last_window = &dirty->next;
    return dirty;
}

void api_touch_clear(struct api_monitor *monitor)
{
    for (const struct api_dirty_window *t = monitor->windows; t; t = t->next) {
        bool is_open = !t->snapshot->window.closed;
        if (is_open || (monitor->open && monitor->open->window.id == t->snapshot->window.id)) {
            api_snapshot_release(monitor->open);
            monitor->open = NULL;
        }
        if (!is_open)
            continue;
        monitor->open = t->snapshot;
        atomic_fetch_add(&monitor->open->refcount, 1);
    }
    clear_windows(monitor);
}
