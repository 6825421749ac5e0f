#include "api/monitors/state/replace.h"

#include "api/monitors/model/pool.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/others.h"
#include "api/monitors/state/status.h"

#include <stdlib.h>
#include <string.h>

/* loading: monitors that were read, and are in no registry yet; `unread` cannot be read, and have no config.
 * The locks of both are not used. */
struct loading {
    struct api_monitors *monitors;
    struct api_registry read, unread;
    int64_t schema, oldest, change, deletion, mute, column, written;
    struct api_named_rows mutes;   /* all of them, if some were changed */
    struct api_named_rows columns; /* likewise */
    struct api_buffer ids;         /* int64_t: of all monitors of the store, if some were deleted */
    struct api_problem problem;    /* of the row that is read */
    const struct api_zone *told;   /* whose loss was told last */
    bool failed;
    bool
        all; /* forget all monitors: a new connection may lead to a copy of the database that lacks the last transactions */
};

/* ---- Rows */

/* Copies a text of a row and ends it with a NUL. */
static char *text_of(const struct api_datum *datum) { return strndup(datum->text, datum->size); }

/* True if the registry has this version of this monitor. After a new connection, which may be to another copy of the
 * database, the texts of the row are compared, too. */
static bool is_known(const struct loading *loading, const struct api_monitor *known,
                     const struct api_datum *values, const char *settings, const char *definition)
{
    return known && known->id == values[0].integer && known->version == values[4].integer &&
           (!loading->all || (strcmp(known->config->others, settings) == 0 &&
                              strcmp(known->config->definition, definition) == 0));
}

/* Makes the config of a row. If memory is short, a monitor of the registry is not left out: it is read again later. */
static struct api_config *read_config(struct loading *loading, const char *settings,
                                      const char *definition, size_t monitor_size, bool is_new)
{
    struct api_budget *budget = loading->monitors->budget;
    struct api_config *config = api_config_load(definition, settings, budget, &loading->problem);
    bool good = config && api_config_retain(config, budget, monitor_size, true, &loading->problem);
    if (good)
        return config;
    if (config && !is_new)
        loading->problem.code = NULL;
    api_config_release(config);
    return NULL;
}

/* Config of a row: that of the registry, if it is the same. */
static struct api_config *config_of(struct loading *loading, const struct api_datum *values,
                                    const char *group, const char *name)
{
    struct api_registry *registry = &loading->monitors->registry;
    const struct api_monitor *known = api_registry_find(registry, group, name);
    char *settings = text_of(&values[5]), *definition = text_of(&values[16]);
    struct api_config *config = NULL;
    if (settings && definition)
        config =
            is_known(loading, known, values, settings, definition)
                ? api_config_hold(known->config)
                : read_config(loading, settings, definition, api_monitor_size(group, name), !known);
    free(settings);
    free(definition);
    return config;
}

/* Tells, likewise, that a time zone is known by its last rule alone; once for the monitors that follow one another. */
static void tell_of_zone(struct loading *loading, const struct api_zone *zone)
{
    struct api_buffer *load_errors = &loading->monitors->load_errors;
    if (!api_zone_is_kept(zone) || zone == loading->told)
        return;
    loading->told = zone;
    api_append_format(load_errors,
                      "there is no time zone '%s' in %s any more; monitors that have it go "
                      "on by its last rule, %.100s: install tzdata",
                      api_zone_name(zone), api_zone_folder(), api_zone_rule(zone));
    api_append(load_errors, "", 1);
}

static struct api_monitor *make_monitor(struct loading *loading, const struct api_datum *values,
                                        const char *group, const char *name)
{
    struct api_config *config = config_of(loading, values, group, name);
    struct api_monitor *monitor =
        config ? api_monitor_new(values[0].integer, group, name, config) : NULL;
    if (!monitor)
        return NULL;
    tell_of_zone(loading, config->settings.zone);
    monitor->revision = values[3].integer;
    monitor->version = values[4].integer;
    monitor->status.state = api_verdict_of(values[6].integer);
    monitor->status.observations = values[7].integer;
    monitor->status.last_observation = api_time_of(&values[8]);
    monitor->status.last_window = values[9].integer;
    monitor->status.severity_since = api_time_of(&values[10]);
    monitor->status.newest_end = api_time_of(&values[11]);
    monitor->status.since = api_time_of(&values[12]);
    monitor->status.turns = (struct api_turns){api_time_of(&values[13]),
                                               {api_time_of(&values[14]), values[15].integer}};
    monitor->may_have_expired = true;
    monitor->status.sentence_of = values[18].integer;
    monitor->status.silence = (enum api_silence)values[19].integer;
    monitor->status.missed = values[20].integer;
    monitor->status.told = (int)values[21].integer;
    if (values[17].kind == API_SQL_TEXT && values[17].size < API_SENTENCE)
        memcpy(monitor->status.sentence, values[17].text, values[17].size);
    return monitor;
}

