/* PUT of a group or a monitor, and the steps of all that makes or replaces monitors. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/state/metrics.h"
#include "api/monitors/state/window_rows.h"

#include "api/json/json_load.h"
#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"
#include "api/monitors/http/request.h"
#include "api/request/body.h"
#include "api/request/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_put_end(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    api_references_free(&d->references);
    api_buffer_free(&d->inflated);
    api_replay_free(&d->replay);
    free(d);
}

bool api_put_begin(struct api_exchange *x) { return api_check_names(x) && api_check_body(x); }

/* ---- Body */

/* Checks the names of members beside a table, also where it has no column that needs them. */
static bool check_members(const struct api_replacing *d, const json_t *members)
{
    static const char *const known[] = {"columns", "rows", "annotations", NULL};
    struct api_monitor_settings ignored = d->references.settings;
    return api_settings_from_json(&ignored, members, known, &d->x->problem);
}

bool api_replacing_read_dry(struct api_replacing *d, const json_t *parameters)
{
    const char *dry = json_string_value(json_object_get(parameters, "dry_run"));
    d->is_dry = dry && strcmp(dry, "true") == 0;
    return !dry || d->is_dry || strcmp(dry, "false") == 0 ||
           api_fail_at(&d->x->problem, API_QUERY, "dry_run", "option_invalid",
                       "dry_run must be true or false");
}

/* Reads settings, dry_run, and the names of columns of a group. */
static bool read_query(struct api_replacing *d)
{
    static const char *const known[] = {"include", "exclude", "dry_run", NULL};
    struct api_exchange *x = d->x;
    api_settings_init(&d->references.settings);
    json_t *others = api_settings_from_query(&d->references.settings, x->request.query,
                                             known + (api_name_of(x) ? 2 : 0), &x->problem);
    bool good = others != NULL;
    d->parameters = others;
    d->references.include = json_string_value(json_object_get(others, "include"));
    d->references.exclude = json_string_value(json_object_get(others, "exclude"));
    return good && api_replacing_read_dry(d, others);
}

/* Checks labels that the body has. Those of a store of before they had a limit may stay: PUT takes what
 * GET gives. */
static bool check_labels(struct api_replacing *d)
{
    struct api_exchange *x = d->x;
    const struct api_config *config = d->references.replacements->config;
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

static bool read_members(struct api_replacing *d, struct api_table *table, json_t *members)
{
    struct api_exchange *x = d->x;
    const char *name = api_name_of(x), *group = api_group_of(x);
    if (!read_query(d))
        return false;
    if (name)
        return api_reference_read(&d->references, table, group, name, members, &x->problem) &&
               check_labels(d);
    if (!check_members(d, members))
        return false;
    return api_references_read(&d->references, table, group, members, &x->problem);
}

static bool read_table(struct api_replacing *d)
{
    struct api_exchange *x = d->x;
    struct api_table table;
    if (!api_open_table(x, &table))
        return false;
    json_t *members = table.members ? json_incref(table.members) : json_object();
    bool good = members ? read_members(d, &table, members) : api_fail_oom(&x->problem);
    json_decref(members);
    json_decref(d->parameters);
    d->parameters = NULL;
    bool has_values = table.has_values;
    api_table_free(&table);
    if (good && d->references.n == 0)
        return api_fail(&x->problem, "reference_empty",
                        has_values
                            ? "no column has both a name and a value that makes a monitor"
                            : "the body has neither columns nor rows: a table is "
                              "{\"columns\": {NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
    return good;
}

/* ---- Room for the response */

/* Bytes of the response, at most. */
static size_t response_size(const struct api_replacing *d)
{
    enum { OVERHEAD = 60 + API_STANDING_SIZE, ESCAPE_FACTOR = 6 };
    size_t size =
        OVERHEAD + d->references.warnings.size + ESCAPE_FACTOR * strlen(api_group_of(d->x));
    for (size_t i = 0; i < d->references.n; i++) {
        const struct api_replacement *r = &d->references.replacements[i];
        size += OVERHEAD + ESCAPE_FACTOR * (strlen(r->group) + strlen(r->name));
        if (r->config)
            size += strlen(r->config->definition) + strlen(r->config->others);
    }
    return size;
}

/* Makes room for the response before anything is stored: what is stored is not refused for memory. */
bool api_replacing_reserve(const struct api_replacing *d, struct api_problem *problem)
{
    return api_buffer_reserve(&d->x->response.body, response_size(d)) || api_fail_oom(problem);
}

/* ---- In the store's thread */

/* Makes the replacements that are made of monitors, and checks the conditions. */
static bool make(struct api_replacing *d, struct api_monitors *monitors)
{
    return (!d->kind->make || api_find_monitor(d->x, &d->job.problem)) &&
           api_check_conditions(d->x, monitors, &d->job.problem) &&
           (!d->kind->make || d->kind->make(d, monitors));
}

static bool run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_replacing *d = (struct api_replacing *)job;
    return make(d, monitors) &&
           api_replace(monitors, d->references.replacements, d->references.n, &job->problem);
}

/* Replays the windows of the one monitor of the path by the settings that it would have. */
static bool preview(struct api_replacing *d, struct api_monitors *monitors)
{
    const struct api_replacement *r = d->references.replacements;
    return api_replay_windows(monitors, api_registry_find(&monitors->registry, r->group, r->name),
                              r->config, &d->replay, &d->job.problem);
}

static bool dry_run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_replacing *d = (struct api_replacing *)job;
    return make(d, monitors) &&
           api_replace_dry_run(monitors, d->references.replacements, d->references.n,
                               &job->problem) &&
           (!d->kind->previews || !api_name_of(d->x) || preview(d, monitors));
}

