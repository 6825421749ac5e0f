/* PUT of a group or a monitor, and the steps of POST reference: monitors are made and replaced. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/format.h"
#include "api/monitors/model/settings_query.h"
#include "api/monitors/state/metrics.h"
#include "api/monitors/state/window_rows.h"

#include "api/body.h"
#include "api/monitors/http/references.h"
#include "api/monitors/http/request.h"
#include "api/response.h"
#include "api/text/json_load.h"
#include "api/text/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct put {
    struct api_store_job job;
    struct api_exchange *x;
    struct api_buffer inflated;
    struct api_references references;
    bool is_read, promotes;
    bool is_dry;      /* true if nothing is to be stored: the client wants to see what would be */
    int64_t from, to; /* starts of the windows that become the reference */
};

void api_put_end(struct api_exchange *x)
{
    struct put *d = x->state;
    api_references_free(&d->references);
    api_buffer_free(&d->inflated);
    free(d);
}

bool api_put_begin(struct api_exchange *x) { return api_check_names(x) && api_check_body(x); }

bool api_promote_windows_begin(struct api_exchange *x)
{
    return api_check_names(x) && api_check_may_exist(x) && api_check_body(x);
}

/* ---- Body */

/* Checks the names of members beside a table, also where it has no column that needs them. */
static bool check_members(const json_t *members, struct api_problem *problem)
{
    static const char *const known[] = {"columns", "rows", "annotations", NULL};
    struct api_monitor_settings ignored;
    api_settings_init(&ignored);
    return api_settings_from_json(&ignored, members, known, problem);
}

/* Adds the settings of the query to the members, and reads dry_run. */
static bool read_query(struct put *d, json_t *members)
{
    static const char *const known[] = {"dry_run", NULL};
    struct api_exchange *x = d->x;
    json_t *others = api_settings_from_query(members, x->request.query, known, &x->problem);
    bool good = others != NULL;
    const char *dry = json_string_value(json_object_get(others, "dry_run"));
    d->is_dry = dry && strcmp(dry, "true") == 0;
    if (good && dry && !d->is_dry && strcmp(dry, "false") != 0)
        good = api_fail_at(&x->problem, API_QUERY, "dry_run", "option_invalid",
                           "dry_run must be true or false");
    json_decref(others);
    return good;
}

/* Checks labels that the body has. Those of a store of before they had a limit may stay: PUT takes what
 * GET gives. */
static bool check_labels(struct put *d)
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

static bool read_members(struct put *d, struct api_table *table, json_t *members)
{
    struct api_exchange *x = d->x;
    const char *name = api_name_of(x), *group = api_group_of(x);
    if (!read_query(d, members))
        return false;
    if (name)
        return api_reference_read(&d->references, table, group, name, members, &x->problem) &&
               check_labels(d);
    if (!check_members(members, &x->problem))
        return false;
    json_object_del(members, "columns");
    json_object_del(members, "rows");
    return api_references_read(&d->references, table, group, members, &x->problem);
}

static bool read_table(struct put *d)
{
    struct api_exchange *x = d->x;
    struct api_table table;
    if (!api_open_table(x, &table))
        return false;
    json_t *members = table.members ? json_incref(table.members) : json_object();
    bool good = members ? read_members(d, &table, members) : api_fail_oom(&x->problem);
    json_decref(members);
    api_table_free(&table);
    if (good && d->references.n == 0)
        return api_fail(&x->problem, "reference_empty", "no column has both a name and a value");
    return good;
}

/* ---- The range of POST reference */

static bool read_bound(const json_t *root, const char *name, int64_t *time,
                       struct api_problem *problem)
{
    char pointer[20];
    const json_t *value = api_json_unboxed(json_object_get(root, name));
    snprintf(pointer, sizeof pointer, "#/%s", name);
    if (json_is_string(value)
            ? api_time_parse(json_string_value(value), time)
            : json_is_number(value) && api_time_from_seconds(json_number_value(value), time))
        return true;
    return api_fail_at(problem, API_BODY, pointer, "timestamp_invalid",
                       "%s must be a time of RFC 3339 with its zone, or seconds since 1970", name);
}

