#include "api/monitors/http/request.h"

#include "api/json/format.h"
#include "api/json/json_text.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/rows/known_rows.h"
#include "api/request/access.h"
#include "api/request/body.h"
#include "api/request/etag.h"
#include "api/request/response.h"
#include "api/request/route.h"
#include "api/text/accept.h"
#include "api/text/percent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *api_group_of(const struct api_exchange *x) { return x->captures.value[0]; }

const char *api_name_of(const struct api_exchange *x)
{
    static const char groups[] = "/groups/";
    bool is_group = strncmp(x->response.endpoint->path, groups, sizeof groups - 1) == 0;
    return x->captures.n > 1 && !is_group ? x->captures.value[1] : NULL;
}

const char *api_stored_name(const struct api_exchange *x)
{
    const char *name = api_name_of(x);
    return name ? name : "";
}

bool api_check_accept(struct api_exchange *x)
{
    const char *accept = api_request_header(&x->request, "Accept");
    if (!accept || !*accept || strcmp(x->request.method, "DELETE") == 0 ||
        api_accept_quality(accept, "application/json") > 0 ||
        api_accept_quality(accept, "application/problem+json") > 0)
        return true;
    return api_fail(&x->problem, "not_acceptable",
                    "Accept '%.100s' allows none of the formats of this path: application/json",
                    accept);
}

bool api_check_available(struct api_exchange *x)
{
    if (!x->service->monitors)
        return api_fail(&x->problem, "not_found", "there are no monitors here");
    if (!atomic_load(&x->service->monitors->loaded))
        return api_fail(&x->problem, "store_unavailable",
                        "the store has not been read yet; try again");
    return api_check_accept(x);
}

/* Fails for a % without two digits: with it, a monitor would have two paths. */
static bool check_escapes(struct api_exchange *x)
{
    for (const char *p = x->request.path; *p; p++)
        if (*p == '%' && api_percent_decode(p) < 0)
            return api_fail(&x->problem, "bad_request",
                            "the path has a %% without two hexadecimal digits");
    return true;
}

bool api_check_names(struct api_exchange *x)
{
    const char *name = api_name_of(x);
    return api_check_available(x) && check_escapes(x) &&
           api_name_check("group", api_group_of(x), &x->problem) &&
           api_check_group(x, api_group_of(x)) &&
           (!name || api_name_check("monitor", name, &x->problem));
}

bool api_check_no_query(struct api_exchange *x)
{
    struct api_parameter parameter;
    const char *rest = x->request.query ? x->request.query : "";
    if (api_query_next(&rest, &parameter, &x->problem))
        return api_fail_at(&x->problem, API_QUERY, parameter.name, "option_unknown",
                           "%.20s takes no parameter '%.100s'", x->request.method, parameter.name);
    return !x->problem.code;
}

bool api_fail_of_members(const json_t *members, struct api_problem *problem)
{
    const char *name;
    json_t *value;
    bool holds_values = false;
    json_object_foreach((json_t *)members, name, value) holds_values |=
        json_object_get(value, "0") || (json_is_array(value) && strcmp(name, "ratio") != 0);
    if (!holds_values || strcmp(problem->code, "option_unknown") != 0)
        return false;
    char location[sizeof problem->location];
    memcpy(location, problem->location, sizeof location);
    *problem = (struct api_problem){0};
    return api_fail_at(problem, API_BODY, location, "option_unknown",
                       "columns must be members of `columns`, as {\"columns\": {NAME: [...]}}; of "
                       "pandas send df.to_json(orient=\"records\")");
}

bool api_check_body(struct api_exchange *x)
{
    const char *type = api_request_header(&x->request, "Content-Type");
    if (!api_body_check_coding(x))
        return false;
    if (!api_table_format(type, &x->problem)) {
        api_table_list_formats(x->response.header_text, sizeof x->response.header_text);
        api_response_header(&x->response, "Accept", x->response.header_text);
        return false;
    }
    return api_body_check_size(x);
}

bool api_check_change(struct api_exchange *x)
{
    return api_check_no_query(x) && api_check_names(x);
}

/* ---- Monitors */

