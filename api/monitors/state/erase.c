/* Deletes windows of a monitor, and has those after them judged again. */
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/rejudge.h"
#include "api/monitors/state/status.h"

#include <inttypes.h>

/* Finds the end of the newest window, and when the next one closes. */
static bool update_ends(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
    status->newest_end = API_NO_TIME;
    return api_store_number(monitors->store, API_SQL_WINDOW_END, API_ROW(monitor->id, INT64_MAX),
                            &status->newest_end) &&
           api_status_read_next_close(monitors, monitor);
}

/* Forgets deleted windows, and judges again by what is left, if closed ones of this revision were among them. */
static bool judge_rest(struct api_monitors *monitors, struct api_monitor *monitor,
                       const struct api_gone *gone, size_t *judged)
{
    api_pool_release(monitor->pool);
    api_snapshot_release(monitor->open);
    monitor->pool = NULL;
    monitor->open = NULL;
    api_touch_all(monitor);
    monitors->log_has_deleted = true;
    api_gc_look_again(monitors, monitor->id); /* at its revision */
    return update_ends(monitors, monitor) &&
           (!gone->last || api_rejudge(monitors, monitor, gone, judged));
}

bool api_erase_window(struct api_monitors *monitors, struct api_monitor *monitor, int64_t window,
                      struct api_problem *problem)
{
    struct api_window_list list;
    size_t judged = 0;
    bool good =
        api_window_list_run(&list, monitors->store, API_SQL_WINDOW, API_ROW(monitor->id, window));
    if (good && list.n == 0)
        good = api_fail(problem, "window_not_found", "there is no window %" PRId64 " of '%.128s'",
                        window, monitor->name);
    if (good) {
        const struct api_window *row = &list.windows[0];
        bool counts = row->closed && row->revision == monitor->revision;
        const struct api_gone gone = {api_position_of(row), counts ? row : NULL};
        good = api_gc_delete_window(monitors, monitor->id, window) &&
               judge_rest(monitors, monitor, &gone, &judged);
    }
    api_window_list_free(&list);
    return good;
}

static void read_first(void *context, const struct api_datum *values)
{
    *(int64_t *)context = values[1].integer;
}

bool api_erase_windows(struct api_monitors *monitors, struct api_monitor *monitor,
                       const int64_t period[2], size_t *n, size_t *judged)
{
    const struct api_datum *of = API_ROW(monitor->id, period[0], period[1]);
    struct api_gone gone = {.first = {0, 0}};
    struct api_window_list last;
    size_t before = *n;
    bool good =
        api_window_list_run(&last, monitors->store, API_SQL_WINDOWS_LAST,
                            API_ROW(monitor->id, monitor->revision, period[1], INT64_C(0), 1)) &&
        api_store_read(monitors->store, API_SQL_WINDOWS_SPAN,
                       API_ROW(monitor->id, monitor->revision, period[0], period[1], INT64_MAX),
                       read_first, &gone.first.start) &&
        api_store_run(monitors->store, API_SQL_UNSEEN_DELETE_BETWEEN, of) &&
        api_store_read(monitors->store, API_SQL_WINDOWS_DELETE_BETWEEN, of, api_store_count_row, n);
    if (last.n > 0 && last.windows[0].start >= period[0])
        gone.last = &last.windows[0];
    good = good && (*n == before || judge_rest(monitors, monitor, &gone, judged));
    api_window_list_free(&last);
    return good;
}
