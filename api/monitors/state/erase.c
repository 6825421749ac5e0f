/* Deletes one window, and judges those after it again. What a window is judged by reaches back by a pool, or by what it is
 * compared with, so that only the next windows see that one is gone; their states are followed until they are as they were. */
#include "api/monitors/model/state.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/status.h"
#include "api/monitors/state/window_load.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MAX_WINDOWS, MAX_COUNTS: that are judged again. AT_ONCE: windows that are read at once. MAX_BEFORE: windows before, of
 * which no pool, reference or state needs more. */
enum { MAX_WINDOWS = 10000, MAX_COUNTS = 1000000, AT_ONCE = 100, MAX_BEFORE = 1000 };

#define HOUR_US (INT64_C(3600) * API_SECOND_US)

/* ring: counts of the last k windows, and their sum. */
struct ring {
    size_t k, n, next, n_bins;
    double *counts, *sum;
    struct api_moments *moments;
};

/* judging: windows in order, from some before the deleted one on. */
struct judging {
    struct api_monitors *monitors;
    struct api_pending_monitor *pending;
    struct api_position erased, at; /* at: of the last window */
    struct api_state_history history;
    struct api_turns turns;
    struct api_pool *pool; /* windows before, or NULL without pools */
    struct ring ring; /* of those that a window is compared with, unless they are of a season */
    size_t n_before, n_after;
    size_t quiet; /* windows since the last that is not as it was */
    struct api_window
        cause; /* that changed the state last, without what it points to; id 0: none did */
};

static const struct api_monitor_settings *settings_of(const struct judging *j)
{
    return &j->pending->monitor->config->settings;
}

static bool begin(struct judging *j)
{
    const struct api_config *config = j->pending->monitor->config;
    const struct api_monitor_settings *settings = &config->settings;
    struct ring *ring = &j->ring;
    ring->k = (size_t)api_settings_running(settings);
    ring->n_bins = config->bins.n_bins;
    ring->counts = calloc(ring->k * ring->n_bins + 1, sizeof *ring->counts);
    ring->sum = calloc(ring->n_bins, sizeof *ring->sum);
    ring->moments = calloc(ring->k + 1, sizeof *ring->moments);
    bool pools = api_settings_pool(settings) > 1;
    j->pool = pools ? api_pool_new(settings, &config->bins) : NULL;
    if (j->pool)
        j->pool->n = 0;
    j->turns = API_NO_TURNS;
    api_state_begin(&j->history, settings);
    return (ring->counts && ring->sum && ring->moments && (!pools || j->pool)) ||
           api_transaction_fail_oom(j->monitors);
}

static void end(struct judging *j)
{
    free(j->ring.counts);
    free(j->ring.sum);
    free(j->ring.moments);
    api_pool_release(j->pool);
}

static void add_to_ring(struct ring *ring, const struct api_snapshot *snapshot)
{
    double *slot = ring->counts + ring->next * ring->n_bins;
    if (ring->k == 0)
        return;
    for (size_t i = 0; i < ring->n_bins; i++) {
        ring->sum[i] += snapshot->counts[i] - slot[i];
        slot[i] = snapshot->counts[i];
    }
    ring->moments[ring->next] = snapshot->window.moments;
    ring->next = (ring->next + 1) % ring->k;
}

/* Adds a window to those that later ones are judged by. */
static bool add_window(struct judging *j, const struct api_snapshot *snapshot)
{
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    add_to_ring(&j->ring, snapshot);
    j->at = evidence.at;
    if (!j->pool)
        return true;
    struct api_pool *pool = api_pool_with(&evidence);
    api_pool_release(j->pool);
    j->pool = pool;
    return pool || api_transaction_fail_oom(j->monitors);
}

/* ---- Windows before */

/* Sets a reference of nothing, as pools of a season have of a window that was compared with something else. */
static bool clear_reference(const struct judging *j, struct api_snapshot *snapshot)
{
    free(snapshot->reference);
    snapshot->reference = calloc(j->ring.n_bins, sizeof *snapshot->reference);
    return snapshot->reference || api_transaction_fail_oom(j->monitors);
}

/* Learns from a window before the deleted one, whose state is known: a fall was decided by the smallest number of windows that
 * suffices, which is found again. */
