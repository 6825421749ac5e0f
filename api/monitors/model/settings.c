#include "api/monitors/model/settings.h"

#include "api/json/format.h"
#include "api/json/json_load.h"
#include "api/text/nearest.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const methods[] = {"auto", "quantile", "width", "labels"};
#define N_METHODS (sizeof methods / sizeof *methods)

const struct api_monitor_setting api_monitor_setting_rows[] = {
#define FIELD(name) offsetof(struct api_monitor_settings, name)
    {"method", "binning", FIELD(method), API_AUTO, 0, 0, API_SETTING_METHOD, false},
    {"bins", "binning", FIELD(bins), 10, 1, 1000, API_SETTING_WHOLE, false},
    {"window", NULL, FIELD(window), API_BATCH, 0, 0, API_SETTING_WINDOW, false},
    {"compare", NULL, FIELD(previous), 0, 0, 0, API_SETTING_COMPARE, false},
    {"pseudocount", NULL, FIELD(pseudocount), 0.5, 0, 1e9, API_SETTING_NUMBER, false},
    {"min_observations", NULL, FIELD(min_observations), (double)NAN, 0, 0x1p53, API_SETTING_WHOLE,
     false},
    {"warning", "thresholds", FIELD(warning), 0.02, 0, 1e9, API_SETTING_NUMBER, false},
    {"critical", "thresholds", FIELD(critical), 0.1, 0, 1e9, API_SETTING_NUMBER, false},
    {"significance", "thresholds", FIELD(significance), 0.0001, 0, 1, API_SETTING_NUMBER, true},
    {"pool", NULL, FIELD(pool), 16, 1, 64, API_SETTING_POWER, false},
    {"fire_after", NULL, FIELD(fire_after), 1, 1, 1000, API_SETTING_WHOLE, false},
    {"clear_after", NULL, FIELD(clear_after), 3, 1, 1000, API_SETTING_WHOLE, false},
    {"stale_after", NULL, FIELD(stale_after), (double)NAN, 0, 1e9, API_SETTING_NUMBER, true},
    {"retention_days", NULL, FIELD(retention_days), 90, 0, 36500, API_SETTING_NUMBER, true},
    {.name = NULL},
};
#define N_ROWS (sizeof api_monitor_setting_rows / sizeof *api_monitor_setting_rows - 1)

static const char *const parents[] = {"binning", "thresholds", NULL};
#define N_PARENTS (sizeof parents / sizeof *parents - 1)

double *api_setting_field(struct api_monitor_settings *settings,
                          const struct api_monitor_setting *row)
{
    return (void *)((char *)settings + row->offset);
}

void api_settings_init(struct api_monitor_settings *settings)
{
    *settings = (struct api_monitor_settings){.window = API_BATCH};
    for (const struct api_monitor_setting *row = api_monitor_setting_rows; row->name; row++)
        *api_setting_field(settings, row) = row->fallback;
}

/* ---- Values */

static bool fail(struct api_problem *problem, const char *parent, const char *name,
                 const char *expected)
{
    char pointer[80];
    snprintf(pointer, sizeof pointer, "#/%s%s%s", parent ? parent : "", parent ? "/" : "", name);
    return api_fail_at(problem, API_BODY, pointer, "option_invalid", "%s must be %s", name,
                       expected);
}

static bool read_number(const struct api_monitor_setting *row, const json_t *value,
                        struct api_monitor_settings *settings, struct api_problem *problem)
{
    char expected[100];
    double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
    bool power = row->kind == API_SETTING_POWER, whole = row->kind == API_SETTING_WHOLE || power;
    if (json_is_null(value)) {
        *api_setting_field(settings, row) = row->fallback;
        return true;
    }
    *api_setting_field(settings, row) = number;
    if (number >= row->min && number <= row->max && !(row->open && number == row->min) &&
        (!whole || number == floor(number)) && (!power || ((int)number & ((int)number - 1)) == 0))
        return true;
    snprintf(expected, sizeof expected, "%s from %s%g to %.16g",
             power   ? "a power of two"
             : whole ? "a whole number"
                     : "a number",
             row->open ? "above " : "", row->min, row->max);
    return fail(problem, row->parent, row->name, expected);
}

static bool read_method(const struct api_monitor_setting *row, const json_t *value,
                        struct api_monitor_settings *settings, struct api_problem *problem)
{
    const char *word = json_string_value(value);
    if (word)
        for (size_t i = 0; i < N_METHODS; i++)
            if (strcmp(word, methods[i]) == 0) {
                settings->method = (double)i;
                return true;
            }
    return fail(problem, row->parent, row->name, "auto, quantile, width or labels");
}

/* A whole number within bounds, of a member; `fallback` if it is absent. */
static double whole_member(const json_t *object, const char *name, double min, double fallback)
{
    const json_t *value = api_json_unboxed(json_object_get(object, name));
    double number = value ? json_number_value(value) : fallback;
    bool good = (!value || json_is_number(value)) && number >= min && number <= 1e9 &&
                number == floor(number);
    return good ? number : (double)NAN;
}