enum api_outcome api_know(struct api_exchange *x)
{
    if (!x->known)
        x->known = api_known_get(&x->service->monitors->known, api_group_of(x), api_stored_name(x));
    return x->known ? API_DONE : API_REFRESH;
}

bool api_know_again(struct api_exchange *x, struct api_monitors *monitors)
{
    api_known_release(x->known);
    x->known = api_known_read(monitors, api_group_of(x), api_stored_name(x));
    return x->known != NULL;
}

void api_forget_known(struct api_exchange *x)
{
    api_known_forget(&x->service->monitors->known, api_group_of(x));
    api_known_release(x->known);
    x->known = NULL;
}

bool api_may_be_outdated(const struct api_exchange *x)
{
    return !x->is_refreshed && api_store_is_shared(x->service->monitors->store);
}

bool api_fail_missing(struct api_exchange *x, bool has_group)
{
    if (!has_group)
        return api_fail(&x->problem, "group_not_found", "there is no monitor in the group '%.128s'",
                        api_group_of(x));
    return api_fail(&x->problem, "monitor_not_found",
                    "there is no monitor '%.128s' in the group '%.128s'", api_name_of(x),
                    api_group_of(x));
}

/* Fails as api_fail_missing does, unless there is the group and no monitor is asked for. */
static bool check_group(struct api_exchange *x, struct api_monitors *monitors)
{
    int64_t n = 0;
    return api_store_number(monitors->store, API_SQL_GROUP_COUNT,
                            API_ROW(api_group_of(x), INT64_C(1)), &n) &&
           ((n > 0 && !api_name_of(x)) || api_fail_missing(x, n > 0));
}

bool api_check_exists(struct api_exchange *x, struct api_monitors *monitors)
{
    size_t n = 0;
    const char *name = api_name_of(x);
    return (!name || api_store_read(monitors->store, API_SQL_KNOWN, API_ROW(api_group_of(x), name),
                                    api_store_count_row, &n)) &&
           (n > 0 || check_group(x, monitors));
}

struct api_monitor *api_monitor_of(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_monitor *monitor = NULL;
    if (api_touch_named(monitors, api_group_of(x), api_name_of(x), &monitor) && !monitor)
        check_group(x, monitors);
    return monitor;
}

/* True for a text of one line that curl -d may have made of a file, whose line ends it leaves out. */
static bool lacks_lines(const struct api_exchange *x)
{
    static const char *const types[] = {"application/x-www-form-urlencoded", NULL};
    const char *type = api_request_header(&x->request, "Content-Type"), *body = x->request.body;
    return type && x->request.body_size > 0 && api_is_media_type(type, types) &&
           !strchr("{[", *api_json_start(body)) && !memchr(body, '\n', x->request.body_size) &&
           !memchr(body, '\r', x->request.body_size);
}

bool api_open_table(struct api_exchange *x, const char *part, struct api_table *table)
{
    const char *type = api_request_header(&x->request, "Content-Type");
    *table = (struct api_table){.format = api_table_format(type, &x->problem),
                                .kind = api_name_of(x) ? API_ONE_COLUMN : API_MANY_COLUMNS,
                                .body = x->request.body,
                                .size = x->request.body_size,
                                .budget = x->service->budget,
                                .content_type = type,
                                .part = part,
                                .max_inflated = x->service->max_body};
    bool good = table->format && api_table_open(table, &x->problem);
    if (good && lacks_lines(x))
        good = api_fail(&x->problem, "csv_malformed",
                        "the body has one line: curl -d leaves out the line ends of a file; send "
                        "it by --data-binary @FILE, or by -T FILE");
    if (!good)
        api_table_free(table);
    return good;
}

bool api_load_json(struct api_exchange *x, struct api_json *json)
{
    const char *text = api_json_skip_mark(x->request.body);
    if (api_json_load(json, text, x->request.body_size - (size_t)(text - x->request.body)))
        return true;
    return json->out_of_memory ? api_fail_oom(&x->problem)
                               : api_fail(&x->problem, "json_malformed", "line %d, column %d: %s",
                                          json->error.line, json->error.column, json->error.text);
}

