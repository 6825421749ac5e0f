/* PUT of a group or a monitor, and the steps of all that makes or replaces monitors. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/rows/columns.h"

#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"
#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <stdlib.h>
#include <string.h>

void api_replacing_drop(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    api_references_free(&d->references);
    api_replay_free(&d->replay);
    api_buffer_free(&d->columns);
    json_decref(d->parameters);
}

struct api_replacing *api_replacing_init(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    d->references.stop = x->stop;
    d->references.budget = x->service->budget;
    d->references.warnings.budget = d->columns.budget = x->service->budget;
    return d;
}

static bool check(struct api_exchange *x) { return api_check_names(x) && api_check_body(x); }

/* ---- Body */

/* Checks the names of members beside a table, also where it has no column that needs them. */
static bool check_members(struct api_exchange *x, const json_t *members)
{
    const struct api_replacing *d = x->state;
    struct api_monitor_settings ignored = d->references.settings;
    return api_settings_from_json(&ignored, members, API_NAMES("columns", "rows", "annotations"),
                                  &x->problem) ||
           api_fail_of_members(members, &x->problem);
}

bool api_replacing_read_dry(struct api_exchange *x, const json_t *parameters)
{
    struct api_replacing *d = x->state;
    const char *dry = json_string_value(json_object_get(parameters, "dry_run"));
    d->is_dry = dry && strcmp(dry, "true") == 0;
    if (d->is_dry)
        x->place = API_STORE_READS;
    return !dry || d->is_dry || strcmp(dry, "false") == 0 ||
           api_fail_at(&x->problem, API_QUERY, "dry_run", "option_invalid",
                       "dry_run must be true or false");
}

/* Says how history is loaded, if a group is to be made with `time`. */
static void explain_time(struct api_exchange *x)
{
    if (api_name_of(x) || !x->problem.code || strcmp(x->problem.code, "option_unknown") != 0 ||
        strcmp(x->problem.location, "time") != 0)
        return;
    x->problem = (struct api_problem){0};
    api_fail_at(&x->problem, API_QUERY, "time", "option_unknown",
                "a reference takes no 'time': PUT the table to /monitors/{group}?exclude=COLUMN, "
                "then POST it to /monitors/{group}/observations?time=COLUMN");
}

/* Reads settings, dry_run, and the names of columns of a group. *parameters holds the parameters that are no
 * settings; the names point into it. */
static bool read_query(struct api_exchange *x, json_t **parameters)
{
    static const char *const known[] = {"include", "exclude", "dry_run", NULL};
    struct api_replacing *d = x->state;
    api_settings_init(&d->references.settings);
    *parameters = api_settings_from_query(&d->references.settings, x->request.query,
                                          known + (api_name_of(x) ? 2 : 0), &x->problem);
    d->references.include = json_string_value(json_object_get(*parameters, "include"));
    d->references.exclude = json_string_value(json_object_get(*parameters, "exclude"));
    explain_time(x);
    return *parameters && api_replacing_read_dry(x, *parameters);
}

static bool read_members(struct api_exchange *x, struct api_table *table, json_t *members)
{
    struct api_references *references = &((struct api_replacing *)x->state)->references;
    const char *name = api_name_of(x);
    struct api_problem *labels = &((struct api_replacing *)x->state)->problem;
    if (name) {
        bool good = api_reference_read(references, table, name, members, &x->problem);
        if (good)
            api_bins_check(&references->replacements->config->bins, labels);
        return good;
    }
    return check_members(x, members) &&
           api_references_read(references, table, members, NULL, &x->problem);
}

/* Notes the columns of a table for which nobody wants a monitor, so that they are no news in observations. */
static bool note_left_out(struct api_exchange *x, const struct api_table *table)
{
    struct api_replacing *d = x->state;
    struct api_problem ignored = {0};
    bool *has = calloc(table->n_columns + 1, sizeof *has);
    size_t column;
    if (!has)
        return api_fail_oom(&x->problem);
    for (size_t i = 0; i < d->references.n; i++) {
        const char *name = d->references.replacements[i].name;
        if (api_names_find(&table->names, name, strlen(name), &column))
            has[column] = true;
    }
    for (size_t i = 0; i < table->n_columns; i++)
        if (!has[i] && api_name_check("monitor", table->columns[i].name, &ignored))
            api_columns_add(&d->columns, table->columns[i].name);
    free(has);
    return !d->columns.failed || api_fail_oom(&x->problem);
}

