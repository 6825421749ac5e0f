/* Observations of a table whose rows go to the windows of their own times. */
#include "api/monitors/http/parse.h"

#include "api/monitors/rows/window_rows.h"
#include "api/monitors/state/close.h"
#include "api/text/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_WINDOWS: of all monitors; the store's thread needs some 100 µs for each. */
enum { MAX_WINDOWS = 20000 };

void api_timed_free(struct api_observations *o)
{
    for (size_t i = 0; i < o->n_timelines; i++)
        api_timeline_free(&o->timelines[i]);
    free(o->timelines);
    o->timelines = NULL;
    o->n_timelines = 0;
}

/* True if no row of the segment goes to a window. */
static bool is_empty(const struct api_part *part, const struct api_observed *observed)
{
    for (size_t i = 0; i < observed->counting.bins->n_bins; i++)
        if (part->tally.counts[i] > 0)
            return false;
    return true;
}

int64_t api_observed_first(const struct api_observations *o, const struct api_observed *observed)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; observed->timeline && i < api_timeline_size(observed->timeline); i++)
        if (api_timeline_at(observed->timeline, i)->start < first &&
            !is_empty(&observed->counting.parts[i], observed))
            first = api_timeline_at(observed->timeline, i)->start;
    return observed->timeline ? first : o->time;
}

size_t api_observed_windows(const struct api_observed *observed)
{
    return observed->timeline ? api_timeline_size(observed->timeline) : 1;
}

/* ---- Parameters */

static bool find_column(struct api_observations *o, const struct api_table *table)
{
    struct api_problem *problem = &o->x->problem;
    const char **names = calloc(table->n_columns + 1, sizeof *names), *nearest;
    char mean[API_MEAN];
    bool is_there = false;
    if (!names)
        return api_fail_oom(problem);
    for (size_t i = 0; i < table->n_columns && !is_there; i++) {
        names[i] = table->columns[i].name;
        is_there = strcmp(names[i], o->time_name) == 0;
        o->time_column = i;
    }
    nearest = is_there ? NULL : api_nearest(o->time_name, names, table->n_columns);
    free(names);
    return is_there || api_fail_at(problem, API_QUERY, "time", "column_missing",
                                   "the table has no column '%.100s'%s", o->time_name,
                                   api_mean(mean, nearest, ""));
}

bool api_timed_begin(struct api_observations *o, const json_t *parameters,
                     const struct api_table *table)
{
    struct api_problem *problem = &o->x->problem;
    const char *zone = json_string_value(json_object_get(parameters, "timezone"));
    char nearest[API_ZONE_NAME], mean[API_MEAN];
    o->time_name = json_string_value(json_object_get(parameters, "time"));
    o->zone = zone ? api_zone_find(zone) : NULL;
    if (zone && !o->time_name)
        return api_fail_at(problem, API_QUERY, "timezone", "option_conflict",
                           "timezone is of the times in a column, which time names");
    o->is_timed = o->time_name != NULL;
    if (!o->is_timed)
        return true;
    if (json_object_get(parameters, "timestamp") || json_object_get(table->members, "timestamp"))
        return api_fail_at(problem, API_QUERY, "time", "option_conflict",
                           "time gives each row a time of its own: leave timestamp out");
    if (!table->has_values)
        return api_fail_at(problem, API_QUERY, "time", "option_conflict",
                           "time names a column of a table, but the body is none");
    if (zone && !o->zone) {
        api_zone_nearest(zone, nearest);
        return api_fail_at(problem, API_QUERY, "timezone", "option_invalid",
                           "timezone must be UTC, an offset such as +02:00, or a name such as "
                           "Europe/Berlin%s",
                           api_mean(mean, *nearest ? nearest : NULL, ""));
    }
    return find_column(o, table);
}

/* ---- Windows of the rows */