bool api_read_members(const json_t *root, const char *const *known, const json_t **values,
                      const char *example, struct api_problem *problem)
{
    const struct api_setting_scope scope = {API_BODY, NULL, known, true};
    if (!json_is_object(root))
        return api_fail_at(problem, API_BODY, "#", "body_not_object",
                           "the body must be an object, such as %s", example);
    for (void *at = json_object_iter((json_t *)root); at;
         at = json_object_iter_next((json_t *)root, at))
        if (!api_setting_is_among(json_object_iter_key(at), known))
            return api_setting_fail_unknown(&scope, json_object_iter_key(at), problem);
    for (size_t i = 0; known[i]; i++) {
        const json_t *value = api_json_unboxed(json_object_get(root, known[i]));
        values[i] = json_is_null(value) ? NULL : value;
    }
    return true;
}

bool api_read_text(const json_t *member, const char *name, size_t max, char *to,
                   struct api_problem *problem)
{
    char pointer[40];
    const char *text = json_string_value(member);
    snprintf(pointer, sizeof pointer, "#/%s", name);
    if (!text || strlen(text) > max || !api_text_is_plain(text))
        return api_fail_at(problem, API_BODY, pointer, "option_invalid",
                           "%s must be a text of at most %zu bytes without control characters",
                           name, max);
    memcpy(to, text, strlen(text) + 1);
    return true;
}

bool api_estimate_table(struct api_exchange *x)
{
    x->cost_ns = (double)x->request.body_size * 2 * API_PARSE_NS;
    return true;
}

bool api_estimate_documents(struct api_exchange *x)
{
    x->cost_ns = (double)x->request.body_size * 6 * API_PARSE_NS;
    return true;
}

bool api_find_column(const struct api_table *table, const char *name, size_t *column,
                     struct api_problem *problem)
{
    const char *const names[] = {name, "values"};
    for (size_t n = 0; n < 2; n++)
        for (*column = 0; *column < table->n_columns; ++*column)
            if (strcmp(table->columns[*column].name, names[n]) == 0)
                return true;
    *column = 0;
    return table->n_columns == 1 ||
           api_fail(problem, "column_missing",
                    "among the %zu columns there is neither '%.128s' nor 'values'",
                    table->n_columns, name);
}

/* Reads a timestamp, if there is one. */
static bool read_timestamp(const json_t *value, enum api_location where, int64_t *time,
                           struct api_problem *problem)
{
    return !value || json_is_null(value) || api_read_time(value, where, "timestamp", time, problem);
}

bool api_read_timestamp(const json_t *parameter, const json_t *member, int64_t *time,
                        struct api_problem *problem)
{
    enum api_location where = parameter ? API_QUERY : API_BODY;
    *time = api_now();
    if (!read_timestamp(parameter, API_QUERY, time, problem))
        return false;
    int64_t other = *time;
    if (!read_timestamp(api_json_unboxed(member), API_BODY, parameter ? &other : time, problem))
        return false;
    if (other != *time && parameter)
        return api_fail_at(problem, API_QUERY, "timestamp", "option_conflict",
                           "timestamp is given twice, with different values");
    char text[API_TIME_TEXT], clock[API_TIME_TEXT];
    int64_t now = api_now();
    return *time <= now + API_DAY_US ||
           api_fail_at(problem, where, where == API_QUERY ? "timestamp" : "#/timestamp",
                       "timestamp_invalid",
                       "timestamp, %s, is more than a day ahead of this server's clock, %s",
                       api_time_text(*time, text), api_time_text(now, clock));
}

void api_warn(struct api_buffer *warnings, const char *code, const char *column, size_t count,
              size_t line, const char *message)
{
    /* without a template, which takes twice as long: there may be thousands */
    api_append_text(warnings, warnings->size ? ",{\"code\":\"" : "{\"code\":\"");
    api_append_text(warnings, code);
    api_append_text(warnings, "\",\"message\":");
    api_append_json_string(warnings, message);
    api_append_text(warnings, ",\"column\":");
    api_append_json_string(warnings, column);
    api_write_member(warnings, "count", count > 0 ? (double)count : (double)NAN);
    api_write_member(warnings, "line", line > 0 ? (double)line : (double)NAN);
    api_append_text(warnings, "}");
}

