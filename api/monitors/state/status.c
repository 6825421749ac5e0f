#include "api/monitors/state/status.h"

#include "api/monitors/state/window_load.h"

#include <string.h>

bool api_start_is_ahead(const struct api_monitors *monitors, int64_t start)
{
    return start > monitors->now + API_DAY_US;
}

bool api_end_is_ahead(const struct api_monitors *monitors, const struct api_monitor *monitor,
                      int64_t end)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    bool is_of_time = settings->window == API_SECONDS;
    return end != API_NO_TIME &&
           api_start_is_ahead(monitors,
                              is_of_time ? api_window_span(settings, end - 1).start : end);
}

bool api_status_newest_end(struct api_monitors *monitors, const struct api_monitor *monitor,
                           const struct api_monitor_status *status, int64_t *end)
{
    *end = status->newest_end;
    if (!api_end_is_ahead(monitors, monitor, status->newest_end))
        return true;
    *end = API_NO_TIME;
    return api_store_number(monitors->store, API_SQL_WINDOW_END,
                            API_ROW(monitor->id, monitors->now + API_DAY_US), end);
}

static void set_last(struct api_monitor_status *status, const struct api_window *window)
{
    status->last = *window;
    status->last.settings = status->last.reference = status->last.counts = NULL;
}

bool api_status_explain(struct api_monitors *monitors, int64_t monitor,
                        const struct api_snapshot *snapshot, const struct api_scores *scores,
                        const struct kl_drift_bin *of_bins, char sentence[API_SENTENCE])
{
    struct api_unseen unseen = {.count = 0};
    bool good = api_unseen_read(monitors->store, monitor, snapshot, &unseen);
    api_snapshot_explain(snapshot, scores, of_bins, &unseen, sentence);
    api_buffer_free(&unseen.objects);
    return good;
}

/* Keeps the sentence of the last window. */
static void keep_sentence(struct api_monitor_status *status, const struct api_snapshot *snapshot)
{
    memcpy(status->sentence, snapshot->sentence, API_SENTENCE);
    status->sentence_of = snapshot->window.id;
}

/* Finds the top bins of a closed window if the store has none that fits, and writes it; and the sentence, if it is
 * that of another window. */
static bool complete(struct api_monitors *monitors, const struct api_monitor *monitor,
                     struct api_monitor_status *status, struct api_window *window)
{
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    const struct api_datum *of = API_ROW(monitor->id, window->id);
    struct api_snapshot *snapshot;
    struct api_scores scores;
    bool fits = api_top_fits(window->scores.top, &monitor->config->bins);
    if (fits && status->sentence_of == window->id)
        return true;
    if (!api_snapshot_read(monitors, monitor, API_SQL_WINDOW, of, &snapshot) || !snapshot)
        return false;
    api_snapshot_score(snapshot, &scores, of_bins);
    bool good =
        api_status_explain(monitors, monitor->id, snapshot, &scores, of_bins, snapshot->sentence);
    keep_sentence(status, snapshot);
    api_snapshot_release(snapshot);
    if (fits || !good)
        return good;
    window->scores.top = scores.top;
    window->scores.top_share = scores.top_share;
    return api_store_run(monitors->store, API_SQL_WINDOW_TOP,
                         API_ROW(scores.top, scores.top_share, of[0], of[1]));
}

bool api_status_read_recent(struct api_monitors *monitors, const struct api_monitor *monitor,
                            struct api_monitor_status *status)
{
    const struct api_datum *of =
        API_ROW(monitor->id, monitor->revision, monitors->now + API_DAY_US, API_RECENT);
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_RECENT, of);
    status->n_recent = list.n;
    for (size_t i = 0; i < list.n; i++)
        status->recent[list.n - 1 - i] = list.windows[i].scores.drift.kl;
    status->last = api_no_window;
    good = good && (list.n == 0 || complete(monitors, monitor, status, &list.windows[0]));
    if (list.n == 0) {
        status->sentence_of = 0;
        *status->sentence = '\0';
    }
    if (good && list.n > 0)
        set_last(status, &list.windows[0]);
    api_window_list_free(&list);
    return good;
}

