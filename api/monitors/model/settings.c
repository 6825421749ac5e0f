#include "api/monitors/model/settings.h"

#include "api/json/format.h"
#include "api/json/json_load.h"
#include "api/request/route.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Values with forms of their own */

/* form: two numbers: members of an object, the second optional or not, or a text with a separator between. */
struct form {
    const char *names[2];
    double min[2], max[2];
    bool is_optional, is_whole;
    const char *digits; /* of a text */
    bool has_unit[2];   /* s, m, h, d or w behind the digits */
    char separator;
    const char *word; /* that may stand for the second number, as this value; or NULL */
    double value;
};
#define DIGITS "0123456789"

/* Reads a number of a text; moves to what follows. NaN if there is none. */
static double read_number(const char **p, const char *digits, bool has_unit)
{
    static const char units[] = "smhdw";
    static const double seconds[] = {1, 60, 3600, 86400, 604800};
    size_t length = strspn(*p, digits);
    char *end = NULL;
    double number = length > 0 ? strtod(*p, &end) : (double)NAN;
    if (end != *p + length)
        return (double)NAN;
    const char *unit = has_unit && *end ? strchr(units, *end) : NULL;
    *p = end + (unit != NULL);
    return !has_unit ? number : unit ? number * seconds[unit - units] : (double)NAN;
}

/* Reads the second number of a text; moves to what follows. */
static double read_second(const struct form *form, const char **p)
{
    size_t length = form->word ? strlen(form->word) : 0;
    if (length == 0 || strncmp(*p, form->word, length) != 0)
        return read_number(p, form->digits, form->has_unit[1]);
    *p += length;
    return form->value;
}

/* A number of an object, or the word of its form. NaN if it is none. */
static double number_of(const struct form *form, const json_t *member, size_t i)
{
    double number = json_is_number(member) ? json_number_value(member) : (double)NAN;
    if (i == 0 || !form->word)
        return number;
    if (json_is_string(member) && strcmp(json_string_value(member), form->word) == 0)
        return form->value;
    return number != form->value ? number : (double)NAN;
}

/* Reads a text, or else an object. An optional number that is absent stays as it is. */
static bool read_form(const struct form *form, const char *text, const json_t *object, double *to)
{
    size_t n = 0;
    if (text) {
        to[n++] = read_number(&text, form->digits, form->has_unit[0]);
        if (form->separator && *text == form->separator) {
            text++;
            to[n++] = read_second(form, &text);
        }
    } else {
        const json_t *member;
        for (; n < 2 && (member = api_json_unboxed(json_object_get(object, form->names[n]))); n++)
            to[n] = number_of(form, member, n);
    }
    for (size_t i = 0; i < n; i++)
        if (!(to[i] >= form->min[i] && to[i] <= form->max[i]) ||
            (form->is_whole && to[i] != floor(to[i]) && to[i] != form->value))
            return false;
    return n >= (form->is_optional ? 1 : 2) && (text ? !*text : json_object_size(object) == n);
}

/* Reads "batch"; "1h", "3600s,60s" and "1000"; and objects. */
static bool read_window(const struct api_value *value, union api_field_value *to,
                        struct kl_problem *problem)
{
    static const struct form time = {{"seconds", "grace"}, {1, 0}, {1e9, 1e9}, true, true, DIGITS,
                                     {true, true},         ',',    NULL,       0},
                             count = {{"count", NULL}, {1},     {1e9}, true, true,
                                      DIGITS,          {false}, 0,     NULL, 0};
    const char *text = value->kind == API_STRING ? value->text : NULL;
    bool counts =
        text ? !text[strspn(text, DIGITS)] : json_object_get(value->json, "count") != NULL;
    (void)problem;
    if (text && strcmp(text, "batch") == 0)
        return true;
    to->numbers[0] = counts ? API_COUNT : API_SECONDS;
    return read_form(counts ? &count : &time, text, value->json, to->numbers + 1);
}

