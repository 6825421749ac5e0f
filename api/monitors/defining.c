/* PUT of a group or a monitor, POST reference: monitors are made and replaced. */
#include "api/monitors/endpoints.h"

#include "api/body.h"
#include "api/monitors/intake.h"
#include "api/monitors/references.h"
#include "api/response.h"
#include "api/text/json_load.h"
#include "api/text/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct defining {
    struct api_work work;
    struct api_exchange *x;
    struct api_buffer inflated;
    struct api_references references;
    bool is_read, rebases;
    bool is_dry;      /* true if nothing is to be stored: the client wants to see what would be */
    int64_t from, to; /* of windows that become the reference */
};

void api_defining_end(struct api_exchange *x)
{
    struct defining *d = x->state;
    api_references_free(&d->references);
    api_buffer_free(&d->inflated);
    free(d);
}

bool api_defining_begin(struct api_exchange *x)
{
    return api_intake_names(x) && api_intake_body(x);
}

bool api_rebasing_begin(struct api_exchange *x)
{
    return api_intake_names(x) && api_intake_may_exist(x) && api_intake_body(x);
}

/* ---- Body */

/* Checks the names of members beside a table, also where it has no column that needs them. */
static bool check_members(const json_t *members, struct api_problem *problem)
{
    static const char *const known[] = {"columns", "rows", "annotations", NULL};
    struct api_settings ignored;
    api_settings_init(&ignored);
    return api_settings_from_json(&ignored, members, known, problem);
}

