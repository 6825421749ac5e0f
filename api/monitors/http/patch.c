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

static bool check(struct api_exchange *x)
{
    return api_check_monitor(x) && api_body_check_coding(x) && check_type(x);
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
    return api_fail_at(problem, API_BODY, pointer, "option_invalid",
                       "%s cannot be changed by PATCH, which keeps bins, reference and history; "
                       "use PUT for bins and the reference",
                       name);
}

static bool read_query(struct api_exchange *x)
{
    json_t *parameters =
        api_settings_from_query(NULL, x->request.query, API_NAMES("dry_run"), &x->problem);
    bool good = parameters && api_replacing_read_dry(x, parameters);
    json_decref(parameters);
    return good;
}

static bool check_members(struct api_exchange *x)
{
    struct api_json json = {.budget = x->service->budget};
    const char *name;
    json_t *value;
    bool good = api_load_json(x, &json);
    if (good && !json_is_object(json.root))
        good = api_fail_at(&x->problem, API_BODY, "#", "body_not_object",
                           "the body must be an object of settings, such as {\"fire_after\": 2}");
    if (good)
        json_object_foreach(json.root, name, value) good = good && check_member(name, &x->problem);
    api_json_free(&json);
    return good;
}

/* ---- Configs: made before the transaction, for they take longer than all of it */

/* Removes members of other forms: of the forms that a setting has, a monitor keeps only the one that the patch names. */
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
static bool merge_texts(struct api_exchange *x, const struct api_config *old,
                        struct api_buffer *out)
{
    const struct api_request *request = &x->request;
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
    return (good && !out->failed) || api_fail_oom(&x->problem);
}

/* Makes the config of a monitor with the patch; NULL with a problem. */
static struct api_config *patched(struct api_exchange *x, const struct api_config *old)
{
    struct api_budget *budget = x->service->budget;
    struct api_buffer text = {.budget = budget};
    struct api_config *config =
        merge_texts(x, old, &text)
            ? api_config_load(old->definition, text.data, budget, &x->problem)
            : NULL;
    api_buffer_free(&text);
    return config;
}

/* Says which monitor of a group a problem is about. */
static bool name_monitor(struct api_exchange *x, const char *name)
{
    char words[160];
    snprintf(words, sizeof words, "the monitor '%.128s': ", name);
    if (!api_name_of(x))
        api_problem_prefix(&x->problem, words);
    return false;
}

/* Replaces the config of a replacement, which is the monitor's present one, by a config with the patch. It may
 * take all of the memory of monitors: it replaces a config that is counted already. */
static bool patch(struct api_exchange *x, struct api_replacement *r)
{
    struct api_config *old = r->config;
    r->config = patched(x, old);
    api_config_release(old);
    if (!r->config)
        return name_monitor(x, r->name);
    return api_config_retain(r->config, x->service->budget, api_monitor_size(r->group, r->name),
                             true, &x->problem);
}

/* The monitors of the path, *n of them from the index that it returns. */
static size_t find(const struct api_exchange *x, const struct api_registry *registry, size_t *n)
{
    const char *group = api_group_of(x), *name = api_name_of(x);
    if (!name)
        return api_registry_group(registry, group, n);
    *n = api_registry_find(registry, group, name) ? 1 : 0;
    return api_registry_lower_bound(registry, group, name);
}

/* Holds the monitors as they are, if they match If-Match. If they do not, the client is told no other problem. */
static bool hold_monitors(struct api_exchange *x)
{
    struct api_registry *registry = &x->service->monitors->registry;
    struct api_references *references = &((struct api_replacing *)x->state)->references;
    size_t n;
    pthread_rwlock_rdlock(&registry->lock);
    bool good = api_check_conditions(x);
    size_t first = find(x, registry, &n);
    good = good && api_references_reserve(references, n, &x->problem);
    for (size_t i = 0; good && i < n; i++) {
        const struct api_monitor *monitor = registry->monitors[first + i];
        struct api_replacement *r =
            api_references_add(references, api_group_of(x), monitor->name,
                               api_config_hold(monitor->config), &x->problem);
        if (!(good = r != NULL))
            break;
        r->of_id = monitor->id;
        r->of_version = monitor->version;
    }
    pthread_rwlock_unlock(&registry->lock);
    return good;
}

/* Makes the configs of all monitors with the patch, and room for the response. */
static bool patch_all(struct api_exchange *x)
{
    struct api_references *references = &((struct api_replacing *)x->state)->references;
    if (!hold_monitors(x))
        return false;
    for (size_t i = 0; i < references->n; i++) {
        if (x->stop && atomic_load(x->stop))
            return api_fail(&x->problem, "client_left", "the client closed its side");
        if (!patch(x, &references->replacements[i]))
            return false;
    }
    return api_replacing_reserve(x);
}

/* ---- Steps */

/* patch_ns: time, in ns, for each byte that a config holds, about. */
static const double patch_ns = 20;

static bool estimate(struct api_exchange *x)
{
    struct api_registry *registry = &x->service->monitors->registry;
    size_t n, bytes = 0;
    pthread_rwlock_rdlock(&registry->lock);
    size_t first = find(x, registry, &n);
    for (size_t i = 0; i < n; i++)
        bytes += registry->monitors[first + i]->config->retained;
    pthread_rwlock_unlock(&registry->lock);
    /* The body is parsed once for itself, and with each config. */
    api_estimate_documents(x);
    x->cost_ns = patch_ns * (double)bytes + (double)(n + 1) * x->cost_ns;
    return true;
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct api_replacing *d = api_replacing_init(x);
    d->previews = true;
    if (!read_query(x) || !check_members(x))
        return API_FAILED;
    if (api_must_refresh(x))
        return API_REFRESH;
    return api_outcome_of(api_find_monitor(x) && patch_all(x));
}

/* True if the monitors are those that the configs were made of. */
static bool is_current(const struct api_exchange *x, const struct api_monitors *monitors)
{
    const struct api_references *references = &((struct api_replacing *)x->state)->references;
    size_t n, first = find(x, &monitors->registry, &n);
    bool same = n == references->n;
    for (size_t i = 0; same && i < n; i++) {
        const struct api_monitor *monitor = monitors->registry.monitors[first + i];
        same = monitor->id == references->replacements[i].of_id &&
               monitor->version == references->replacements[i].of_version;
    }
    return same;
}

/* Configs whose monitors have changed are made again before another transaction. If monitors change again and again,
 * configs are made within the transaction, while others wait: so a group that changes all the time can be patched,
 * too. */
static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    enum { IN_VAIN = 3 };
    if (!api_find_monitor(x) || !api_check_conditions(x))
        return API_FAILED;
    if (!is_current(x, monitors) && x->replaced < IN_VAIN)
        return API_PARSE_AGAIN;
    return api_outcome_of((is_current(x, monitors) || patch_all(x)) &&
                          api_replacing_store(x, monitors));
}

/* A patch is applied to each monitor of a group, so its size is limited. */
const struct api_steps api_patch = {.max_body = (size_t)64 << 10,
                                    .small = "a patch",
                                    .check = check,
                                    .estimate = estimate,
                                    .parse = parse,
                                    .run = run,
                                    API_REPLACES};