/* The timeline of a column: that of one before whose windows are alike, or a new one. */
static struct api_timeline *timeline_of(struct api_observations *o, size_t i)
{
    const struct api_monitor_settings *settings = &o->observed[i].known->config->settings;
    for (size_t j = 0; j < i; j++) {
        const struct api_monitor_settings *other = &o->observed[j].known->config->settings;
        if (other->window_size == settings->window_size && other->zone == settings->zone)
            return o->observed[j].timeline;
    }
    struct api_timeline *timeline = &o->timelines[o->n_timelines++];
    *timeline =
        (struct api_timeline){.settings = settings, .zone = o->zone ? o->zone : settings->zone};
    timeline->stretches.budget = timeline->rows.budget = o->x->service->budget;
    api_labels_set_budget(&timeline->starts, o->x->service->budget);
    return timeline;
}

static bool make_timelines(struct api_observations *o)
{
    o->timelines = calloc(o->n + 1, sizeof *o->timelines);
    if (!o->timelines)
        return api_fail_oom(&o->x->problem);
    for (size_t i = 0; i < o->n; i++) {
        const struct api_monitor_settings *settings = &o->observed[i].known->config->settings;
        if (settings->window != API_SECONDS)
            return api_fail_at(&o->x->problem, API_QUERY, "time", "option_invalid",
                               "time needs windows of time, but each window of the monitor "
                               "'%.100s' is %s: set its window to 1d, for example",
                               o->observed[i].known->name,
                               settings->window == API_BATCH ? "a request" : "a number of values");
        o->observed[i].timeline = timeline_of(o, i);
    }
    return true;
}

static bool check_times(struct api_observations *o, const struct api_times *times, size_t n_rows)
{
    struct api_problem *problem = &o->x->problem;
    char text[API_TIME_TEXT], clock[API_TIME_TEXT];
    int64_t now = api_now();
    bool is_line = times->latest_line > 0;
    if (n_rows > 0 && times->unreadable == n_rows)
        return api_fail_at(problem, API_QUERY, "time", "timestamp_invalid",
                           "no value of the column '%.100s' can be read as a time%s%s%s",
                           o->time_name, times->period ? ": the first names " : "",
                           times->period ? times->period : "", times->period ? ", no day" : "");
    return times->latest <= now + API_DAY_US ||
           api_fail_at(problem, API_QUERY, "time", "timestamp_invalid",
                       "%s %zu: the time %s is more than a day ahead of this server's clock, %s",
                       is_line ? "line" : "row",
                       is_line ? times->latest_line : times->latest_row + 1,
                       api_time_text(times->latest, text), api_time_text(now, clock));
}

static void warn_of_unreadable(struct api_observations *o, const struct api_times *times)
{
    char message[200];
    bool is_line = times->line > 0;
    snprintf(message, sizeof message, "%zu %s, the first in %s %zu%s%s%s", times->unreadable,
             times->unreadable == 1 ? "row is left out, for its time cannot be read"
                                    : "rows are left out, for their times cannot be read",
             is_line ? "line" : "row", is_line ? times->line : times->row + 1,
             times->period ? ", which names " : "", times->period ? times->period : "",
             times->period ? ", no day" : "");
    if (times->unreadable > 0)
        api_warn(&o->warnings, "times_unreadable", o->time_name, times->unreadable, times->line,
                 message);
}

bool api_timed_check(size_t windows, size_t monitors, struct api_problem *problem)
{
    return windows <= MAX_WINDOWS ||
           api_fail_at(problem, API_QUERY, "time", "too_many_windows",
                       "the rows go to %zu windows of %zu monitors; a request may have %d: "
                       "send fewer rows or columns at once, or have wider windows",
                       windows, monitors, MAX_WINDOWS);
}

/* Has the columns be counted in as many parts as they have windows, for which there must be memory. */
static bool split(struct api_observations *o)
{
    struct api_problem *problem = &o->x->problem;
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += api_observed_windows(&o->observed[i]);
    if (!api_timed_check(n, o->n, problem))
        return false;
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        size_t windows = api_observed_windows(observed);
        size_t size = api_counting_size(observed->counting.bins, windows);
        if (!api_budget_reserve(o->x->service->budget, size))
            return api_fail_oom(problem);
        o->reserved += size;
        if (windows > 0 &&
            !api_counting_split(&observed->counting, windows,
                                (const uint32_t *)(const void *)observed->timeline->rows.data,
                                problem))
            return false;
    }
    return true;
}

