#include "api/monitors/rows/window_load.h"

#include "api/json/json_load.h"
#include "api/monitors/model/volume.h"
#include "api/store/counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void copy_text(void *context, const struct api_datum *values)
{
    *(char **)context = strndup(values[0].text, values[0].size);
}

/* Reads the config of a former revision, by which all windows are closed: they bring their settings.
 * NULL if the store fails, or memory is exhausted. */
static struct api_config *former_config(struct api_monitors *monitors, struct api_monitor *monitor,
                                        int64_t revision)
{
    static const char any_settings[] = "{\"compare\":{\"previous\":1}}"; /* needs no reference */
    if (monitors->former && monitors->former_monitor == monitor->id &&
        monitors->former_revision == revision)
        return api_config_hold(monitors->former);
    struct api_problem problem = {0};
    struct api_config *config = NULL;
    char *definition = NULL;
    bool good = api_store_read(monitors->store, API_SQL_REVISION, API_ROW(monitor->id, revision),
                               copy_text, &definition);
    if (definition)
        config = api_config_load(definition, any_settings, &problem);
    if (good && !config)
        api_transaction_fail_oom(monitors);
    free(definition);
    if (config) {
        api_config_release(monitors->former);
        monitors->former = api_config_hold(config);
        monitors->former_monitor = monitor->id;
        monitors->former_revision = revision;
    }
    return config;
}

/* Sets the settings that a closed window was scored by. */
static bool read_settings(struct api_monitors *monitors, struct api_snapshot *snapshot)
{
    static const char *const none[] = {NULL};
    const char *text = snapshot->window.closed ? snapshot->window.settings : NULL;
    struct api_json json = {.budget = NULL}; /* as in api_config_load: at most 16 KiB */
    struct api_problem ignored = {0};
    if (text && api_json_load(&json, text, strlen(text)))
        api_settings_from_json(&snapshot->settings, json.root, none, &ignored);
    bool good = !json.out_of_memory;
    api_json_free(&json);
    return good || api_transaction_fail_oom(monitors);
}

/* ---- Windows before */

static void add_pool_window(void *context, const struct api_datum *values)
{
    struct api_pool *pool = context;
    size_t size = pool->n_bins * sizeof(double), i = pool->n;
    if (i == pool->max)
        return;
    pool->starts[i] = values[0].integer;
    pool->ids[i] = values[1].integer;
    memset(api_pool_counts(pool, i), 0, size * (pool->compared ? 2 : 1));
    if (pool->unseen)
        pool->unseen[i].n = 0;
    if (pool->compared && values[2].kind == API_SQL_BYTES)
        api_counts_add(values[2].text, values[2].size, api_pool_reference(pool, i), pool->n_bins);
    api_counts_add(values[3].text, values[3].size, api_pool_counts(pool, i), pool->n_bins);
    pool->n++;
}

static void add_pool_unseen(void *context, const struct api_datum *values)
{
    struct api_pool *pool = context;
    for (size_t i = 0; i < pool->n; i++)
        if (pool->ids[i] == values[0].integer)
            api_unseen_keep(values[1].text, values[1].size, api_datum_number(&values[2]),
                            &pool->unseen[i]);
}

/* Reads the closed windows before a position, as many as settings need; NULL if the store or memory fails. */
static struct api_pool *read_pool(struct api_monitors *monitors, const struct api_monitor *monitor,
                                  const struct api_monitor_settings *settings,
                                  struct api_position at)
{
    struct api_pool *pool = api_pool_new(settings, &monitor->config->bins);
    if (!pool) {
        api_transaction_fail_oom(monitors);
        return NULL;
    }
    const struct api_datum *before =
        API_ROW(monitor->id, monitor->revision, at.start, at.id, pool->max);
    if (api_store_read(monitors->store, API_SQL_POOL, before, add_pool_window, pool) &&
        (!pool->unseen ||
         api_store_read(monitors->store, API_SQL_UNSEEN_OF_POOL, before, add_pool_unseen, pool)))
        return pool;
    api_pool_release(pool);
    return NULL;
}

bool api_touch_pool(struct api_monitors *monitors, struct api_monitor *monitor)
{
    const struct api_position last = {INT64_MAX, INT64_MAX};
    if (api_settings_pool(&monitor->config->settings) > 1 && !monitor->pool)
        return (monitor->pool = read_pool(monitors, monitor, &monitor->config->settings, last)) !=
               NULL;
    return true;
}

