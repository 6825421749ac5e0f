/* DELETE of a group, a monitor, or one window. */
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/group_rows.h"

struct deleting {
    size_t first, n;             /* in the registry */
    struct api_named_rows mutes; /* that are left, if there were any */
    bool renews_columns;
    struct api_named_rows columns; /* without a monitor, after the deletion */
};

static bool check(struct api_exchange *x) { return api_check_no_query(x) && api_check_names(x); }

/* Forgets the columns of a group that is gone; knows that of a monitor that nobody wants any more. */
static bool renew_columns(struct api_exchange *x, struct api_monitors *monitors)
{
    struct deleting *d = x->state;
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_buffer changes = {0};
    size_t n_group, n_columns;
    api_registry_group(&monitors->registry, group, &n_group);
    api_columns_group(&monitors->registry.columns, group, &n_columns);
    if (name && n_group > d->n)
        api_columns_add(&changes, group, name, true, 0);
    d->renews_columns = n_columns > 0 || changes.size > 0;
    bool good = (!changes.failed || api_transaction_fail_oom(monitors)) &&
                (!d->renews_columns || api_columns_renew(monitors, &changes, &d->columns));
    api_buffer_free(&changes);
    return good;
}

/* Deletes the monitors that are known, and those in the store that could not be read. */
static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct deleting *d = x->state;
    const struct api_registry *registry = &monitors->registry;
    const char *group = api_group_of(x), *name = api_name_of(x);
    d->first = name ? api_registry_lower_bound(registry, group, name)
                    : api_registry_group(registry, group, &d->n);
    if (name)
        d->n = api_registry_find(registry, group, name) ? 1 : 0;
    if (d->n > 0 && !api_check_conditions(x))
        return API_FAILED;
    size_t n = d->n;
    for (size_t i = 0; i < d->n; i++)
        if (!api_store_run(monitors->store, API_SQL_MONITOR_DELETE,
                           API_ROW(registry->monitors[d->first + i]->id)))
            return API_FAILED;
    if (!api_gc_delete_left_out(monitors, group, name, &n))
        return API_FAILED;
    if (n == 0)
        return api_outcome_of(api_find_monitor(x));
    return api_outcome_of(
        api_store_run(monitors->store, API_SQL_META_SET,
                      API_ROW(api_change_of(monitors), "deletion")) &&
        api_store_run(monitors->store, API_SQL_NOTES_PRUNE, API_ROW(group)) &&
        (registry->mutes.list.size == 0 || api_mutes_renew(monitors, &d->mutes)) &&
        renew_columns(x, monitors));
}

/* Forgets monitors. Their rows are deleted later; if there is no memory to remember that, after the next start. */
static void publish(struct api_exchange *x, struct api_monitors *monitors)
{
    struct deleting *d = x->state;
    if (monitors->registry.mutes.list.size > 0)
        api_named_move(&monitors->registry.mutes, &d->mutes, monitors->budget);
    if (d->renews_columns)
        api_named_move(&monitors->registry.columns, &d->columns, monitors->budget);
    for (size_t i = 0; i < d->n; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[d->first];
        api_gc_add_tombstone(monitors, monitor->id);
        api_registry_remove(&monitors->registry, monitor);
        api_monitor_free(monitor);
    }
}

static void drop(struct api_exchange *x)
{
    struct deleting *d = x->state;
    api_buffer_free(&d->mutes.list);
    api_buffer_free(&d->columns.list);
}

const struct api_steps api_delete = {.place = API_STORE_WRITES,
                                     .state = sizeof(struct deleting),
                                     .check = check,
                                     .run = run,
                                     .publish = publish,
                                     .write = api_write_nothing,
                                     .drop = drop};

/* ---- One window, whose number is the state */

static enum api_outcome parse_window(struct api_exchange *x)
{
    const char *which = x->captures.value[2];
    return api_outcome_of(api_pagination_numbers(which, x->state, 1) ||
                          api_fail(&x->problem, "window_not_found",
                                   "there is no window '%.40s'; a window is deleted by its id",
                                   which));
}

static enum api_outcome run_window(struct api_exchange *x, struct api_monitors *monitors)
{
    const int64_t *id = x->state;
    struct api_monitor *monitor = api_monitor_of(x);
    return api_outcome_of(monitor && api_check_conditions(x) &&
                          api_erase_window(monitors, monitor, *id, &x->problem));
}

const struct api_steps api_delete_window = {.place = API_STORE_WRITES,
                                            .state = sizeof(int64_t),
                                            .check = api_check_change,
                                            .parse = parse_window,
                                            .run = run_window,
                                            .write = api_write_nothing};
