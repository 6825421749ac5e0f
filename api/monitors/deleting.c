/* DELETE of a group or a monitor. */
#include "api/monitors/endpoints.h"

#include "api/monitors/intake.h"
#include "api/monitors/load.h"
#include "api/monitors/sweep.h"
#include "api/query.h"

#include <stdlib.h>
#include <string.h>

struct deleting {
    struct api_work work;
    struct api_exchange *x;
    size_t first, n; /* in the registry */
};

/* Refuses parameters: one that hopes for a dry run must not delete. */
static bool has_no_parameters(struct api_exchange *x)
{
    struct api_parameter parameter;
    const char *rest = x->request.query ? x->request.query : "";
    if (api_query_next(&rest, &parameter, &x->problem))
        return api_fail_at(&x->problem, API_QUERY, parameter.name, "option_unknown",
                           "DELETE takes no parameter '%.100s'", parameter.name);
    return !x->problem.code;
}

bool api_deleting_begin(struct api_exchange *x)
{
    return has_no_parameters(x) && api_intake_names(x);
}

/* Finds the monitors that are known; what cannot be read may be there none the less. */
static void find(struct deleting *d, const struct api_registry *registry)
{
    const char *group = api_group_of(d->x), *name = api_name_of(d->x);
    d->first = name ? api_registry_place(registry, group, name)
                    : api_registry_group(registry, group, &d->n);
    if (name)
        d->n = api_registry_find(registry, group, name) ? 1 : 0;
}

static bool run(struct api_work *work, struct api_monitors *monitors)
{
    struct deleting *d = (struct deleting *)work;
    find(d, &monitors->registry);
    if (d->n > 0 && !api_intake_conditions(d->x, monitors, &work->problem))
        return false;
    size_t n = d->n;
    for (size_t i = 0; i < d->n; i++) {
        const struct api_datum id[] = {API_INTEGER(monitors->registry.monitors[d->first + i]->id)};
        if (!api_store_run(monitors->store, API_SQL_MONITOR_DELETE, id, NULL))
            return false;
    }
    if (!api_delete_left_out(monitors, api_group_of(d->x), api_name_of(d->x), &n))
        return false;
    if (n == 0)
        return api_intake_find(d->x, &work->problem);
    const struct api_datum change[] = {API_INTEGER(api_change_of(monitors))};
    return api_store_run(monitors->store, API_SQL_DELETION_SET, change, NULL);
}

/* Forgets monitors, whose rows are swept later; without memory to remember them, at the next start. */
static void publish(struct api_work *work, struct api_monitors *monitors)
{
    struct deleting *d = (struct deleting *)work;
    for (size_t i = 0; i < d->n; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[d->first];
        api_add_dead(monitors, monitor->id);
        api_registry_remove(&monitors->registry, monitor);
        api_monitor_free(monitor);
    }
}

bool api_deleting_prepare(struct api_exchange *x, double most_ns)
{
    struct deleting *d = x->state = x->state ? x->state : calloc(1, sizeof *d);
    (void)most_ns;
    if (!d)
        return api_fail_oom(&x->problem);
    if (!d->x) {
        d->x = x;
        d->work = (struct api_work){.alone = true, .run = run, .publish = publish};
        x->work = &d->work;
    } else if (x->work && d->work.done) {
        x->work = NULL;
        x->problem = d->work.problem;
    }
    return !x->problem.code;
}

bool api_deleting(struct api_exchange *x)
{
    x->response.status = 204;
    return true;
}

void api_deleting_end(struct api_exchange *x) { free(x->state); }
