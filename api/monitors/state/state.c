#include "api/monitors/state/state.h"

#include "api/monitors/state/status.h"

#include <string.h>

/* history: the last verdicts, in order, of which the state is made. */
struct history {
    size_t fire_after, clear_after, max, n;
    enum api_verdict state;
    enum api_verdict verdicts[1000];
};

static void advance(struct history *history, enum api_verdict verdict)
{
    if (verdict == API_INSUFFICIENT)
        return;
    if (history->n == history->max) {
        memmove(history->verdicts, history->verdicts + 1,
                (history->max - 1) * sizeof *history->verdicts);
        history->n--;
    }
    history->verdicts[history->n++] = verdict;
    history->state = api_state_after(history->state, history->verdicts, history->n,
                                     history->fire_after, history->clear_after);
}

/* Reads the verdicts before a window, and the state after them. */
static bool read_history(struct api_monitors *monitors, const struct api_monitor *monitor,
                         const struct api_window *window, struct history *history)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    *history = (struct history){.fire_after = (size_t)settings->fire_after,
                                .clear_after = (size_t)settings->clear_after};
    history->max =
        history->fire_after > history->clear_after ? history->fire_after : history->clear_after;
    const struct api_datum before[] = {API_INTEGER(monitor->id), API_INTEGER(window->revision),
                                       API_INTEGER(window->start), API_INTEGER(window->id),
                                       API_INTEGER(history->max)};
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_BEFORE, before);
    history->n = list.n;
    for (size_t i = 0; i < list.n; i++)
        history->verdicts[list.n - 1 - i] = list.windows[i].scores.verdict;
    history->state = list.n > 0 ? list.windows[0].state : API_INSUFFICIENT;
    api_window_list_free(&list);
    return good;
}

/* Writes the event of a change of the state, which a window brought. */
static bool change_state(struct api_monitors *monitors, struct api_pending_monitor *pending,
                         enum api_verdict state, const struct api_window *window)
{
    const struct api_datum event[] = {API_INTEGER(pending->monitor->id),  API_INTEGER(window->end),
                                      API_INTEGER(pending->status.state), API_INTEGER(state),
                                      API_REAL(window->scores.drift.kl),  API_INTEGER(window->id)};
    if (state == pending->status.state)
        return true;
    pending->status.state = state;
    pending->status.since = window->end;
    return api_store_run(monitors->store, API_SQL_EVENT_PUT, event, NULL);
}

/* Goes again through the windows from one on that do not lie ahead of the clock, after it came late or was restated. The event names the
 * window that brought the state, or if that was before, the one that took away the other. */
static bool replay(struct api_monitors *monitors, struct api_pending_monitor *pending,
                   struct history *history, struct api_window *from)
{
    const struct api_datum onwards[] = {
        API_INTEGER(pending->monitor->id), API_INTEGER(from->revision), API_INTEGER(from->start),
        API_INTEGER(from->id), API_INTEGER(monitors->now + API_DAY_US)};
    const struct api_window *cause = from;
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_FROM, onwards);
    for (size_t i = 0; good && i < list.n; i++) {
        enum api_verdict before = history->state;
        advance(history, list.windows[i].scores.verdict);
        if (history->state != before)
            cause = &list.windows[i];
        if (list.windows[i].id == from->id)
            from->state = history->state;
        const struct api_datum state[] = {API_INTEGER(history->state),
                                          API_INTEGER(pending->monitor->id),
                                          API_INTEGER(list.windows[i].id)};
        if (list.windows[i].state != history->state)
            good = api_store_run(monitors->store, API_SQL_WINDOW_STATE, state, NULL);
    }
    good = good && change_state(monitors, pending, history->state, cause);
    api_window_list_free(&list);
    return good;
}

bool api_update_state(struct api_monitors *monitors, struct api_pending_monitor *pending,
                      struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    struct history history = {.fire_after = 1, .clear_after = 1, .max = 1};
    const struct api_monitor_settings *settings = &pending->monitor->config->settings;
    bool newest = api_status_is_newest(&pending->status, window);
    bool needs_none = newest && settings->fire_after == 1 && settings->clear_after == 1;
    if (!needs_none && !read_history(monitors, pending->monitor, window, &history))
        return false;
    if (!newest) {
        if (!api_window_store(monitors->store, pending->monitor->id, window) ||
            !replay(monitors, pending, &history, window) ||
            !api_status_read_recent(monitors, pending->monitor, &pending->status))
            return false;
        snapshot->state = window->state;
        return true;
    }
    history.state = pending->status.state;
    advance(&history, window->scores.verdict);
    snapshot->state = window->state = history.state;
    api_status_add(&pending->status, window);
    return change_state(monitors, pending, history.state, window) &&
           api_window_store(monitors->store, pending->monitor->id, window);
}