/* Reads "reference"; "previous:7", "previous:7@24h" and "previous:3@month"; and objects. */
static bool read_compare(const struct api_value *value, union api_field_value *to,
                         struct kl_problem *problem)
{
    static const struct form form = {
        {"previous", "period"}, {1, 1}, {1000, 1e9}, true,     true, DIGITS,
        {false, true},          '@',    "month",     API_MONTH};
    static const char previous[] = "previous:";
    const char *text = value->kind == API_STRING ? value->text : NULL;
    (void)problem;
    if (text && strcmp(text, "reference") == 0)
        return true;
    if (text && strncmp(text, previous, sizeof previous - 1) != 0)
        return false;
    return read_form(&form, text ? text + sizeof previous - 1 : NULL, value->json, to->numbers);
}

/* Reads null; "2,4"; and objects. */
static bool read_levels(const struct api_value *value, union api_field_value *to,
                        struct kl_problem *problem)
{
    static const struct form form = {{"warning", "critical"},
                                     {1, 1},
                                     {1e9, 1e9},
                                     false,
                                     false,
                                     DIGITS ".",
                                     {false},
                                     ',',
                                     NULL,
                                     0};
    const char *text = value->kind == API_STRING ? value->text : NULL;
    (void)problem;
    if (value->kind == API_NULL || (text && strcmp(text, "null") == 0))
        return true;
    return read_form(&form, text, value->json, to->numbers) && to->numbers[0] > 1 &&
           to->numbers[1] >= to->numbers[0];
}

static bool read_timezone(const struct api_value *value, union api_field_value *to,
                          struct kl_problem *problem)
{
    const struct api_zone *zone = value->kind == API_STRING ? api_zone_find(value->text) : NULL;
    (void)problem;
    memcpy(to->bytes, &zone, sizeof zone);
    return zone != NULL;
}

