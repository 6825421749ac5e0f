#include "api/monitors/http/timeline.h"

#include "api/monitors/model/counting.h"
#include "api/text/date.h"

#include <stdlib.h>

void api_timeline_free(struct api_timeline *timeline)
{
    api_buffer_free(&timeline->stretches);
    api_buffer_free(&timeline->rows);
    api_labels_free(&timeline->starts);
}

/* ---- Windows */

/* Finds the stretch that starts then, or adds it; API_NO_PART without memory. */
static uint32_t find_stretch(struct api_timeline *timeline, struct api_window_span span)
{
    const char *start = (const char *)&span.start;
    size_t n = api_timeline_size(timeline),
           i = api_labels_find(&timeline->starts, start, sizeof span.start);
    if (i < n)
        return (uint32_t)i;
    api_append(&timeline->stretches, &(struct api_stretch){span.start, span.end, span.start},
               sizeof(struct api_stretch));
    bool good = api_labels_add(&timeline->starts, start, sizeof span.start, false) &&
                !timeline->stretches.failed;
    return good ? (uint32_t)n : API_NO_PART;
}

/* CACHED: quarters of windows of which the stretch is known that was met there last, so that few rows need a calendar. */
enum { QUARTERS = 4, CACHED = 4096 };

/* reading: a pass over a column. */
struct reading {
    struct api_timeline *timelines;
    size_t n;
    const struct api_table *table;
    const atomic_bool *stop;
    enum api_date_order order;
    struct api_date_tally tally; /* of the texts on which the order may tell */
    struct api_times *times;
    uint32_t *cache; /* CACHED of each timeline; API_NO_PART: none */
};

static bool add_row(struct reading *r, size_t i, int64_t time)
{
    struct api_timeline *timeline = &r->timelines[i];
    int64_t quarter = (int64_t)timeline->settings->window_size * API_SECOND_US / QUARTERS;
    uint32_t *part = &r->cache[i * CACHED + ((size_t)(time / quarter) & (CACHED - 1))];
    struct api_stretch *stretches = (struct api_stretch *)(void *)timeline->stretches.data;
    if (*part == API_NO_PART || time < stretches[*part].start || time >= stretches[*part].end) {
        *part = find_stretch(timeline, api_window_span(timeline->settings, time));
        if (*part == API_NO_PART)
            return false;
        stretches = (struct api_stretch *)(void *)timeline->stretches.data;
    }
    if (time > stretches[*part].last)
        stretches[*part].last = time;
    api_append(&timeline->rows, part, sizeof *part);
    return !timeline->rows.failed;
}

static bool add_date(struct reading *r, const struct api_date *date, const struct api_cell *cell,
                     struct api_problem *problem)
{
    for (size_t i = 0; i < r->n; i++) {
        struct api_timeline *timeline = &r->timelines[i];
        int64_t time = date->has_zone
                           ? date->us
                           : api_zone_to_utc(timeline->zone, date->us, &timeline->to_utc, NULL);
        if (!add_row(r, i, time))
            return api_fail_oom(problem);
        if (time <= r->times->latest)
            continue;
        r->times->latest = time;
        r->times->latest_line = cell->line;
        r->times->latest_row = cell->row;
    }
    return true;
}

static bool add_unreadable(struct reading *r, const struct api_cell *cell, const char *period,
                           struct api_problem *problem)
{
    static const uint32_t none = API_NO_PART;
    for (size_t i = 0; i < r->n; i++)
        api_append(&r->timelines[i].rows, &none, sizeof none);
    if (r->times->unreadable++ == 0) {
        r->times->line = cell->line;
        r->times->row = cell->row;
        r->times->period = period;
    }
    return !r->n || !r->timelines[r->n - 1].rows.failed || api_fail_oom(problem);
}

/* True for a text that may be another day by another order: its first number has one or two digits. */
static bool has_order(const struct api_cell *cell)
{
    size_t n = 0;
    while (n < cell->size && (unsigned)(cell->text[n] - '0') < 10)
        n++;
    return n == 1 || n == 2;
}

/* Reads a number as a date; of seconds with their fraction. */
static bool read_number(double number, struct api_date *date)
{
    size_t form;
    bool is_whole = api_date_of_number(number, date, &form);
    return is_whole || form == 0;
}

static bool read_cell(void *context, size_t column, const struct api_cell *cell,
                      struct api_problem *problem)
{
    struct reading *r = context;
    struct api_date date = {.period = NULL};
    (void)column;
    if (!api_check_cancelled(r->stop, cell, problem))
        return false;
    bool is_text = api_cell_is_text(cell);
    if (is_text && has_order(cell))
        api_date_add(&r->tally, cell->text, cell->size);
    bool good = is_text ? api_date_read(cell->text, cell->size, r->order, &date)
                        : cell->kind == API_CELL_NUMBER && read_number(cell->number, &date);
    return good && !date.period ? add_date(r, &date, cell, problem)
                                : add_unreadable(r, cell, good ? date.period : NULL, problem);
}

static bool read_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                         size_t row, size_t n, struct api_problem *problem)
{
    struct api_cell cell = {.kind = API_CELL_NUMBER};
    for (size_t i = 0; i < n; i++) {
        cell.row = row + i;
        cell.number = kl_load(dtype, values, i);
        if (!read_cell(context, column, &cell, problem))
            return false;
    }
    return true;
}

static bool read_pass(struct reading *r, struct api_table *table, struct api_problem *problem)
{
    const struct api_sink sink = {r, read_cell, read_numbers};
    *r->times = (struct api_times){.latest = API_NO_TIME};
    r->tally = (struct api_date_tally){.is_mixed = false};
    for (size_t i = 0; i < r->n; i++) {
        r->timelines[i].stretches.size = r->timelines[i].rows.size = 0;
        api_labels_free(&r->timelines[i].starts);
    }
    memset(r->cache, 0xff, r->n * CACHED * sizeof *r->cache);
    return api_table_read(table, &sink, problem);
}

bool api_timelines_read(struct api_timeline *timelines, size_t n, struct api_table *table,
                        size_t column, const atomic_bool *stop, struct api_times *times,
                        struct api_problem *problem)
{
    enum api_date_order order = API_DAY_FIRST;
    uint32_t *cache = calloc(n, CACHED * sizeof *cache);
    struct reading r = {.timelines = timelines,
                        .n = n,
                        .table = table,
                        .stop = stop,
                        .order = order,
                        .times = times,
                        .cache = cache};
    if (!cache)
        return api_fail_oom(problem);
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i == column;
    bool good = read_pass(&r, table, problem);
    if (good && r.tally.n[0] + r.tally.n[1] > 0) {
        good = api_date_decide(&r.tally, &order) ||
               api_fail_at(problem, API_QUERY, "time", "timestamp_invalid",
                           "the column '%.100s' does not show if days or months come first in "
                           "dates such as 11/12/2026: send them as 2026-11-12",
                           table->columns[column].name);
        r.order = order;
        good = good && (order == API_DAY_FIRST || read_pass(&r, table, problem));
    }
    free(cache);
    return good;
}