static bool read_table(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    struct api_table table;
    if (!api_open_table(x, &table))
        return false;
    json_t *parameters = NULL;
    ((struct api_replacing *)x->state)->references.warns_of_reset = table.has_values;
    bool good = read_query(x, &parameters) && read_members(x, &table, table.members) &&
                (api_name_of(x) || note_left_out(x, &table));
    json_decref(parameters);
    bool has_values = table.has_values;
    api_table_free(&table);
    if (!good || d->references.n > 0)
        return good;
    const struct api_buffer *left_out = &d->references.left_out;
    if (left_out->size > 0)
        return api_fail(
            &x->problem, "reference_empty",
            "no column gets a monitor: %.*s; ?include= names columns that shall have one",
            (int)left_out->size, left_out->data);
    return api_fail(&x->problem, "reference_empty",
                    has_values ? "the table has no columns"
                               : "the body has neither columns nor rows: a table is {\"columns\": "
                                 "{NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
}

static enum api_outcome parse(struct api_exchange *x)
{
    api_replacing_init(x);
    return api_outcome_of(read_table(x));
}

/* ---- Response */

static void write_replaced(const struct api_replacing *d, const char *group, size_t i,
                           struct api_buffer *out)
{
    const struct api_replacement *r = &d->references.replacements[i];
    api_config_write(r->config->definition, r->config->others, group, r->name, &r->state,
                     r->revision, out);
}

static void write_preview(const struct api_replacing *d, bool single, struct api_buffer *out)
{
    if (!d->is_dry || !d->previews)
        return;
    api_append_text(out, ",\"preview\":");
    if (single)
        api_replay_write(&d->replay, out);
    else
        api_append(out, "null", 4);
}

static void write_group(const struct api_replacing *d, const char *group, struct api_buffer *out)
{
    api_write_names(out, group, NULL);
    api_append_text(out, ",\"monitors\":[");
    for (size_t i = 0; i < d->references.n; i++) {
        api_append(out, ",", i > 0);
        write_replaced(d, group, i, out);
        api_append(out, "}", 1);
    }
    api_append(out, "]", 1);
}

/* Writes the body: of a change within its transaction, so that none is stored whose response does not fit into memory. */
static bool write_body(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    const char *name = api_name_of(x);
    struct api_buffer *out = &x->response.body;
    out->size = 0;
    if (name)
        write_replaced(d, api_group_of(x), 0, out);
    else
        write_group(d, api_group_of(x), out);
    if (!name || d->references.warnings.size > 0)
        api_write_warnings(&d->references.warnings, out);
    write_preview(d, name != NULL, out);
    api_append_text(out, "}\n");
    return !out->failed || api_fail_oom(&x->problem);
}

/* ---- In the store's thread */

/* Replays the windows of the one monitor of the path with its new settings. */
static bool preview(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    return monitor &&
           api_replay_windows(monitors, monitor, d->references.replacements->config, &d->replay);
}

bool api_replacing_store(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    struct api_references *references = &d->references;
    struct api_monitor *monitor = NULL;
    if ((api_name_of(x) && !api_touch_named(monitors, api_group_of(x), api_name_of(x), &monitor)) ||
        !api_check_conditions(x, monitor) ||
        !api_change_configs(monitors, api_group_of(x), references->replacements, references->n,
                            d->is_dry, &x->problem))
        return false;
    size_t size = 0;
    for (size_t i = 0; i < references->n; i++) {
        const struct api_replacement *r = &references->replacements[i];
        size += strlen(r->config->definition) + strlen(r->config->others);
        api_warn_of_change(references, r);
    }
    x->cost_ns = (double)size; /* a nanosecond a byte */
    if (d->is_dry)
        return !d->previews || !api_name_of(x) || preview(x, monitors);
    return write_body(x);
}

static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    const char *group = api_group_of(x);
    const struct api_replacement *r = d->references.replacements;
    if (d->n_warnings == 0)
        d->n_warnings = d->references.warnings.size + 1;
    d->references.warnings.size = d->n_warnings - 1;
    if (!api_replacing_store(x, monitors))
        return API_FAILED;
    if (d->problem.code &&
        (r->is_new || r->revises)) { /* labels of before they had a limit may stay */
        x->problem = d->problem;
        return API_FAILED;
    }
    return api_outcome_of(
        d->is_dry || api_name_of(x) ||
        (api_columns_leave_out(monitors, group, &d->columns) && api_columns_prune(monitors)));
}

bool api_replacing_write(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    bool is_new = false;
    for (size_t i = 0; i < d->references.n; i++)
        is_new |= r[i].is_new;
    x->response.status = is_new && !d->is_dry ? 201 : 200;
    api_begin_json(x);
    if (d->is_dry)
        return write_body(x);
    if (!api_name_of(x))
        return true;
    api_monitor_etag(r->id, r->version, x->response.header_text);
    api_response_header(&x->response, "ETag", x->response.header_text);
    return true;
}

const struct api_steps api_put = {.max_body = API_WHOLE_BODY,
                                  .check = check,
                                  .estimate = api_estimate_documents,
                                  .parse = parse,
                                  .run = run,
                                  API_REPLACES};