/* Adds the settings of the query to the members, and reads dry_run. */
static bool read_query(struct defining *d, json_t *members)
{
    static const char *const known[] = {"dry_run", NULL};
    struct api_exchange *x = d->x;
    json_t *others = json_object();
    bool good = others || api_fail_oom(&x->problem);
    good = good && api_settings_from_query(members, x->request.query, known, others, &x->problem);
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
static bool check_labels(struct defining *d)
{
    struct api_exchange *x = d->x;
    const struct api_config *config = d->references.replacements->config;
    struct api_problem problem = {0};
    int64_t id, revision;
    if (api_bins_check(&config->bins, &problem))
        return true;
    struct api_config *known =
        api_intake_config(x->service->monitors, api_group_of(x), api_name_of(x), &id, &revision);
    bool same = known && strcmp(known->definition, config->definition) == 0;
    api_config_release(known);
    if (!same)
        x->problem = problem;
    return same;
}

static bool read_members(struct defining *d, struct api_table *table, json_t *members)
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

static bool read_table(struct defining *d)
{
    struct api_exchange *x = d->x;
    struct api_table table;
    if (!api_intake_open(x, &table))
        return false;
    json_t *members = table.members ? json_incref(table.members) : json_object();
    bool good = members ? read_members(d, &table, members) : api_fail_oom(&x->problem);
    json_decref(members);
    api_table_free(&table);
    if (good && d->references.n == 0)
        return api_fail(&x->problem, "reference_empty",
                        "no column has a name and a value, so that there is nothing to monitor");
    return good;
}

static bool read_bound(const json_t *root, const char *name, int64_t *time,
                       struct api_problem *problem)
{
    char place[20];
    const json_t *value = api_json_unboxed(json_object_get(root, name));
    snprintf(place, sizeof place, "#/%s", name);
    if (json_is_string(value)
            ? api_time_parse(json_string_value(value), time)
            : json_is_number(value) && api_time_from_seconds(json_number_value(value), time))
        return true;
    return api_fail_at(problem, API_BODY, place, "timestamp_invalid",
                       "%s must be a time of RFC 3339 with its zone, or seconds since 1970", name);
}

/* Reads {"from", "to"}. */
static bool read_range(struct defining *d)
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

/* ---- Room for the answer */

/* Bytes of the answer, at most. */
static size_t response_size(const struct defining *d)
{
    enum { BESIDE = 200, ESCAPED = 6 };
    size_t size = BESIDE + d->references.warnings.size + ESCAPED * strlen(api_group_of(d->x));
    for (size_t i = 0; i < d->references.n; i++) {
        const struct api_replacement *r = &d->references.replacements[i];
        size += BESIDE + ESCAPED * (strlen(r->group) + strlen(r->name));
        if (r->config)
            size += strlen(r->config->definition) + strlen(r->config->others);
    }
    return size;
}

/* Makes room for the answer before anything is stored: what is stored is not refused for memory. */
static bool reserve_response(const struct defining *d, struct api_problem *problem)
{
    return api_buffer_reserve(&d->x->response.body, response_size(d)) || api_fail_oom(problem);
}

/* ---- In the store's thread */

static struct defining *defining_of(struct api_work *work) { return (struct defining *)work; }

/* Makes the config that has the counts of closed windows as its reference. */
static struct api_config *rebase(struct defining *d, const struct api_monitors *monitors,
                                 const struct api_config *old, const double *counts)
{
    struct api_buffer text = {0};
    struct api_weights weights = {.n = 0};
    struct api_config *config = NULL;
    if (api_weights_of_counts(&weights, counts, old->bins.places)) {
        api_append_text(&text, "{\"bins\":");
        api_bins_write(&old->bins, &text);
        api_append_text(&text, ",\"reference\":");
        api_weights_write(&weights, &old->bins, &text);
        api_append(&text, "}", 2);
    }
    if (text.size > 0 && !text.failed)
        config = api_config_load(text.data, old->others, monitors->budget, &d->work.problem);
    else
        api_fail_oom(&d->work.problem);
    api_weights_free(&weights);
    api_buffer_free(&text);
    return config;
}

static bool read_windows(struct defining *d, struct api_monitors *monitors,
                         const struct api_monitor *monitor, double *counts)
{
    const struct api_datum between[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                        API_INTEGER(d->from), API_INTEGER(d->to)};
    size_t places = monitor->config->bins.places;
    double n = 0;
    if (!api_counts_run(counts, places, monitors->store, API_SQL_COUNTS_BETWEEN, between))
        return false;
    for (size_t i = 0; i < places; i++)
        n += counts[i];
    return n > 0 || api_fail(&d->work.problem, "windows_missing",
                             "no closed window of this revision starts between from and to");
}

static bool make_reference(struct defining *d, struct api_monitors *monitors)
{
    struct api_exchange *x = d->x;
    struct api_monitor *monitor =
        api_registry_find(&monitors->registry, api_group_of(x), api_name_of(x));
    struct api_replacement *r = d->references.replacements;
    if (!monitor)
        return api_intake_find(x, &d->work.problem);
    double *counts = calloc(monitor->config->bins.places, sizeof *counts);
    if (!counts)
        return api_fail_oom(&d->work.problem);
    api_config_release(r->config);
    r->config = read_windows(d, monitors, monitor, counts)
                    ? rebase(d, monitors, monitor->config, counts)
                    : NULL;
    free(counts);
    return r->config &&
           api_config_retain(r->config, monitors->budget, api_monitor_size(r->group, r->name),
                             false, &d->work.problem) &&
           reserve_response(d, &d->work.problem);
}

static bool run(struct api_work *work, struct api_monitors *monitors)
{
    struct defining *d = defining_of(work);
    return (!d->rebases || api_intake_find(d->x, &work->problem)) &&
           api_intake_conditions(d->x, monitors, &work->problem) &&
           (!d->rebases || make_reference(d, monitors)) &&
           api_replace(monitors, d->references.replacements, d->references.n, &work->problem);
}

static bool foresee(struct api_work *work, struct api_monitors *monitors)
{
    struct defining *d = defining_of(work);
    return api_intake_conditions(d->x, monitors, &work->problem) &&
           api_replace_foresee(monitors, d->references.replacements, d->references.n,
                               &work->problem);
}

static bool collect(struct api_work *work, struct api_monitors *monitors)
{
    struct defining *d = defining_of(work);
    return api_replace_collect(monitors, d->references.replacements, d->references.n);
}

static void publish(struct api_work *work, struct api_monitors *monitors)
{
    struct defining *d = defining_of(work);
    api_replace_publish(monitors, d->references.replacements, d->references.n);
}

/* ---- Steps */

static struct defining *begin(struct api_exchange *x, bool rebases)
{
    struct defining *d = calloc(1, sizeof *d);
    if (!d) {
        api_fail_oom(&x->problem);
        return NULL;
    }
    d->x = x;
    d->rebases = rebases;
    d->references.stop = x->stop;
    d->references.monitors = x->service->monitors;
    d->inflated.budget = d->references.warnings.budget = x->service->budget;
    return d;
}

/* Reserves the one replacement of a monitor whose reference is made of windows. */
static bool add_rebased(struct defining *d)
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

static bool read_body(struct defining *d, double most_ns)
{
    struct api_exchange *x = d->x;
    if (!api_body_undo_coding(x, &d->inflated, most_ns))
        return false;
    if (x->cost_ns <= most_ns)
        x->cost_ns = 3 * api_intake_cost(x);
    if (x->cost_ns > most_ns)
        return true;
    if (!(d->rebases ? read_range(d) && add_rebased(d) : read_table(d)))
        return false;
    d->is_read = true;
    if (d->is_dry)
        d->work = (struct api_work){.run = foresee};
    else
        d->work =
            (struct api_work){.alone = true, .run = run, .collect = collect, .publish = publish};
    x->work = &d->work;
    return reserve_response(d, &x->problem);
}

static bool prepare(struct api_exchange *x, bool rebases, double most_ns)
{
    struct defining *d = x->state = x->state ? x->state : begin(x, rebases);
    if (!d)
        return false;
    if (!d->is_read)
        return read_body(d, most_ns);
    if (x->work && d->work.done) {
        x->work = NULL;
        x->is_stored = !d->work.problem.code && !d->is_dry;
    }
    if (!x->work && d->work.problem.code)
        x->problem = d->work.problem;
    if (!x->work)
        x->cost_ns = (double)response_size(d); /* a nanosecond a byte */
    return !x->problem.code;
}

bool api_defining_prepare(struct api_exchange *x, double most_ns)
{
    return prepare(x, false, most_ns);
}

bool api_rebasing_prepare(struct api_exchange *x, double most_ns)
{
    return prepare(x, true, most_ns);
}

static void write_replaced(const struct defining *d, size_t i, const struct api_buffer *warnings,
                           struct api_buffer *out)
{
    const struct api_replacement *r = &d->references.replacements[i];
    api_config_write(r->config, r->group, r->name, r->state, r->revision, warnings, out);
}

static void write_group(const struct defining *d, struct api_buffer *out)
{
    api_append_text(out, "{\"group\":");
    api_append_json_string(out, api_group_of(d->x));
    api_append_text(out, ",\"monitors\":[");
    for (size_t i = 0; i < d->references.n; i++) {
        if (i)
            api_append(out, ",", 1);
        write_replaced(d, i, NULL, out);
    }
    api_append_text(out, "],\"warnings\":[");
    api_append(out, d->references.warnings.data, d->references.warnings.size);
    api_append_text(out, "]}\n");
}

bool api_defining(struct api_exchange *x)
{
    const struct defining *d = x->state;
    const struct api_replacement *r = d->references.replacements;
    bool is_new = false;
    for (size_t i = 0; i < d->references.n; i++)
        is_new |= r[i].is_new;
    x->response.status = is_new && !d->is_dry ? 201 : 200;
    api_intake_response(x);
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
