/* PATCH of a group or a monitor: settings change by a JSON merge patch (RFC 7396); bins, reference, history and
 * revision stay. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/state/metrics.h"

#include "api/json/json_load.h"
#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"
#include "api/request/body.h"
#include "api/request/response.h"
#include "api/text/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool check_type(struct api_exchange *x)
{
    static const char *const types[] = {"application/merge-patch+json", "application/json",
                                        "application/x-www-form-urlencoded", "text/plain", NULL};
    const char *type = api_request_header(&x->request, "Content-Type");
    if (!type || api_is_media_type(type, types))
        return true;
    api_response_header(&x->response, "Accept-Patch", "application/merge-patch+json");
    return api_fail(&x->problem, "media_type_unsupported",
                    "Content-Type '%.80s' is not supported for a patch; use "
                    "application/merge-patch+json or application/json",
                    type);
}

/* Checks a size, declared or real. A patch is applied to each monitor of a group. */
static bool check_size(struct api_exchange *x, unsigned long long size)
{
    enum { MAX_PATCH = 64 << 10 };
    return size <= MAX_PATCH ||
           api_fail(&x->problem, "body_too_large",
                    "the body has %llu bytes, and a patch has at most %d", size, MAX_PATCH);
}

bool api_patch_begin(struct api_exchange *x)
{
    return api_check_names(x) && api_check_may_exist(x) && api_body_check_coding(x) &&
           check_type(x) && check_size(x, x->request.content_length);
}

/* ---- Body */

/* Fails for a member that is no setting, or one that only PUT changes. */
static bool check_member(const char *name, struct api_problem *problem)
{
    static const char *const others[] = {"annotations", NULL};
    static const char *const fixed[] = {
        "bins",           "binning", "reference", "group",    "name",     "state", "since",
        "severity_since", "stale",   "muted",     "revision", "warnings", NULL};
    char pointer[40];
    for (const struct api_field *row = api_monitor_setting_rows; row->name; row++)
        if (strcmp(row->parent ? row->parent : row->name, name) == 0 &&
            strcmp(name, "binning") != 0)
            return true;
    if (api_setting_is_among(name, others))
        return true;
    if (!api_setting_is_among(name, fixed))
        return api_setting_fail_unknown(&(struct api_setting_scope){API_BODY, NULL, others, true},
                                        name, problem);
    snprintf(pointer, sizeof pointer, "#/%s", name);
    return api_fail_at(
        problem, API_BODY, pointer, "option_invalid",
        "%s cannot be changed by PATCH, which keeps bins, reference and history; use "
        "PUT for bins and the reference",
        name);
}

static bool read_query(struct api_replacing *d)
{
    static const char *const known[] = {"dry_run", NULL};
    struct api_problem *problem = &d->x->problem;
    json_t *parameters = api_settings_from_query(NULL, d->x->request.query, known, problem);
    bool good = parameters && api_replacing_read_dry(d, parameters);
    json_decref(parameters);
    return good;
}

static bool read_body(struct api_replacing *d)
{
    struct api_exchange *x = d->x;
    struct api_json json = {.budget = x->service->budget};
    const char *text = api_json_skip_mark(x->request.body), *name;
    size_t size = x->request.body_size - (size_t)(text - x->request.body);
    json_t *value;
    bool good = check_size(x, size) && api_load_json(x, &json);
    if (good && !json_is_object(json.root))
        good = api_fail_at(&x->problem, API_BODY, "#", "body_not_object",
                           "the body must be an object of settings, such as {\"fire_after\": 2}");
    if (good)
        json_object_foreach(json.root, name, value) good = good && check_member(name, &x->problem);
    api_json_free(&json);
    return good;
}

static bool read(struct api_replacing *d) { return read_query(d) && read_body(d); }

/* ---- In the store's thread */

/* Removes members of a setting that a form in the patch does not have: of the forms that a setting has, a monitor
 * keeps the one that the patch names. */
