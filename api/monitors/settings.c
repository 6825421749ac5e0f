#include "api/monitors/settings.h"

#include "api/options.h"
#include "api/text/nearest.h"
#include "api/text/percent.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY 86400

/* kind: NUMBER is one, WHOLE one without a fraction; null resets either. The others have forms of
 * their own. */
enum kind { NUMBER, WHOLE, METHOD, WINDOW, COMPARE };

static const char *const methods[] = {"auto", "quantile", "width", "labels"};
#define N_METHODS (sizeof methods / sizeof *methods)

static const struct row {
    const char *name;   /* as a query parameter, and as a member */
    const char *parent; /* the member that it is a member of, or NULL */
    size_t offset;
    double fallback, least, most; /* `least` is allowed, or where it is an open 0, not */
    enum kind kind;
    bool open;
} rows[] = {
#define FIELD(name) offsetof(struct api_settings, name)
    {"method", "binning", FIELD(method), API_AUTO, 0, 0, METHOD, false},
    {"bins", "binning", FIELD(bins), 10, 1, 1000, WHOLE, false},
    {"window", NULL, FIELD(window), API_BATCH, 0, 0, WINDOW, false},
    {"compare", NULL, FIELD(previous), 0, 0, 0, COMPARE, false},
    {"pseudocount", NULL, FIELD(pseudocount), 0.5, 0, 1e9, NUMBER, false},
    {"min_observations", NULL, FIELD(min_observations), (double)NAN, 0, 0x1p53, WHOLE, false},
    {"warning", "thresholds", FIELD(warning), 0.1, 0, 1e9, NUMBER, false},
    {"critical", "thresholds", FIELD(critical), 0.25, 0, 1e9, NUMBER, false},
    {"significance", "thresholds", FIELD(significance), 0.01, 0, 1, NUMBER, true},
    {"fire_after", NULL, FIELD(fire_after), 1, 1, 1000, WHOLE, false},
    {"clear_after", NULL, FIELD(clear_after), 1, 1, 1000, WHOLE, false},
    {"retention_days", NULL, FIELD(retention_days), 90, 0, 36500, NUMBER, true},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const char *const parents[] = {"binning", "thresholds"};
#define N_PARENTS (sizeof parents / sizeof *parents)

static double *field(struct api_settings *settings, const struct row *row)
{
    return (void *)((char *)settings + row->offset);
}

void api_settings_init(struct api_settings *settings)
{
    *settings = (struct api_settings){.window = API_BATCH};
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
        *field(settings, row) = row->fallback;
}

/* ---- Values */

static bool fail(struct api_problem *problem, const struct row *row, const char *expected)
{
    char place[80];
    snprintf(place, sizeof place, "#/%s%s%s", row->parent ? row->parent : "",
             row->parent ? "/" : "", row->name);
    return api_fail_at(problem, API_BODY, place, "option_invalid", "%s must be %s", row->name,
                       expected);
}

static bool read_number(const struct row *row, const json_t *value, struct api_settings *settings,
                        struct api_problem *problem)
{
    char expected[100];
    double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
    bool whole = row->kind == WHOLE;
    if (json_is_null(value)) {
        *field(settings, row) = row->fallback;
        return true;
    }
    *field(settings, row) = number;
    if (number >= row->least && number <= row->most && !(row->open && number == row->least) &&
        (!whole || number == floor(number)))
        return true;
    snprintf(expected, sizeof expected, "%s from %s%g to %.16g",
             whole ? "a whole number" : "a number", row->open ? "above " : "", row->least,
             row->most);
    return fail(problem, row, expected);
}

static bool read_method(const struct row *row, const json_t *value, struct api_settings *settings,
                        struct api_problem *problem)
{
    const char *word = json_string_value(value);
    for (size_t i = 0; word && i < N_METHODS; i++)
        if (strcmp(word, methods[i]) == 0) {
            settings->method = (double)i;
            return true;
        }
    return fail(problem, row, "auto, quantile, width or labels");
}

/* A whole number within bounds, of a member; `fallback` if it is absent. */
static double whole_member(const json_t *object, const char *name, double least, double fallback)
{
    const json_t *value = json_object_get(object, name);
    double number = value ? json_number_value(value) : fallback;
    bool good = (!value || json_is_number(value)) && number >= least && number <= 1e9 &&
                number == floor(number);
    return good ? number : (double)NAN;
}

/* Reads "3600s", "3600s,60s" and "1000". */
static bool window_from_text(const char *text, struct api_settings *settings)
{
    char *end;
    double size = strtod(text, &end), grace = 0;
    bool seconds = *end == 's';
    if (end == text || size < 1 || size > 1e9 || size != floor(size))
        return false;
    if (seconds && end[1] == ',') {
        const char *second = end + 2;
        grace = strtod(second, &end);
        if (end == second || !(grace >= 0 && grace <= 1e9) || grace != floor(grace) || *end != 's')
            return false;
    }
    settings->window = seconds ? API_SECONDS : API_COUNT;
    settings->window_size = size;
    settings->grace = grace;
    return strcmp(end, seconds ? "s" : "") == 0;
}

static bool window_from_object(const json_t *object, struct api_settings *settings)
{
    bool counts = json_object_get(object, "count") != NULL;
    size_t members = !counts && json_object_get(object, "grace") ? 2 : 1;
    settings->window = counts ? API_COUNT : API_SECONDS;
    settings->window_size = whole_member(object, counts ? "count" : "seconds", 1, (double)NAN);
    settings->grace = counts ? 0 : whole_member(object, "grace", 0, 0);
    return json_object_size(object) == members && settings->window_size > 0 && settings->grace >= 0;
}

static bool read_window(const struct row *row, const json_t *value, struct api_settings *settings,
                        struct api_problem *problem)
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
        problem, row,
        "\"batch\", {\"seconds\": S, \"grace\": S} or {\"count\": N}, whole numbers to 1e9; in "
        "a query batch, 3600s, 3600s,60s or 1000");
}

