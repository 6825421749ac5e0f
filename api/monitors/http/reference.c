#include "api/monitors/http/reference.h"

#include "api/monitors/model/format.h"
#include "api/monitors/state/window_rows.h"
#include "api/text/json_load.h"
#include "api/text/json_text.h"

#include <stdio.h>
#include <stdlib.h>

static bool read_bound(const json_t *root, const char *name, int64_t *time,
                       struct api_problem *problem)
{
    char pointer[20];
    const json_t *value = api_json_unboxed(json_object_get(root, name));
    snprintf(pointer, sizeof pointer, "#/%s", name);
    if (json_is_string(value)
            ? api_time_parse(json_string_value(value), time)
            : json_is_number(value) && api_time_from_seconds(json_number_value(value), time))
        return true;
    return api_fail_at(problem, API_BODY, pointer, "timestamp_invalid",
                       "%s must be a time of RFC 3339 with its zone, or seconds since 1970", name);
}

bool api_reference_range_read(struct api_exchange *x, struct api_reference_range *range)
{
    struct api_json json = {.budget = x->service->budget};
    const char *text = api_json_skip_mark(x->request.body);
    size_t size = x->request.body_size - (size_t)(text - x->request.body);
    bool good = api_json_load(&json, text, size);
    if (!good && json.out_of_memory)
        api_fail_oom(&x->problem);
    else if (!good)
        api_fail(&x->problem, "json_malformed", "line %d, column %d: %s", json.error.line,
                 json.error.column, json.error.text);
    if (good && (!json_is_object(json.root) || json_object_size(json.root) != 2))
        good = api_fail_at(&x->problem, API_BODY, "#", "option_invalid",
                           "the body must be {\"from\": TIME, \"to\": TIME}");
    good = good && read_bound(json.root, "from", &range->from, &x->problem) &&
           read_bound(json.root, "to", &range->to, &x->problem);
    api_json_free(&json);
    return good;
}

/* Makes the config that has the counts of closed windows as its reference. */
static struct api_config *promote(const struct api_monitors *monitors, const struct api_config *old,
                                  double *counts, struct api_problem *problem)
{
    struct api_buffer text = {0};
    const struct api_weights weights = {.form = API_COUNTS, .values = counts};
    struct api_config *config = NULL;
    api_append_text(&text, "{\"bins\":");
    api_bins_write(&old->bins, &text);
    api_append_text(&text, ",\"reference\":");
    api_weights_write(&weights, &old->bins, &text);
    api_append(&text, "}", 2);
    if (!text.failed)
        config = api_config_load(text.data, old->others, monitors->budget, problem);
    else
        api_fail_oom(problem);
    api_buffer_free(&text);
    return config;
}

static bool read_windows(struct api_monitors *monitors, const struct api_monitor *monitor,
                         const struct api_reference_range *range, double *counts,
                         struct api_problem *problem)
{
    const struct api_datum between[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                        API_INTEGER(range->from), API_INTEGER(range->to)};
    size_t n_bins = monitor->config->bins.n_bins;
    double n = 0;
    if (!api_counts_run(counts, n_bins, monitors->store, API_SQL_COUNTS_BETWEEN, between))
        return false;
    for (size_t i = 0; i < n_bins; i++)
        n += counts[i];
    return n > 0 || api_fail(problem, "windows_missing",
                             "no closed window of this revision starts between from and to");
}

struct api_config *api_reference_promote(struct api_monitors *monitors,
                                         const struct api_monitor *monitor,
                                         const struct api_reference_range *range,
                                         struct api_problem *problem)
{
    struct api_config *config = NULL;
    double *counts = calloc(monitor->config->bins.n_bins, sizeof *counts);
    if (!counts)
        api_fail_oom(problem);
    else if (read_windows(monitors, monitor, range, counts, problem))
        config = promote(monitors, monitor->config, counts, problem);
    free(counts);
    return config;
}
