/* PUT of a group or a monitor, and the steps of all that makes or replaces monitors. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/state/group_rows.h"

#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"
#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <stdlib.h>
#include <string.h>

void api_replacing_drop(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    api_history_free(d);
    api_references_free(&d->references);
    api_replay_free(&d->replay);
    api_buffer_free(&d->columns);
    api_named_free(&d->renewed, x->service->budget);
}

struct api_replacing *api_replacing_init(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    d->references.stop = x->stop;
    d->references.monitors = x->service->monitors;
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

/* Reads settings, dry_run, and the names of columns of a group. *parameters holds the parameters that are no
 * settings; the names point into it. */
static bool read_query(struct api_exchange *x, json_t **parameters)
{
    static const char *const known[] = {"include", "exclude", "time", "dry_run", NULL};
    struct api_replacing *d = x->state;
    api_settings_init(&d->references.settings);
    *parameters = api_settings_from_query(&d->references.settings, x->request.query,
                                          known + (api_name_of(x) ? 3 : 0), &x->problem);
    d->references.include = json_string_value(json_object_get(*parameters, "include"));
    d->references.exclude = json_string_value(json_object_get(*parameters, "exclude"));
    d->references.time = json_string_value(json_object_get(*parameters, "time"));
    return *parameters && api_replacing_read_dry(x, *parameters);
}

/* Checks labels that the body has. Labels that were stored before they had a limit may stay, so that PUT takes the
 * response of GET. */
static bool check_labels(struct api_exchange *x, const struct api_config *config)
{
    struct api_problem problem = {0};
    if (api_bins_check(&config->bins, &problem))
        return true;
    struct api_config *known =
        api_hold_monitor(x->service->monitors, api_group_of(x), api_name_of(x)).config;
    bool same = known && strcmp(known->definition, config->definition) == 0;
    api_config_release(known);
    if (!same)
        x->problem = problem;
    return same;
}

static bool read_members(struct api_exchange *x, struct api_table *table, json_t *members)
{
    struct api_references *references = &((struct api_replacing *)x->state)->references;
    const char *name = api_name_of(x), *group = api_group_of(x);
    if (name)
        return api_reference_read(references, table, group, name, members, &x->problem) &&
               check_labels(x, references->replacements->config);
    return check_members(x, members) &&
           api_references_read(references, table, group, members, &x->problem);
}

/* Notes the columns of a table for which nobody wants a monitor, so that they are no news in observations. */
static void note_left_out(struct api_exchange *x, const struct api_table *table)
{
    struct api_replacing *d = x->state;
    struct api_registry *registry = &x->service->monitors->registry;
    const char *group = api_group_of(x);
    struct api_problem ignored = {0};
    bool *has = calloc(table->n_columns + 1, sizeof *has);
    size_t column;
    for (size_t i = 0; has && i < d->references.n; i++) {
        const char *name = d->references.replacements[i].name;
        if (api_names_find(&table->names, name, strlen(name), &column))
            has[column] = true;
    }
    pthread_rwlock_rdlock(&registry->lock);
    for (size_t i = 0; has && i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        const struct api_column_of *known = api_columns_find(&registry->columns, group, name);
        d->renews_columns |= known && has[i];
        if (!has[i] && !(known && known->left_out) && !api_registry_find(registry, group, name) &&
            api_name_check("monitor", name, &ignored))
            api_columns_add(&d->columns, group, name, true, 0);
    }
    pthread_rwlock_unlock(&registry->lock);
    d->renews_columns |= d->columns.size > 0;
    free(has);
}

static bool read_table(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    struct api_table table;
    if (!api_open_table(x, &table))
        return false;
    json_t *parameters = NULL;
    bool good = read_query(x, &parameters) && read_members(x, &table, table.members) &&
                (!d->references.time || api_history_read(x, &table, parameters));
    json_decref(parameters);
    bool has_values = table.has_values;
    if (good && !api_name_of(x))
        note_left_out(x, &table);
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
    return api_outcome_of(read_table(x) && api_replacing_reserve(x));
}

/* ---- Room for the response */

/* Bytes of the response, at most. */
static size_t response_size(const struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    enum { OVERHEAD = 200 + API_MONITOR_STATE_SIZE, ESCAPE_FACTOR = 6 };
    size_t size = OVERHEAD + d->references.warnings.size + ESCAPE_FACTOR * strlen(api_group_of(x));
    for (size_t i = 0; i < d->references.n; i++) {
        const struct api_replacement *r = &d->references.replacements[i];
        size += OVERHEAD + ESCAPE_FACTOR * (strlen(r->group) + strlen(r->name));
        if (r->config)
            size += strlen(r->config->definition) + strlen(r->config->others);
    }
    return size;
}

bool api_replacing_reserve(struct api_exchange *x)
{
    return api_reserve_response(x, response_size(x));
}

/* ---- In the store's thread */

bool api_replacing_store(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    return d->is_dry ||
           api_replace(monitors, d->references.replacements, d->references.n, &x->problem);
}

static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    d->renews_columns &= !d->is_dry;
    return api_outcome_of(
        api_check_conditions(x) && api_history_check(x, monitors) &&
        api_replacing_store(x, monitors) &&
        (!d->renews_columns || api_columns_renew(monitors, &d->columns, &d->renewed)));
}

/* Replays the windows of the one monitor of the path with its new settings. */
static bool preview(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    return api_replay_windows(monitors, api_registry_find(&monitors->registry, r->group, r->name),
                              r->config, &d->replay);
}

static bool dry_run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    return api_replace_dry_run(monitors, d->references.replacements, d->references.n,
                               &x->problem) &&
           (!d->previews || !api_name_of(x) || preview(x, monitors));
}

bool api_replacing_read_back(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    x->cost_ns = (double)response_size(x); /* a nanosecond a byte */
    return d->is_dry
               ? dry_run(x, monitors)
               : api_replace_after_windows(monitors, d->references.replacements, d->references.n) &&
                     api_history_store(x, monitors);
}

void api_replacing_publish(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    if (!d->is_dry)
        api_replace_publish(monitors, d->references.replacements, d->references.n);
    if (d->renews_columns)
        api_named_move(&monitors->registry.columns, &d->renewed, monitors->budget);
}

/* ---- Response */

static void write_replaced(const struct api_replacing *d, size_t i, struct api_buffer *out)
{
    const struct api_replacement *r = &d->references.replacements[i];
    api_config_write(r->config, r->group, r->name, &r->state, r->revision, out);
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
        write_replaced(d, i, out);
        api_append(out, "}", 1);
    }
    api_append(out, "]", 1);
    if (d->history.is_timed && !d->is_dry)
        api_timed_write(&d->history, out);
}

bool api_replacing_write(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    bool is_new = false;
    for (size_t i = 0; i < d->references.n; i++)
        is_new |= r[i].is_new;
    x->response.status = is_new && !d->is_dry ? 201 : 200;
    const char *name = api_name_of(x);
    struct api_buffer *out = api_begin_json(x);
    if (name)
        write_replaced(d, 0, out);
    else
        write_group(d, api_group_of(x), out);
    if (!name || d->references.warnings.size > 0)
        api_write_warnings(&d->references.warnings, out);
    write_preview(d, name != NULL, out);
    api_append_text(out, "}\n");
    if (!name || d->is_dry)
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
