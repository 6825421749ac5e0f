#include "api/monitors/model/settings_query.h"

#include "api/request/query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t length = 1;
    for (; *s && length > 0; s += length)
        length = api_utf8_length(s);
    return length > 0;
}

/* The member that a parameter stands for: its number, null, or its text. */
static json_t *value_of(const struct api_monitor_setting *row, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (row->kind >= API_SETTING_METHOD)
        return json_string(text);
    if (strcmp(text, "null") == 0)
        return json_null();
    bool plain = !*end && !text[strspn(text, "0123456789+-.eE")] && isfinite(number);
    return plain ? json_real(number) : json_string(text);
}

/* Reads one value into settings that are the defaults otherwise. */
static bool read_alone(struct api_monitor_settings *settings, const struct api_monitor_setting *row,
                       const json_t *value)
{
    struct api_problem ignored = {0};
    api_settings_init(settings);
    return api_setting_read(row, value, settings, &ignored);
}

/* The object that a member goes into, made if it is absent or null. */
static json_t *parent_of(json_t *object, const struct api_monitor_setting *row)
{
    const json_t *there = row->parent ? json_object_get(object, row->parent) : object;
    if (!there || json_is_null(there))
        json_object_set_new(object, row->parent, json_object());
    return row->parent ? json_object_get(object, row->parent) : object;
}

/* Adds a member; fails if the object has it with another value. A parent that is no object stays, for
 * api_settings_from_json to refuse. */
static bool add(json_t *object, const struct api_monitor_setting *row, json_t *value,
                struct api_problem *problem)
{
    struct api_monitor_settings once, twice;
    json_t *parent = parent_of(object, row);
    json_t *there = json_object_get(parent, row->name);
    if (parent && !json_is_object(parent)) {
        json_decref(value);
        return true;
    }
    if (!value || !parent) {
        json_decref(value);
        return api_fail_oom(problem);
    }
    if (!there)
        return json_object_set_new(parent, row->name, value) == 0 || api_fail_oom(problem);
    bool same = read_alone(&once, row, there) && read_alone(&twice, row, value);
    for (const struct api_monitor_setting *r = api_monitor_setting_rows; same && r->name; r++) {
        double a = *api_setting_field(&once, r), b = *api_setting_field(&twice, r);
        same = a == b || (isnan(a) && isnan(b));
    }
    same = same && once.window_size == twice.window_size && once.grace == twice.grace &&
           once.period == twice.period;
    json_decref(value);
    return same || api_fail_at(problem, API_QUERY, row->name, "option_conflict",
                               "%s is given twice, with different values", row->name);
}

static const struct api_monitor_setting *find_parameter(const char *name)
{
    for (const struct api_monitor_setting *row = api_monitor_setting_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static bool take_parameter(json_t *object, const struct api_parameter *parameter,
                           const char *const *known, json_t *others, struct api_problem *problem)
{
    const char *name = parameter->name;
    if (!is_utf8(name) || !is_utf8(parameter->value))
        return api_fail(problem, "query_malformed", "a query parameter is not UTF-8");
    const struct api_monitor_setting *row = object ? find_parameter(name) : NULL;
    bool is_known = api_setting_is_among(name, known);
    if ((row || is_known) && !*parameter->value)
        return api_fail_at(problem, API_QUERY, name, "option_invalid",
                           "%s is empty: give it a value, or leave it out", name);
    if (is_known) {
        if (json_object_get(others, name))
            return api_fail_at(problem, API_QUERY, name, "option_conflict", "%s is given twice",
                               name);
        return json_object_set_new(others, name, json_string(parameter->value)) == 0 ||
               api_fail_oom(problem);
    }
    if (!row)
        return api_setting_fail_unknown(
            &(struct api_setting_scope){API_QUERY, NULL, known, object != NULL}, name, problem);
    return add(object, row, value_of(row, parameter->value), problem);
}

json_t *api_settings_from_query(json_t *object, const char *query, const char *const *known,
                                struct api_problem *problem)
{
    struct api_parameter parameter;
    const char *rest = query ? query : "";
    json_t *others = json_object();
    bool good = others || api_fail_oom(problem);
    while (good && api_query_next(&rest, &parameter, problem))
        good = take_parameter(object, &parameter, known, others, problem);
    if (good && !problem->code)
        return others;
    json_decref(others);
    return NULL;
}