static void add_unseen(void *context, const struct api_datum *values)
{
    api_unseen_keep(values[0].text, values[0].size, api_datum_number(&values[1]), context);
}

bool api_snapshot_unseen(struct api_monitors *monitors, int64_t monitor,
                         struct api_snapshot *snapshot)
{
    const struct api_bins *bins = &snapshot->config->bins;
    snapshot->unseen.n = 0;
    return !bins->labelled || snapshot->counts[api_bins_other(bins)] == 0 ||
           api_store_read(monitors->store, API_SQL_UNSEEN,
                          API_ROW(monitor, snapshot->window.id, API_UNSEEN_KEPT), add_unseen,
                          &snapshot->unseen);
}

bool api_snapshot_pool(struct api_monitors *monitors, struct api_monitor *monitor,
                       struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    api_pool_release(snapshot->pool);
    snapshot->pool = NULL;
    if (!api_snapshot_unseen(monitors, monitor->id, snapshot))
        return false;
    if (api_settings_pool(&snapshot->settings) == 1 || window->revision != monitor->revision)
        return true;
    snapshot->turns = monitor->status.turns;
    if (!api_touch_pool(monitors, monitor))
        return false;
    struct api_pool *pool = monitor->pool;
    snapshot->pool =
        pool && api_pool_is_before(pool, api_position_of(window))
            ? api_pool_hold(pool)
            : read_pool(monitors, monitor, &monitor->config->settings, api_position_of(window));
    return snapshot->pool != NULL;
}

bool api_window_began(struct api_monitors *monitors, struct api_monitor *monitor,
                      const struct api_window *window, int64_t *began)
{
    struct api_monitor_settings settings = monitor->config->settings;
    struct api_snapshot *snapshot = NULL;
    *began = window->start;
    if (api_settings_running(&settings) > 0 || api_volume_decides(&window->scores.volume))
        return true;
    if (!api_snapshot_read(monitors, monitor, API_SQL_WINDOW, API_ROW(monitor->id, window->id),
                           &snapshot))
        return false;
    if (!snapshot)
        return true;
    settings.pool = API_BEGAN_WITHIN;
    snapshot->turns = monitor->status.turns;
    api_pool_release(snapshot->pool);
    snapshot->pool = read_pool(monitors, monitor, &settings, api_position_of(window));
    bool good = snapshot->pool != NULL;
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    if (good && snapshot->reference)
        *began = api_pool_began(&evidence, window->scores.pooled.windows);
    api_snapshot_release(snapshot);
    return good;
}

bool api_touch_add_to_pool(struct api_monitors *monitors, struct api_monitor *monitor,
                           const struct api_snapshot *snapshot)
{
    const struct api_evidence evidence = api_snapshot_evidence(snapshot);
    if (!monitor->pool || monitor->pool != snapshot->pool)
        return true;
    monitor->pool = api_pool_with(&evidence);
    api_pool_release(snapshot->pool);
    return monitor->pool || api_transaction_fail_oom(monitors);
}

/* season: windows of a monitor at the same time of the `last` periods before a start, from the one `from` periods before on. */
struct season {
    int64_t monitor, revision, start, from, last;
    struct api_monitor_settings settings; /* of the windows, with the period */
};

static struct season season_of(int64_t monitor, const struct api_snapshot *snapshot, int64_t start)
{
    struct season season = {.monitor = monitor,
                            .revision = snapshot->window.revision,
                            .from = 1,
                            .last = (int64_t)snapshot->settings.previous,
                            .settings = snapshot->config->settings};
    season.settings.period = snapshot->settings.period;
    season.start = api_window_span(&season.settings, start).start;
    return season;
}

/* Reads closed windows of a season. A statement takes those of a time of the year without a change of clocks, after which they start as many
 * seconds apart as a period has. */
static bool read_season(struct api_store *store, const struct season *season,
                        enum api_statement statement, api_row_reader *read, void *context)
{
    const struct api_monitor_settings *settings = &season->settings;
    int64_t period = (int64_t)settings->period * API_SECOND_US, start = season->start, first;
    bool good = true;
    for (int64_t k = season->from, n = 1; good && k <= season->last; k += n, n = 1) {
        first = api_window_before(settings, start, k);
        if (first == API_NO_TIME)
            continue;
        while (k + n <= season->last &&
               api_window_before(settings, start, k + n) == first - n * period)
            n++;
        good = api_store_read(store, statement,
                              API_ROW(first + period, period, n, season->monitor, season->revision),
                              read, context);
    }
    return good;
}

