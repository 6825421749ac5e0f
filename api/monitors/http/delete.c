/* DELETE of a group, a monitor, or one window. */
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/rows/columns.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"

static bool check(struct api_exchange *x) { return api_check_no_query(x) && api_check_names(x); }

/* Forgets the columns of a group that is gone; knows that of a monitor that nobody wants any more. */
static bool renew_columns(struct api_exchange *x, struct api_monitors *monitors)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_buffer names = {.size = 0};
    int64_t n = 0;
    bool good =
        api_store_number(monitors->store, API_SQL_GROUP_COUNT, API_ROW(group, INT64_C(1)), &n);
    if (name && n > 0)
        api_columns_add(&names, name);
    good = good && (!names.failed || api_transaction_fail_oom(monitors)) &&
           api_columns_leave_out(monitors, group, &names) && api_columns_prune(monitors);
    api_buffer_free(&names);
    return good;
}

/* Deletes the monitors, also those that cannot be read. */
static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_monitor *monitor = NULL;
    size_t n = 0;
    if (name ? !api_touch_named(monitors, group, name, &monitor) : !api_check_exists(x, monitors))
        return API_FAILED;
    if ((monitor || !name) && !api_check_conditions(x, monitor))
        return API_FAILED;
    if (!api_store_read(monitors->store, name ? API_SQL_MONITOR_DELETE : API_SQL_GROUP_DELETE,
                        API_ROW(group, name ? name : ""), api_store_count_row, &n))
        return API_FAILED;
    if (n == 0)
        return api_check_exists(x, monitors) ? API_DONE : API_FAILED;
    monitors->has_orphans = monitors->looks_for_silence = monitors->log_has_deleted = true;
    api_known_forget(&monitors->known, group);
    api_touch_forget_deleted(monitors, group, name);
    return api_outcome_of(api_store_run(monitors->store, API_SQL_NOTES_PRUNE, API_ROW(group)) &&
                          api_mutes_end(monitors) && renew_columns(x, monitors));
}

const struct api_steps api_delete = {
    .place = API_STORE_WRITES, .check = check, .run = run, .write = api_write_nothing};

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
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    return api_outcome_of(monitor && api_check_conditions(x, monitor) &&
                          api_erase_window(monitors, monitor, *id, &x->problem));
}

const struct api_steps api_delete_window = {.place = API_STORE_WRITES,
                                            .state = sizeof(int64_t),
                                            .check = api_check_change,
                                            .parse = parse_window,
                                            .run = run_window,
                                            .write = api_write_nothing};