/* Reads digits, a number to 1e9; moves to what follows. NaN if there are none. */
static double read_digits(const char **p)
{
    size_t length = strspn(*p, "0123456789");
    double number = length > 0 ? strtod(*p, NULL) : (double)NAN;
    *p += length;
    return number <= 1e9 ? number : (double)NAN;
}

/* Reads "3600s", "3600s,60s" and "1000". */
static bool window_from_text(const char *text, struct api_monitor_settings *settings)
{
    const char *p = text;
    settings->window_size = read_digits(&p);
    bool seconds = *p == 's';
    settings->window = seconds ? API_SECONDS : API_COUNT;
    p += seconds;
    if (seconds && *p == ',') {
        p++;
        settings->grace = read_digits(&p);
        if (*p++ != 's')
            return false;
    }
    return *p == '\0' && settings->window_size >= 1 && settings->grace >= 0;
}

static bool window_from_object(const json_t *object, struct api_monitor_settings *settings)
{
    bool counts = json_object_get(object, "count") != NULL;
    size_t members = !counts && json_object_get(object, "grace") ? 2 : 1;
    settings->window = counts ? API_COUNT : API_SECONDS;
    settings->window_size = whole_member(object, counts ? "count" : "seconds", 1, (double)NAN);
    settings->grace = counts ? 0 : whole_member(object, "grace", 0, 0);
    return json_object_size(object) == members && settings->window_size > 0 && settings->grace >= 0;
}

static bool read_window(const struct api_monitor_setting *row, const json_t *value,
                        struct api_monitor_settings *settings, struct api_problem *problem)
{
    const char *text = json_string_value(value);
    settings->window = API_BATCH;
    settings->window_size = settings->grace = 0;
    if (text && strcmp(text, "batch") == 0)
        return true;
    if (text ? window_from_text(text, settings)
             : json_is_object(value) && window_from_object(value, settings))
        return true;
    return fail(
        problem, row->parent, row->name,
        "\"batch\", {\"seconds\": S, \"grace\": S} or {\"count\": N}, whole numbers to 1e9; in "
        "a query batch, 3600s, 3600s,60s or 1000");
}

/* Reads "7" and "7@24h". */
static void compare_from_text(const char *p, struct api_monitor_settings *settings)
{
    static const char units[] = "smhd";
    static const double seconds[] = {1, 60, 3600, 86400};
    settings->previous = read_digits(&p);
    if (*p == '@') {
        p++;
        settings->period = read_digits(&p);
        const char *unit = *p ? strchr(units, *p) : NULL;
        settings->period *= unit && settings->period > 0 ? seconds[unit - units] : (double)NAN;
        p += unit != NULL;
    }
    if (*p)
        settings->previous = 0;
}

static void compare_from_object(const json_t *object, struct api_monitor_settings *settings)
{
    bool has_period = json_object_get(object, "period") != NULL;
    if (json_object_size(object) != (has_period ? 2 : 1))
        return;
    settings->previous = whole_member(object, "previous", 1, 0);
    settings->period = has_period ? whole_member(object, "period", 1, 0) : 0;
}

static bool read_compare(const struct api_monitor_setting *row, const json_t *value,
                         struct api_monitor_settings *settings, struct api_problem *problem)
{
    static const char previous[] = "previous:";
    const char *text = json_string_value(value);
    settings->previous = settings->period = 0;
    if (text && strcmp(text, "reference") == 0)
        return true;
    if (text && strncmp(text, previous, sizeof previous - 1) == 0)
        compare_from_text(text + sizeof previous - 1, settings);
    else if (json_is_object(value))
        compare_from_object(value, settings);
    if (settings->previous >= 1 && settings->previous <= 1000 && settings->period >= 0 &&
        settings->period <= 1e9)
        return true;
    return fail(problem, row->parent, row->name,
                "\"reference\", {\"previous\": K} or {\"previous\": K, \"period\": S}, K from 1 to "
                "1000, S whole seconds to 1e9; in a query reference, previous:K or previous:K@24h");
}

bool api_setting_read(const struct api_monitor_setting *row, const json_t *value,
                      struct api_monitor_settings *settings, struct api_problem *problem)
{
    static bool (*const readers[])(const struct api_monitor_setting *, const json_t *,
                                   struct api_monitor_settings *, struct api_problem *) = {
        [API_SETTING_NUMBER] = read_number, [API_SETTING_WHOLE] = read_number,
        [API_SETTING_POWER] = read_number,  [API_SETTING_METHOD] = read_method,
        [API_SETTING_WINDOW] = read_window, [API_SETTING_COMPARE] = read_compare};
    return readers[row->kind](row, api_json_unboxed(value), settings, problem);
}

/* ---- Members */

static const struct api_monitor_setting *find(const char *name, const char *parent)
{
    for (const struct api_monitor_setting *row = api_monitor_setting_rows; row->name; row++)
        if (strcmp(row->name, name) == 0 &&
            (row->parent ? parent && strcmp(row->parent, parent) == 0 : !parent))
            return row;
    return NULL;
}

bool api_setting_is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names;
}