bool api_status_read_next_close(struct api_monitors *monitors, const struct api_monitor *monitor,
                                struct api_monitor_status *status)
{
    const struct api_monitor_settings *settings = &monitor->config->settings;
    status->next_close = INT64_MAX;
    if (settings->window != API_SECONDS)
        return true;
    bool good = api_store_number(monitors->store, API_SQL_WINDOWS_OPEN_END,
                                 API_ROW(monitor->id, monitor->revision), &status->next_close);
    if (status->next_close < INT64_MAX)
        status->next_close += (int64_t)settings->grace * API_SECOND_US;
    return good;
}

bool api_status_read(struct api_monitors *monitors, const struct api_monitor *monitor,
                     struct api_monitor_status *status)
{
    return api_status_read_recent(monitors, monitor, status) &&
           api_status_read_next_close(monitors, monitor, status);
}

/* True if a closed window starts after all that were closed before. */
static bool is_newest(const struct api_monitor_status *status, const struct api_window *window)
{
    return status->last.id == 0 ||
           api_position_compare(api_position_of(window), api_position_of(&status->last)) > 0;
}

/* Adds the window that is newest. */
static void add_newest(struct api_monitor_status *status, const struct api_window *window)
{
    set_last(status, window);
    if (status->n_recent == API_RECENT)
        memmove(status->recent, status->recent + 1, (API_RECENT - 1) * sizeof *status->recent);
    else
        status->n_recent++;
    status->recent[status->n_recent - 1] = window->scores.drift.kl;
}

/* True if values were added to open windows, and nothing else has changed. */
static bool is_counted_alone(const struct api_pending_monitor *pending)
{
    const struct api_monitor_status *now = &pending->status, *before = &pending->monitor->status;
    for (const struct api_dirty_window *t = pending->windows; t; t = t->next)
        if (t->is_new || t->snapshot->window.closed)
            return false;
    return pending->windows && !pending->has_expired && now->state == before->state &&
           now->newest_end == before->newest_end && now->silence == before->silence &&
           now->missed == before->missed && now->told == before->told;
}

bool api_status_store(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    const struct api_monitor_status *status = &pending->status;
    if (is_counted_alone(pending)) {
        int64_t counted = pending->counted;
        pending->counted = 0;
        return api_store_run(
            monitors->store, API_SQL_MONITOR_COUNTED,
            API_ROW(counted, api_time_datum(status->last_observation), pending->monitor->id));
    }
    const struct api_datum row[] = {API_INTEGER(status->state),
                                    API_INTEGER(pending->counted),
                                    api_time_datum(status->last_observation),
                                    API_INTEGER(status->last_window),
                                    api_time_datum(status->severity_since),
                                    api_time_datum(status->newest_end),
                                    api_time_datum(status->since),
                                    api_time_datum(status->turns.pool_from),
                                    api_datum_text(status->sentence),
                                    API_INTEGER(status->sentence_of),
                                    API_INTEGER(status->silence),
                                    API_INTEGER(api_change_of(monitors)),
                                    api_time_datum(status->turns.rose.start),
                                    API_INTEGER(status->turns.rose.id),
                                    API_INTEGER(status->missed),
                                    API_INTEGER(status->told),
                                    API_INTEGER(pending->monitor->id)};
    pending->counted = 0;
    return api_store_run(monitors->store, API_SQL_MONITOR_LIVE, row);
}

/* ---- States */

/* Reads the verdicts before a window, and the state after them. */
static bool read_history(struct api_monitors *monitors, const struct api_monitor *monitor,
                         const struct api_window *window, struct api_state_history *history)
{
    api_state_begin(history, &monitor->config->settings);
    const struct api_datum *before =
        API_ROW(monitor->id, window->revision, window->start, window->id, history->max);
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_BEFORE, before);
    history->n = list.n;
    for (size_t i = 0; i < list.n; i++)
        history->verdicts[list.n - 1 - i] = list.windows[i].scores.verdict;
    history->state = list.n > 0 ? list.windows[0].state : API_INSUFFICIENT;
    api_window_list_free(&list);
    return good;
}

bool api_event_store(struct api_monitors *monitors, struct api_pending_monitor *pending, int64_t at,
                     int64_t window, const struct api_change *change)
{
    const struct api_datum *row =
        API_ROW(pending->monitor->id, at, change->from, change->to, change->kl, window);
    return api_store_run(monitors->store, API_SQL_EVENT_PUT, row) &&
           api_outbox_put(monitors, pending, change);
}

