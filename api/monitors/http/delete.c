/* DELETE of a group or a monitor. */
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/mute_rows.h"

#include <stdlib.h>
#include <string.h>

struct deleting {
    struct api_store_job job;
    struct api_exchange *x;
    size_t first, n;        /* in the registry */
    struct api_mutes mutes; /* that are left, if there were any */
};

bool api_delete_begin(struct api_exchange *x)
{
    return api_check_no_query(x) && api_check_names(x);
}

/* Deletes the monitors that are known, and those that cannot be read, which may be there none the less. */
static bool run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct deleting *d = (struct deleting *)job;
    const struct api_registry *registry = &monitors->registry;
    const char *group = api_group_of(d->x), *name = api_name_of(d->x);
    d->first = name ? api_registry_lower_bound(registry, group, name)
                    : api_registry_group(registry, group, &d->n);
    if (name)
        d->n = api_registry_find(registry, group, name) ? 1 : 0;
    if (d->n > 0 && !api_check_conditions(d->x, monitors, &job->problem))
        return false;
    size_t n = d->n;
    for (size_t i = 0; i < d->n; i++) {
        const struct api_datum id[] = {API_INTEGER(registry->monitors[d->first + i]->id)};
        if (!api_store_run(monitors->store, API_SQL_MONITOR_DELETE, id, NULL))
            return false;
    }
    if (!api_gc_delete_left_out(monitors, group, name, &n))
        return false;
    if (n == 0)
        return api_find_monitor(d->x, &job->problem);
    const struct api_datum change[] = {API_INTEGER(api_change_of(monitors))};
    const struct api_datum of_group[] = {API_TEXT_DATUM(group)};
    return api_store_run(monitors->store, API_SQL_DELETION_SET, change, NULL) &&
           api_store_run(monitors->store, API_SQL_NOTES_PRUNE, of_group, NULL) &&
           (registry->mutes.list.size == 0 || api_mutes_renew(monitors, &d->mutes));
}

/* Forgets monitors, whose rows are collected later; without memory to remember them, at the next start. */
static void publish(struct api_store_job *job, struct api_monitors *monitors)
{
    struct deleting *d = (struct deleting *)job;
    if (monitors->registry.mutes.list.size > 0)
        api_mutes_publish(monitors, &d->mutes);
    for (size_t i = 0; i < d->n; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[d->first];
        api_gc_add_tombstone(monitors, monitor->id);
        api_registry_remove(&monitors->registry, monitor);
        api_monitor_free(monitor);
    }
}

bool api_delete_prepare(struct api_exchange *x, double max_ns)
{
    struct deleting *d = api_request_state(x, sizeof *d);
    (void)max_ns;
    if (d && !d->x) {
        d->x = x;
        d->job = (struct api_store_job){.exclusive = true, .run = run, .publish = publish};
        x->work = &d->job;
    } else if (d) {
        api_job_finished(x, &d->job);
    }
    return !x->problem.code;
}

bool api_delete(struct api_exchange *x)
{
    x->response.status = 204;
    return true;
}

void api_delete_end(struct api_exchange *x)
{
    struct deleting *d = x->state;
    if (d)
        api_buffer_free(&d->mutes.list);
    free(d);
}