static void drop_other_forms(json_t *target, const json_t *patch)
{
    static const struct {
        const char *setting, *names, *drops;
    } forms[] = {{"compare", "previous", "period"},
                 {"window", "count", "seconds"},
                 {"window", "count", "grace"},
                 {"window", "seconds", "count"},
                 {"window", "grace", "count"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const json_t *value = json_object_get(patch, forms[i].setting);
        const json_t *named = json_object_get(value, forms[i].names);
        if (named && !json_is_null(named))
            json_object_del(json_object_get(target, forms[i].setting), forms[i].drops);
    }
}

/* Merges as RFC 7396 says: null removes a member. False if memory is exhausted. */
static bool merge(json_t *target, json_t *patch)
{
    const char *name;
    json_t *value;
    bool good = true;
    json_object_foreach(patch, name, value)
    {
        if (json_is_object(value) && !json_is_object(json_object_get(target, name)))
            good = good && json_object_set_new(target, name, json_object()) == 0;
        if (json_is_null(value))
            json_object_del(target, name);
        else if (json_is_object(value))
            good = good && merge(json_object_get(target, name), value);
        else
            good = good && json_object_set(target, name, value) == 0;
    }
    return good;
}

/* Writes the settings of a config with the patch, and a NUL. A thread has one JSON text at a time: the array of
 * both is parsed. */
static bool merge_texts(const struct api_replacing *d, const struct api_config *old,
                        struct api_buffer *out, struct api_problem *problem)
{
    const struct api_request *request = &d->x->request;
    const char *body = api_json_skip_mark(request->body);
    struct api_json json = {.budget = out->budget};
    struct api_buffer both = {.budget = out->budget};
    api_append_text(&both, "[");
    api_append_text(&both, old->others);
    api_append_text(&both, ",");
    api_append(&both, body, request->body_size - (size_t)(body - request->body));
    api_append_text(&both, "]");
    bool good = !both.failed && api_json_load(&json, both.data, both.size);
    json_t *target = json_array_get(json.root, 0), *patch = json_array_get(json.root, 1);
    if (good)
        drop_other_forms(target, patch);
    good = good && merge(target, patch);
    if (good)
        api_append_json(out, target);
    api_append(out, "", 1);
    api_json_free(&json);
    api_buffer_free(&both);
    return (good && !out->failed) || api_fail_oom(problem);
}

/* Makes the config of a monitor with the patch; NULL with a problem. */
static struct api_config *patched(const struct api_replacing *d, const struct api_config *old,
                                  struct api_budget *budget, struct api_problem *problem)
{
    struct api_buffer text = {.budget = budget};
    struct api_config *config = merge_texts(d, old, &text, problem)
                                    ? api_config_load(old->definition, text.data, budget, problem)
                                    : NULL;
    api_buffer_free(&text);
    return config;
}

/* Says which monitor of a group a problem is about. */
static void name_monitor(const char *name, struct api_problem *problem)
{
    char words[160];
    snprintf(words, sizeof words, "the monitor '%.128s': ", name);
    api_problem_prefix(problem, words);
}

/* Makes the replacement of a monitor. Its config takes the place of one that is counted already. */
static bool add(struct api_replacing *d, struct api_monitors *monitors,
                const struct api_monitor *monitor)
{
    struct api_replacement *r = &d->references.replacements[d->references.n++];
    *r = (struct api_replacement){.group = api_group_of(d->x), .name = strdup(monitor->name)};
    if (!r->name)
        return api_fail_oom(&d->job.problem);
    r->config = patched(d, monitor->config, monitors->budget, &d->job.problem);
    if (!r->config && !api_name_of(d->x))
        name_monitor(r->name, &d->job.problem);
    return r->config &&
           api_config_retain(r->config, monitors->budget, api_monitor_size(r->group, r->name), true,
                             &d->job.problem);
}

static bool patch(struct api_replacing *d, struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    const char *group = api_group_of(d->x), *name = api_name_of(d->x);
    size_t n = 1, first;
    if (name)
        first = api_registry_lower_bound(registry, group, name);
    else
        first = api_registry_group(registry, group, &n);
    while (d->references.n > 0)
        api_replacement_free(&d->references.replacements[--d->references.n]);
    free(d->references.replacements);
    d->references.replacements = calloc(n, sizeof *d->references.replacements);
    if (!d->references.replacements)
        return api_fail_oom(&d->job.problem);
    for (size_t i = 0; i < n; i++)
        if (!add(d, monitors, registry->monitors[first + i]))
            return false;
    return api_replacing_reserve(d, &d->job.problem);
}

bool api_patch_prepare(struct api_exchange *x, double max_ns)
{
    static const struct api_replacing_kind settings = {
        .read = read, .make = patch, .previews = true};
    return api_replacing_prepare(x, &settings, max_ns);
}
