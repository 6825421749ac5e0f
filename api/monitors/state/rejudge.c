#include "api/monitors/state/rejudge.h"

#include "api/json/format.h"
#include "api/monitors/model/volume.h"
#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/status.h"
#include "api/store/counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MAX_WINDOWS, MAX_COUNTS: limits after a deletion. DAYS, MAX_REPLAYED, MAX_REPLAYED_COUNTS: limits of a preview, which takes some 100
 * ms. AT_ONCE: windows of one read. MAX_BEFORE: windows before the first that is judged; pools, references and states need no more. */
enum {
    MAX_WINDOWS = 10000,
    MAX_COUNTS = 1000000,
    DAYS = 60,
    MAX_REPLAYED = 2000,
    MAX_REPLAYED_COUNTS = 100000,
    AT_ONCE = 100,
    MAX_BEFORE = 1000
};

#define HOUR_US (INT64_C(3600) * API_SECOND_US)

/* ---- Scores */

static bool keep_settings(struct api_snapshot *snapshot)
{
    struct api_buffer text = {0};
    api_append_text(&text, "{\"compare\":");
    api_write_compare(&snapshot->settings, &text);
    api_write_json(&text, ",'pseudocount':%g,'min_observations':%g,'thresholds':",
                   snapshot->settings.pseudocount, snapshot->settings.min_observations);
    api_write_thresholds(&snapshot->settings, &text);
    api_append(&text, "}", 2);
    free(snapshot->window.settings);
    snapshot->window.settings = text.failed ? NULL : strdup(text.data);
    api_buffer_free(&text);
    return snapshot->window.settings != NULL;
}

static bool keep_reference(struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    size_t n_bins = snapshot->config->bins.n_bins;
    free(window->reference);
    window->reference = NULL;
    if (snapshot->settings.previous == 0 || !snapshot->reference)
        return true;
    window->reference = malloc(n_bins * API_COUNT_BYTES);
    if (window->reference)
        window->reference_size = api_counts_write(snapshot->reference, n_bins, window->reference);
    return window->reference != NULL;
}

bool api_score_closed(struct api_monitors *monitors, struct api_monitor *monitor,
                      struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    window->closed = false;
    api_snapshot_score(snapshot, &window->scores, of_bins);
    window->closed = true;
    if (!api_status_explain(monitors, monitor->id, snapshot, &window->scores, of_bins,
                            snapshot->sentence))
        return false;
    return (keep_settings(snapshot) && keep_reference(snapshot)) ||
           api_transaction_fail_oom(monitors);
}

/* ---- Windows in order */

/* ring: counts of the last k windows, and their sum. */
struct ring {
    size_t k, next, n_bins;
    double *counts, *sum;
    struct api_moments *moments;
};

/* judging: windows in order, from some before the first that is judged on. */
struct judging {
    struct api_monitors *monitors;
    struct api_monitor *monitor;
    struct api_replay *replay; /* that is made; NULL: windows are written */
    const struct api_monitor_settings *settings;
    const struct api_gone *gone; /* deleted windows; NULL in a preview */
    struct api_buffer compared;  /* how settings of windows begin that were compared by these */
    struct api_position at;      /* of the last window */
    struct api_state_history history;
    struct api_turns turns;
    struct api_pool *pool; /* windows before, or NULL without pools */
    struct ring
        ring; /* of those that a window is compared with, where that changes; unless they are of a season */
    size_t n_before, n_after;
    size_t quiet,
        quiet_verdicts; /* windows since the last that is not as it was; those with a verdict */
    struct api_window
        cause; /* that changed the state last, without what it points to; id 0: none did */
};

