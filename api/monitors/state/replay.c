#include "api/monitors/state/replay.h"

#include "api/json/format.h"
#include "api/monitors/state/window_rows.h"
#include "api/store/counts.h"

#include <stdlib.h>
#include <string.h>

/* MAX_COUNTS: of all windows. With it the store's thread reads and judges for some 100 ms at most. */
enum { DAYS = 60, MAX_WINDOWS = 2000, MAX_COUNTS = 100000 };

struct slot {
    int64_t id;
    size_t i;
};

/* history: the windows that are replayed, newest first, and the state after some of them. */
struct history {
    struct api_window_list list;
    size_t n, n_bins;
    double *counts;                   /* of each window */
    struct api_unseen_counts *unseen; /* likewise, of a monitor of labels */
    struct slot *slots;               /* windows in the order of their ids */
    struct api_buffer
        compared; /* how settings begin that windows were compared by as they would be */
    struct api_snapshot *snapshot; /* of one window after the other */
    struct api_state_history state;
};

static void free_history(struct history *h)
{
    api_window_list_free(&h->list);
    free(h->counts);
    free(h->unseen);
    free(h->slots);
    api_buffer_free(&h->compared);
    api_snapshot_release(h->snapshot);
}

/* ---- Reading */

/* Reads the windows, with what each was compared with if that matters. */
static bool read_windows(struct history *h, struct api_monitors *monitors,
                         const struct api_monitor *monitor, size_t limit)
{
    const struct api_datum *of =
        API_ROW(monitor->id, monitor->revision, monitors->now + API_DAY_US, limit);
    if (!api_window_list_run(&h->list, monitors->store,
                             h->snapshot->settings.previous > 0 ? API_SQL_WINDOWS_RECENT_WHOLE
                                                                : API_SQL_WINDOWS_RECENT,
                             of))
        return false;
    const struct api_window *windows = h->list.windows;
    while (h->n < h->list.n && windows[h->n].start >= windows[0].start - DAYS * API_DAY_US)
        h->n++;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const struct slot *first = a, *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

static void add_unseen(void *context, const struct api_datum *values)
{
    const struct history *h = context;
    const struct slot key = {.id = values[0].integer};
    const struct slot *slot = bsearch(&key, h->slots, h->n, sizeof key, compare_ids);
    if (slot)
        api_unseen_keep(values[1].text, values[1].size, api_datum_number(&values[2]),
                        &h->unseen[slot->i]);
}

static bool read_counts(struct history *h, struct api_monitors *monitors,
                        const struct api_monitor *monitor)
{
    const struct api_datum *of =
        API_ROW(monitor->id, monitor->revision, monitors->now + API_DAY_US + 1, INT64_MIN, h->n);
    h->counts = calloc(h->n * h->n_bins + 1, sizeof *h->counts);
    h->slots = calloc(h->n + 1, sizeof *h->slots);
    bool labelled = h->snapshot->config->bins.labelled;
    h->unseen = calloc(labelled ? h->n + 1 : 1, sizeof *h->unseen);
    if (!h->counts || !h->slots || !h->unseen)
        return api_transaction_fail_oom(monitors);
    for (size_t i = 0; i < h->n; i++) {
        const struct api_window *window = &h->list.windows[i];
        h->slots[i] = (struct slot){window->id, i};
        api_counts_add(window->counts, window->counts_size, h->counts + i * h->n_bins, h->n_bins);
    }
    qsort(h->slots, h->n, sizeof *h->slots, compare_ids);
    return !labelled || api_store_read(monitors->store, API_SQL_UNSEEN_OF_POOL, of, add_unseen, h);
}

/* ---- What a window is compared with */

static void add_window(const struct history *h, size_t i)
{
    for (size_t bin = 0; bin < h->n_bins; bin++)
        h->snapshot->reference[bin] += h->counts[i * h->n_bins + bin];
}

/* Adds up, of the windows that are replayed, the last ones before a window, or those that start one, two ... periods
 * before it. */
static void add_previous(const struct history *h, size_t i)
{
    const struct api_monitor_settings *settings = &h->snapshot->settings;
    const struct api_window *windows = h->list.windows;
    const int64_t start = api_window_span(settings, windows[i].start).start;
    size_t at = i + 1;
    for (int64_t k = 1; k <= (int64_t)settings->previous && at < h->n; k++) {
        if (settings->period == 0) {
            add_window(h, at++);
            continue;
        }
        int64_t before = api_window_before(settings, start, k);
        while (at < h->n && windows[at].start > before && before != API_NO_TIME)
            at++;
        for (; at < h->n && windows[at].start == before; at++)
            add_window(h, at);
    }
}

/* Sets the reference of a window, unless it is the same for all. */
static void set_reference(const struct history *h, size_t i)
{
    const struct api_window *window = &h->list.windows[i];
    if (h->snapshot->settings.previous == 0)
        return;
    memset(h->snapshot->reference, 0, h->n_bins * sizeof(double));
    if (!window->reference || !window->settings ||
        strncmp(window->settings, h->compared.data, h->compared.size) != 0 ||
        !api_counts_add(window->reference, window->reference_size, h->snapshot->reference,
                        h->n_bins))
        add_previous(h, i);
}

static bool begin(struct history *h, struct api_config *config)
{
    h->snapshot = api_snapshot_new(config);
    if (!h->snapshot)
        return false;
    const struct api_monitor_settings *settings = &h->snapshot->settings;
    h->n_bins = config->bins.n_bins;
    api_state_begin(&h->state, settings);
    api_append_text(&h->compared, "{\"compare\":");
    api_write_compare(settings, &h->compared);
    api_append(&h->compared, ",", 1);
    if (settings->previous == 0)
        return api_snapshot_refer(h->snapshot);
    h->snapshot->reference = calloc(h->n_bins, sizeof *h->snapshot->reference);
    return h->snapshot->reference && !h->compared.failed;
}

/* ---- Judging */

static void note_change(const struct api_window *window, enum api_verdict from, enum api_verdict to,
                        double kl, struct api_replay *replay)
{
    replay->alarms += to >= API_WARNING && to > from;
    replay->events[replay->n_events++] =
        (struct api_event){window->end, (int)from, (int)to, kl, window->id};
}

/* Judges the next window, and adds it to those of the pools. False if memory is exhausted. */
static bool judge(struct history *h, size_t i, struct api_replay *replay)
{
    struct api_snapshot *snapshot = h->snapshot;
    const struct api_window *window = &h->list.windows[i];
    enum api_verdict before = h->state.state;
    struct api_scores scores;
    snapshot->window.id = window->id;
    snapshot->window.start = window->start;
    memcpy(snapshot->counts, h->counts + i * h->n_bins, h->n_bins * sizeof *h->counts);
    if (snapshot->config->bins.labelled)
        snapshot->unseen = h->unseen[i];
    set_reference(h, i);
    api_snapshot_score(snapshot, &scores, NULL);
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    api_state_follow(&h->state, &evidence, &scores, &snapshot->turns);
    if (h->state.state != before)
        note_change(window, before, h->state.state, scores.drift.kl, replay);
    if (!snapshot->pool)
        return true;
    struct api_pool *pool = api_pool_with(&evidence);
    api_pool_release(snapshot->pool);
    snapshot->pool = pool;
    return pool != NULL;
}

static bool judge_all(struct history *h, struct api_replay *replay)
{
    const struct api_monitor_settings *settings = &h->snapshot->settings;
    bool pools = api_settings_pool(settings) > 1;
    h->snapshot->pool = pools ? api_pool_new(settings, &h->snapshot->config->bins) : NULL;
    replay->events = calloc(h->n + 1, sizeof *replay->events);
    bool good = replay->events && (!pools || h->snapshot->pool);
    for (size_t i = h->n; good && i > 0; i--)
        good = judge(h, i - 1, replay);
    replay->windows = h->n;
    replay->from = h->n > 0 ? h->list.windows[h->n - 1].start : API_NO_TIME;
    replay->to = h->n > 0 ? h->list.windows[0].end : API_NO_TIME;
    return good;
}

bool api_replay_windows(struct api_monitors *monitors, const struct api_monitor *monitor,
                        struct api_config *config, struct api_replay *replay,
                        struct api_problem *problem)
{
    struct history h = {.n = 0};
    size_t n_bins = config->bins.n_bins, limit = MAX_COUNTS / n_bins;
    limit = limit < MAX_WINDOWS ? limit : MAX_WINDOWS;
    size_t size =
        limit * (sizeof(struct api_window) + sizeof(struct slot) + sizeof(struct api_event) +
                 sizeof(struct api_unseen_counts) + 2 * n_bins * sizeof(double));
    api_replay_free(replay);
    if (!api_budget_reserve(monitors->budget, size))
        return api_fail_oom(problem);
    bool is_read = begin(&h, config) ? read_windows(&h, monitors, monitor, limit) &&
                                           read_counts(&h, monitors, monitor)
                                     : api_transaction_fail_oom(monitors);
    bool good = is_read && (judge_all(&h, replay) || api_transaction_fail_oom(monitors));
    free_history(&h);
    api_budget_release(monitors->budget, size);
    return good;
}

/* ---- Response */

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
