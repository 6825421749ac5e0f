/* DELETE of a group, a monitor, or windows. */
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/http/segments.h"
#include "api/monitors/rows/columns.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"

/* Forgets the columns of a group that is gone; knows that of a monitor that nobody wants any more. *n becomes the number of monitors
 * that are left. */
static bool renew_columns(struct api_exchange *x, struct api_monitors *monitors, int64_t *n)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_buffer names = {.size = 0};
    *n = 0;
    bool good =
        api_store_number(monitors->store, API_SQL_GROUP_COUNT, API_ROW(group, INT64_C(1)), n);
    if (name && *n > 0)
        api_columns_add(&names, name);
    good = good && (!names.failed || api_transaction_fail_oom(monitors)) &&
           api_columns_leave_out(monitors, group, &names) && api_columns_prune(monitors);
    api_buffer_free(&names);
    return good;
}

static api_segment_step delete_segment;

/* Deletes the monitors, also those that cannot be read; with the last one of a group its segments. */
static bool delete (struct api_exchange *x, struct api_monitors *monitors)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_monitor *monitor = NULL;
    size_t n = 0;
    int64_t left;
    if ((name ? !api_touch_named(monitors, group, name, &monitor)
              : !api_check_exists(x, monitors)) ||
        ((monitor || !name) && !api_check_conditions(x, monitor)) ||
        !api_store_read(monitors->store, name ? API_SQL_MONITOR_DELETE : API_SQL_GROUP_DELETE,
                        API_ROW(group, api_stored_name(x)), api_store_count_row, &n))
        return false;
    if (n == 0)
        return api_check_exists(x, monitors);
    monitors->has_orphans = monitors->looks_for_silence = monitors->log_has_deleted = true;
    api_known_forget(&monitors->known, group);
    api_touch_forget_deleted(monitors, group, name);
    return api_store_run(monitors->store, API_SQL_NOTES_PRUNE, API_ROW(group)) &&
           api_mutes_end(monitors) && renew_columns(x, monitors, &left) &&
           (left > 0 || api_segments_follow(x, monitors, delete_segment, monitors));
}

static bool delete_segment(struct api_exchange *x, void *context) { return delete (x, context); }

static bool delete_window(struct api_exchange *x, struct api_monitors *monitors)
{
    const char *which = x->captures.value[2];
    struct api_monitor *monitor = NULL;
    int64_t id;
    return (api_read_numbers(which, &id, 1) ||
            api_fail(&x->problem, "window_not_found",
                     "there is no window '%.40s'; a window is deleted by its id", which)) &&
           (monitor = api_monitor_of(x, monitors)) != NULL && api_check_conditions(x, monitor) &&
           api_erase_window(monitors, monitor, id, &x->problem);
}

/* ---- Windows of a period */

/* MAX_WINDOWS: that are deleted or judged again in one request, as many as a table with times makes; the store's thread needs some
 * 100 µs for each. */
enum { MAX_WINDOWS = 20000 };

static bool read_period(struct api_exchange *x, int64_t period[2])
{
    struct api_page page;
    bool good = api_page_read(x, &page, API_NAMES("from", "to"));
    period[0] = page.from;
    period[1] = page.to;
    api_page_free(&page);
    if (good && (page.from == INT64_MIN || page.to == INT64_MAX))
        return api_fail_at(&x->problem, API_QUERY, page.from == INT64_MIN ? "from" : "to",
                           "option_invalid",
                           "windows are deleted by the period in which they start: give from and "
                           "to, as in ?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z");
    return good && (page.from < page.to || api_fail_at(&x->problem, API_QUERY, "to",
                                                       "option_invalid", "to must be after from"));
}

/* deletion: of the windows of a period: how many there were, of how many monitors, and how many were judged again. */
struct deletion {
    struct api_monitors *monitors;
    int64_t period[2];
    size_t n, n_monitors, judged;
};

/* Deletes the windows of one monitor. */
static bool delete_of_monitor(struct api_exchange *x, struct deletion *d, int64_t id)
{
    struct api_monitor *monitor;
    size_t before = d->n;
    if (!api_touch(d->monitors, id, NULL, &monitor))
        return false;
    if (monitor && ((api_name_of(x) && !api_check_conditions(x, monitor)) ||
                    !api_erase_windows(d->monitors, monitor, d->period, &d->n, &d->judged)))
        return false;
    d->n_monitors += d->n > before;
    return d->n + d->judged <= MAX_WINDOWS ||
           api_fail_at(&x->problem, API_QUERY, "to", "too_many_windows",
                       "more than %d windows start in this period, or would be judged again; give "
                       "a shorter one, or delete those of each monitor",
                       MAX_WINDOWS);
}

/* Deletes those of the monitor or the group of the path. */
static bool delete_of_path(struct api_exchange *x, void *context)
{
    struct deletion *d = context;
    struct api_buffer ids = {.size = 0};
    bool good = api_read_ids(d->monitors, api_name_of(x) ? API_SQL_KNOWN : API_SQL_KNOWN_OF_GROUP,
                             API_ROW(api_group_of(x), api_stored_name(x)), &ids);
    const int64_t *id = (const void *)ids.data;
    for (size_t i = 0; good && i < ids.size / sizeof *id; i++)
        good = delete_of_monitor(x, d, id[i]);
    api_buffer_free(&ids);
    return good;
}

static bool delete_windows(struct api_exchange *x, struct api_monitors *monitors)
{
    struct deletion d = {.monitors = monitors};
    if (!api_check_exists(x, monitors) || !read_period(x, d.period) ||
        (!api_name_of(x) && !api_check_conditions(x, NULL)))
        return false;
    bool good = delete_of_path(x, &d) &&
                (api_name_of(x) || api_segments_follow(x, monitors, delete_of_path, &d));
    api_write_json(&x->response.body, "{'windows':%zu,'monitors':%zu}\n", d.n, d.n_monitors);
    return good && (d.n > 0 || api_fail(&x->problem, "window_not_found",
                                        "no window starts between from and to"));
}

/* A monitor may be called windows: it is meant by a group's path without a query. */
static bool check_group_windows(struct api_exchange *x)
{
    if (!x->request.query || !*x->request.query)
        x->captures.value[x->captures.n++] = "windows";
    return api_check_names(x);
}

static bool delete_group_windows(struct api_exchange *x, struct api_monitors *monitors)
{
    return api_name_of(x) ? delete (x, monitors) : delete_windows(x, monitors);
}

const struct api_steps api_delete = {
    .place = API_STORE_WRITES, .check = api_check_change, .handle = delete};
const struct api_steps api_delete_window = {
    .place = API_STORE_WRITES, .check = api_check_change, .handle = delete_window};
const struct api_steps api_delete_windows = {
    .place = API_STORE_WRITES, .check = api_check_names, .handle = delete_windows};
const struct api_steps api_delete_group_windows = {
    .place = API_STORE_WRITES, .check = check_group_windows, .handle = delete_group_windows};
