/* Thresholds and ratios of the levels of verdicts. */
#include "api/monitors/model/settings.h"

#include "api/json/format.h"
#include "api/json/json_load.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    api_append_text(out, "{\"warning\":");
    api_write_number(out, settings->warning);
    api_write_member(out, "critical", settings->critical);
    api_write_member(out, "significance", settings->significance);
    api_append_text(out, "}");
}

void api_write_ratio(const struct api_monitor_settings *settings, struct api_buffer *out)
{
    api_append_text(out, ",\"ratio\":");
    if (settings->ratio_warning == 0) {
        api_append_text(out, "null");
        return;
    }
    api_append_text(out, "{\"warning\":");
    api_write_number(out, settings->ratio_warning);
    api_write_member(out, "critical", settings->ratio_critical);
    api_append_text(out, "}");
}