/* Reads the body of POST reference, {"from": TIME, "to": TIME}. */
static bool read_range(struct put *d)
{
    struct api_exchange *x = d->x;
    struct api_json json = {.budget = x->service->budget};
    const char *text = api_json_skip_mark(x->request.body);
    size_t size = x->request.body_size - (size_t)(text - x->request.body);
    bool good = api_json_load(&json, text, size);
    if (!good && json.out_of_memory)
        api_fail_oom(&x->problem);
    else if (!good)
        api_fail(&x->problem, "json_malformed", "line %d, column %d: %s", json.error.line,
                 json.error.column, json.error.text);
    if (good && (!json_is_object(json.root) || json_object_size(json.root) != 2))
        good = api_fail_at(&x->problem, API_BODY, "#", "option_invalid",
                           "the body must be {\"from\": TIME, \"to\": TIME}");
    good = good && read_bound(json.root, "from", &d->from, &x->problem) &&
           read_bound(json.root, "to", &d->to, &x->problem);
    api_json_free(&json);
    return good;
}

/* ---- Room for the response */

/* Bytes of the response, at most. */
static size_t response_size(const struct put *d)
{
    enum { OVERHEAD = 200, ESCAPE_FACTOR = 6 };
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
static bool reserve_response(const struct put *d, struct api_problem *problem)
{
    return api_buffer_reserve(&d->x->response.body, response_size(d)) || api_fail_oom(problem);
}

/* ---- In the store's thread */

/* Adds up the counts of closed windows that start at `from` or later, and before `to`. */
static bool read_windows(const struct put *d, struct api_monitors *monitors,
                         const struct api_monitor *monitor, double *counts,
                         struct api_problem *problem)
{
    const struct api_datum between[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                        API_INTEGER(d->from), API_INTEGER(d->to)};
    size_t n_bins = monitor->config->bins.n_bins;
    double n = 0;
    if (!api_counts_run(counts, n_bins, monitors->store, API_SQL_COUNTS_BETWEEN, between))
        return false;
    for (size_t i = 0; i < n_bins; i++)
        n += counts[i];
    return n > 0 || api_fail(problem, "windows_missing",
                             "no closed window of this revision starts between from and to");
}

/* Makes the config that has these counts as its reference; NULL with a problem. */
static struct api_config *load_promoted(const struct api_monitors *monitors,
                                        const struct api_config *old, double *counts,
                                        struct api_problem *problem)
{
    struct api_buffer text = {0};
    const struct api_weights weights = {.form = API_COUNTS, .values = counts};
    struct api_config *config = NULL;
    api_append_text(&text, "{\"bins\":");
    api_bins_write(&old->bins, &text);
    api_append_text(&text, ",\"reference\":");
    api_weights_write(&weights, &old->bins, &text);
    api_append(&text, "}", 2);
    if (!text.failed)
        config = api_config_load(text.data, old->others, monitors->budget, problem);
    else
        api_fail_oom(problem);
    api_buffer_free(&text);
    return config;
}

/* Makes the config of which closed windows are the reference. */
static bool promote(struct put *d, struct api_monitors *monitors)
{
    struct api_problem *problem = &d->job.problem;
    struct api_replacement *r = d->references.replacements;
    const struct api_monitor *monitor = api_monitor_of(d->x, monitors, problem);
    double *counts = monitor ? calloc(monitor->config->bins.n_bins, sizeof *counts) : NULL;
    if (!counts)
        return monitor && api_fail_oom(problem);
    bool good = read_windows(d, monitors, monitor, counts, problem);
    api_config_release(r->config);
    r->config = good ? load_promoted(monitors, monitor->config, counts, problem) : NULL;
    free(counts);
    return r->config &&
           api_config_retain(r->config, monitors->budget, api_monitor_size(r->group, r->name),
                             false, problem) &&
           reserve_response(d, problem);
}

static bool run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct put *d = (struct put *)job;
    return (!d->promotes || api_find_monitor(d->x, &job->problem)) &&
           api_check_conditions(d->x, monitors, &job->problem) &&
           (!d->promotes || promote(d, monitors)) &&
           api_replace(monitors, d->references.replacements, d->references.n, &job->problem);
}

