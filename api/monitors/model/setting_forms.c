/* Settings that have forms of their own: windows, what they are compared with, time zones, thresholds and ratios. */
#include "api/monitors/model/settings.h"

#include "api/json/format.h"
#include "api/json/json_load.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Windows, what they are compared with, time zones */

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

/* Reads "90s", "24h" or "1w", to 1e9 seconds; moves to what follows. NaN for what is none. */
static double read_duration(const char **p)
{
    static const char units[] = "smhdw";
    static const double seconds[] = {1, 60, 3600, 86400, 604800};
    double number = read_digits(p);
    const char *unit = **p ? strchr(units, **p) : NULL;
    number *= unit ? seconds[unit - units] : (double)NAN;
    *p += unit != NULL;
    return number <= 1e9 ? number : (double)NAN;
}

/* Indexes into the numbers of a window, which lie one behind another in the settings. */
enum { KIND, SIZE, GRACE };
_Static_assert(offsetof(struct api_monitor_settings, grace) ==
                   offsetof(struct api_monitor_settings, window) + GRACE * sizeof(double),
               "window, window_size, grace");

/* Reads "1h", "3600s,60s" and "1000". */
static bool window_from_text(const char *p, double *window)
{
    bool counts = !p[strspn(p, "0123456789")];
    window[KIND] = counts ? API_COUNT : API_SECONDS;
    window[SIZE] = counts ? read_digits(&p) : read_duration(&p);
    if (!counts && *p == ',') {
        p++;
        window[GRACE] = read_duration(&p);
    }
    return *p == '\0' && window[SIZE] >= 1 && window[GRACE] >= 0;
}

static bool window_from_object(const json_t *object, double *window)
{
    bool counts = json_object_get(object, "count") != NULL;
    size_t members = !counts && json_object_get(object, "grace") ? 2 : 1;
    window[KIND] = counts ? API_COUNT : API_SECONDS;
    window[SIZE] = whole_member(object, counts ? "count" : "seconds", 1, (double)NAN);
    window[GRACE] = counts ? 0 : whole_member(object, "grace", 0, 0);
    return json_object_size(object) == members && window[SIZE] > 0 && window[GRACE] >= 0;
}

bool api_read_window(const struct api_value *value, union api_field_value *to,
                     struct kl_problem *problem)
{
    (void)problem;
    if (value->kind != API_STRING)
        return window_from_object(value->json, to->numbers);
    return strcmp(value->text, "batch") == 0 || window_from_text(value->text, to->numbers);
}

/* Likewise of what a window is compared with. */
enum { PREVIOUS, PERIOD };
_Static_assert(offsetof(struct api_monitor_settings, period) ==
                   offsetof(struct api_monitor_settings, previous) + PERIOD * sizeof(double),
               "previous, period");

/* Reads "7" and "7@24h". */
static void compare_from_text(const char *p, double *compare)
{
    compare[PREVIOUS] = read_digits(&p);
    if (*p == '@') {
        p++;
        compare[PERIOD] = read_duration(&p);
        if (compare[PERIOD] == 0)
            compare[PREVIOUS] = 0;
    }
    if (*p)
        compare[PREVIOUS] = 0;
}

static void compare_from_object(const json_t *object, double *compare)
{
    bool has_period = json_object_get(object, "period") != NULL;
    if (json_object_size(object) != (has_period ? 2 : 1))
        return;
    compare[PREVIOUS] = whole_member(object, "previous", 1, 0);
    compare[PERIOD] = has_period ? whole_member(object, "period", 1, 0) : 0;
}

bool api_read_compare(const struct api_value *value, union api_field_value *to,
                      struct kl_problem *problem)
{
    static const char previous[] = "previous:";
    double *compare = to->numbers;
    (void)problem;
    if (value->kind != API_STRING)
        compare_from_object(value->json, compare);
    else if (strcmp(value->text, "reference") == 0)
        return true;
    else if (strncmp(value->text, previous, sizeof previous - 1) == 0)
        compare_from_text(value->text + sizeof previous - 1, compare);
    return compare[PREVIOUS] >= 1 && compare[PREVIOUS] <= 1000 && compare[PERIOD] >= 0 &&
           compare[PERIOD] <= 1e9;
}

bool api_read_timezone(const struct api_value *value, union api_field_value *to,
                       struct kl_problem *problem)
{
    const struct api_zone *zone = value->kind == API_STRING ? api_zone_find(value->text) : NULL;
    (void)problem;
    memcpy(to->bytes, &zone, sizeof zone);
    return zone != NULL;
}

void api_write_timezone(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    const char *rule = api_zone_rule(settings->zone);
    api_write_json(out, ",'timezone':%s", api_zone_name(settings->zone));
    if (*rule)
        api_write_json(out, ",'timezone_rule':%s", rule);
}

void api_write_window(const struct api_monitor_settings *settings, struct api_buffer *out)
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
    else
        api_write_json(out, "{'previous':%g,'period':%g}", settings->previous, settings->period);
}

/* ---- Thresholds and ratios */

/* Indexes into the ratios, which lie one behind the other in the settings. */
enum { RATIO_WARNING, RATIO_CRITICAL };
_Static_assert(offsetof(struct api_monitor_settings, ratio_critical) ==
                   offsetof(struct api_monitor_settings, ratio_warning) +
                       RATIO_CRITICAL * sizeof(double),
               "ratio_warning, ratio_critical");

/* Reads "2,4"; NaN for what is none. */
static void ratio_from_text(const char *text, double *ratio)
{
    char *end;
    ratio[RATIO_WARNING] = strtod(text, &end);
    const char *rest = *end == ',' ? end + 1 : "x";
    ratio[RATIO_CRITICAL] = strtod(rest, &end);
    if (end == rest || *end || text[strspn(text, "0123456789.,")])
        ratio[RATIO_WARNING] = (double)NAN;
}

static void ratio_from_object(const json_t *object, double *ratio)
{
    static const char *const names[] = {"warning", "critical"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *number = api_json_unboxed(json_object_get(object, names[i]));
        bool good = json_is_number(number) && json_object_size(object) == 2;
        ratio[i] = good ? json_number_value(number) : (double)NAN;
    }
}

bool api_read_ratio(const struct api_value *value, union api_field_value *to,
                    struct kl_problem *problem)
{
    double *ratio = to->numbers;
    (void)problem;
    if (value->kind == API_NULL || (value->kind == API_STRING && strcmp(value->text, "null") == 0))
        return true;
    if (value->kind == API_STRING)
        ratio_from_text(value->text, ratio);
    else
        ratio_from_object(value->json, ratio);
    return ratio[RATIO_WARNING] > 1 && ratio[RATIO_CRITICAL] >= ratio[RATIO_WARNING] &&
           ratio[RATIO_CRITICAL] <= 1e9;
}

void api_write_thresholds(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    api_write_json(out, "{'warning':%g,'critical':%g,'significance':%g}", settings->warning,
                   settings->critical, settings->significance);
}

void api_write_ratio(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    if (settings->ratio_warning == 0)
        api_append_text(out, ",\"ratio\":null");
    else
        api_write_json(out, ",'ratio':{'warning':%g,'critical':%g}", settings->ratio_warning,
                       settings->ratio_critical);
}
