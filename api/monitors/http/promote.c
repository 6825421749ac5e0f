/* POST reference of a group: closed windows become the references of its monitors, or a table does. Settings stay. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"

#include "api/json/json_load.h"
#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"
#include "api/monitors/http/segments.h"

#include <stdlib.h>
#include <string.h>

/* MAX_COUNTS: of windows that become references in one transaction. Reading them takes about a second, and keeps others
 * from the store. One monitor has no limit. */
enum { MAX_COUNTS = 4000000 };

static bool check(struct api_exchange *x) { return api_check_names(x) && api_check_body(x); }

/* Reads {"from": TIME, "to": TIME}. */
static bool read_range(const json_t *root, struct api_period *period, struct api_problem *problem)
{
    if (!json_is_object(root) || json_object_size(root) != 2)
        return api_fail_at(problem, API_BODY, "#", "option_invalid",
                           "the body must be {\"from\": TIME, \"to\": TIME}");
    return api_read_time(api_json_unboxed(json_object_get(root, "from")), API_BODY, "from",
                         &period->from, problem) &&
           api_read_time(api_json_unboxed(json_object_get(root, "to")), API_BODY, "to", &period->to,
                         problem);
}

/* ---- In the store's thread */

/* Makes the config that has these counts as its reference; NULL with a problem. */
static struct api_config *load_promoted(const struct api_config *old, double *counts,
                                        const struct api_moments *moments,
                                        struct api_problem *problem)
{
    struct api_buffer text = {0};
    struct api_weights weights = {.form = API_COUNTS, .values = counts};
    struct api_config *config = NULL;
    for (size_t i = 0; i < old->bins.n_bins; i++)
        weights.n += counts[i];
    api_weights_set_spread(&weights, api_moments_spread(moments, &old->bins, weights.n));
    api_config_write_definition(&old->bins, &weights, &text);
    api_append(&text, "", 1);
    if (!text.failed)
        config = api_config_load(text.data, old->others, problem);
    else
        api_fail_oom(problem);
    api_buffer_free(&text);
    return config;
}

/* Makes the config whose reference is the sum of closed windows, of at most *max counts, of which it takes those that it
 * reads; NULL with a problem, or if the store fails. */
static struct api_config *promote(struct api_period period, struct api_monitors *monitors,
                                  struct api_monitor *monitor, int64_t *max,
                                  struct api_problem *problem)
{
    struct api_moments moments = {.n = 0};
    int64_t n_bins = (int64_t)monitor->config->bins.n_bins;
    double *counts = calloc((size_t)n_bins, sizeof *counts);
    if (!counts) {
        api_fail_oom(problem);
        return NULL;
    }
    bool good = api_period_add_up(monitors, monitor, API_NAMES("from", "to"), *max / n_bins,
                                  &period, counts, &moments, problem);
    *max -= period.windows * n_bins;
    struct api_config *config =
        good ? load_promoted(monitor->config, counts, &moments, problem) : NULL;
    free(counts);
    return config;
}

/* ---- By a period */

/* Adds the replacement of a monitor. One without a window in the period stays as it is, and is told. */
static bool add_promoted(struct api_replacing *d, struct api_monitors *monitors,
                         struct api_monitor *monitor, int64_t *max)
{
    struct api_problem *to = &d->x->problem, problem = {0};
    struct api_config *config = promote(d->period, monitors, monitor, max, &problem);
    if (config)
        return api_replacing_add(d, monitor->name, config);
    if (problem.code && strcmp(problem.code, "windows_missing") == 0) {
        api_warn(&d->warnings, "windows_missing", monitor->name, 0, 0,
                 "no closed window of this monitor starts in the period: its reference stays");
        return true;
    }
    if (problem.code && strcmp(problem.code, "option_invalid") == 0)
        return api_fail_at(to, API_BODY, "#/from", "option_invalid",
                           "the windows of the group in this period have more than %d counts, "
                           "which is too much for a request; give a shorter period, or fewer "
                           "monitors, by include",
                           MAX_COUNTS);
    if (problem.code)
        *to = problem;
    return false;
}

/* chosen: the monitors that `include` names, of those of a group. */
struct chosen {
    const struct api_known_set *known, *others; /* names of others are ignored; or NULL */
    bool *is_chosen;
    size_t n;
};

static bool take_monitor(void *context, const char *name, size_t size)
{
    struct chosen *c = context;
    char text[API_MAX_NAME + 1] = "";
    if (size > API_MAX_NAME)
        return false;
    memcpy(text, name, size);
    const struct api_known *found = api_known_find(c->known, text);
    if (!found)
        return c->others && api_known_find(c->others, text);
    c->n += !c->is_chosen[found - c->known->monitors];
    c->is_chosen[found - c->known->monitors] = true;
    return true;
}

/* Makes the replacements of the monitors that `include` names, or of all. */
static bool make_of_period(struct api_replacing *d, struct api_monitors *monitors)
{
    struct api_exchange *x = d->x;
    const struct api_known_set *known = x->known;
    struct chosen chosen = {known, d->known_of_group,
                            calloc(known->n + 1, sizeof *chosen.is_chosen), 0};
    if (!chosen.is_chosen)
        return api_fail_oom(&x->problem);
    api_replacing_clear(d);
    bool good = !d->include || api_names_take(d->include, "include", "the group has no monitor",
                                              take_monitor, &chosen, &x->problem);
    size_t n = d->include ? chosen.n : known->n;
    int64_t max = d->counts_left > 0 ? d->counts_left : n == 1 ? INT64_MAX : MAX_COUNTS;
    for (size_t i = 0; good && i < known->n; i++) {
        struct api_monitor *monitor = NULL;
        if (!d->include || chosen.is_chosen[i])
            good = api_touch(monitors, known->monitors[i].id, &known->monitors[i], &monitor);
        good = good && (!monitor || add_promoted(d, monitors, monitor, &max));
    }
    free(chosen.is_chosen);
    d->counts_left = max > MAX_COUNTS ? MAX_COUNTS : max > 1 ? max : 1;
    return good && (d->n > 0 || api_fail(&x->problem, "windows_missing",
                                         "no closed window of %s starts between from and to",
                                         d->include ? "these monitors" : "the group"));
}

