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

static bool check(struct api_exchange *x) { return api_check_monitor(x) && api_check_body(x); }

/* ---- Body */

/* Reads the body of POST reference, {"from": TIME, "to": TIME}. */
static bool read_range(struct api_exchange *x, struct api_period *period)
{
    struct api_json json = {.budget = x->service->budget};
    bool good = api_load_json(x, &json);
    if (good && (!json_is_object(json.root) || json_object_size(json.root) != 2))
        good = api_fail_at(&x->problem, API_BODY, "#", "option_invalid",
                           "the body must be {\"from\": TIME, \"to\": TIME}");
    const json_t *from = api_json_unboxed(json_object_get(json.root, "from")),
                 *to = api_json_unboxed(json_object_get(json.root, "to"));
    good = good && api_read_time(from, API_BODY, "from", &period->from, &x->problem) &&
           api_read_time(to, API_BODY, "to", &period->to, &x->problem);
    api_json_free(&json);
    return good;
}

/* Reserves the one replacement of a monitor whose reference is made of windows. */
static bool add_promoted(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    struct api_replacement *r = calloc(1, sizeof *r);
    char *name = strdup(api_name_of(x));
    if (!r || !name) {
        free(r);
        free(name);
        return api_fail_oom(&x->problem);
    }
    *r = (struct api_replacement){.group = api_group_of(x), .name = name};
    d->references.replacements = r;
    d->references.n = 1;
    return true;
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct api_replacing *d = api_replacing_init(x);
    return api_outcome_of(read_range(x, &d->period) && add_promoted(x));
}

/* ---- In the store's thread */

/* Makes the config that has these counts as its reference; NULL with a problem. */
static struct api_config *load_promoted(const struct api_monitors *monitors,
                                        const struct api_config *old, double *counts,
                                        const struct api_moments *moments,
                                        struct api_problem *problem)
{
    struct api_buffer text = {0};
    struct api_weights weights = {.form = API_COUNTS, .values = counts};
    struct api_config *config = NULL;
    for (size_t i = 0; i < old->bins.n_bins; i++)
        weights.n += counts[i];
    api_weights_set_spread(&weights, api_moments_spread(moments, &old->bins, weights.n));
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

/* Makes the config whose reference is the sum of closed windows. */
static bool promote(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    struct api_problem *problem = &x->problem;
    struct api_replacement *r = d->references.replacements;
    const struct api_monitor *monitor = api_monitor_of(x, monitors, problem);
    struct api_moments moments = {.n = 0};
    double *counts = monitor ? calloc(monitor->config->bins.n_bins, sizeof *counts) : NULL;
    if (!counts)
        return monitor && api_fail_oom(problem);
    bool good = api_period_add_up(monitors, monitor, (const char *const[]){"from", "to"}, INT64_MAX,
                                  &d->period, counts, &moments, problem);
    api_config_release(r->config);
    r->config = good ? load_promoted(monitors, monitor->config, counts, &moments, problem) : NULL;
    free(counts);
    return r->config &&
           api_config_retain(r->config, monitors->budget, api_monitor_size(r->group, r->name),
                             false, problem) &&
           api_replacing_reserve(x);
}

static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    return api_outcome_of(api_find_monitor(x, &x->problem) &&
                          api_check_conditions(x, monitors, &x->problem) && promote(x, monitors) &&
                          api_replacing_store(x, monitors));
}

const struct api_steps api_promote_windows = {.place = API_STORE_WRITES,
                                              .small = "a period",
                                              .state = sizeof(struct api_replacing),
                                              .check = check,
                                              .estimate = api_estimate_documents,
                                              .parse = parse,
                                              .run = run,
                                              .read_back = api_replacing_read_back,
                                              .publish = api_replacing_publish,
                                              .write = api_replacing_write,
                                              .drop = api_replacing_drop};
