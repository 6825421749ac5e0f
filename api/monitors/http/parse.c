#include "api/monitors/http/parse.h"

#include "api/monitors/http/segments.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/rows/columns.h"
#include "api/text/nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void api_observations_drop(struct api_observations *o)
{
    for (size_t i = 0; i < o->n; i++) {
        api_counting_free(&o->observed[i].counting);
        api_snapshot_release(o->observed[i].snapshot);
        api_buffer_free(&o->observed[i].unseen.objects);
    }
    free(o->observed);
    api_timed_free(o);
    api_budget_release(o->x->service->budget, o->reserved);
    o->observed = NULL;
    o->n = o->reserved = o->unknown = 0;
    api_buffer_free(&o->columns);
    api_buffer_free(&o->touches);
    api_buffer_free(&o->warnings);
}

/* Counts, for the budget, how much memory a column holds until the response: its counts, and its window with a
 * reference and scores. */
static bool count_memory(struct api_observations *o, const struct api_bins *bins)
{
    size_t size =
        sizeof *o->observed + sizeof(struct api_snapshot) + bins->n_bins * 8 * sizeof(double);
    if (!api_budget_reserve(o->x->service->budget, size))
        return api_fail_oom(&o->x->problem);
    o->reserved += size;
    return true;
}

bool api_observe_column(struct api_observations *o, const struct api_known *known, size_t column)
{
    struct api_observed *observed = &o->observed[o->n++];
    const struct api_config *config = known->config;
    *observed = (struct api_observed){
        .column = column, .known = known, .unseen.objects.budget = o->x->service->budget};
    if (!count_memory(o, &config->bins) ||
        !api_counting_init(&observed->counting, &config->bins, &o->x->problem))
        return false;
    observed->counting.style = config->reference.style;
    observed->counting.zone = config->settings.zone;
    return true;
}

bool api_observe_begin(struct api_observations *o, size_t n)
{
    o->observed = calloc(n + 1, sizeof *o->observed);
    return o->observed || api_fail_oom(&o->x->problem);
}

static bool count_columns(struct api_observations *o, struct api_table *table)
{
    struct api_counting **of_columns = calloc(table->n_columns + 1, sizeof *of_columns);
    if (!of_columns)
        return api_fail_oom(&o->x->problem);
    for (size_t i = 0; i < o->n; i++)
        of_columns[o->observed[i].column] = &o->observed[i].counting;
    bool good = (!o->time_name || api_timed_read(o, table)) &&
                api_counting_table(of_columns, table, o->x->stop, &o->x->problem);
    free(of_columns);
    return good;
}

bool api_count_values(struct api_observations *o, struct api_table *table)
{
    bool good = count_columns(o, table);
    for (size_t i = 0; good && i < o->n; i++)
        api_warn_of_unreadable(&o->warnings, o->observed[i].known->name,
                               &o->observed[i].counting.unreadable);
    return good;
}

/* Finds the monitors of a table's columns; those without one are warnings. */
static bool find_monitors(struct api_observations *o, const struct api_table *table)
{
    if (!api_observe_begin(o, table->n_columns))
        return false;
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        if (o->time_name && strcmp(name, o->time_name) == 0)
            continue;
        if (table->columns[i].flaws & API_NESTED) {
            api_warn(&o->warnings, "values_nested", name, 0, 0, api_nested_message);
            continue;
        }
        api_warn_of_name(&o->warnings, &table->columns[i]);
        const struct api_known *known = *name ? api_known_find(o->x->known, name) : NULL;
        if (known && !api_observe_column(o, known, i))
            return false;
        if (known)
            continue;
        o->unknown += *name != '\0';
        if (!api_known_leaves_out(o->x->known, name))
            api_warn_of_unknown(&o->warnings, name);
    }
    if (o->n == 0)
        return api_fail_unknown(o->x, table);
    api_warn_of_absent(o->x, table, o->n, api_absent_message, &o->warnings);
    return true;
}

/* Notes the columns that might have a monitor, and have none. */
static void note_columns(struct api_observations *o, const struct api_table *table)
{
    for (size_t i = 0; o->unknown > 0 && i < table->n_columns; i++) {
        const struct api_column *column = &table->columns[i];
        struct api_problem ignored = {0};
        if (!(column->flaws & API_NESTED) && !api_known_find(o->x->known, column->name) &&
            api_name_check("monitor", column->name, &ignored))
            api_columns_add(&o->columns, column->name);
    }
}