/* Adds the counts and moments of closed windows at the same time of the periods before. */
static bool add_season(struct api_monitors *monitors, int64_t monitor, int64_t start,
                       struct api_snapshot *snapshot, struct api_moments *moments)
{
    const struct season season = season_of(monitor, snapshot, start);
    struct api_counts_sum sum = {snapshot->reference, snapshot->config->bins.n_bins, moments};
    return read_season(monitors->store, &season, API_SQL_COUNTS_OF_SEASON, api_counts_add_row,
                       &sum);
}

/* ---- Numbers of rows */

#define DAY_S ((double)API_DAY_US / API_SECOND_US)

/* volumes_of: those that are read, of windows as long as one; a day may have an hour more or less, or two. */
struct volumes_of {
    struct api_volumes *to;
    int64_t length;
};

static void add_rows(void *context, const struct api_datum *values)
{
    const struct volumes_of *of = context;
    struct api_volume volume;
    int64_t two_hours = INT64_C(7200) * API_SECOND_US;
    int64_t slack = of->length >= API_DAY_US - two_hours ? two_hours : 0;
    api_volume_read(&values[1], &volume);
    if (llabs(values[2].integer - of->length) <= slack)
        api_volumes_add(of->to, api_datum_number(&values[0]), volume.level > API_OK);
}

/* Reads the windows at the same time of a season, and of the days before, if periods and windows are of days or parts of them. */
static bool read_days(struct api_store *store, struct season *season, int64_t length,
                      struct api_volumes *to)
{
    struct api_monitor_settings daily = season->settings;
    int64_t start = season->start;
    struct volumes_of of = {&to[0], length};
    bool good = read_season(store, season, API_SQL_ROWS_OF_SEASON, add_rows, &of);
    daily.period = DAY_S;
    bool has_days = season->settings.period > DAY_S && season->settings.period != API_MONTH &&
                    fmod(season->settings.period, DAY_S) == 0 &&
                    fmod(DAY_S, daily.window_size) == 0;
    season->last--;
    season->from = 0;
    for (int64_t day = 1; good && has_days && day < API_WEEKDAYS; day++) {
        season->start = api_window_before(&daily, start, day);
        of.to = &to[day];
        if (season->start != API_NO_TIME)
            good = read_season(store, season, API_SQL_ROWS_OF_SEASON, add_rows, &of);
    }
    return good;
}

bool api_snapshot_volume(struct api_monitors *monitors, int64_t monitor,
                         struct api_snapshot *snapshot)
{
    const struct api_monitor_settings *settings = &snapshot->settings;
    const struct api_window *window = &snapshot->window;
    bool is_set = settings->period > 0, good = true;
    struct api_volumes_before before;
    struct volumes_of last = {&before.last, window->end - window->start};
    snapshot->volume = (struct api_volume){.windows = 0};
    if (settings->volume_warning == 0 || settings->window != API_SECONDS)
        return true;
    struct season season = season_of(monitor, snapshot, window->start);
    for (size_t i = 0; i < API_WEEKDAYS; i++)
        before.season[i].n = before.season[i].n_without_alarm = 0;
    before.last.n = before.last.n_without_alarm = 0;
    if (!is_set)
        season.settings.period = API_WEEKDAYS * DAY_S;
    if (!is_set || season.last < API_VOLUME_MIN)
        season.last = API_VOLUME_WINDOWS;
    if (season.last > API_VOLUME_MAX)
        season.last = API_VOLUME_MAX;
    if (is_set || fmod(season.settings.period, settings->window_size) == 0)
        good = read_days(monitors->store, &season, last.length, before.season);
    if (good && !is_set)
        good = api_store_read(
            monitors->store, API_SQL_ROWS_BEFORE,
            API_ROW(monitor, window->revision, window->start, window->id, API_VOLUME_WINDOWS),
            add_rows, &last);
    if (good)
        snapshot->volume = api_volume_judge(settings, window->n, &before);
    return good;
}

void api_snapshot_set_spread(struct api_snapshot *snapshot, const struct api_moments *moments)
{
    const struct api_bins *bins = &snapshot->config->bins;
    double n = api_counts_sum(snapshot->reference, bins->n_bins);
    snapshot->reference_spread = api_moments_spread(moments, bins, n);
}