bool api_change_state(struct api_monitors *monitors, struct api_pending_monitor *pending,
                      enum api_verdict state, const struct api_window *window)
{
    struct api_monitor_status *status = &pending->status;
    struct api_change change = {.sentence =
                                    status->sentence_of == window->id ? status->sentence : "",
                                .at = window->end,
                                .since = status->since,
                                .from = (int)status->state,
                                .to = (int)state,
                                .kl = window->scores.drift.kl};
    if (state == status->state)
        return true;
    if (status->state <= API_OK || state <= API_OK)
        status->since = window->end;
    if (state > API_OK)
        change.since = status->since;
    status->state = state;
    status->severity_since = window->end;
    return api_event_store(monitors, pending, window->end, window->id, &change);
}

/* Judges windows again from one that came late or was restated on, without those that lie ahead of the clock. The
 * event names the window that brought the state; or, if an earlier window did, the window that changed the state in
 * between. */
static bool replay(struct api_monitors *monitors, struct api_pending_monitor *pending,
                   struct api_state_history *history, struct api_window *from)
{
    const struct api_datum *onwards = API_ROW(pending->monitor->id, from->revision, from->start,
                                              from->id, monitors->now + API_DAY_US);
    const struct api_window *cause = from;
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_FROM, onwards);
    for (size_t i = 0; good && i < list.n; i++) {
        enum api_verdict before = history->state;
        api_state_advance(history, list.windows[i].scores.verdict);
        if (history->state != before)
            cause = &list.windows[i];
        if (list.windows[i].id == from->id)
            from->state = history->state;
        const struct api_datum *state =
            API_ROW(history->state, pending->monitor->id, list.windows[i].id);
        if (list.windows[i].state != history->state)
            good = api_store_run(monitors->store, API_SQL_WINDOW_STATE, state);
    }
    good = good && api_change_state(monitors, pending, history->state, cause);
    api_window_list_free(&list);
    return good;
}

/* Writes the newest window, which may have been the newest before, with the state after it. */
static bool write_newest(struct api_monitors *monitors, struct api_pending_monitor *pending,
                         struct api_snapshot *snapshot, enum api_verdict state)
{
    struct api_window *window = &snapshot->window;
    snapshot->state = window->state = state;
    return api_change_state(monitors, pending, state, window) &&
           api_window_store(monitors->store, pending->monitor->id, snapshot);
}

/* The state by pools, after the newest window. */
static bool update_pooled(struct api_monitors *monitors, struct api_pending_monitor *pending,
                          struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    struct api_monitor_status *status = &pending->status;
    struct api_state_history history;
    bool newest = is_newest(status, window);
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    api_state_begin(&history, &pending->monitor->config->settings);
    if (history.fire_after > 1 && !read_history(monitors, pending->monitor, window, &history))
        return false;
    history.state = status->state;
    api_state_follow(&history, &evidence, &window->scores, &status->turns);
    if (newest)
        add_newest(status, window);
    return write_newest(monitors, pending, snapshot, history.state) &&
           (newest || api_status_read_recent(monitors, pending->monitor, status));
}

bool api_status_is_last(const struct api_monitor_status *status, const struct api_window *window)
{
    return is_newest(status, window) || window->id == status->last.id;
}

bool api_update_state(struct api_monitors *monitors, struct api_pending_monitor *pending,
                      struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    struct api_state_history history;
    const struct api_monitor_settings *settings = &pending->monitor->config->settings;
    if (api_status_is_last(&pending->status, window))
        keep_sentence(&pending->status, snapshot);
    if (api_settings_pool(settings) > 1)
        return update_pooled(monitors, pending, snapshot);
    bool newest = is_newest(&pending->status, window);
    bool needs_none = newest && settings->fire_after == 1 && settings->clear_after == 1;
    api_state_begin(&history, settings);
    if (!needs_none && !read_history(monitors, pending->monitor, window, &history))
        return false;
    if (!newest) {
        if (!api_window_store(monitors->store, pending->monitor->id, snapshot) ||
            !replay(monitors, pending, &history, window) ||
            !api_status_read_recent(monitors, pending->monitor, &pending->status))
            return false;
        snapshot->state = window->state;
        return true;
    }
    history.state = pending->status.state;
    api_state_advance(&history, window->scores.verdict);
    add_newest(&pending->status, window);
    return write_newest(monitors, pending, snapshot, history.state);
}
