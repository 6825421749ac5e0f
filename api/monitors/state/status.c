#include "api/monitors/state/status.h"

#include "api/monitors/model/top.h"
#include "api/monitors/state/window_load.h"

#include <string.h>

static const int64_t second = 1000000, day = INT64_C(86400000000);

bool api_start_is_ahead(const struct api_monitors *monitors, int64_t start)
{
    return start > monitors->now + day;
}

bool api_end_is_ahead(const struct api_monitors *monitors, const struct api_monitor *monitor,
                      int64_t end)
{
    const struct api_settings *settings = &monitor->config->settings;
    int64_t size = settings->window == API_SECONDS ? (int64_t)settings->window_size * second : 0;
    return end != API_NO_TIME && api_start_is_ahead(monitors, end - size);
}

bool api_live_newest_end(struct api_monitors *monitors, const struct api_monitor *monitor,
                         const struct api_live *live, int64_t *end)
{
    const struct api_datum until[] = {API_INTEGER(monitor->id), API_INTEGER(monitors->now + day)};
    *end = live->newest_end;
    if (!api_end_is_ahead(monitors, monitor, live->newest_end))
        return true;
    *end = API_NO_TIME;
    return api_store_run(monitors->store, API_SQL_WINDOW_END, until,
                         &(struct api_rows){api_datum_read_integer, end});
}

static void summarize(const struct api_window *window, struct api_live *live)
{
    live->has_last = true;
    live->last = (struct api_summary){.id = window->id,
                                      .start = window->start,
                                      .end = window->end,
                                      .restated = window->restated,
                                      .n = window->n,
                                      .kl = window->kl,
                                      .js = window->js,
                                      .psi = window->psi,
                                      .unseen_ratio = window->unseen_ratio,
                                      .missing_ratio = window->missing_ratio,
                                      .top = window->top,
                                      .top_share = window->top_share};
}

/* Makes the top of a closed window if the store has none that fits, and writes it. */
static bool complete(struct api_monitors *monitors, const struct api_monitor *monitor,
                     struct api_window *window)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(window->id)};
    struct api_window_list whole;
    struct api_scores scores;
    if (api_top_fits(window->top, &monitor->config->bins))
        return true;
    struct api_view *view =
        api_window_list_run(&whole, monitors->store, API_SQL_WINDOW, of) && whole.n > 0
            ? api_view_of(monitors, monitor, &whole.windows[0])
            : NULL;
    api_window_list_free(&whole);
    if (!view)
        return false;
    api_view_score(view, &scores, NULL);
    api_view_release(view);
    window->top = scores.top;
    window->top_share = scores.top_share;
    const struct api_datum top[] = {API_INTEGER(window->top), API_REAL(window->top_share), of[0],
                                    of[1]};
    return api_store_run(monitors->store, API_SQL_WINDOW_TOP, top, NULL);
}

bool api_live_read_recent(struct api_monitors *monitors, const struct api_monitor *monitor,
                          struct api_live *live)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                   API_INTEGER(monitors->now + day), API_INTEGER(API_RECENT)};
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_RECENT, of);
    live->n_recent = list.n;
    for (size_t i = 0; i < list.n; i++)
        live->recent[list.n - 1 - i] = list.windows[i].kl;
    live->has_last = false;
    good = good && (list.n == 0 || complete(monitors, monitor, &list.windows[0]));
    if (good && list.n > 0)
        summarize(&list.windows[0], live);
    api_window_list_free(&list);
    return good;
}

bool api_live_read_next_close(struct api_monitors *monitors, const struct api_monitor *monitor,
                              struct api_live *live)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    const struct api_settings *settings = &monitor->config->settings;
    struct api_window_list list;
    live->next_close = INT64_MAX;
    if (settings->window != API_SECONDS)
        return true;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_OPEN, of);
    for (size_t i = 0; i < list.n; i++) {
        int64_t due = list.windows[i].end + (int64_t)settings->grace * second;
        live->next_close = due < live->next_close ? due : live->next_close;
    }
    api_window_list_free(&list);
    return good;
}

bool api_live_read(struct api_monitors *monitors, const struct api_monitor *monitor,
                   struct api_live *live)
{
    return api_live_read_recent(monitors, monitor, live) &&
           api_live_read_next_close(monitors, monitor, live);
}

bool api_live_is_newest(const struct api_live *live, const struct api_window *window)
{
    return !live->has_last || window->start > live->last.start ||
           (window->start == live->last.start && window->id > live->last.id);
}

void api_live_add(struct api_live *live, const struct api_window *window)
{
    summarize(window, live);
    if (live->n_recent == API_RECENT)
        memmove(live->recent, live->recent + 1, (API_RECENT - 1) * sizeof *live->recent);
    else
        live->n_recent++;
    live->recent[live->n_recent - 1] = window->kl;
}

static struct api_datum time_datum(int64_t time)
{
    struct api_datum datum = API_INTEGER(time);
    if (time == API_NO_TIME)
        datum.kind = API_SQL_NULL;
    return datum;
}

bool api_live_store(struct api_monitors *monitors, const struct api_draft *draft)
{
    const struct api_live *live = &draft->live;
    const struct api_datum row[] = {API_INTEGER(live->state),
                                    API_INTEGER(live->observations),
                                    time_datum(live->last_observation),
                                    API_INTEGER(live->last_window),
                                    time_datum(live->since),
                                    time_datum(live->newest_end),
                                    API_INTEGER(api_change_of(monitors)),
                                    API_INTEGER(draft->monitor->id)};
    return api_store_run(monitors->store, API_SQL_MONITOR_LIVE, row, NULL);
}
