#include "server/store.h"

#include "api/store/backup.h"
#include "api/store/location.h"
#include "api/store/store.h"
#include "api/text/clock.h"
#include "server/telemetry/log.h"

#include <string.h>

enum { NAME = 400 };

/* why_memory: a sentence that says why the fallback is in use, logged once there is a log; otherwise empty. */
static char why_memory[500];

/* Version of the schema that was opened, and the newest that is known. */
static int64_t schema, known;

struct api_monitors *srv_store_open(const struct srv_options *options, struct api_budget *budget)
{
    char reason[sizeof why_memory], name[NAME];
    const char *location = options->store;
    struct api_monitors *monitors =
        api_monitors_open(location, options->max_monitors, budget, reason, sizeof reason);
    if (!monitors && options->store_fallback && !api_store_has_place(location)) {
        memcpy(why_memory, reason, sizeof why_memory);
        location = "memory";
        monitors =
            api_monitors_open(location, options->max_monitors, budget, reason, sizeof reason);
    }
    if (monitors)
        schema = api_store_schema(api_monitors_store(monitors), &known);
    if (monitors)
        api_monitors_limit_store(monitors, options->max_store);
    if (monitors && options->monitor_metrics)
        api_monitors_expose_groups_only(monitors);
    api_store_name(location, name, sizeof name);
    if (!monitors)
        fprintf(stderr, "kldivd: --store %s: %s\n", name, reason);
    return monitors;
}

/* name_migrated: the store that print_migrated tells of; its lines. */
static char name_migrated[NAME];
static size_t n_migrated;

static void print_migrated(const struct api_migrated *migrated)
{
    n_migrated++;
    printf("%s: schema %lld \u2192 %lld: %s (%.0f ms)\n", name_migrated, (long long)migrated->from,
           (long long)migrated->to, migrated->what, migrated->seconds * 1e3);
}

bool srv_store_migrate(const struct srv_options *options)
{
    char reason[sizeof why_memory] = "it is lost at the end, and has nothing to migrate";
    bool is_memory = strcmp(options->store, "memory") == 0;
    struct api_store *store =
        is_memory ? NULL : api_store_open(options->store, reason, sizeof reason);
    bool good = store && api_store_is_open(store);
    api_store_name(options->store, name_migrated, sizeof name_migrated);
    if (good) {
        api_store_report_migrations(store, print_migrated);
        schema = api_store_schema(store, &known);
    } else {
        fprintf(stderr, "kldivd: --migrate: --store %s: %s\n", name_migrated,
                store ? api_store_reason(store) : reason);
    }
    if (good && schema > known)
        printf("%s: schema %lld is of a newer version, and may be used by this one, which knows "
               "%lld: nothing to do\n",
               name_migrated, (long long)schema, (long long)known);
    else if (good && n_migrated == 0)
        printf("%s: schema %lld: nothing to do\n", name_migrated, (long long)schema);
    api_store_close(store);
    return good && fflush(stdout) == 0;
}

bool srv_store_backup(const struct srv_options *options)
{
    char reason[sizeof why_memory];
    int64_t bytes;
    double start = api_seconds();
    if (!api_store_backup(options->store, options->backup, &bytes, reason, sizeof reason)) {
        fprintf(stderr, "kldivd: --backup: %s\n", reason);
        return false;
    }
    printf("%s: %lld bytes in %.1f s\n", options->backup, (long long)bytes, api_seconds() - start);
    return fflush(stdout) == 0;
}

void srv_store_log(const struct srv_options *options, struct api_monitors *monitors)
{
    char name[NAME];
    api_store_name(options->store, name, sizeof name);
    if (!api_monitors_are_stored(monitors)) {
        srv_log(SRV_LOG_WARNING,
                "--store: until it is there, monitors answer 503 store=%s error=%s", name,
                api_store_reason(api_monitors_store(monitors)));
        return;
    }
    if (*why_memory)
        srv_log(
            SRV_LOG_WARNING,
            "--store-fallback: monitors are kept in memory, and lost at the end store=%s error=%s",
            name, why_memory);
    if (schema > known)
        srv_log(SRV_LOG_INFO,
                "--store: schema %zu is of a newer version, and may be used by this one, which "
                "knows %zu",
                (size_t)schema, (size_t)known);
    srv_log(SRV_LOG_INFO, "%zu monitors are stored store=%s", api_monitors_count(monitors),
            *why_memory ? "memory" : name);
}