/* Values of several numbers lie one behind another in the settings. */
#define FOLLOWS(member, first, n)                                                                  \
    _Static_assert(offsetof(struct api_monitor_settings, member) ==                                \
                       offsetof(struct api_monitor_settings, first) + (n) * sizeof(double),        \
                   #member)
FOLLOWS(window_size, window, 1);
FOLLOWS(grace, window, 2);
FOLLOWS(period, previous, 1);
FOLLOWS(ratio_critical, ratio_warning, 1);
FOLLOWS(volume_critical, volume_warning, 1);

/* ---- The table */

static const char *const methods[] = {"auto", "quantile", "width", "labels", NULL};

#define FIELD(name) API_FIELD(struct api_monitor_settings, name)
#define FIELDS(first, n) offsetof(struct api_monitor_settings, first), (n) * sizeof(double)
#define NUMBER(initial, from, to) .fallback = (initial), .min = (from), .max = (to)
#define WHOLE .kind = API_WHOLE
#define LEVELS                                                                                     \
    "null or {\"warning\": R, \"critical\": S}, numbers above 1 to 1e9, S not below R; in a "      \
    "query "                                                                                       \
    "null or R,S"
const struct api_field api_monitor_setting_rows[] = {
    {"method", FIELD(method), .parent = "binning", .words = methods, .fallback = "auto",
     .expected = "auto, quantile, width or labels"},
    {"bins", FIELD(bins), .parent = "binning", WHOLE, NUMBER("10", 1, 1000)},
    {"window", FIELDS(window, 3), .read = read_window, .fallback = "batch",
     .expected = "\"batch\", {\"seconds\": S, \"grace\": S} or {\"count\": N}, whole numbers to "
                 "1e9; in a query batch, 1h, 3600s,60s or 1000, the units s, m, h, d, w"},
    {"compare", FIELDS(previous, 2), .read = read_compare, .fallback = "reference",
     .expected =
         "\"reference\", {\"previous\": K} or {\"previous\": K, \"period\": S}, K from 1 to "
         "1000, S whole seconds to 1e9 or \"month\"; in a query reference, previous:K, "
         "previous:K@24h or previous:K@month"},
    {"timezone", FIELD(zone), .read = read_timezone, .fallback = "UTC",
     .expected = "UTC, an offset such as +02:00, or a name such as Europe/Berlin"},
    {"pseudocount", FIELD(pseudocount), NUMBER("0.5", 0, 1e9)},
    {"min_observations", FIELD(min_observations), WHOLE, NUMBER(NULL, 0, 0x1p53)},
    {"warning", FIELD(warning), .parent = "thresholds", NUMBER("0.02", 0, 1e9)},
    {"critical", FIELD(critical), .parent = "thresholds", NUMBER("0.1", 0, 1e9)},
    {"significance", FIELD(significance), .parent = "thresholds", NUMBER("0.0001", 0, 1),
     .open = true},
    {"ratio", FIELDS(ratio_warning, 2), .read = read_levels, .fallback = "null",
     .expected = LEVELS},
    {"volume", FIELDS(volume_warning, 2), .read = read_levels, .fallback = "null",
     .expected = LEVELS},
    {"pool", FIELD(pool), .kind = API_POWER, NUMBER("16", 1, API_MAX_POOL)},
    {"fire_after", FIELD(fire_after), WHOLE, NUMBER("1", 1, 1000)},
    {"clear_after", FIELD(clear_after), WHOLE, NUMBER("3", 1, 1000)},
    {"stale_after", FIELD(stale_after), NUMBER(NULL, 0, 1e9), .open = true},
    {"retention_days", FIELD(retention_days), NUMBER("90", 0, 36500), .open = true},
    {.name = NULL},
};
#define N_ROWS (sizeof api_monitor_setting_rows / sizeof *api_monitor_setting_rows - 1)

static const char *const parents[] = {"binning", "thresholds", NULL};
#define N_PARENTS (sizeof parents / sizeof *parents - 1)

void api_settings_init(struct api_monitor_settings *settings)
{
    *settings = (struct api_monitor_settings){.given = 0};
    api_fields_init(api_monitor_setting_rows, settings);
}

/* ---- Values */

static bool fail_value(const char *parent, const char *name, const char *expected,
                       struct api_problem *problem)
{
    char within[40];
    snprintf(within, sizeof within, "#/%s%s", parent ? parent : "", parent ? "/" : "");
    return api_fail_member(problem, (struct api_origin){within, name}, "option_invalid",
                           "%s must be %s", name, expected);
}

/* Fails with what a value must be, and for a time zone with the nearest name. */
static bool fail_row(const struct api_field *row, const struct api_value *value,
                     struct api_problem *problem)
{
    char range[API_RANGE], zone[API_ZONE_NAME] = "", mean[API_MEAN], words[300];
    if (row->read == read_timezone && value->kind == API_STRING)
        api_zone_nearest(value->text, zone);
    snprintf(words, sizeof words, "%s%s",
             row->expected ? row->expected : api_field_range(row, range),
             api_mean(mean, *zone ? zone : NULL, ""));
    return fail_value(row->parent, row->name, words, problem);
}

/* Reads one value. If it was given before, both must be the same. */
static bool set(struct api_monitor_settings *settings, const struct api_field *row,
                const struct api_value *value, struct api_problem *problem)
{
    unsigned bit = 1u << (row - api_monitor_setting_rows);
    union api_field_value read = {{0}};
    if (!api_field_read(row, value, &read, NULL))
        return fail_row(row, value, problem);
    if (!api_field_store(row, settings, &read, settings->given & bit))
        return api_fail_at(problem, API_QUERY, row->name, "option_conflict",
                           "%s is given twice, with different values", row->name);
    settings->given |= bit;
    return true;
}

/* ---- Members */

static const struct api_field *find(const char *name, const char *parent)
{
    const struct api_field *row = api_field_find(api_monitor_setting_rows, name);
    bool is_there = row && (row->parent ? parent && strcmp(row->parent, parent) == 0 : !parent);
    return is_there ? row : NULL;
}

/* Lists the names of a scope; returns their number. */
static size_t list_names(const struct api_setting_scope *scope, const char **names, size_t max)
{
    size_t n = 0;
    for (const struct api_field *row = api_monitor_setting_rows; scope->settings && row->name;
         row++)
        if (scope->where == API_QUERY || find(row->name, scope->parent) == row)
            names[n++] = row->name;
    for (size_t i = 0; i < N_PARENTS && scope->where == API_BODY && !scope->parent; i++)
        names[n++] = parents[i];
    for (size_t i = 0; !scope->parent && scope->others[i] && n < max; i++)
        names[n++] = scope->others[i];
    return n;
}

bool api_setting_fail_unknown(const struct api_setting_scope *scope, const char *name,
                              struct api_problem *problem)
{
    const char *names[N_ROWS + N_PARENTS + 20] = {NULL};
    char list[400] = "", within[40], mean[API_MEAN];
    size_t n = list_names(scope, names, sizeof names / sizeof *names);
    for (size_t i = 0; i < n; i++)
        api_append_word(list, sizeof list, names[i]);
    const char *nearest = api_nearest(name, names, n);
    const char *names_are = n == 0 ? "" : nearest ? " The names are " : "; the names are ";
    snprintf(within, sizeof within, "#/%s%s", scope->parent ? scope->parent : "",
             scope->parent ? "/" : "");
    return api_fail_member(problem,
                           (struct api_origin){scope->where == API_QUERY ? NULL : within, name},
                           "option_unknown", "there is no '%.60s' here%s%s%s", name,
                           api_mean(mean, nearest, ""), names_are, list);
}

static bool read_members(struct api_monitor_settings *settings, const json_t *object,
                         const char *parent, const char *const *known, struct api_problem *problem)
{
    const struct api_setting_scope scope = {API_BODY, parent, known, true};
    const char *name;
    json_t *member;
    if (parent && !json_is_object(object) && !json_is_null(object))
        return fail_value(NULL, parent, "an object", problem);
    json_object_foreach((json_t *)object, name, member)
    {
        const struct api_field *row = find(name, parent);
        const struct api_value value = api_value_of(api_json_unboxed(member));
        bool good = row ? set(settings, row, &value, problem)
                    : !parent && api_setting_is_among(name, parents)
                        ? read_members(settings, member, name, known, problem)
                        : (!parent && api_setting_is_among(name, known)) ||
                              api_setting_fail_unknown(&scope, name, problem);
        if (!good)
            return false;
    }
    return true;
}

bool api_settings_from_json(struct api_monitor_settings *settings, const json_t *object,
                            const char *const *known, struct api_problem *problem)
{
    bool good = read_members(settings, object, NULL, known, problem);
    settings->given = 0;
    return good;
}

/* ---- Parameters */

static bool take_parameter(struct api_monitor_settings *settings,
                           const struct api_parameter *parameter, const char *const *known,
                           json_t *others, struct api_problem *problem)
{
    const char *name = parameter->name, *text = parameter->value;
    if (!api_is_utf8(name) || !api_is_utf8(text))
        return api_fail(problem, "query_malformed", "a query parameter is not UTF-8");
    const struct api_field *row = settings ? api_field_find(api_monitor_setting_rows, name) : NULL;
    bool is_known = api_setting_is_among(name, known);
    if ((row || is_known) && !*text)
        return api_fail_at(problem, API_QUERY, name, "option_invalid",
                           "%s is empty: give it a value, or leave it out", name);
    if (is_known) {
        if (json_object_get(others, name))
            return api_fail_at(problem, API_QUERY, name, "option_conflict", "%s is given twice",
                               name);
        return json_object_set_new(others, name, json_string(text)) == 0 || api_fail_oom(problem);
    }
    if (!row)
        return api_setting_fail_unknown(
            &(struct api_setting_scope){API_QUERY, NULL, known, settings != NULL}, name, problem);
    const struct api_value value = api_field_value_of(row, text);
    return set(settings, row, &value, problem);
}

json_t *api_settings_from_query(struct api_monitor_settings *settings, const char *query,
                                const char *const *known, struct api_problem *problem)
{
    struct api_parameter parameter;
    const char *rest = query ? query : "";
    json_t *others = json_object();
    bool good = others || api_fail_oom(problem);
    while (good && api_query_next(&rest, &parameter, problem))
        good = take_parameter(settings, &parameter, known, others, problem);
    if (good && !problem->code)
        return others;
    json_decref(others);
    return NULL;
}

/* ---- What follows from several */

bool api_settings_check(const struct api_monitor_settings *settings, struct api_problem *problem)
{
    bool is_month = settings->period == API_MONTH, is_season = settings->period > 0 && !is_month;
    if (is_month && (settings->window != API_SECONDS || fmod(86400, settings->window_size) != 0))
        return api_fail_at(problem, API_BODY, "#/compare", "option_invalid",
                           "a period of a month needs windows of a day, or of a part of it: "
                           "with window 1d, the last days of months are compared with one another");
    if (is_season &&
        (settings->window != API_SECONDS || fmod(settings->period, settings->window_size) != 0))
        return api_fail_at(problem, API_BODY, "#/compare", "option_invalid",
                           "a period needs windows of time, and is a multiple of their seconds: "
                           "with {\"seconds\": 3600}, 86400 is the same hour of the day before");
    if (settings->volume_warning > 0 && settings->window != API_SECONDS)
        return api_fail_at(problem, API_BODY, "#/volume", "option_invalid",
                           "volume needs windows of time, such as 1h: others have no usual number "
                           "of rows");
    double needed_days = API_VOLUME_MIN * settings->period / 86400;
    if (settings->volume_warning > 0 && settings->retention_days < needed_days)
        return api_fail_at(
            problem, API_BODY, "#/retention_days", "option_invalid",
            "volume looks at the windows of %d periods at least: set retention_days to %.0f "
            "or more",
            API_VOLUME_MIN, ceil(needed_days - 0.01));
    return settings->critical >= settings->warning ||
           api_fail_at(problem, API_BODY, "#/thresholds/critical", "option_invalid",
                       "the critical threshold, %g, is below the warning threshold, %g",
                       settings->critical, settings->warning);
}

int64_t api_settings_running(const struct api_monitor_settings *settings)
{
    return settings->period > 0 ? 0 : (int64_t)settings->previous;
}

size_t api_settings_pool(const struct api_monitor_settings *settings)
{
    return api_settings_running(settings) > 0 ? 1 : (size_t)settings->pool;
}

double api_settings_stale_after(const struct api_monitor_settings *settings)
{
    double windows = settings->window == API_SECONDS ? 3 * settings->window_size : (double)INFINITY;
    return isnan(settings->stale_after) ? windows : settings->stale_after;
}

/* ---- Writing */

static void write_window(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    if (settings->window == API_BATCH)
        api_append_text(out, "\"batch\"");
    else if (settings->window == API_COUNT)
        api_write_json(out, "{'count':%g}", settings->window_size);
    else
        api_write_json(out, "{'seconds':%g,'grace':%g}", settings->window_size, settings->grace);
}

void api_write_compare(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    if (settings->previous == 0)
        api_append_text(out, "\"reference\"");
    else if (settings->period == 0)
        api_write_json(out, "{'previous':%g}", settings->previous);
    else if (settings->period == API_MONTH)
        api_write_json(out, "{'previous':%g,'period':'month'}", settings->previous);
    else
        api_write_json(out, "{'previous':%g,'period':%g}", settings->previous, settings->period);
}

void api_write_thresholds(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    api_write_json(out, "{'warning':%g,'critical':%g,'significance':%g}", settings->warning,
                   settings->critical, settings->significance);
}

static void write_levels(const char *name, double warning, double critical, struct api_buffer *out)
{
    api_append_format(out, ",\"%s\":", name);
    if (warning == 0)
        api_append_text(out, "null");
    else
        api_write_json(out, "{'warning':%g,'critical':%g}", warning, critical);
}

void api_settings_write(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    const char *rule = api_zone_rule(settings->zone);
    api_append_text(out, "\"window\":");
    write_window(settings, out);
    api_append_text(out, ",\"compare\":");
    api_write_compare(settings, out);
    api_write_json(out, ",'timezone':%s", api_zone_name(settings->zone));
    if (*rule)
        api_write_json(out, ",'timezone_rule':%s", rule);
    api_write_json(out,
                   ",'pseudocount':%g,'min_observations':%g,'thresholds':", settings->pseudocount,
                   settings->min_observations);
    api_write_thresholds(settings, out);
    write_levels("ratio", settings->ratio_warning, settings->ratio_critical, out);
    write_levels("volume", settings->volume_warning, settings->volume_critical, out);
    api_write_json(
        out, ",'pool':%g,'fire_after':%g,'clear_after':%g,'stale_after':%g,'retention_days':%g",
        settings->pool, settings->fire_after, settings->clear_after, settings->stale_after,
        settings->retention_days);
}
