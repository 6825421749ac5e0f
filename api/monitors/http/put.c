/* PUT of a group or a monitor. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/http/replacing.h"
#include "api/monitors/http/segments.h"

#include "api/monitors/rows/columns.h"

#include <string.h>

static bool check(struct api_exchange *x) { return api_check_names(x) && api_check_body(x); }

/* Reads settings, dry_run, and the names of columns of a group. Says how history is loaded, if a group is to be made with
 * `time`. */
static bool read_query(struct api_exchange *x)
{
    static const char *const known[] = {"include", "exclude", "presence", "by", "dry_run", NULL};
    struct api_problem *problem = &x->problem;
    if (api_replacing_begin(x, known + (api_name_of(x) ? 4 : 0), true))
        return true;
    if (!api_name_of(x) && strcmp(problem->code, "option_unknown") == 0 &&
        strcmp(problem->location, "time") == 0) {
        *problem = (struct api_problem){0};
        api_fail_at(problem, API_QUERY, "time", "option_unknown",
                    "a reference takes no 'time': PUT the table to "
                    "/monitors/{group}?exclude=COLUMN, then POST it to "
                    "/monitors/{group}/observations?time=COLUMN");
    }
    return false;
}

/* Notes the columns for which nobody wants a monitor, so that they are no news in observations. Replacements are in the order
 * of their columns. */
static bool note_left_out(struct api_replacing *d, const struct api_table *table)
{
    struct api_problem ignored = {0};
    size_t n = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        if (n < d->n && strcmp(d->replacements[n].name, name) == 0)
            n++;
        else if (api_name_check("monitor", name, &ignored))
            api_columns_add(&d->columns, name);
    }
    return !d->columns.failed || api_fail_oom(&d->x->problem);
}

static bool read_group(struct api_replacing *d, struct api_table *table)
{
    struct api_problem *problem = &d->x->problem;
    struct api_monitor_settings ignored = d->settings;
    const json_t *members = table->members;
    if (!api_settings_from_json(&ignored, members, API_NAMES("columns", "rows", "annotations"),
                                problem))
        return api_fail_of_members(members, problem);
    if (!api_references_read(d, table, members) || !note_left_out(d, table))
        return false;
    if (d->n > 0)
        return true;
    return api_fail_empty_reference(d, table);
}

/* by: a table, and the column of its segments. */
struct by {
    struct api_table *table;
    const char *column;
    size_t n; /* monitors of segments */
};

/* Reads the reference of a segment; one without a column that gets a monitor is left out. */
static bool read_segment(struct api_exchange *x, void *context)
{
    struct api_replacing *d = x->state;
    struct by *by = context;
    struct api_table *table = by->table;
    bool good = read_query(x);
    d->segment_by = by->column;
    good = good && read_group(d, table);
    by->n += d->n;
    return api_replacing_end_segment(d, good);
}

static bool read_segments(struct api_exchange *x, struct api_table *table)
{
    struct by by = {table, x->segments->by, 0};
    return api_segments_choose(x, table) && api_segments_each(x, table, read_segment, &by) &&
           (by.n > 0 ||
            api_fail_at(&x->problem, API_QUERY, "by", "segments_missing",
                        "no segment would have a monitor: no other column has one, or names of "
                        "segments by '%.128s' have more than %d bytes",
                        by.column, API_MAX_NAME));
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    struct api_table table;
    if (!api_open_table(x, NULL, &table))
        return API_FAILED;
    bool good = read_query(x);
    if (good) {
        d->warns_of_reset = table.has_values;
        api_note_given(d, table.members);
        good =
            api_name_of(x) ? api_reference_read(d, &table, table.members) : read_group(d, &table);
    }
    bool wants_segments = good && api_segments_wanted(x);
    good = good && !x->problem.code;
    if (good && wants_segments)
        good = read_segments(x, &table);
    if (good && api_name_of(x))
        api_bins_check(&d->replacements->config->bins, &d->problem);
    json_decref(d->parameters); /* it is in the memory of the table's JSON */
    d->parameters = NULL;
    api_table_free(&table);
    return api_outcome_of(good);
}

const struct api_steps api_put = {
    .max_body = API_WHOLE_BODY, .check = check, .parse = parse, API_REPLACES};