/* Checks the names of members: a timestamp, and a table, or values or weights of one monitor. */
static bool check_members(const struct api_table *table, bool single, struct api_problem *problem)
{
    enum { TABLES = 3 };
    const char *known[TABLES + API_WEIGHTS_MEMBERS] = {"timestamp", "columns", "rows"}, *name;
    size_t n = TABLES + (!single ? 0 : table->has_values ? 1 : API_WEIGHTS_MEMBERS);
    char pointer[200], mean[API_MEAN];
    json_t *value;
    if (single)
        memcpy(known + TABLES, api_weights_members, API_WEIGHTS_MEMBERS * sizeof *known);
    json_object_foreach(table->members, name, value)
    {
        size_t i = 0;
        while (i < n && strcmp(known[i], name) != 0)
            i++;
        if (i < n)
            continue;
        const char *nearest = api_nearest(name, known, n);
        api_pointer_to_member(pointer, sizeof pointer, "#/", name);
        api_fail_at(
            problem, API_BODY, pointer, "option_unknown",
            "observations have no member '%.60s' here%s%s", name, api_mean(mean, nearest, ""),
            single || table->has_values
                ? ""
                : "; a table is {\"columns\": {NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
        return !single && api_fail_of_members(table->members, problem);
    }
    return true;
}

/* Reads counts or probabilities of one monitor. */
static bool read_weights(struct api_observations *o, const struct api_table *table)
{
    struct api_observed *observed = o->observed;
    struct api_weights weights = {.n = 0};
    struct api_problem *problem = &o->x->problem;
    bool good = api_weights_from_json(&weights, &observed->known->config->bins, table->members, "#",
                                      problem) &&
                api_weights_to_counts(&weights, &observed->known->config->bins, problem);
    for (size_t i = 0; good && i < observed->known->config->bins.n_bins; i++)
        observed->counting.parts->tally.counts[i] = (uint64_t)weights.values[i];
    api_weights_free(&weights);
    return good;
}

size_t api_observed_count(const struct api_observed *observed)
{
    uint64_t n = 0;
    for (size_t j = 0; j < observed->counting.n_parts; j++)
        for (size_t i = 0; i < observed->known->config->bins.n_bins; i++)
            n += observed->counting.parts[j].tally.counts[i];
    return n;
}

static bool read_single(struct api_observations *o, struct api_table *table)
{
    size_t column = 0;
    const char *name = api_name_of(o->x);
    if (table->has_values && !api_find_column(table, name, &column, &o->x->problem))
        return false;
    if (!api_observe_begin(o, 1))
        return false;
    if (!api_observe_column(o, &o->x->known->monitors[0], column))
        return false;
    if (!(table->has_values ? api_count_values(o, table) : read_weights(o, table)))
        return false;
    return api_observed_count(o->observed) > 0 ||
           api_fail(&o->x->problem, "observations_empty", "there is no observation");
}

static bool read_many(struct api_observations *o, struct api_table *table)
{
    if (!table->has_values)
        return api_fail_at(&o->x->problem, API_BODY, "#", "observations_empty",
                           "the body has neither columns nor rows: a table is {\"columns\": "
                           "{NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
    if (!find_monitors(o, table) || !api_count_values(o, table))
        return false;
    if (o->is_stored && table->n_rows > 0)
        note_columns(o, table);
    if (table->n_rows == 0) {
        struct api_buffer warnings = o->warnings;
        o->warnings = (struct api_buffer){.budget = warnings.budget};
        api_observations_drop(o);
        o->warnings = warnings;
    }
    return true;
}

static bool read_rows(struct api_observations *o, const json_t *parameters, struct api_table *table)
{
    struct api_exchange *x = o->x;
    bool single = api_name_of(x) != NULL;
    return check_members(table, single, &x->problem) &&
           api_read_timestamp(json_object_get(parameters, "timestamp"),
                              json_object_get(table->members, "timestamp"), &o->time,
                              &x->problem) &&
           api_timed_begin(o, parameters, table) &&
           (single ? read_single(o, table) : read_many(o, table));
}

/* ---- Small batches */

/* True if each request is a window, and windows like this one have no verdict even by the largest pool. */
static bool is_too_small(const struct api_observed *observed)
{
    const struct api_monitor_settings *settings = &observed->known->config->settings;
    double n = (double)api_observed_count(observed);
    return settings->window == API_BATCH && n > 0 &&
           n * (double)api_settings_pool(settings) <
               api_min_observations(settings, &observed->known->config->bins);
}

void api_warn_of_some(struct api_observations *o,
                      bool (*is_so)(const struct api_observed *observed), const char *code,
                      const char *message)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        if (is_so(&o->observed[i]) && n++ == 0)
            first = o->observed[i].known->name;
    if (first)
        api_warn(&o->warnings, code, first, n, 0, message);
}

/* Hashes the key with the path and the parameters, and the body. Earlier versions hashed no parameters; a request
 * without parameters has the same hash as theirs. False if memory is exhausted. */
static bool hash_key(struct api_observations *o, const json_t *parameters)
{
    const struct api_exchange *x = o->x;
    struct api_buffer text = {0};
    const char *key = api_request_header(&x->request, "Idempotency-Key");
    o->x->job.key = key ? o->key : NULL;
    if (!key)
        return true;
    api_append_text(&text, key);
    api_append(&text, "", 1);
    api_append_text(&text, api_group_of(x));
    api_append(&text, "", 1);
    api_append_text(&text, api_stored_name(x));
    if (json_object_size(parameters) > 0) {
        api_append(&text, "", 1);
        api_append_json(&text, parameters);
    }
    bool good = !text.failed || api_fail_oom(&o->x->problem);
    if (good)
        api_hash(text.data, text.size, o->key);
    api_hash(x->request.body, x->request.body_size, o->body);
    api_buffer_free(&text);
    return good;
}

/* parsing: a table whose rows are read by its segments. */
struct parsing {
    struct api_table *table;
    const json_t *parameters;
    size_t windows;
};

static bool parse_segment(struct api_exchange *x, void *context)
{
    struct api_observations *o = x->state;
    struct parsing *parsing = context;
    o->x = x;
    o->is_stored = x->is_parsed = true;
    o->warnings.budget = o->columns.budget = x->service->budget;
    bool good =
        read_rows(o, parsing->parameters, parsing->table) && hash_key(o, parsing->parameters);
    good = good && api_list_touches(o);
    for (size_t i = 0; i < o->n; i++)
        parsing->windows += api_observed_windows(&o->observed[i]);
    return good && api_timed_check(parsing->windows, o->n, &x->problem);
}

/* Reads the rows of the body, then those of each segment. */
static bool read_table(struct api_observations *o, const json_t *parameters)
{
    struct api_exchange *x = o->x;
    struct api_table table;
    if (!api_open_table(x, NULL, &table))
        return false;
    struct parsing parsing = {.table = &table, .parameters = parameters};
    bool good = read_rows(o, parameters, &table);
    for (size_t i = 0; good && i < o->n; i++)
        parsing.windows += api_observed_windows(&o->observed[i]);
    size_t left = 0;
    if (good && x->segments && o->n > 0)
        good = api_segments_find(x, &table, &left) &&
               api_segments_each(x, &table, parse_segment, &parsing);
    if (good)
        api_segments_warn(x, left, &o->warnings);
    api_table_free(&table);
    return good;
}

bool api_parse(struct api_observations *o, bool is_stored)
{
    static const char *const known[] = {"by", "time", "timezone", "timestamp", NULL};
    size_t first = !is_stored ? 3 : api_name_of(o->x) ? 1 : 0;
    json_t *parameters =
        api_settings_from_query(NULL, o->x->request.query, known + first, &o->x->problem);
    o->is_stored = is_stored;
    o->columns.budget = o->x->service->budget;
    bool good = parameters && read_table(o, parameters) && (!is_stored || hash_key(o, parameters));
    if (good && is_stored)
        api_warn_of_some(
            o, is_too_small, "batches_too_small",
            "each request is a window, and this one is so small that a pool of them has too few "
            "observations for a verdict: set window=1000, or a window of time such as window=1h");
    json_decref(parameters);
    return good;
}

/* ---- Columns that are missing */

static int compare_known(const void *a, const void *b)
{
    const struct api_known *const *first = a, *const *second = b;
    return ((*first)->id > (*second)->id) - ((*first)->id < (*second)->id);
}

/* True for a monitor that becomes stale by requests that lack its column. */
static bool counts_missed(const struct api_known *known)
{
    return isinf(api_settings_stale_after(&known->config->settings));
}

bool api_list_touches(struct api_observations *o)
{
    const struct api_known_set *known = o->x->known;
    bool is_whole = !api_name_of(o->x) && o->n > 0 && known->n > o->n;
    o->touches.size = 0;
    for (size_t i = 0; i < o->n; i++)
        api_append(&o->touches, &o->observed[i].known, sizeof o->observed[i].known);
    if (o->n > 0 && !o->touches.failed)
        qsort(o->touches.data, o->n, sizeof(struct api_known *), compare_known);
    for (size_t i = 0; is_whole && i < known->n; i++) {
        const struct api_known *one = &known->monitors[i];
        if (counts_missed(one) && !bsearch(&one, o->touches.data, o->n, sizeof one, compare_known))
            api_append(&o->touches, &one, sizeof one);
    }
    o->x->job.touches = (void *)o->touches.data;
    o->x->job.n_touches = o->touches.size / sizeof(struct api_known *);
    return !o->touches.failed || api_fail_oom(&o->x->problem);
}

bool api_count_missed(const struct api_observations *o, struct api_monitors *monitors)
{
    for (size_t i = o->n; i < o->x->job.n_touches; i++) {
        const struct api_known *known = o->x->job.touches[i];
        struct api_monitor *monitor;
        if (!api_touch(monitors, known->id, known, &monitor))
            return false;
        if (!monitor || monitor->status.missed >= API_MISSED)
            continue;
        monitor->status.missed++;
        api_touch_all(monitor);
    }
    return true;
}
