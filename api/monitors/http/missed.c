/* Requests of a group that lack columns of its monitors. */
#include "api/monitors/http/parse.h"

#include <math.h>
#include <stdlib.h>

static int compare_pointers(const void *a, const void *b)
{
    const struct api_monitor *const *first = a, *const *second = b;
    return (*first > *second) - (*first < *second);
}

bool api_count_missed(const struct api_observations *o, struct api_monitors *monitors, bool looks,
                      bool *misses)
{
    const struct api_registry *registry = &monitors->registry;
    size_t n_group, first = api_registry_group(registry, api_group_of(o->x), &n_group);
    *misses = false;
    if (api_name_of(o->x) || n_group == o->n)
        return true;
    const struct api_monitor **observed = malloc((o->n + 1) * sizeof *observed);
    for (size_t i = 0; observed && i < o->n; i++)
        observed[i] = o->observed[i].monitor;
    if (observed && o->n > 0)
        qsort(observed, o->n, sizeof *observed, compare_pointers);
    bool good = observed != NULL;
    for (size_t i = first; good && i < first + n_group; i++) {
        struct api_monitor *monitor = registry->monitors[i];
        const struct api_monitor_status *status =
            monitor->pending ? &monitor->pending->status : &monitor->status;
        if (status->missed >= API_MISSED ||
            !isinf(api_settings_stale_after(&monitor->config->settings)) ||
            bsearch(&monitor, observed, o->n, sizeof *observed, compare_pointers))
            continue;
        *misses = true;
        good = looks || api_pending_of(monitors, monitor);
        if (good && !looks)
            monitor->pending->status.missed++;
    }
    free(observed);
    return good || api_transaction_fail_oom(monitors);
}
