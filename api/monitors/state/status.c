#include "api/monitors/state/status.h"

#include "api/monitors/rows/window_load.h"

#include <math.h>
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
                           int64_t *end)
{
    *end = monitor->status.newest_end;
    if (!api_end_is_ahead(monitors, monitor, *end))
        return true;
    *end = API_NO_TIME;
    return api_store_number(monitors->store, API_SQL_WINDOW_END,
                            API_ROW(monitor->id, monitors->now + API_DAY_US), end);
}

static void set_last(struct api_monitor_status *status, const struct api_window *window)
{
    status->last = *window;
    status->last.settings = status->last.reference = status->last.counts = NULL;
    if (status->last.scores.pooled.windows == 0)
        status->last.scores.pooled.noise_floor = (double)NAN;
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
static bool complete(struct api_monitors *monitors, struct api_monitor *monitor,
                     struct api_window *window)
{
    struct api_monitor_status *status = &monitor->status;
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

bool api_status_read_recent(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
    const struct api_datum *of =
        API_ROW(monitor->id, monitor->revision, monitors->now + API_DAY_US, API_RECENT);
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_RECENT, of);
    status->n_recent = list.n;
    memset(status->recent, 0, sizeof status->recent);
    for (size_t i = 0; i < list.n; i++)
        status->recent[list.n - 1 - i] = list.windows[i].scores.drift.kl;
    status->last = api_no_window;
    good = good && (list.n == 0 || complete(monitors, monitor, &list.windows[0]));
    if (list.n == 0) {
        status->sentence_of = 0;
        memset(status->sentence, 0, sizeof status->sentence);
    }
    if (good && list.n > 0)
        set_last(status, &list.windows[0]);
    api_window_list_free(&list);
    return good;
}

bool api_status_read_next_close(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_monitor_status *status = &monitor->status;
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

bool api_status_read(struct api_monitors *monitors, struct api_monitor *monitor)
{
    return api_status_read_recent(monitors, monitor) &&
           api_status_read_next_close(monitors, monitor);
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

/* ---- States */

/* True if the state of a monitor is, or was lately, also by numbers of rows. */
static bool has_rows(const struct api_monitor *monitor)
{
    return monitor->config->settings.volume_warning > 0 ||
           monitor->status.last.scores.volume.ratio > 0;
}

/* volumes: those of windows before, newest first. */
struct volumes {
    size_t n;
    struct api_volume of[1000];
};

static void add_volume(void *context, const struct api_datum *values)
{
    struct volumes *volumes = context;
    api_volume_read(&values[1], &volumes->of[volumes->n++]);
}

static bool read_rows(struct api_monitors *monitors, const struct api_monitor *monitor,
                      struct api_position at, struct api_state_history *history)
{
    struct volumes volumes = {.n = 0};
    bool good =
        api_store_read(monitors->store, API_SQL_ROWS_BEFORE,
                       API_ROW(monitor->id, monitor->revision, at.start, at.id, history->rows.max),
                       add_volume, &volumes);
    for (size_t i = volumes.n; i > 0; i--)
        api_state_learn_rows(history, &volumes.of[i - 1]);
    return good;
}

bool api_status_read_history(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_position at, struct api_state_history *history)
{
    api_state_begin(history, &monitor->config->settings);
    /* Until a window has a verdict, a search for one would read them all. */
    size_t n = monitor->status.state == API_INSUFFICIENT ? 0 : history->verdicts.max;
    const struct api_datum *before = API_ROW(monitor->id, monitor->revision, at.start, at.id, n);
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_BEFORE, before) &&
                (!has_rows(monitor) || read_rows(monitors, monitor, at, history));
    for (size_t i = list.n; i > 0; i--)
        api_state_learn(history, &list.windows[i - 1].scores);
    api_state_set(history, list.n > 0 ? list.windows[0].state : API_INSUFFICIENT);
    api_window_list_free(&list);
    return good;
}

bool api_event_store(struct api_monitors *monitors, struct api_monitor *monitor, int64_t at,
                     int64_t window, const struct api_change *change)
{
    const struct api_datum *row = API_ROW(monitor->id, at, change->from, change->to, change->kl,
                                          window, api_time_datum(change->began));
    return api_store_run(monitors->store, API_SQL_EVENT_PUT, row) &&
           api_outbox_put(monitors, monitor, change);
}

bool api_change_state(struct api_monitors *monitors, struct api_monitor *monitor,
                      enum api_verdict state, const struct api_window *window)
{
    struct api_monitor_status *status = &monitor->status;
    struct api_change change = {.sentence =
                                    status->sentence_of == window->id ? status->sentence : "",
                                .at = window->end,
                                .since = status->since,
                                .began = status->began,
                                .from = (int)status->state,
                                .to = (int)state,
                                .kl = window->scores.drift.kl};
    if (state == status->state)
        return true;
    if (state <= API_OK)
        status->began = API_NO_TIME;
    else if (status->state <= API_OK &&
             !api_window_began(monitors, monitor, window, &status->began))
        return false;
    if (status->state <= API_OK || state <= API_OK)
        status->since = window->end;
    if (state > API_OK) {
        change.since = status->since;
        change.began = status->began;
    }
    status->state = state;
    status->severity_since = window->end;
    return api_event_store(monitors, monitor, window->end, window->id, &change);
}

/* Judges windows again from one that came late or was restated on, without those that lie ahead of the clock. The
 * event names the window that brought the state; or, if an earlier window did, the window that changed the state in
 * between. */
static bool replay(struct api_monitors *monitors, struct api_monitor *monitor,
                   struct api_state_history *history, struct api_window *from)
{
    const struct api_datum *onwards =
        API_ROW(monitor->id, from->revision, from->start, from->id, monitors->now + API_DAY_US);
    const struct api_window *cause = from;
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_FROM, onwards);
    for (size_t i = 0; good && i < list.n; i++) {
        enum api_verdict before = history->state;
        api_state_advance(history, &list.windows[i].scores);
        if (history->state != before)
            cause = &list.windows[i];
        if (list.windows[i].id == from->id)
            from->state = history->state;
        const struct api_datum *state = API_ROW(history->state, monitor->id, list.windows[i].id);
        if (list.windows[i].state != history->state)
            good = api_store_run(monitors->store, API_SQL_WINDOW_STATE, state);
    }
    good = good && api_change_state(monitors, monitor, history->state, cause);
    api_window_list_free(&list);
    return good;
}

/* Writes the newest window, which may have been the newest before, with the state after it. */
static bool write_newest(struct api_monitors *monitors, struct api_monitor *monitor,
                         struct api_snapshot *snapshot, enum api_verdict state)
{
    struct api_window *window = &snapshot->window;
    snapshot->state = window->state = state;
    return api_window_store(monitors->store, monitor->id, snapshot) &&
           api_change_state(monitors, monitor, state, window);
}

/* The state by pools, after the newest window. */
static bool update_pooled(struct api_monitors *monitors, struct api_monitor *monitor,
                          struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    struct api_monitor_status *status = &monitor->status;
    struct api_state_history history;
    bool newest = is_newest(status, window);
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    api_state_begin(&history, &monitor->config->settings);
    if ((history.fire_after > 1 || has_rows(monitor)) &&
        !api_status_read_history(monitors, monitor, api_position_of(window), &history))
        return false;
    api_state_set(&history, status->state);
    api_state_follow(&history, &evidence, &window->scores, &status->turns);
    if (newest)
        add_newest(status, window);
    return write_newest(monitors, monitor, snapshot, history.state) &&
           (newest || api_status_read_recent(monitors, monitor));
}

bool api_status_is_last(const struct api_monitor_status *status, const struct api_window *window)
{
    return is_newest(status, window) || window->id == status->last.id;
}

bool api_update_state(struct api_monitors *monitors, struct api_monitor *monitor,
                      struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    struct api_state_history history;
    const struct api_monitor_settings *settings = &monitor->config->settings;
    if (api_status_is_last(&monitor->status, window))
        keep_sentence(&monitor->status, snapshot);
    if (api_settings_pool(settings) > 1)
        return update_pooled(monitors, monitor, snapshot);
    bool newest = is_newest(&monitor->status, window);
    bool needs_none =
        newest && settings->fire_after == 1 && settings->clear_after == 1 && !has_rows(monitor);
    api_state_begin(&history, settings);
    if (!needs_none &&
        !api_status_read_history(monitors, monitor, api_position_of(window), &history))
        return false;
    if (!newest) {
        if (!api_window_store(monitors->store, monitor->id, snapshot) ||
            !replay(monitors, monitor, &history, window) ||
            !api_status_read_recent(monitors, monitor))
            return false;
        snapshot->state = window->state;
        return true;
    }
    api_state_set(&history, monitor->status.state);
    api_state_advance(&history, &window->scores);
    add_newest(&monitor->status, window);
    return write_newest(monitors, monitor, snapshot, history.state);
}