static bool read_compare(const struct row *row, const json_t *value, struct api_settings *settings,
                         struct api_problem *problem)
{
    static const char previous[] = "previous:";
    const char *text = json_string_value(value);
    char *end;
    settings->previous = 0;
    if (text && strcmp(text, "reference") == 0)
        return true;
    if (text && strncmp(text, previous, sizeof previous - 1) == 0) {
        settings->previous = (double)strtoul(text + sizeof previous - 1, &end, 10);
        if (*end || end == text + sizeof previous - 1)
            settings->previous = 0;
    } else if (json_is_object(value) && json_object_size(value) == 1) {
        settings->previous = whole_member(value, "previous", 1, 0);
    }
    if (settings->previous >= 1 && settings->previous <= 1000)
        return true;
    return fail(problem, row,
                "\"reference\" or {\"previous\": K}, K from 1 to 1000; in a query reference or "
                "previous:K");
}

static bool read_value(const struct row *row, const json_t *value, struct api_settings *settings,
                       struct api_problem *problem)
{
    static bool (*const readers[])(const struct row *, const json_t *, struct api_settings *,
                                   struct api_problem *) = {[NUMBER] = read_number,
                                                            [WHOLE] = read_number,
                                                            [METHOD] = read_method,
                                                            [WINDOW] = read_window,
                                                            [COMPARE] = read_compare};
    return readers[row->kind](row, value, settings, problem);
}

/* ---- Members */

static const struct row *find(const char *name, const char *parent)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
        if (strcmp(row->name, name) == 0 &&
            (row->parent ? parent && strcmp(row->parent, parent) == 0 : !parent))
            return row;
    return NULL;
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static size_t count(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

/* scope: the names that are valid somewhere: below `parent`, or at the top with `known` beside settings,
 * if `settings` are valid there. */
struct scope {
    enum api_place where;
    const char *parent;
    const char *const *known; /* NULL at the end */
    bool settings;
};

/* Lists the names of a scope; returns their number. */
static size_t list_names(const struct scope *scope, const char **names, size_t most)
{
    size_t n = 0;
    for (const struct row *row = rows; scope->settings && row < rows + N_ROWS; row++)
        if (scope->where == API_QUERY || find(row->name, scope->parent) == row)
            names[n++] = row->name;
    for (size_t i = 0; i < N_PARENTS && scope->where == API_BODY && !scope->parent; i++)
        names[n++] = parents[i];
    for (size_t i = 0; !scope->parent && scope->known[i] && n < most; i++)
        names[n++] = scope->known[i];
    return n;
}

static bool fail_unknown(const struct scope *scope, const char *name, struct api_problem *problem)
{
    const char *names[N_ROWS + N_PARENTS + 20];
    char list[400] = "", place[200], within[40];
    size_t n = list_names(scope, names, sizeof names / sizeof *names), used = 0;
    for (size_t i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", names[i]);
    const char *nearest = api_nearest(name, names, n);
    const char *names_are = n == 0 ? "" : nearest ? " The names are " : "; the names are ";
    snprintf(within, sizeof within, "#/%s%s", scope->parent ? scope->parent : "",
             scope->parent ? "/" : "");
    if (scope->where == API_BODY)
        api_pointer_to_member(place, sizeof place, within, name);
    else
        snprintf(place, sizeof place, "%.100s", name);
    return api_fail_at(problem, scope->where, place, "option_unknown",
                       "there is no '%.60s' here%s%s%s%s%s", name,
                       nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "", names_are, list);
}

static bool read_members(struct api_settings *settings, const json_t *object, const char *parent,
                         const char *const *known, struct api_problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const struct row *row = find(name, parent);
        if (row) {
            if (!read_value(row, value, settings, problem))
                return false;
        } else if (!parent && is_among(name, parents, N_PARENTS)) {
            if (!json_is_object(value) && !json_is_null(value))
                return api_fail(problem, "option_invalid", "%s must be an object", name);
            if (!read_members(settings, value, name, known, problem))
                return false;
        } else if (parent || !is_among(name, known, count(known))) {
            return fail_unknown(&(struct scope){API_BODY, parent, known, true}, name, problem);
        }
    }
    return true;
}

bool api_settings_from_json(struct api_settings *settings, const json_t *object,
                            const char *const *known, struct api_problem *problem)
{
    return read_members(settings, object, NULL, known, problem);
}

bool api_settings_check(const struct api_settings *settings, struct api_problem *problem)
{
    return settings->critical >= settings->warning ||
           api_fail_at(problem, API_BODY, "#/thresholds/critical", "option_invalid",
                       "the critical threshold, %g, is below that of warning, %g",
                       settings->critical, settings->warning);
}

/* ---- Query */

/* MAX_PARAMETER: bytes of a name or a value. */
enum { MAX_PARAMETER = 400 };

static bool decode(const char *from, size_t size, char *to, struct api_problem *problem)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++, n++) {
        int byte = from[i] == '%' && i + 2 < size ? api_percent_decode(from + i)
                   : from[i] == '%'               ? -1
                   : from[i] == '+'               ? ' '
                                                  : (unsigned char)from[i];
        if (n == MAX_PARAMETER || byte <= 0)
            return api_fail(problem, "query_malformed",
                            "a query parameter is too long, or has a %% without two digits");
        to[n] = (char)byte;
        i += from[i] == '%' ? 2 : 0;
    }
    to[n] = '\0';
    return true;
}

