#include "server/store.h"

#include "api/store/location.h"
#include "api/store/store.h"
#include "server/log.h"

#include <string.h>

enum { NAME = 400 };

/* why_memory: a sentence on why the fallback is in use, told once the log is there; else empty. */
static char why_memory[500];

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
        api_monitors_limit_store(monitors, options->max_store);
    if (monitors && options->monitor_metrics)
        api_monitors_expose_groups_alone(monitors);
    api_store_name(location, name, sizeof name);
    if (!monitors)
        fprintf(stderr, "kldivd: --store %s: %s\n", name, reason);
    return monitors;
}

void srv_store_log(const struct srv_options *options, struct api_monitors *monitors)
{
    char name[NAME];
    api_store_name(options->store, name, sizeof name);
    if (!api_monitors_are_stored(monitors)) {
        srv_log(SRV_LOG_WARNING, "--store %s: %s; until it is there, monitors answer 503", name,
                api_monitors_reason(monitors));
        return;
    }
    if (*why_memory)
        srv_log(
            SRV_LOG_WARNING,
            "--store %s: %s; --store-fallback: monitors are kept in memory, and lost at the end",
            name, why_memory);
    srv_log(SRV_LOG_INFO, "store %s, %zu monitors", *why_memory ? "memory" : name,
            api_monitors_count(monitors));
}