/* Reads the times of all rows, also of a segment, so that rows keep their numbers. */
static bool read_times(struct api_observations *o, struct api_table *table, struct api_times *times)
{
    const uint32_t *part_of_row = table->part_of_row, selected = table->selected;
    size_t n = table->n_rows;
    if (part_of_row)
        api_table_select(table, NULL, 0, 0);
    bool good = api_timelines_read(o->timelines, o->n_timelines, table, o->time_column, o->x->stop,
                                   times, &o->x->problem);
    if (part_of_row)
        api_table_select(table, part_of_row, selected, n);
    return good;
}

bool api_timed_read(struct api_observations *o, struct api_table *table)
{
    struct api_times times;
    if (!make_timelines(o) || !read_times(o, table, &times) ||
        !check_times(o, &times, o->timelines->rows.size / sizeof(uint32_t)))
        return false;
    warn_of_unreadable(o, &times);
    return split(o);
}

/* ---- In the store's thread */

/* step: a window of a timeline. */
struct step {
    int64_t start;
    struct api_timeline *timeline;
    size_t part;
};

static int compare_steps(const void *a, const void *b)
{
    const struct step *first = a, *second = b;
    return (first->start > second->start) - (first->start < second->start);
}

/* All windows in order, which the caller frees; NULL if memory is exhausted. */
static struct step *sort_steps(const struct api_observations *o, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < o->n_timelines; i++)
        *n += api_timeline_size(&o->timelines[i]);
    struct step *steps = calloc(*n + 1, sizeof *steps), *to = steps;
    for (size_t i = 0; steps && i < o->n_timelines; i++)
        for (size_t j = 0; j < api_timeline_size(&o->timelines[i]); j++)
            *to++ = (struct step){api_timeline_at(&o->timelines[i], j)->start, &o->timelines[i], j};
    if (steps)
        qsort(steps, *n, sizeof *steps, compare_steps);
    return steps;
}

/* Adds the counts of a window, of all monitors that have it. */
static bool add_step(struct api_observations *o, struct api_monitors *monitors,
                     const struct step *step)
{
    int64_t time = api_timeline_at(step->timeline, step->part)->last;
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        struct api_part *part = &observed->counting.parts[step->part];
        if (observed->timeline != step->timeline || is_empty(part, observed))
            continue;
        if (!api_observe(monitors, observed->monitor, &part->tally, time, &observed->dirty) ||
            !api_unseen_store(monitors->store, observed->known->id,
                              observed->dirty->snapshot->window.id, &part->unseen))
            return false;
    }
    return true;
}

/* Counts the verdicts of the windows that were written, keeps the newest of each monitor, and forgets the others. */
static void finish_step(struct api_observations *o)
{
    struct api_scores scores;
    struct kl_drift_bin of_bins[API_MAX_BINS + KL_OUTER_BINS];
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        for (struct api_dirty_window *t = observed->monitor->windows; t; t = t->next) {
            struct api_snapshot *snapshot = t->snapshot;
            if (!snapshot->window.closed)
                api_snapshot_score(snapshot, &scores, of_bins);
            o->verdicts[snapshot->window.closed ? snapshot->window.scores.verdict
                                                : scores.verdict]++;
            api_snapshot_release(observed->snapshot);
            observed->snapshot = snapshot;
            atomic_fetch_add(&snapshot->refcount, 1);
            observed->window = snapshot->window.id;
        }
        api_touch_clear(observed->monitor);
    }
}

bool api_timed_store(struct api_observations *o, struct api_monitors *monitors)
{
    size_t n;
    struct step *steps = sort_steps(o, &n);
    bool good = true;
    if (!steps)
        return api_transaction_fail_oom(monitors);
    memset(o->verdicts, 0, sizeof o->verdicts);
    for (size_t i = 0; good && i < n; i++) {
        bool is_last = i + 1 == n || steps[i + 1].start > steps[i].start;
        good = add_step(o, monitors, &steps[i]) && (!is_last || api_flush(monitors));
        if (good && is_last)
            finish_step(o);
    }
    free(steps);
    return good;
}

void api_timed_write(const struct api_observations *o, struct api_buffer *out)
{
    api_append_text(out, ",\"windows\":");
    api_verdicts_write(o->verdicts, out);
}