/* Leaves a monitor out. That is logged later, because there may be no log yet. */
static void leave_out(struct loading *loading, int64_t id, const char *group, const char *name)
{
    struct api_buffer *load_errors = &loading->monitors->load_errors;
    struct api_monitor *monitor =
        api_registry_reserve(&loading->unread, 1) ? api_monitor_new(id, group, name, NULL) : NULL;
    loading->failed |= !monitor;
    if (!monitor)
        return;
    loading->unread.monitors[loading->unread.n++] = monitor;
    api_append_format(load_errors,
                      "the monitor '%.128s' of the group '%.128s' cannot be read, and is "
                      "left out until it is replaced or deleted: %.200s",
                      name, group, loading->problem.detail);
    api_append(load_errors, "", 1);
    loading->problem.code = NULL;
}

static void read_monitor(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    char *group = text_of(&values[1]), *name = text_of(&values[2]);
    struct api_monitor *monitor = group && name && api_registry_reserve(&loading->read, 1)
                                      ? make_monitor(loading, values, group, name)
                                      : NULL;
    bool is_unread = loading->problem.code && strcmp(loading->problem.code, "out_of_memory") != 0;
    if (monitor)
        loading->read.monitors[loading->read.n++] = monitor;
    else if (is_unread)
        leave_out(loading, values[0].integer, group, name);
    else
        loading->failed = true;
    free(group);
    free(name);
}

static void read_number(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {{"schema", &loading->schema},  {"oldest", &loading->oldest},
                   {"change", &loading->change},  {"deletion", &loading->deletion},
                   {"mute", &loading->mute},      {"columns", &loading->column},
                   {"written", &loading->written}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].name) == values[0].size &&
            memcmp(numbers[i].name, values[0].text, values[0].size) == 0)
            *numbers[i].number = values[1].integer;
}

static void read_id(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    api_append(&loading->ids, &values[0].integer, sizeof values[0].integer);
    loading->failed |= loading->ids.failed;
}

/* ---- Reading */

static bool run(struct loading *loading, enum api_statement statement,
                const struct api_datum *parameters, api_row_reader *row)
{
    return api_store_read(loading->monitors->store, statement, parameters, row, loading) &&
           !loading->failed;
}

/* True if what has this number of a change may have changed since it was read. */
static bool has_changed(const struct loading *loading, int64_t number)
{
    return loading->all || number > loading->monitors->change;
}

/* True if monitors of the registry may be gone from the store. */
static bool deletes(const struct loading *loading)
{
    return loading->monitors->registry.n > 0 && has_changed(loading, loading->deletion);
}

/* Reads all monitors, or only the ones that were changed since the last time. */
static bool read_monitors(struct loading *loading)
{
    struct api_monitors *monitors = loading->monitors;
    if (!(loading->all
              ? run(loading, API_SQL_MONITORS, NULL, read_monitor) &&
                    api_store_read(monitors->store, API_SQL_ORPHANS, NULL, api_gc_read_deleted,
                                   monitors) &&
                    !monitors->out_of_memory
              : run(loading, API_SQL_MONITORS_CHANGED, API_ROW(monitors->change), read_monitor)))
        return false;
    for (size_t i = 0; i < loading->read.n; i++) {
        struct api_monitor *monitor = loading->read.monitors[i];
        if (!api_status_read(monitors, monitor, &monitor->status))
            return false;
    }
    return !deletes(loading) || run(loading, API_SQL_MONITOR_IDS, NULL, read_id);
}

/* ---- Into the registry */

/* Moves a monitor that was read into the registry's monitor of the same name. */
static void renew(struct api_monitor *monitor, struct api_monitor *read)
{
    struct api_config *config = monitor->config;
    monitor->config = read->config;
    read->config = config;
    monitor->id = read->id;
    monitor->revision = read->revision;
    monitor->version = read->version;
    int64_t before = monitor->status.last_observation, last = read->status.last_observation;
    if (monitor->status.silence == API_OF_PAST)
        read->status.past = monitor->status.past;
    monitor->status = read->status;
    if (monitor->status.silence == API_OF_PAST)
        api_status_note_past(&monitor->status, api_now());
    if (last > before) {
        monitor->status.last_observation = before;
        api_monitor_see(monitor, &monitor->status, last, api_now());
    }
    monitor->may_have_expired = true;
    api_snapshot_release(monitor->open);
    monitor->open = NULL;
    api_pool_release(monitor->pool);
    monitor->pool = NULL;
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t *first = a, *second = b;
    return *first < *second ? -1 : *first > *second;
}