static bool read_back(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_replacing *d = (struct api_replacing *)job;
    return api_replace_after_windows(monitors, d->references.replacements, d->references.n);
}

static void publish(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_replacing *d = (struct api_replacing *)job;
    api_replace_publish(monitors, d->references.replacements, d->references.n);
}

/* ---- Steps */

static bool read_body(struct api_replacing *d, double max_ns)
{
    struct api_exchange *x = d->x;
    if (!api_body_undo_coding(x, &d->inflated, max_ns))
        return false;
    if (x->cost_ns <= max_ns)
        x->cost_ns = 3 * api_table_cost(x);
    if (x->cost_ns > max_ns)
        return true;
    if (!d->kind->read(d))
        return false;
    d->is_read = true;
    if (d->is_dry)
        d->job = (struct api_store_job){.is_concurrent = true, .read_back = dry_run};
    else
        d->job = (struct api_store_job){
            .exclusive = true, .run = run, .read_back = read_back, .publish = publish};
    x->work = &d->job;
    return api_replacing_reserve(d, &x->problem);
}

bool api_replacing_prepare(struct api_exchange *x, const struct api_replacing_kind *kind,
                           double max_ns)
{
    struct api_replacing *d = api_request_state(x, sizeof *d);
    if (!d)
        return false;
    d->x = x;
    d->kind = kind;
    d->references.stop = x->stop;
    d->references.monitors = x->service->monitors;
    d->inflated.budget = d->references.warnings.budget = x->service->budget;
    if (!d->is_read)
        return read_body(d, max_ns);
    if (api_job_finished(x, &d->job))
        x->is_stored = !x->problem.code && !d->is_dry;
    if (!x->work)
        x->cost_ns = (double)response_size(d); /* a nanosecond a byte */
    return !x->problem.code;
}

bool api_put_prepare(struct api_exchange *x, double max_ns)
{
    static const struct api_replacing_kind table = {.read = read_table};
    return api_replacing_prepare(x, &table, max_ns);
}

static void write_replaced(const struct api_replacing *d, size_t i, struct api_buffer *out)
{
    const struct api_replacement *r = &d->references.replacements[i];
    api_config_write(r->config, r->group, r->name, &r->standing, r->revision, out);
}

static void write_warnings(const struct api_replacing *d, struct api_buffer *out)
{
    api_append_text(out, ",\"warnings\":[");
    api_append(out, d->references.warnings.data, d->references.warnings.size);
    api_append(out, "]", 1);
}

static void write_preview(const struct api_replacing *d, struct api_buffer *out)
{
    if (!d->is_dry || !d->kind->previews)
        return;
    api_append_text(out, ",\"preview\":");
    if (api_name_of(d->x))
        api_replay_write(&d->replay, out);
    else
        api_append(out, "null", 4);
}

static void write_group(const struct api_replacing *d, struct api_buffer *out)
{
    api_write_names(out, api_group_of(d->x), NULL);
    api_append_text(out, ",\"monitors\":[");
    for (size_t i = 0; i < d->references.n; i++) {
        api_append(out, ",", i > 0);
        write_replaced(d, i, out);
        api_append(out, "}", 1);
    }
    api_append(out, "]", 1);
}

bool api_put(struct api_exchange *x)
{
    const struct api_replacing *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    bool is_new = false;
    for (size_t i = 0; i < d->references.n; i++)
        is_new |= r[i].is_new;
    x->response.status = is_new && !d->is_dry ? 201 : 200;
    api_begin_json(x);
    const char *name = api_name_of(x);
    struct api_buffer *out = &x->response.body;
    if (name)
        write_replaced(d, 0, out);
    else
        write_group(d, out);
    if (!name || d->references.warnings.size > 0)
        write_warnings(d, out);
    write_preview(d, out);
    api_append_text(out, "}\n");
    if (!name)
        return true;
    if (d->is_dry)
        return true;
    api_monitor_etag(r->id, r->version, x->response.header_text);
    api_response_header(&x->response, "ETag", x->response.header_text);
    return true;
}