static bool begin(struct judging *j)
{
    const struct api_config *config = j->monitor->config;
    const struct api_monitor_settings *settings = j->settings;
    struct ring *ring = &j->ring;
    bool pools = api_settings_pool(settings) > 1;
    ring->k = (size_t)api_settings_running(settings);
    ring->n_bins = config->bins.n_bins;
    ring->counts = calloc(ring->k * ring->n_bins + 1, sizeof *ring->counts);
    ring->sum = calloc(ring->n_bins, sizeof *ring->sum);
    ring->moments = calloc(ring->k + 1, sizeof *ring->moments);
    j->pool = pools ? api_pool_new(settings, &config->bins) : NULL;
    if (j->pool)
        j->pool->n = 0;
    j->turns = API_NO_TURNS;
    api_state_begin(&j->history, settings);
    api_append_text(&j->compared, "{\"compare\":");
    api_write_compare(settings, &j->compared);
    api_append(&j->compared, ",", 1);
    return (ring->counts && ring->sum && ring->moments && (!pools || j->pool) &&
            !j->compared.failed) ||
           api_transaction_fail_oom(j->monitors);
}

static void end(struct judging *j)
{
    free(j->ring.counts);
    free(j->ring.sum);
    free(j->ring.moments);
    api_buffer_free(&j->compared);
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

/* Learns from a window before the first that is judged, whose state is known: a fall was decided by the smallest number of windows that
 * suffices, which is found again. */
static bool learn(struct judging *j, struct api_window *row)
{
    enum api_verdict state = row->state, before = j->history.state;
    struct api_snapshot *snapshot = api_snapshot_of(j->monitors, j->monitor, row);
    bool is_other = j->pool && j->pool->compared && snapshot && !snapshot->window.reference;
    if (!snapshot || !api_snapshot_unseen(j->monitors, j->monitor->id, snapshot) ||
        (is_other && !clear_reference(j, snapshot))) {
        api_snapshot_release(snapshot);
        return false;
    }
    api_pool_release(snapshot->pool);
    snapshot->settings = *j->settings;
    snapshot->pool = api_pool_hold(j->pool);
    snapshot->turns = API_NO_TURNS;
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    if (j->n_before > 0 && state > before)
        j->turns.rose = evidence.at;
    if (j->n_before > 0 && state < before && j->pool)
        api_pool_fall(&evidence, before, API_INSUFFICIENT, &j->turns.pool_from);
    j->history.state = state;
    j->n_before++;
    bool good = add_window(j, snapshot);
    api_snapshot_release(snapshot);
    return good;
}

/* How many windows before are needed: those of the pools of the windows that pools hold, and of a reference. */
static size_t needed_before(const struct judging *j)
{
    size_t pool = 2 * api_settings_pool(j->settings), n = j->ring.k > pool ? j->ring.k : pool;
    return n < MAX_BEFORE ? n : MAX_BEFORE;
}

static bool learn_all(struct judging *j)
{
    const struct api_position from = j->at;
    const struct api_datum *before =
        API_ROW(j->monitor->id, j->monitor->revision, from.start, from.id, needed_before(j));
    struct api_window_list list;
    bool good = api_window_list_run(&list, j->monitors->store, API_SQL_WINDOWS_LAST, before);
    for (size_t i = list.n; good && i > 0; i--)
        good = learn(j, &list.windows[i - 1]);
    api_window_list_free(&list);
    j->at = from;
    return good && api_status_read_history(j->monitors, j->monitor, from, &j->history);
}

/* ---- What windows are compared with */

/* How much more or less than its periods a window may be after one that it is compared with: a change of clocks, which may move
 * it over the begin of the window before. */
static int64_t slack_of(const struct api_monitor_settings *settings)
{
    return (int64_t)settings->window_size * API_SECOND_US + 2 * HOUR_US;
}

/* True if a window of time was compared with a deleted one, which started some periods before. */
static bool is_of_season(const struct judging *j, int64_t start)
{
    const struct api_monitor_settings *settings = j->settings;
    int64_t longest = (int64_t)settings->period * API_SECOND_US, slack = slack_of(settings);
    int64_t shortest = settings->period == API_MONTH ? 28 * API_DAY_US : longest;
    int64_t first = j->gone->first.start, last = j->gone->last->start;
    if (longest == 0)
        return false;
    int64_t min_k = (start - last - slack) / longest, max_k = (start - first + slack) / shortest;
    for (int64_t k = min_k > 1 ? min_k : 1; k <= max_k && k <= (int64_t)settings->previous; k++) {
        int64_t before = api_window_before(settings, start, k);
        if (before != API_NO_TIME && before >= first && before <= last)
            return true;
    }
    return false;
}

/* True for windows after which none was compared with a deleted one. */
static bool is_past_references(const struct judging *j, int64_t start)
{
    const struct api_monitor_settings *settings = j->settings;
    double span_us = settings->previous * settings->period * 1e6 + (double)slack_of(settings);
    return j->n_after >= j->ring.k &&
           (settings->period == 0 || (double)start > (double)j->gone->last->start + span_us);
}

/* True if a window is to be compared with something else than it was: a deleted one is missing, or settings would have it. */
static bool compares_anew(const struct judging *j, const struct api_window *window)
{
    if (j->settings->previous == 0)
        return false;
    if (!window->reference)
        return true;
    if (j->replay)
        return !window->settings ||
               strncmp(window->settings, j->compared.data, j->compared.size) != 0;
    return j->ring.k > 0 ? j->n_after < j->ring.k : is_of_season(j, window->start);
}

/* Sets the reference to the sum of the windows before, as the ring has them. */
static bool compare_with_ring(const struct judging *j, struct api_snapshot *snapshot)
{
    struct api_moments moments = {.n = 0};
    size_t size = j->ring.n_bins * sizeof(double);
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

static bool compare(struct judging *j, struct api_snapshot *snapshot, bool anew)
{
    if (!anew && j->settings->previous > 0)
        return true;
    return anew && j->ring.k > 0
               ? compare_with_ring(j, snapshot)
               : api_snapshot_compare(j->monitors, j->monitor->id,
                                      api_position_of(&snapshot->window), snapshot);
}

/* ---- Judging */

/* Windows that one takes part in after itself: in pools, and in the usual number of rows. */
static size_t reach_of(const struct api_monitor_settings *settings)
{
    size_t pool = api_settings_pool(settings);
    return settings->volume_warning > 0 && pool < API_VOLUME_WINDOWS ? API_VOLUME_WINDOWS : pool;
}

static bool is_same(const struct api_scores *a, const struct api_scores *b)
{
    double x = a->drift.kl, y = b->drift.kl;
    return a->verdict == b->verdict && a->pooled.windows == b->pooled.windows &&
           a->volume.level == b->volume.level && a->volume.usual == b->volume.usual &&
           (x == y || (isnan(x) && isnan(y)));
}

static bool write(struct judging *j, struct api_snapshot *snapshot, bool is_reached,
                  enum api_verdict state)
{
    const struct api_window *window = &snapshot->window;
    struct api_store *store = j->monitors->store;
    if (is_reached)
        return api_window_store(store, j->monitor->id, snapshot);
    return state == window->state ||
           api_store_run(store, API_SQL_WINDOW_STATE,
                         API_ROW(window->state, j->monitor->id, window->id));
}

/* Notes a change of the state, which a window brought. */
static void note_change(struct judging *j, const struct api_window *window, enum api_verdict before)
{
    struct api_replay *replay = j->replay;
    j->cause = *window;
    j->cause.settings = j->cause.reference = j->cause.counts = NULL;
    if (!replay)
        return;
    replay->alarms += window->state >= API_WARNING && window->state > before;
    replay->events[replay->n_events++] =
        (struct api_event){window->end, (int)before, (int)window->state, window->scores.drift.kl,
                           window->id,  API_NO_TIME};
}

/* Scores a row. One that is not reached by what has changed keeps its scores, which may be by settings of before, but for the level
 * that it reached alone, which rows do not have. */
static bool score_row(struct judging *j, struct api_snapshot *snapshot, bool is_reached)
{
    struct api_window *window = &snapshot->window;
    const struct api_scores stored = window->scores;
    if (is_reached && !j->replay)
        return api_score_closed(j->monitors, j->monitor, snapshot);
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    api_snapshot_score(snapshot, &window->scores, of_bins);
    window->closed = true;
    if (!is_reached) {
        enum api_verdict alone = window->scores.alone;
        window->scores = stored;
        window->scores.alone = alone;
    }
    return true;
}

/* Judges the next window, and writes what has changed of it. */
static bool judge(struct judging *j, struct api_snapshot *snapshot)
{
    struct api_window *window = &snapshot->window;
    const struct api_scores stored = window->scores;
    enum api_verdict state = window->state, before = j->history.state;
    bool anew = compares_anew(j, window);
    bool is_reached = j->replay || anew || j->quiet < reach_of(j->settings);
    api_pool_release(snapshot->pool);
    snapshot->settings = *j->settings;
    snapshot->pool = api_pool_hold(j->pool);
    snapshot->turns = j->turns;
    window->closed = false; /* so that it is scored, and compared with what there is now */
    snapshot->volume = window->scores.volume;
    if (!compare(j, snapshot, anew) ||
        !api_snapshot_unseen(j->monitors, j->monitor->id, snapshot) ||
        (is_reached && !api_snapshot_volume(j->monitors, j->monitor->id, snapshot)))
        return false;
    if (!score_row(j, snapshot, is_reached))
        return false;
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    api_state_follow(&j->history, &evidence, &window->scores, &j->turns);
    snapshot->state = window->state = j->history.state;
    if (window->state != before)
        note_change(j, window, before);
    bool stays = is_same(&stored, &window->scores) && state == window->state;
    j->quiet = stays && !anew ? j->quiet + 1 : 0;
    j->quiet_verdicts =
        j->quiet > 0 ? j->quiet_verdicts + (window->scores.verdict != API_INSUFFICIENT) : 0;
    j->n_after++;
    return (j->replay || write(j, snapshot, is_reached, state)) && add_window(j, snapshot);
}

/* True once windows are as they were for so long that those after them are, too. */
static bool is_settled(const struct judging *j)
{
    const struct api_state_history *history = &j->history;
    size_t max = j->settings->volume_warning > 0 ? history->rows.max : history->verdicts.max;
    return !j->replay && j->quiet >= reach_of(j->settings) + max && j->quiet_verdicts >= max &&
           is_past_references(j, j->at.start);
}

static bool judge_row(struct judging *j, struct api_window *row)
{
    struct api_snapshot *snapshot = api_snapshot_of(j->monitors, j->monitor, row);
    bool good = snapshot && judge(j, snapshot);
    api_snapshot_release(snapshot);
    return good;
}

/* Judges the next windows; *more is false if there are none. */
static bool judge_next(struct judging *j, bool *more)
{
    const struct api_datum *after = API_ROW(j->monitor->id, j->monitor->revision, j->at.start,
                                            j->at.id, j->monitors->now + API_DAY_US, AT_ONCE);
    struct api_window_list list;
    bool good = api_window_list_run(&list, j->monitors->store, API_SQL_WINDOWS_NEXT, after);
    *more = list.n == AT_ONCE;
    for (size_t i = 0; good && i < list.n && !is_settled(j); i++)
        good = judge_row(j, &list.windows[i]);
    api_window_list_free(&list);
    return good;
}

/* Sets the state after the last window. Its event names the window that brought it; or, if that was before the deleted
 * ones, the last of all. */
static bool set_state(struct judging *j)
{
    struct api_monitor *monitor = j->monitor;
    const struct api_window *last = monitor->status.last.id ? &monitor->status.last : j->gone->last;
    monitor->status.turns = j->turns;
    return api_change_state(j->monitors, monitor, j->history.state, j->cause.id ? &j->cause : last);
}

bool api_rejudge(struct api_monitors *monitors, struct api_monitor *monitor,
                 const struct api_gone *gone, size_t *judged)
{
    struct judging j = {.monitors = monitors,
                        .monitor = monitor,
                        .settings = &monitor->config->settings,
                        .gone = gone,
                        .at = gone->first};
    size_t max = MAX_COUNTS / monitor->config->bins.n_bins;
    bool more = true, good = begin(&j) && learn_all(&j);
    max = max < MAX_WINDOWS ? max : MAX_WINDOWS;
    while (good && more && !is_settled(&j) && j.n_after < max)
        good = judge_next(&j, &more);
    *judged += j.n_after;
    api_pool_release(monitor->pool); /* a window may have read it before those in it were judged */
    monitor->pool = NULL;
    monitor->status.sentence_of = 0; /* the scores of the same window may be others */
    good = good && api_status_read_recent(monitors, monitor) &&
           (more || is_settled(&j) || set_state(&j));
    end(&j);
    return good;
}

/* ---- Replays */

/* Finds the position from which on windows are replayed. */
static bool find_first(struct judging *j, size_t limit, struct api_position *first)
{
    struct api_window_list list;
    const struct api_datum *of =
        API_ROW(j->monitor->id, j->monitor->revision, j->monitors->now + API_DAY_US, limit);
    bool good = api_window_list_run(&list, j->monitors->store, API_SQL_WINDOWS_RECENT, of);
    size_t n = 0;
    while (n < list.n && list.windows[n].start >= list.windows[0].start - DAYS * API_DAY_US)
        *first = api_position_of(&list.windows[n++]);
    j->replay->windows = n;
    j->replay->from = n > 0 ? first->start : API_NO_TIME;
    j->replay->to = n > 0 ? list.windows[0].end : API_NO_TIME;
    j->replay->events = calloc(n + 1, sizeof *j->replay->events);
    api_window_list_free(&list);
    return good && (j->replay->events || api_transaction_fail_oom(j->monitors));
}

bool api_replay_windows(struct api_monitors *monitors, struct api_monitor *monitor,
                        struct api_config *config, struct api_replay *replay)
{
    struct judging j = {
        .monitors = monitors, .monitor = monitor, .replay = replay, .settings = &config->settings};
    size_t limit = MAX_REPLAYED_COUNTS / config->bins.n_bins;
    if (config->settings.period > 0 &&
        limit > MAX_REPLAYED_COUNTS / (size_t)config->settings.previous)
        limit = MAX_REPLAYED_COUNTS / (size_t)config->settings.previous;
    struct api_position first = {0, 0};
    bool more = true;
    api_replay_free(replay);
    bool good = begin(&j) && find_first(&j, limit < MAX_REPLAYED ? limit : MAX_REPLAYED, &first);
    j.at = (struct api_position){first.start, first.id - 1};
    more = replay->windows > 0;
    while (good && more)
        good = judge_next(&j, &more);
    end(&j);
    return good;
}

void api_replay_free(struct api_replay *replay)
{
    free(replay->events);
    *replay = (struct api_replay){.from = API_NO_TIME, .to = API_NO_TIME};
}

void api_replay_write(const struct api_replay *replay, struct api_buffer *out)
{
    api_write_json(out, "{'from':%jd,'to':%jd,'windows':%zu,'changes':[", replay->from, replay->to,
                   replay->windows);
    for (size_t i = replay->n_events; i > 0; i--) {
        api_append_text(out, i < replay->n_events ? ",{" : "{");
        api_event_write(&replay->events[i - 1], out);
        api_append(out, "}", 1);
    }
    api_write_json(out, "],'alarms':%zu}", replay->alarms);
}
