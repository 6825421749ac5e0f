/* POST /compare: two tables of a form, `reference` and `current`, compared column by column. There is no monitor, and nothing is
 * stored: configs are made of the reference as by PUT, and the other table is scored by them as by POST evaluate. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/http/parse.h"
#include "api/monitors/http/replacing.h"

#include "api/json/format.h"
#include "api/monitors/rows/columns.h"
#include "api/request/body.h"
#include "api/request/response.h"
#include "api/text/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_BINS: bins of all columns together, each some 130 bytes of the response. */
enum { MAX_BINS = 200000 };

/* comparing: the state of a request. */
struct comparing {
    struct api_replacing reference; /* the first member: its functions find it as x->state */
    struct api_observations current;
};

static void drop(struct api_exchange *x)
{
    struct comparing *c = x->state;
    if (c->current.x)
        api_observations_drop(&c->current);
    api_replacing_drop(x);
}

static bool check(struct api_exchange *x)
{
    static const char *const types[] = {"multipart/form-data", NULL};
    const char *type = api_request_header(&x->request, "Content-Type");
    if (!api_check_accept(x) || !api_body_check_coding(x))
        return false;
    if (type && api_is_media_type(type, types))
        return api_body_check_size(x);
    api_response_header(&x->response, "Accept", types[0]);
    return api_fail(&x->problem, "media_type_unsupported",
                    "send the tables as two files of multipart/form-data, 'reference' and "
                    "'current': curl -F reference=@last.csv -F current=@this.csv");
}

/* Adds 1 ms, so that a job does the work: a small table may have many bins, and a large response. */
static bool estimate(struct api_exchange *x)
{
    api_estimate_documents(x);
    x->cost_ns += 1e6;
    return true;
}

/* ---- The form */

/* Names of the files. */
static const char *const parts[] = {"reference", "current", NULL};

/* Has a problem of a table begin with the name of its part. Returns false. */
static bool fail_of(const char *part, struct api_problem *problem)
{
    char detail[sizeof problem->detail];
    memcpy(detail, problem->detail, sizeof detail);
    snprintf(problem->detail, sizeof problem->detail, "%s: %.480s", part, detail);
    return false;
}

/* Opens a table, of which JSON has values alone. */
static bool open_part(struct api_exchange *x, const char *part, struct api_table *table)
{
    static const char *const values[] = {"columns", "rows", NULL};
    const char *name;
    json_t *value;
    if (!api_open_table(x, part, table))
        return fail_of(part, &x->problem);
    json_object_foreach(table->members, name, value)
    {
        char pointer[200];
        if (api_setting_is_among(name, values))
            continue;
        api_pointer_to_member(pointer, sizeof pointer, "#/", name);
        api_fail_at(
            &x->problem, API_BODY, pointer, "option_unknown",
            "%s: a table is {\"columns\": {NAME: [...]}}, {\"rows\": [{...}]} or [{...}], without "
            "'%.60s'; settings are parameters of the query",
            part, name);
        api_table_free(table);
        return false;
    }
    return true;
}

/* ---- The reference */

/* Reads settings of the query; refuses those that only windows have. */
static bool read_query(struct api_exchange *x)
{
    static const char *const known[] = {"include", "exclude", "presence", NULL};
    static const char *const of_windows[] = {"window",      "compare",       "volume",
                                             "pool",        "fire_after",    "clear_after",
                                             "stale_after", "retention_days"};
    struct api_replacing *d = x->state;
    if (!api_replacing_begin(x, known, true))
        return false;
    d->settings.pool = 1; /* one test is made, and not one of several pools */
    for (size_t i = 0; i < sizeof of_windows / sizeof *of_windows; i++) {
        const struct api_field *row = api_field_find(api_monitor_setting_rows, of_windows[i]);
        if (d->settings.given >> (row - api_monitor_setting_rows) & 1)
            return api_fail_at(&x->problem, API_QUERY, row->name, "option_unknown",
                               "two tables are compared without windows: '%s' is a setting of "
                               "monitors alone",
                               row->name);
    }
    return true;
}

static bool read_reference(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    struct api_table table;
    if (!open_part(x, parts[0], &table))
        return false;
    bool good = api_references_read(d, &table, NULL);
    for (size_t i = 0; i < table.n_columns; i++)
        if (*table.columns[i].name)
            api_columns_add(&d->columns, table.columns[i].name);
    if (good && d->columns.failed)
        good = api_fail_oom(&x->problem);
    if (good && d->n == 0)
        good = api_fail_empty_reference(d, &table);
    for (size_t i = 0; good && i < d->n; i++) {
        d->replacements[i].revises = true; /* each is new */
        api_warn_of_change(d, &d->replacements[i]);
    }
    api_table_free(&table);
    return good || fail_of(parts[0], &x->problem);
}

static bool check_bins(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->replacements[i].config->bins.n_bins;
    return n <= MAX_BINS ||
           api_fail_at(
               &x->problem, API_QUERY, "bins", "option_invalid",
               "the columns have %zu bins together, and at most %d are compared: ask for fewer "
               "by ?bins= or ?include=",
               n, MAX_BINS);
}

