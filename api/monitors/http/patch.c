/* PATCH of a group or a monitor: settings change by a JSON merge patch (RFC 7396); bins, reference, history and
 * revision stay. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/settings.h"

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
    return api_check_names(x) && api_body_check_coding(x) && check_type(x);
}

/* ---- Body */

static bool is_threshold(const struct api_field *row)
{
    return row->parent && strcmp(row->parent, "thresholds") == 0;
}

/* Fails for a member that is no setting, or one that only PUT changes. */
static bool check_member(const char *name, struct api_problem *problem)
{
    static const char *const others[] = {"annotations", NULL};
    static const char *const fixed[] = {"bins",  "binning",  "reference",      "group", "name",
                                        "state", "since",    "severity_since", "began", "stale",
                                        "muted", "revision", "warnings",       NULL};
    char pointer[40];
    for (const struct api_field *row = api_monitor_setting_rows; row->name; row++)
        if ((strcmp(row->parent ? row->parent : row->name, name) == 0 &&
             strcmp(name, "binning") != 0) ||
            (is_threshold(row) && strcmp(row->name, name) == 0))
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

/* ---- Configs */

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

/* Moves {"critical": 0.5}, as a query has it, to {"thresholds": {"critical": 0.5}}. False if memory is exhausted. */
static bool nest_thresholds(json_t *patch)
{
    bool good = true;
    for (const struct api_field *row = api_monitor_setting_rows; row->name && good; row++) {
        json_t *value = is_threshold(row) ? json_object_get(patch, row->name) : NULL;
        if (!value)
            continue;
        if (!json_is_object(json_object_get(patch, row->parent)))
            good = json_object_set_new(patch, row->parent, json_object()) == 0;
        good = good && json_object_set(json_object_get(patch, row->parent), row->name, value) == 0;
        json_object_del(patch, row->name);
    }
    return good;
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
static bool merge_texts(struct api_exchange *x, const char *settings, struct api_buffer *out)
{
    const struct api_request *request = &x->request;
    const char *body = api_json_skip_mark(request->body);
    struct api_json json = {.budget = out->budget};
    struct api_buffer both = {.budget = out->budget};
    api_append_text(&both, "[");
    api_append_text(&both, settings);
    api_append_text(&both, ",");
    api_append(&both, body, request->body_size - (size_t)(body - request->body));
    api_append_text(&both, "]");
    bool good = !both.failed && api_json_load(&json, both.data, both.size);
    json_t *target = json_array_get(json.root, 0), *patch = json_array_get(json.root, 1);
    if (good)
        drop_other_forms(target, patch);
    good = good && nest_thresholds(patch) && merge(target, patch);
    if (good)
        api_append_json(out, target);
    api_append(out, "", 1);
    api_json_free(&json);
    api_buffer_free(&both);
    return (good && !out->failed) || api_fail_oom(&x->problem);
}

/* Adds the config of a monitor with the patch; of a group the problem says which monitor it is about. */
static void patch_row(void *context, const struct api_datum *values)
{
    struct api_replacing *d = context;
    struct api_exchange *x = d->x;
    struct api_buffer text = {.budget = x->service->budget};
    const char *name = values[2].text;
    struct api_config *config = NULL;
    char words[160];
    if (x->problem.code)
        return;
    if (merge_texts(x, values[API_SETTINGS].text, &text))
        config = api_config_load(values[API_DEFINITION].text, text.data, &x->problem);
    api_buffer_free(&text);
    snprintf(words, sizeof words, "the monitor '%.128s': ", name);
    if (config)
        api_replacing_add(d, name, config);
    else if (!api_name_of(x))
        api_problem_prefix(&x->problem, words);
}

static bool make(struct api_replacing *d, struct api_monitors *monitors)
{
    const char *name = api_name_of(d->x);
    api_replacing_clear(d);
    return api_store_read(monitors->store, name ? API_SQL_TEXTS_NAMED : API_SQL_TEXTS_OF_GROUP,
                          API_ROW(api_group_of(d->x), name ? name : ""), patch_row, d) &&
           !d->x->problem.code;
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    d->previews = true;
    d->make = make;
    d->reaches_segments = true;
    return api_outcome_of(api_replacing_begin(x, API_NAMES("dry_run"), false) && check_members(x));
}

/* A patch is applied to each monitor of a group, so its size is limited. */
const struct api_steps api_patch = {
    .max_body = (size_t)64 << 10, .small = "a patch", .check = check, .parse = parse, API_REPLACES};