/* ---- By a table */

static bool fail_setting(enum api_location where, const char *location, const char *name,
                         struct api_problem *problem)
{
    return api_fail_at(problem, where, location, "option_unknown",
                       "a new reference takes no '%.60s': settings stay as they are, and PATCH "
                       "changes them",
                       name);
}

/* Fails for members beside a table, unless they say how bins are made. */
static bool check_members(const json_t *members, struct api_problem *problem)
{
    char pointer[200];
    for (void *at = json_object_iter((json_t *)members); at;
         at = json_object_iter_next((json_t *)members, at)) {
        const char *name = json_object_iter_key(at);
        api_pointer_to_member(pointer, sizeof pointer, "#/", name);
        if (!api_setting_is_among(name, API_NAMES("columns", "rows", "binning")))
            return fail_setting(API_BODY, pointer, name, problem);
    }
    return true;
}

/* Reads the parameters: how bins are made, dry_run, and include. */
static bool read_query(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    if (!api_replacing_begin(x, API_NAMES("by", "dry_run", "include"), true))
        return false;
    for (const struct api_field *row = api_monitor_setting_rows; row->name; row++)
        if ((d->settings.given >> (row - api_monitor_setting_rows) & 1) &&
            !(row->parent && strcmp(row->parent, "binning") == 0))
            return fail_setting(API_QUERY, row->name, row->name, &x->problem);
    return true;
}

static bool read_columns(struct api_replacing *d, struct api_table *table)
{
    struct api_exchange *x = d->x;
    size_t unknown = 0;
    if (!check_members(table->members, &x->problem) ||
        !api_references_read(d, table, table->members))
        return false;
    for (size_t i = 0; i < table->n_columns; i++)
        unknown += !api_known_find(x->known, table->columns[i].name);
    if (unknown == table->n_columns)
        return api_fail_unknown(x, table);
    api_warn_of_absent(x, table, table->n_columns - unknown, api_absent_message, &d->warnings);
    return d->n > 0 ||
           api_fail(&x->problem, "reference_empty", "no column gets a new reference: %.*s",
                    (int)d->left_out.size, d->left_out.data);
}

/* Gives the new references of a table the settings of the monitors. */
static bool keep_settings(struct api_replacing *d, struct api_monitors *monitors)
{
    struct api_exchange *x = d->x;
    for (size_t i = 0; i < d->n; i++) {
        struct api_replacement *r = &d->replacements[i];
        struct api_monitor *monitor;
        if (!api_touch_named(monitors, api_group_of(x), r->name, &monitor))
            return false;
        if (!monitor)
            x->outcome = API_PARSE_AGAIN;
        if (!monitor || strcmp(r->config->others, monitor->config->others) == 0)
            continue;
        struct api_config *made = r->config;
        r->config = api_config_renew(made, monitor->config, &x->problem);
        api_config_release(made);
        if (!r->config)
            return false;
    }
    return true;
}

/* Reads the rows of a segment, which keeps its references if no column gets one from them. */
static bool read_segment(struct api_exchange *x, void *table)
{
    struct api_replacing *d = x->state;
    bool good = read_query(x) && read_columns(d, table);
    d->make = keep_settings;
    return api_replacing_end_segment(d, good);
}

/* Reads a table, and its rows of each segment if there is a `by`. */
static bool read_table(struct api_replacing *d, struct api_table *table)
{
    struct api_exchange *x = d->x;
    size_t left = 0;
    bool good = read_columns(d, table);
    if (good && api_segments_wanted(x))
        good =
            api_segments_find(x, table, &left) && api_segments_each(x, table, read_segment, table);
    if (good)
        api_segments_warn(x, left, &d->warnings);
    return good;
}

/* ---- Steps */

/* Reads a table, or a period. */
static bool read_body(struct api_replacing *d)
{
    struct api_problem *problem = &d->x->problem;
    struct api_table table;
    if (!api_open_table(d->x, NULL, &table))
        return false;
    d->make = table.has_values ? keep_settings : make_of_period;
    d->reaches_segments = !table.has_values;
    bool good = table.has_values ? read_table(d, &table)
                : api_segments_wanted(d->x)
                    ? api_fail_at(problem, API_QUERY, "by", "option_conflict",
                                  "a period is taken for all segments of the group: leave out by")
                : !json_object_get(table.members, "from") && !json_object_get(table.members, "to")
                    ? api_fail_at(problem, API_BODY, "#", "reference_empty",
                                  "the body must be a table, or {\"from\": TIME, \"to\": TIME}")
                    : read_range(table.members, &d->period, problem);
    api_table_free(&table);
    return good;
}

static enum api_outcome parse(struct api_exchange *x)
{
    if (!read_query(x))
        return API_FAILED;
    bool wants_segments = api_segments_wanted(x);
    if (x->problem.code)
        return API_FAILED;
    if (api_know(x) == API_REFRESH || api_may_be_outdated(x) ||
        (wants_segments && !x->is_refreshed))
        return API_REFRESH;
    return api_outcome_of((x->known->n > 0 || api_fail_missing(x, false)) && read_body(x->state));
}

const struct api_steps api_renew_references = {
    .max_body = API_WHOLE_BODY, .check = check, .parse = parse, API_REPLACES};