/* Has x->known be the configs, as if they were monitors. Its columns that are left out are all of the reference. */
static bool know(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    struct api_known_set *set = x->known = api_known_new("", "");
    if (!set || !(set->monitors = calloc(d->n, sizeof *set->monitors)))
        return api_fail_oom(&x->problem);
    for (; set->n < d->n; set->n++)
        set->monitors[set->n] =
            (struct api_known){.name = d->replacements[set->n].name,
                               .revision = 1,
                               .config = api_config_hold(d->replacements[set->n].config)};
    qsort(set->monitors, set->n, sizeof *set->monitors, api_known_compare);
    for (size_t at = 0, size; at < d->columns.size; at += size + 1) {
        size = strlen(d->columns.data + at);
        if (!api_labels_add(&set->left_out, d->columns.data + at, size, true))
            return api_fail_oom(&x->problem);
    }
    return true;
}

/* ---- The current table */

/* Appends the name of column i to a list that has room for the first three: "…" stands for all others. */
static void list_name(char *list, size_t size, size_t i, const char *name)
{
    enum { LISTED = 3 };
    size_t used = strlen(list);
    if (i < LISTED)
        snprintf(list + used, size - used, "%s'%.40s'", i > 0 ? ", " : "", name);
    else if (i == LISTED)
        snprintf(list + used, size - used, " …");
}

static bool fail_without_columns(struct comparing *c, const struct api_table *table)
{
    char expected[200] = "", found[200] = "";
    for (size_t i = 0; i < c->reference.n; i++)
        list_name(expected, sizeof expected, i, c->reference.replacements[i].name);
    for (size_t i = 0; i < table->n_columns; i++)
        list_name(found, sizeof found, i, table->columns[i].name);
    return api_fail(&c->current.x->problem, "columns_unknown",
                    "the tables have no column in common: the reference has %s, this one %s",
                    expected, found);
}

static bool observe_columns(struct comparing *c, const struct api_table *table)
{
    struct api_observations *o = &c->current;
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct api_column *column = &table->columns[i];
        const struct api_known *known = api_known_find(o->x->known, column->name);
        if (known && column->flaws & API_NESTED) {
            api_warn(&o->warnings, "values_nested", column->name, 0, 0, api_nested_message);
            continue;
        }
        api_warn_of_name(&o->warnings, column);
        if (known && !api_observe_column(o, known, i))
            return false;
        if (!*column->name)
            api_warn_of_unknown(&o->warnings, "");
        else if (!known && !api_known_leaves_out(o->x->known, column->name))
            api_warn(&o->warnings, "column_unknown", column->name, 0, 0,
                     "the reference has no such column");
    }
    if (o->n == 0)
        return fail_without_columns(c, table);
    api_warn_of_absent(o->x, table, o->n, "the current table has no such column", &o->warnings);
    return true;
}

static bool read_current(struct api_exchange *x)
{
    struct comparing *c = x->state;
    struct api_table table;
    c->current.x = x;
    c->current.warnings.budget = x->service->budget;
    if (!open_part(x, parts[1], &table))
        return false;
    bool good = api_observe_begin(&c->current, table.n_columns) && observe_columns(c, &table) &&
                api_count_values(&c->current, &table);
    api_table_free(&table);
    size_t n = 0;
    for (size_t i = 0; good && i < c->current.n; i++)
        n += api_observed_count(&c->current.observed[i]);
    if (good && n == 0)
        good = api_fail(&x->problem, "observations_empty", "the table has no rows");
    return good ? api_snapshot_columns(&c->current) : fail_of(parts[1], &x->problem);
}

static enum api_outcome parse(struct api_exchange *x)
{
    const struct comparing *c = x->state;
    bool good = read_query(x) &&
                api_table_check_parts(api_request_header(&x->request, "Content-Type"),
                                      x->request.body, x->request.body_size, parts, &x->problem) &&
                read_reference(x) && check_bins(x) && know(x) && read_current(x);
    x->cost_ns = good ? api_results_ns(&c->current) : 0;
    return api_outcome_of(good);
}

/* ---- Response */

static bool write_response(struct api_exchange *x)
{
    const struct comparing *c = x->state;
    const struct api_observations *o = &c->current;
    struct api_buffer *out = api_begin_json(x);
    api_append_text(out, "{\"columns\":[");
    for (size_t i = 0; i < o->n; i++) {
        if (x->stop && atomic_load(x->stop))
            return api_fail(&x->problem, "client_left", "the client closed its side");
        api_append_text(out, i ? ",{" : "{");
        api_write_json(out, "'name':%s,", o->observed[i].known->name);
        api_snapshot_write(o->observed[i].snapshot, true, &o->observed[i].unseen, out);
        api_append_text(out, "}");
    }
    api_append_text(out, "],\"warnings\":[");
    api_append(out, c->reference.warnings.data, c->reference.warnings.size);
    api_append_text(out, c->reference.warnings.size && o->warnings.size ? "," : "");
    api_append(out, o->warnings.data, o->warnings.size);
    api_append_text(out, "]}\n");
    return true;
}

const struct api_steps api_compare_tables = {.max_body = API_WHOLE_BODY,
                                             .state = sizeof(struct comparing),
                                             .check = check,
                                             .estimate = estimate,
                                             .parse = parse,
                                             .write = write_response,
                                             .drop = drop};