bool api_snapshot_compare(struct api_monitors *monitors, int64_t monitor, struct api_position at,
                          struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    size_t n_bins = snapshot->config->bins.n_bins;
    int64_t running = api_settings_running(&snapshot->settings);
    free(snapshot->reference);
    snapshot->reference = NULL;
    if (snapshot->settings.previous == 0)
        return api_snapshot_refer(snapshot) || api_transaction_fail_oom(monitors);
    snapshot->reference = calloc(n_bins, sizeof *snapshot->reference);
    snapshot->exact = false;
    snapshot->unseen_share = 1;
    if (!snapshot->reference)
        return api_transaction_fail_oom(monitors);
    if (window->closed && window->reference &&
        api_counts_add(window->reference, window->reference_size, snapshot->reference, n_bins)) {
        snapshot->reference_spread = window->scores.reference_spread;
        return true;
    }
    struct api_moments moments = {.n = 0};
    bool good = running == 0
                    ? add_season(monitors, monitor, at.start, snapshot, &moments)
                    : api_counts_run(snapshot->reference, n_bins, &moments, monitors->store,
                                     API_SQL_COUNTS_BEFORE,
                                     API_ROW(monitor, window->revision, at.start, at.id, running));
    api_snapshot_set_spread(snapshot, &moments);
    return good;
}

/* True for a window that is open, or whose sentence is about a sum with those before it. */
static bool needs_pool(const struct api_window *window)
{
    return !window->closed ||
           (window->scores.verdict >= API_WARNING && window->scores.pooled.windows > 1);
}

struct api_snapshot *api_snapshot_of(struct api_monitors *monitors, struct api_monitor *monitor,
                                     struct api_window *window)
{
    struct api_config *config = window->revision == monitor->revision
                                    ? api_config_hold(monitor->config)
                                    : former_config(monitors, monitor, window->revision);
    struct api_snapshot *snapshot = config ? api_snapshot_new(config) : NULL;
    if (config && !snapshot)
        api_transaction_fail_oom(monitors);
    api_config_release(config);
    if (!snapshot)
        return NULL;
    snapshot->window = *window;
    window->settings = window->reference = window->counts = NULL;
    api_counts_add(snapshot->window.counts, snapshot->window.counts_size, snapshot->counts,
                   snapshot->config->bins.n_bins);
    snapshot->state = snapshot->window.closed ? snapshot->window.state : monitor->status.state;
    if (read_settings(monitors, snapshot) &&
        api_snapshot_compare(monitors, monitor->id, api_position_of(&snapshot->window), snapshot) &&
        (!needs_pool(&snapshot->window) || api_snapshot_pool(monitors, monitor, snapshot)))
        return snapshot;
    api_snapshot_release(snapshot);
    return NULL;
}

bool api_snapshot_read(struct api_monitors *monitors, struct api_monitor *monitor,
                       enum api_statement statement, const struct api_datum *of,
                       struct api_snapshot **snapshot)
{
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, statement, of);
    *snapshot = good && list.n > 0 ? api_snapshot_of(monitors, monitor, &list.windows[0]) : NULL;
    good = good && (*snapshot || list.n == 0);
    api_window_list_free(&list);
    return good;
}

/* ---- Periods */

static void read_period(void *context, const struct api_datum *values)
{
    struct api_period *period = context;
    period->windows = values[0].integer;
    period->first = values[1].integer;
    period->newest = values[2].integer;
    period->end = values[3].integer;
}

bool api_period_add_up(struct api_monitors *monitors, struct api_monitor *monitor,
                       const char *const names[2], int64_t max, struct api_period *period,
                       double *counts, struct api_moments *moments, struct api_problem *problem)
{
    const struct api_datum *between = API_ROW(monitor->id, monitor->revision, period->from,
                                              period->to, max < INT64_MAX ? max + 1 : max);
    if (!api_store_read(monitors->store, API_SQL_WINDOWS_SPAN, between, read_period, period))
        return false;
    if (period->windows == 0)
        return api_fail(problem, "windows_missing",
                        "no closed window of this revision starts between %s and %s", names[0],
                        names[1]);
    if (period->windows > max)
        return api_fail_at(problem, API_QUERY, names[0], "option_invalid",
                           "more than %" PRId64 " windows start between %s and %s, which have more "
                           "counts than are added up for a request; ask for a shorter period",
                           max, names[0], names[1]);
    return api_counts_run(counts, monitor->config->bins.n_bins, moments, monitors->store,
                          API_SQL_COUNTS_BETWEEN, between);
}
