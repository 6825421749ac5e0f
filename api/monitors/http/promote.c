/* POST reference: closed windows become the reference. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"
#include "api/monitors/state/metrics.h"

#include "api/json/json_load.h"
#include "api/json/json_text.h"
#include "api/monitors/http/replacing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool api_promote_windows_begin(struct api_exchange *x)
{
    return api_check_names(x) && api_check_may_exist(x) && api_check_body(x);
}

/* ---- Body */

/* Reads the body of POST reference, {"from": TIME, "to": TIME}. */
static bool read_range(struct api_replacing *d)
{
    struct api_exchange *x = d->x;
    struct api_json json = {.budget = x->service->budget};
    bool good = api_load_json(x, &json);
    if (good && (!json_is_object(json.root) || json_object_size(json.root) != 2))
        good = api_fail_at(&x->problem, API_BODY, "#", "option_invalid",
                           "the body must be {\"from\": TIME, \"to\": TIME}");
    const json_t *from = api_json_unboxed(json_object_get(json.root, "from")),
                 *to = api_json_unboxed(json_object_get(json.root, "to"));
    good = good && api_read_time(from, "from", &d->period.from, &x->problem) &&
           api_read_time(to, "to", &d->period.to, &x->problem);
    api_json_free(&json);
    return good;
}

/* Reserves the one replacement of a monitor whose reference is made of windows. */
static bool add_promoted(struct api_replacing *d)
{
    struct api_replacement *r = calloc(1, sizeof *r);
    char *name = strdup(api_name_of(d->x));
    if (!r || !name) {
        free(r);
        free(name);
        return api_fail_oom(&d->x->problem);
    }
    *r = (struct api_replacement){.group = api_group_of(d->x), .name = name};
    d->references.replacements = r;
    d->references.n = 1;
    return true;
}

/* Reads the range, and reserves the replacement. */
static bool read(struct api_replacing *d) { return read_range(d) && add_promoted(d); }

/* ---- In the store's thread */

/* Makes the config that has these counts as its reference; NULL with a problem. */
static struct api_config *load_promoted(const struct api_monitors *monitors,
                                        const struct api_config *old, double *counts,
                                        struct api_problem *problem)
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

/* Makes the config of which closed windows are the reference. */
static bool promote(struct api_replacing *d, struct api_monitors *monitors)
{
    struct api_problem *problem = &d->job.problem;
    struct api_replacement *r = d->references.replacements;
    const struct api_monitor *monitor = api_monitor_of(d->x, monitors, problem);
    double *counts = monitor ? calloc(monitor->config->bins.n_bins, sizeof *counts) : NULL;
    if (!counts)
        return monitor && api_fail_oom(problem);
    bool good = api_period_add_up(monitors, monitor, (const char *const[]){"from", "to"}, INT64_MAX,
                                  &d->period, counts, problem);
    api_config_release(r->config);
    r->config = good ? load_promoted(monitors, monitor->config, counts, problem) : NULL;
    free(counts);
    return r->config &&
           api_config_retain(r->config, monitors->budget, api_monitor_size(r->group, r->name),
                             false, problem) &&
           api_replacing_reserve(d, problem);
}

bool api_promote_windows_prepare(struct api_exchange *x, double max_ns)
{
    static const struct api_replacing_kind windows = {.read = read, .make = promote};
    return api_replacing_prepare(x, &windows, max_ns);
}