static bool dry_run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct put *d = (struct put *)job;
    return api_check_conditions(d->x, monitors, &job->problem) &&
           api_replace_dry_run(monitors, d->references.replacements, d->references.n,
                               &job->problem);
}

static bool read_back(struct api_store_job *job, struct api_monitors *monitors)
{
    struct put *d = (struct put *)job;
    return api_replace_after_windows(monitors, d->references.replacements, d->references.n);
}

static void publish(struct api_store_job *job, struct api_monitors *monitors)
{
    struct put *d = (struct put *)job;
    api_replace_publish(monitors, d->references.replacements, d->references.n);
}

/* ---- Steps */

/* Reserves the one replacement of a monitor whose reference is made of windows. */
static bool add_promoted(struct put *d)
{
    struct api_replacement *r = calloc(1, sizeof *r);
    char *name = strdup(api_name_of(d->x));
    if (!r || !name) {
        free(r);
        free(name);
        return api_fail_oom(&d->x->problem);
    }
    *r = (struct api_replacement){.group = api_group_of(d->x), .name = name};
    d->references.replacements = r;
    d->references.n = 1;
    return true;
}

static bool read_body(struct put *d, double max_ns)
{
    struct api_exchange *x = d->x;
    if (!api_body_undo_coding(x, &d->inflated, max_ns))
        return false;
    if (x->cost_ns <= max_ns)
        x->cost_ns = 3 * api_table_cost(x);
    if (x->cost_ns > max_ns)
        return true;
    if (!(d->promotes ? read_range(d) && add_promoted(d) : read_table(d)))
        return false;
    d->is_read = true;
    if (d->is_dry)
        d->job = (struct api_store_job){.run = dry_run};
    else
        d->job = (struct api_store_job){
            .exclusive = true, .run = run, .read_back = read_back, .publish = publish};
    x->work = &d->job;
    return reserve_response(d, &x->problem);
}

static bool prepare(struct api_exchange *x, bool promotes, double max_ns)
{
    struct put *d = api_request_state(x, sizeof *d);
    if (!d)
        return false;
    d->x = x;
    d->promotes = promotes;
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

bool api_put_prepare(struct api_exchange *x, double max_ns) { return prepare(x, false, max_ns); }

bool api_promote_windows_prepare(struct api_exchange *x, double max_ns)
{
    return prepare(x, true, max_ns);
}

static void write_replaced(const struct put *d, size_t i, const struct api_buffer *warnings,
                           struct api_buffer *out)
{
    const struct api_replacement *r = &d->references.replacements[i];
    api_config_write(r->config, r->group, r->name, r->state, r->revision, warnings, out);
}

static void write_group(const struct put *d, struct api_buffer *out)
{
    api_write_names(out, api_group_of(d->x), NULL);
    api_append_text(out, ",\"monitors\":[");
    for (size_t i = 0; i < d->references.n; i++) {
        api_append(out, ",", i > 0);
        write_replaced(d, i, NULL, out);
    }
    api_append_text(out, "],\"warnings\":[");
    api_append(out, d->references.warnings.data, d->references.warnings.size);
    api_append_text(out, "]}\n");
}

bool api_put(struct api_exchange *x)
{
    const struct put *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    bool is_new = false;
    for (size_t i = 0; i < d->references.n; i++)
        is_new |= r[i].is_new;
    x->response.status = is_new && !d->is_dry ? 201 : 200;
    api_begin_json(x);
    if (!api_name_of(x)) {
        write_group(d, &x->response.body);
        return true;
    }
    const struct api_buffer *warnings = &d->references.warnings;
    write_replaced(d, 0, warnings->size > 0 ? warnings : NULL, &x->response.body);
    api_append_text(&x->response.body, "\n");
    if (d->is_dry)
        return true;
    api_monitor_etag(r->id, r->version, x->response.header_text);
    api_response_header(&x->response, "ETag", x->response.header_text);
    return true;
}
