#include "api/monitors/monitors.h"

#include "api/monitors/exposition.h"
#include "api/monitors/live.h"
#include "api/monitors/statistics.h"
#include "api/monitors/sweep.h"
#include "api/monitors/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading the store */

struct loading {
    struct api_monitors *monitors;
    struct api_problem problem;
    bool failed;
};

/* Copies a text of a row and ends it with a NUL. */
static char *text_of(const struct api_datum *datum) { return strndup(datum->text, datum->size); }

static int64_t time_of(const struct api_datum *datum)
{
    return datum->kind == API_SQL_INTEGER ? datum->integer : API_NO_TIME;
}

static struct api_monitor *make_monitor(struct loading *loading, const struct api_datum *values,
                                        const char *group, const char *name, const char *settings,
                                        const char *definition)
{
    struct api_config *config =
        api_config_load(definition, settings, loading->monitors->budget, &loading->problem);
    struct api_monitor *monitor =
        config ? api_monitor_new(values[0].integer, group, name, config) : NULL;
    if (!monitor)
        return NULL;
    monitor->revision = values[3].integer;
    monitor->version = values[4].integer;
    monitor->live.state = api_verdict_of(values[6].integer);
    monitor->live.observations = values[7].integer;
    monitor->live.last_observation = time_of(&values[8]);
    monitor->live.last_window = values[9].integer;
    monitor->live.since = time_of(&values[10]);
    monitor->sweep = true;
    return monitor;
}

static void load_monitor(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    struct api_registry *registry = &loading->monitors->registry;
    char *group = text_of(&values[1]), *name = text_of(&values[2]), *settings = text_of(&values[5]),
         *definition = text_of(&values[11]);
    struct api_monitor *monitor =
        group && name && settings && definition && api_registry_reserve(registry, 1)
            ? make_monitor(loading, values, group, name, settings, definition)
            : NULL;
    if (monitor)
        registry->monitors[registry->n++] = monitor;
    else
        loading->failed = true;
    free(group);
    free(name);
    free(settings);
    free(definition);
}

static int compare_id(const void *id, const void *element)
{
    const struct api_monitor *const *monitor = element;
    return *(const int64_t *)id < (*monitor)->id ? -1 : *(const int64_t *)id > (*monitor)->id;
}

/* Monitors are in the order of their numbers until all is loaded. */
static void load_newest(void *context, const struct api_datum *values)
{
    struct api_registry *registry = &((struct loading *)context)->monitors->registry;
    struct api_monitor **monitor =
        registry->n > 0 ? bsearch(&values[0].integer, registry->monitors, registry->n,
                                  sizeof(struct api_monitor *), compare_id)
                        : NULL;
    if (monitor)
        (*monitor)->live.newest_end = values[1].integer;
}

static void load_orphan(void *context, const struct api_datum *values)
{
    struct loading *loading = context;
    loading->failed |= !api_add_dead(loading->monitors, values[0].integer);
}

static bool load_all(struct loading *loading)
{
    struct api_monitors *monitors = loading->monitors;
    struct api_store *store = monitors->store;
    bool good =
        api_store_begin(store) &&
        api_store_run(store, API_SQL_MONITORS, NULL, &(struct api_rows){load_monitor, loading}) &&
        api_store_run(store, API_SQL_WINDOWS_NEWEST, NULL,
                      &(struct api_rows){load_newest, loading}) &&
        api_store_run(store, API_SQL_ORPHANS, NULL, &(struct api_rows){load_orphan, loading}) &&
        !loading->failed;
    for (size_t i = 0; good && i < monitors->registry.n; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[i];
        good = api_live_read(monitors, monitor, &monitor->live);
    }
    api_registry_sort(&monitors->registry);
    return good && api_store_commit(store);
}

/* ---- The whole */

static bool init_lock(struct api_monitors *monitors)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&monitors->wake, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return good && pthread_mutex_init(&monitors->lock, NULL) == 0;
}

struct api_monitors *api_monitors_open(const char *location, size_t most, struct api_budget *budget,
                                       char *reason, size_t size)
{
    struct api_monitors *monitors = calloc(1, sizeof *monitors);
    struct loading loading = {.monitors = monitors};
    snprintf(reason, size, "no memory is left");
    if (!monitors)
        return NULL;
    monitors->most = most;
    monitors->budget = budget;
    atomic_store(&monitors->stored, true);
    monitors->statistics = api_statistics_new();
    if (init_lock(monitors) && api_registry_init(&monitors->registry) && monitors->statistics)
        monitors->store = api_store_open(location, reason, size);
    if (monitors->store && load_all(&loading))
        return monitors;
    if (loading.problem.code)
        snprintf(reason, size, "%s", loading.problem.detail);
    else if (monitors->store)
        snprintf(reason, size, "it cannot be read: %s", api_store_reason(monitors->store));
    api_monitors_free(monitors);
    return NULL;
}

const char *api_monitors_folder(const struct api_monitors *monitors)
{
    return api_store_folder(monitors->store);
}

void api_monitors_free(struct api_monitors *monitors)
{
    if (!monitors)
        return;
    api_registry_free(&monitors->registry);
    api_config_release(monitors->former);
    api_store_close(monitors->store);
    api_statistics_free(monitors->statistics);
    pthread_cond_destroy(&monitors->wake);
    pthread_mutex_destroy(&monitors->lock);
    free(monitors->dead);
    free(monitors);
}

size_t api_monitors_count(struct api_monitors *monitors)
{
    pthread_rwlock_rdlock(&monitors->registry.lock);
    size_t n = monitors->registry.n;
    pthread_rwlock_unlock(&monitors->registry.lock);
    return n;
}

void api_monitors_metrics(struct api_monitors *monitors, struct api_buffer *out)
{
    api_append_format(out,
                      "# HELP kldiv_store_up 1 if the last write to the store worked, else 0.\n"
                      "# TYPE kldiv_store_up gauge\nkldiv_store_up %d\n",
                      api_monitors_are_stored(monitors));
    api_statistics_write(monitors->statistics, out);
    api_registry_refresh(&monitors->registry);
    pthread_rwlock_rdlock(&monitors->registry.lock);
    api_registry_expose(&monitors->registry, out);
    pthread_rwlock_unlock(&monitors->registry.lock);
}