static bool learn(struct judging *j, struct api_window *row)
{
    enum api_verdict verdict = row->scores.verdict, state = row->state, before = j->history.state;
    struct api_snapshot *snapshot = api_snapshot_of(j->monitors, j->pending->monitor, row);
    bool is_other = j->pool && j->pool->compared && snapshot && !snapshot->window.reference;
    if (!snapshot || !api_snapshot_unseen(j->monitors, j->pending->monitor->id, snapshot) ||
        (is_other && !clear_reference(j, snapshot))) {
        api_snapshot_release(snapshot);
        return false;
    }
    snapshot->settings = *settings_of(j);
    snapshot->pool = api_pool_hold(j->pool);
    snapshot->turns = API_NO_TURNS;
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    if (j->n_before > 0 && state > before)
        j->turns.rose = evidence.at;
    if (j->n_before > 0 && state < before && j->pool)
        api_pool_fall(&evidence, before, API_INSUFFICIENT, &j->turns.pool_from);
    api_state_advance(&j->history, verdict);
    j->history.state = state;
    j->n_before++;
    bool good = add_window(j, snapshot);
    api_snapshot_release(snapshot);
    return good;
}

/* How many windows before are needed: those of the pools of the windows that pools hold, of a reference, of a state. */
static size_t needed_before(const struct judging *j)
{
    size_t pool = 2 * api_settings_pool(settings_of(j)), n = j->ring.k > pool ? j->ring.k : pool;
    n = j->history.max > n ? j->history.max : n;
    return n < MAX_BEFORE ? n : MAX_BEFORE;
}

static bool learn_all(struct judging *j)
{
    const struct api_monitor *monitor = j->pending->monitor;
    const struct api_datum *before =
        API_ROW(monitor->id, monitor->revision, j->erased.start, j->erased.id, needed_before(j));
    struct api_window_list list;
    bool good = api_window_list_run(&list, j->monitors->store, API_SQL_WINDOWS_LAST, before);
    for (size_t i = list.n; good && i > 0; i--)
        good = learn(j, &list.windows[i - 1]);
    api_window_list_free(&list);
    j->at = j->erased;
    return good;
}

/* ---- Windows after */

/* True if a window of time may have been compared with the deleted one: it starts some periods later, or up to two hours
 * more or less, which clocks are put. */
static bool is_of_season(const struct judging *j, int64_t start)
{
    const struct api_monitor_settings *settings = settings_of(j);
    int64_t period = (int64_t)settings->period * API_SECOND_US, clocks = 2 * HOUR_US;
    int64_t distance = start - j->erased.start;
    if (period == 0 || distance > (int64_t)settings->previous * period + clocks)
        return false;
    return (distance + clocks) % period <= 2 * clocks;
}

/* True for windows after which none was compared with the deleted one. */
static bool is_past_references(const struct judging *j, int64_t start)
{
    const struct api_monitor_settings *settings = settings_of(j);
    double span_us = settings->previous * settings->period * 1e6 + 2. * (double)HOUR_US;
    return j->n_after >= j->ring.k &&
           (settings->period == 0 || (double)start > (double)j->erased.start + span_us);
}

/* Sets what a window is compared with, if that has changed; *changes says so. */
static bool compare(struct judging *j, struct api_snapshot *snapshot, bool *changes)
{
    const struct api_window *window = &snapshot->window;
    size_t size = j->ring.n_bins * sizeof(double);
    bool is_running = j->ring.k > 0;
    *changes = settings_of(j)->previous > 0 &&
               (!window->reference ||
                (is_running ? j->n_after < j->ring.k : is_of_season(j, window->start)));
    if (!*changes && settings_of(j)->previous > 0)
        return true;
    if (!is_running)
        return api_snapshot_compare(j->monitors, j->pending->monitor->id, api_position_of(window),
                                    snapshot);
    struct api_moments moments = {.n = 0};
    double *reference = realloc(snapshot->reference, size);
    if (!reference)
        return api_transaction_fail_oom(j->monitors);
    snapshot->reference = memcpy(reference, j->ring.sum, size);
    snapshot->exact = false;
    for (size_t i = 0; i < j->ring.k; i++)
        api_moments_add(&moments, &j->ring.moments[i]);
    api_snapshot_set_spread(snapshot, &moments);
    return true;
}

static bool is_same(const struct api_scores *a, const struct api_scores *b)
{
    double x = a->drift.kl, y = b->drift.kl;
    return a->verdict == b->verdict && a->pooled.windows == b->pooled.windows &&
           (x == y || (isnan(x) && isnan(y)));
}

/* Judges a window, and writes what has changed of it. A window that nothing reaches keeps its scores, which may be by
 * settings of before. */