/* Frees monitors of which the store has no row any more. */
static void remove_deleted(struct loading *loading)
{
    struct api_registry *registry = &loading->monitors->registry;
    size_t kept = 0, n_ids = loading->ids.size / sizeof(int64_t);
    if (n_ids > 0)
        qsort(loading->ids.data, n_ids, sizeof(int64_t), compare_ids);
    for (size_t i = 0; i < registry->n; i++) {
        struct api_monitor *monitor = registry->monitors[i];
        if (n_ids > 0 &&
            bsearch(&monitor->id, loading->ids.data, n_ids, sizeof(int64_t), compare_ids))
            registry->monitors[kept++] = monitor;
        else
            api_monitor_free(monitor);
    }
    registry->n = kept;
}

/* Frees monitors of the registry that cannot be read any more, because other servers changed them. */
static void remove_unread(struct loading *loading)
{
    struct api_registry *registry = &loading->monitors->registry;
    for (size_t i = 0; i < loading->unread.n; i++) {
        const struct api_monitor *unread = loading->unread.monitors[i];
        struct api_monitor *known = api_registry_find(registry, unread->group, unread->name);
        if (known)
            api_registry_remove(registry, known);
        api_monitor_free(known);
    }
}

static bool apply(struct loading *loading)
{
    struct api_monitors *monitors = loading->monitors;
    struct api_registry *registry = &monitors->registry, *read = &loading->read;
    bool removes = deletes(loading);
    pthread_rwlock_wrlock(&registry->lock);
    bool good = api_registry_reserve(registry, read->n);
    api_registry_sort(read); /* out of order, many would be moved for each */
    for (size_t i = 0; good && i < read->n; i++) {
        struct api_monitor *monitor = read->monitors[i];
        struct api_monitor *known = api_registry_find(registry, monitor->group, monitor->name);
        if (!known) {
            api_registry_add(registry, monitor);
            continue;
        }
        renew(known, monitor);
        api_monitor_free(monitor);
    }
    if (good && removes)
        remove_deleted(loading);
    if (good)
        remove_unread(loading);
    if (good && has_changed(loading, loading->mute))
        api_named_move(&registry->mutes, &loading->mutes, monitors->budget);
    if (good && has_changed(loading, loading->column))
        api_named_move(&registry->columns, &loading->columns, monitors->budget);
    pthread_rwlock_unlock(&registry->lock);
    read->n = good ? 0 : read->n;
    return good || api_transaction_fail_oom(monitors);
}

void api_load_tell(struct api_monitors *monitors)
{
    const struct api_buffer *load_errors = &monitors->load_errors;
    if (!monitors->log)
        return;
    for (size_t at = 0; at < load_errors->size; at += strlen(load_errors->data + at) + 1)
        monitors->log(true, load_errors->data + at);
    api_buffer_free(&monitors->load_errors);
}

bool api_load(struct api_monitors *monitors)
{
    struct loading loading = {.monitors = monitors,
                              .change = -1,
                              .all = !atomic_load(&monitors->loaded) ||
                                     api_store_last(monitors->store)->is_new};
    size_t n_tombstones = monitors->n_tombstones;
    if (!loading.all && !api_store_is_shared(monitors->store))
        return true;
    if (loading.all) {
        /* beside the monitors, which are read below; deleted ones are among the orphans */
        api_config_release(monitors->former);
        monitors->former = NULL;
        monitors->n_tombstones = 0;
    }
    bool good = run(&loading, API_SQL_META, NULL, read_number);
    if (good)
        api_others_note(monitors, loading.written);
    good = good && api_store_knows(monitors->store, loading.schema, loading.oldest) &&
           ((!loading.all && loading.change <= monitors->change) ||
            (read_monitors(&loading) &&
             (!has_changed(&loading, loading.mute) || api_mutes_read(monitors, &loading.mutes)) &&
             (!has_changed(&loading, loading.column) ||
              api_columns_read(monitors, &loading.columns)) &&
             apply(&loading)));
    if (good) {
        monitors->change = loading.change;
        atomic_store(&monitors->loaded, true);
        api_load_tell(monitors);
    } else {
        monitors->out_of_memory |= loading.failed;
        monitors->n_tombstones = n_tombstones;
        api_buffer_free(&monitors->load_errors);
    }
    api_registry_empty(&loading.read);
    api_registry_empty(&loading.unread);
    api_buffer_free(&loading.ids);
    api_named_free(&loading.mutes, monitors->budget);
    api_named_free(&loading.columns, monitors->budget);
    return good;
}