/* Lists the names of a scope; returns their number. */
static size_t list_names(const struct api_setting_scope *scope, const char **names, size_t max)
{
    size_t n = 0;
    for (const struct api_monitor_setting *row = api_monitor_setting_rows;
         scope->settings && row->name; row++)
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
    const char *names[N_ROWS + N_PARENTS + 20];
    char list[400] = "", pointer[200], within[40];
    size_t n = list_names(scope, names, sizeof names / sizeof *names), used = 0;
    for (size_t i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", names[i]);
    const char *nearest = api_nearest(name, names, n);
    const char *names_are = n == 0 ? "" : nearest ? " The names are " : "; the names are ";
    snprintf(within, sizeof within, "#/%s%s", scope->parent ? scope->parent : "",
             scope->parent ? "/" : "");
    api_pointer_to_member(pointer, sizeof pointer, within, name);
    return api_fail_at(problem, scope->where, scope->where == API_QUERY ? name : pointer,
                       "option_unknown", "there is no '%.60s' here%s%s%s%s%s", name,
                       nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "", names_are, list);
}

static bool read_members(struct api_monitor_settings *settings, const json_t *object,
                         const char *parent, const char *const *known, struct api_problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const struct api_monitor_setting *row = find(name, parent);
        if (row) {
            if (!api_setting_read(row, value, settings, problem))
                return false;
        } else if (!parent && api_setting_is_among(name, parents)) {
            if (!json_is_object(value) && !json_is_null(value))
                return fail(problem, NULL, name, "an object");
            if (!read_members(settings, value, name, known, problem))
                return false;
        } else if (parent || !api_setting_is_among(name, known)) {
            return api_setting_fail_unknown(
                &(struct api_setting_scope){API_BODY, parent, known, true}, name, problem);
        }
    }
    return true;
}

bool api_settings_from_json(struct api_monitor_settings *settings, const json_t *object,
                            const char *const *known, struct api_problem *problem)
{
    return read_members(settings, object, NULL, known, problem);
}

bool api_settings_check(const struct api_monitor_settings *settings, struct api_problem *problem)
{
    bool is_season = settings->period > 0;
    if (is_season &&
        (settings->window != API_SECONDS || fmod(settings->period, settings->window_size) != 0))
        return api_fail_at(problem, API_BODY, "#/compare", "option_invalid",
                           "a period needs windows of time, and is a multiple of their seconds: "
                           "with {\"seconds\": 3600}, 86400 is the same hour of the day before");
    return settings->critical >= settings->warning ||
           api_fail_at(problem, API_BODY, "#/thresholds/critical", "option_invalid",
                       "the critical threshold, %g, is below the warning threshold, %g",
                       settings->critical, settings->warning);
}

/* ---- What follows from several */

int64_t api_settings_running(const struct api_monitor_settings *settings)
{
    return settings->period > 0 ? 0 : (int64_t)settings->previous;
}

size_t api_settings_pool(const struct api_monitor_settings *settings)
{
    return api_settings_running(settings) > 0 ? 1 : (size_t)settings->pool;
}

int64_t api_window_start(const struct api_monitor_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * API_SECOND_US;
    return settings->window == API_SECONDS ? time - (time % size + size) % size : time;
}

double api_settings_stale_after(const struct api_monitor_settings *settings)
{
    double windows = settings->window == API_SECONDS ? 3 * settings->window_size : (double)INFINITY;
    return isnan(settings->stale_after) ? windows : settings->stale_after;
}

/* ---- Writing */

static void write_window(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    if (settings->window == API_BATCH) {
        api_append_text(out, "\"batch\"");
    } else {
        api_append_text(out, settings->window == API_COUNT ? "{\"count\":" : "{\"seconds\":");
        api_write_number(out, settings->window_size);
        if (settings->window == API_SECONDS)
            api_write_member(out, "grace", settings->grace);
        api_append_text(out, "}");
    }
}

void api_write_compare(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    if (settings->previous == 0) {
        api_append_text(out, "\"reference\"");
        return;
    }
    api_append_text(out, "{\"previous\":");
    api_write_number(out, settings->previous);
    if (settings->period > 0)
        api_write_member(out, "period", settings->period);
    api_append_text(out, "}");
}

void api_write_thresholds(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    api_append_text(out, "{\"warning\":");
    api_write_number(out, settings->warning);
    api_write_member(out, "critical", settings->critical);
    api_write_member(out, "significance", settings->significance);
    api_append_text(out, "}");
}

void api_settings_write(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    api_append_text(out, "\"window\":");
    write_window(settings, out);
    api_append_text(out, ",\"compare\":");
    api_write_compare(settings, out);
    api_write_member(out, "pseudocount", settings->pseudocount);
    api_write_member(out, "min_observations", settings->min_observations);
    api_append_text(out, ",\"thresholds\":");
    api_write_thresholds(settings, out);
    api_write_member(out, "pool", settings->pool);
    api_write_member(out, "fire_after", settings->fire_after);
    api_write_member(out, "clear_after", settings->clear_after);
    api_write_member(out, "stale_after", settings->stale_after);
    api_write_member(out, "retention_days", settings->retention_days);
}