static bool judge(struct judging *j, struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    const struct api_scores stored = window->scores;
    enum api_verdict state = window->state, before = j->history.state;
    bool is_compared, is_reached = j->quiet < api_settings_pool(settings_of(j));
    snapshot->settings = *settings_of(j);
    snapshot->pool = api_pool_hold(j->pool);
    snapshot->turns = j->turns;
    window->closed = false; /* so that it is compared with what there is now */
    if (!compare(j, snapshot, &is_compared) ||
        !api_snapshot_unseen(j->monitors, j->pending->monitor->id, snapshot) ||
        !api_score_closed(j->monitors, j->pending, snapshot))
        return false;
    is_reached |= is_compared;
    if (!is_reached) {
        enum api_verdict alone = window->scores.alone;
        window->scores = stored;
        window->scores.alone = alone;
    }
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    api_state_follow(&j->history, &evidence, &window->scores, &j->turns);
    window->state = j->history.state;
    if (window->state != before) {
        j->cause = *window;
        j->cause.settings = j->cause.reference = j->cause.counts = NULL;
    }
    bool stays = is_same(&stored, &window->scores) && state == window->state;
    j->quiet = stays && !is_compared ? j->quiet + 1 : 0;
    j->n_after++;
    return (is_reached
                ? api_window_store(j->monitors->store, j->pending->monitor->id, snapshot)
                : state == window->state ||
                      api_store_run(j->monitors->store, API_SQL_WINDOW_STATE,
                                    API_ROW(window->state, j->pending->monitor->id, window->id))) &&
           add_window(j, snapshot);
}

/* True once windows are as they were for so long that those after them are, too. */
static bool is_settled(const struct judging *j)
{
    return j->quiet >= api_settings_pool(settings_of(j)) + j->history.max &&
           is_past_references(j, j->at.start);
}

/* Judges the next windows; *more is false if there are none. */
static bool judge_next(struct judging *j, bool *more)
{
    const struct api_monitor *monitor = j->pending->monitor;
    const struct api_datum *after = API_ROW(monitor->id, monitor->revision, j->at.start, j->at.id,
                                            j->monitors->now + API_DAY_US, AT_ONCE);
    struct api_window_list list;
    bool good = api_window_list_run(&list, j->monitors->store, API_SQL_WINDOWS_NEXT, after);
    *more = list.n == AT_ONCE;
    for (size_t i = 0; good && i < list.n && !is_settled(j); i++) {
        struct api_snapshot *snapshot = api_snapshot_of(j->monitors, monitor, &list.windows[i]);
        good = snapshot && judge(j, snapshot);
        api_snapshot_release(snapshot);
    }
    api_window_list_free(&list);
    return good;
}

/* Sets the state after the last window. Its event names the window that brought it; or, if that was before the deleted one,
 * the last of all. */
static bool set_state(struct judging *j, const struct api_window *erased)
{
    struct api_pending_monitor *pending = j->pending;
    const struct api_window *last = pending->status.last.id ? &pending->status.last : erased;
    pending->status.turns = j->turns;
    return api_change_state(j->monitors, pending, j->history.state, j->cause.id ? &j->cause : last);
}

static bool judge_again(struct api_monitors *monitors, struct api_pending_monitor *pending,
                        const struct api_window *erased)
{
    struct judging j = {
        .monitors = monitors, .pending = pending, .erased = api_position_of(erased)};
    size_t max = MAX_COUNTS / pending->monitor->config->bins.n_bins;
    bool more = true, good = begin(&j) && learn_all(&j);
    max = max < MAX_WINDOWS ? max : MAX_WINDOWS;
    while (good && more && !is_settled(&j) && j.n_after < max)
        good = judge_next(&j, &more);
    pending->status.sentence_of = 0; /* the scores of the same window may be others */
    good = good && api_status_read_recent(monitors, pending->monitor, &pending->status) &&
           (more || is_settled(&j) || set_state(&j, erased));
    end(&j);
    return good;
}

/* ---- The window */

/* Finds the end of the newest window, and when the next one closes. */
static bool update_ends(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    struct api_monitor_status *status = &pending->status;
    status->newest_end = API_NO_TIME;
    return api_store_number(monitors->store, API_SQL_WINDOW_END,
                            API_ROW(pending->monitor->id, INT64_MAX), &status->newest_end) &&
           api_status_read_next_close(monitors, pending->monitor, status);
}

static bool erase(struct api_monitors *monitors, struct api_pending_monitor *pending,
                  const struct api_window *window)
{
    bool counts = window->closed && window->revision == pending->monitor->revision;
    api_pool_release(pending->pool);
    pending->pool = NULL;
    return api_gc_delete_window(monitors, pending->monitor->id, window->id) &&
           update_ends(monitors, pending) && (!counts || judge_again(monitors, pending, window));
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
    struct api_pending_monitor *pending = good ? api_pending_of(monitors, monitor) : NULL;
    good = pending && erase(monitors, pending, &list.windows[0]);
    api_window_list_free(&list);
    monitors->log_has_deleted |= good;
    monitor->may_have_expired |= good; /* its revision */
    return good;
}