/* The member that a parameter stands for: its number, null, or its text. */
static json_t *value_of(const struct row *row, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (row->kind > WHOLE)
        return json_string(text);
    if (strcmp(text, "null") == 0 || !*text)
        return json_null();
    bool plain = !*end && !text[strspn(text, "0123456789+-.eE")];
    json_t *value = plain ? json_real(number) : NULL; /* NULL for a number that is too large */
    return value ? value : json_string(text);
}

/* Reads one value into settings that are the defaults otherwise. */
static bool read_alone(struct api_settings *settings, const struct row *row, const json_t *value)
{
    struct api_problem ignored = {0};
    api_settings_init(settings);
    return read_value(row, value, settings, &ignored);
}

/* Adds a member; fails if the object has it with another value. */
static bool add(json_t *object, const struct row *row, json_t *value, struct api_problem *problem)
{
    struct api_settings once, twice;
    if (row->parent && !json_is_object(json_object_get(object, row->parent)))
        json_object_set_new(object, row->parent, json_object());
    json_t *parent = row->parent ? json_object_get(object, row->parent) : object;
    json_t *there = json_object_get(parent, row->name);
    if (!value || !parent)
        return api_fail_for_memory(problem);
    if (!there)
        return json_object_set_new(parent, row->name, value) == 0 || api_fail_for_memory(problem);
    bool same = read_alone(&once, row, there) && read_alone(&twice, row, value);
    for (const struct row *r = rows; same && r < rows + N_ROWS; r++) {
        double a = *field(&once, r), b = *field(&twice, r);
        same = a == b || (isnan(a) && isnan(b));
    }
    same = same && once.window_size == twice.window_size && once.grace == twice.grace;
    json_decref(value);
    return same || api_fail_at(problem, API_QUERY, row->name, "option_conflict",
                               "%s is given twice, with different values", row->name);
}

static const struct row *find_parameter(const char *name)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static bool read_parameter(json_t *object, const char *p, size_t size, const char *const *known,
                           json_t *others, struct api_problem *problem)
{
    char name[MAX_PARAMETER + 1] = "", value[MAX_PARAMETER + 1] = "";
    const char *equals = memchr(p, '=', size);
    size_t name_size = equals ? (size_t)(equals - p) : size;
    size_t skip = equals ? name_size + 1 : size;
    if (!decode(p, name_size, name, problem) || !decode(p + skip, size - skip, value, problem))
        return false;
    if (is_among(name, known, count(known))) {
        if (json_object_get(others, name))
            return api_fail_at(problem, API_QUERY, name, "option_conflict", "%s is given twice",
                               name);
        return json_object_set_new(others, name, json_string(value)) == 0 ||
               api_fail_at(problem, API_QUERY, name, "option_invalid", "%s is not UTF-8", name);
    }
    const struct row *row = object ? find_parameter(name) : NULL;
    if (!row)
        return fail_unknown(&(struct scope){API_QUERY, NULL, known, object != NULL}, name, problem);
    return add(object, row, value_of(row, value), problem);
}

bool api_settings_from_query(json_t *object, const char *query, const char *const *known,
                             json_t *others, struct api_problem *problem)
{
    for (const char *p = query ? query : ""; *p; p += *p == '&') {
        size_t size = strcspn(p, "&");
        if (size > 0 && !read_parameter(object, p, size, known, others, problem))
            return false;
        p += size;
    }
    return true;
}
