#include "server/store.h"

#include "api/store/store.h"
#include "server/log.h"

#include <string.h>

/* why_memory: a sentence on why the fallback is in use, told once the log is there; else empty. */
static char why_memory[500];

struct api_monitors *srv_store_open(const struct srv_options *options, struct api_budget *budget)
{
    char reason[sizeof why_memory];
    const char *location = options->store;
    struct api_monitors *monitors =
        api_monitors_open(location, options->max_monitors, budget, reason, sizeof reason);
    if (!monitors && options->store_fallback && !api_store_has_place(location)) {
        memcpy(why_memory, reason, sizeof why_memory);
        location = "memory";
        monitors =
            api_monitors_open(location, options->max_monitors, budget, reason, sizeof reason);
    }
    if (!monitors)
        fprintf(stderr, "kldivd: --store %s: %s\n", location, reason);
    return monitors;
}

void srv_store_log(const struct srv_options *options, struct api_monitors *monitors)
{
    if (*why_memory)
        srv_log(
            SRV_LOG_WARNING,
            "--store %s: %s; --store-fallback: monitors are kept in memory, and lost at the end",
            options->store, why_memory);
    srv_log(SRV_LOG_INFO, "store %s, %zu monitors", *why_memory ? "memory" : options->store,
            api_monitors_count(monitors));
}