void api_write_warnings(const struct api_buffer *warnings, struct api_buffer *out)
{
    api_append_text(out, ",\"warnings\":[");
    api_append(out, warnings->data, warnings->size);
    api_append(out, "]", 1);
}

const char api_nested_message[] = "an array or an object is among the values, which must be "
                                  "numbers, strings, booleans or null: the column is left out";

const char api_absent_message[] = "the table has no column for this monitor, which is left alone";

void api_warn_of_name(struct api_buffer *warnings, const struct api_column *column)
{
    if (column->flaws & API_NAME_REPEATED)
        api_warn(warnings, "column_renamed", column->name, 0, 0,
                 "another column has this name without the number behind it");
    else if (column->flaws & API_NAME_BLANK && *column->name)
        api_warn(warnings, "column_renamed", column->name, 0, 0,
                 "blanks around the name are left out");
}

void api_warn_of_unknown(struct api_buffer *warnings, const char *name)
{
    if (*name)
        api_warn(warnings, "column_unknown", name, 0, 0,
                 "the group has no monitor of this name, so the column is left out");
    else
        api_warn(warnings, "column_unnamed", name, 0, 0, "a column without a name is left out");
}

void api_warn_of_absent(const struct api_exchange *x, const struct api_table *table,
                        size_t n_present, const char *message, struct api_buffer *warnings)
{
    enum { MAX_ABSENT = 1000 };
    size_t n = 0, column;
    for (size_t i = 0; x->known->n > n_present && i < x->known->n; i++) {
        const char *name = x->known->monitors[i].name;
        if (!api_names_find(&table->names, name, strlen(name), &column) && n++ < MAX_ABSENT)
            api_warn(warnings, "column_absent", name, 0, 0, message);
    }
    if (n > MAX_ABSENT)
        api_warn(warnings, "column_absent", "", n - MAX_ABSENT, 0, message);
}

bool api_fail_unknown(struct api_exchange *x, const struct api_table *table)
{
    if (table->n_columns == 0)
        return api_fail(&x->problem, "columns_unknown",
                        "the table has no columns, so there is nothing to store");
    return api_fail(
        &x->problem, "columns_unknown",
        "no column of the table, such as '%.100s', has a monitor in the group, such as '%.100s'",
        table->columns[table->n_columns > 1 && !*table->columns->name].name,
        x->known->monitors[0].name);
}

void api_warn_of_unreadable(struct api_buffer *warnings, const char *column,
                            const struct api_unreadable *unreadable)
{
    char message[120];
    if (unreadable->count == 0)
        return;
    snprintf(message, sizeof message, "%zu %s, the first in line %zu", unreadable->count,
             unreadable->count == 1 ? "value is not a number and counts as missing"
                                    : "values are not numbers and count as missing",
             unreadable->line);
    api_warn(warnings, "values_unreadable", column, unreadable->count, unreadable->line, message);
}

bool api_check_conditions(struct api_exchange *x, const struct api_monitor *monitor)
{
    const char *match = api_request_header(&x->request, "If-Match"),
               *none = api_request_header(&x->request, "If-None-Match");
    char etag[API_ETAG] = "";
    if (!match && !none)
        return true;
    if (!api_name_of(x))
        return api_fail(&x->problem, "precondition_failed",
                        "a group has no ETag: If-Match and If-None-Match are for one monitor");
    if (monitor)
        api_monitor_etag(monitor->id, monitor->version, etag);
    bool good = (!match || (monitor && api_etag_is_listed(match, etag, false))) &&
                (!none || !(monitor && api_etag_is_listed(none, etag, true)));
    return good || api_fail(&x->problem, "precondition_failed", "the monitor %s%s",
                            monitor ? "has the ETag " : "does not exist", etag);
}

bool api_write_nothing(struct api_exchange *x)
{
    x->response.status = 204;
    return true;
}

struct api_buffer *api_begin_json(struct api_exchange *x)
{
    x->response.content_type = "application/json";
    return &x->response.body;
}
