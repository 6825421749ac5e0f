/* Deletes one window, and has those after it judged again. */
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

static bool erase(struct api_monitors *monitors, struct api_monitor *monitor,
                  const struct api_window *window)
{
    bool counts = window->closed && window->revision == monitor->revision;
    api_pool_release(monitor->pool);
    api_snapshot_release(monitor->open);
    monitor->pool = NULL;
    monitor->open = NULL;
    api_touch_all(monitor);
    return api_gc_delete_window(monitors, monitor->id, window->id) &&
           update_ends(monitors, monitor) && (!counts || api_rejudge(monitors, monitor, window));
}

bool api_erase_window(struct api_monitors *monitors, struct api_monitor *monitor, int64_t window,
                      struct api_problem *problem)
{
    const struct api_datum *of = API_ROW(monitor->id, window);
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOW, of);
    if (good && list.n == 0)
        good = api_fail(problem, "window_not_found", "there is no window %" PRId64 " of '%.128s'",
                        window, monitor->name);
    good = good && erase(monitors, monitor, &list.windows[0]);
    api_window_list_free(&list);
    monitors->log_has_deleted |= good;
    if (good)
        api_gc_look_again(monitors, monitor->id); /* at its revision */
    return good;
}
