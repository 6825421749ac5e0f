#include "api/monitors/model/config.h"

#include "api/monitors/model/pool.h"

#include "api/json/json_load.h"
#include "api/text/nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const api_config_members[] = {
    "columns", "rows",  "warnings", "reference",     "annotations",   "group",
    "name",    "state", "revision", "bins",          "since",         "severity_since",
    "began",   "stale", "muted",    "timezone_rule", "number_format", NULL};

/* ---- Making */

static bool read_bins(struct api_config *config, const json_t *members, struct api_problem *problem)
{
    const json_t *bins = json_object_get(members, "bins");
    if (config->bins.n_bins > 0)
        return true;
    if (!bins || json_is_null(bins))
        return api_fail_at(problem, API_BODY, "#/bins", "bins_missing",
                           "bins are required, or values of a reference from which to make them");
    return api_bins_from_json(&config->bins, bins, problem);
}

/* Checks the names of the reference's members: values that were read, or weights. */
static bool check_reference(const struct api_config *config, const json_t *reference,
                            struct api_problem *problem)
{
    bool made = config->reference.form != API_NO_WEIGHTS;
    const char *name, *nearest;
    char mean[API_MEAN];
    json_t *value;
    if (!reference || json_is_null(reference))
        return true;
    if (!json_is_object(reference))
        return api_fail_at(problem, API_BODY, "#/reference", "counts_invalid",
                           "reference must be an object with values, counts or probabilities");
    json_object_foreach((json_t *)reference, name, value)
    {
        if (api_setting_is_among(name, api_weights_members) &&
            made == (strcmp(name, "values") == 0))
            continue;
        nearest = made ? NULL : api_nearest(name, api_weights_members, API_REFERENCE_MEMBERS);
        return api_fail_member(problem, (struct api_origin){"#/reference/", name},
                               nearest ? "option_unknown" : "counts_invalid",
                               "a reference%s has no member '%.60s'%s", made ? " of values" : "",
                               name, api_mean(mean, nearest, ""));
    }
    return true;
}

static bool read_reference(struct api_config *config, const json_t *members,
                           struct api_problem *problem)
{
    const json_t *reference = json_object_get(members, "reference");
    if (config->reference.form != API_NO_WEIGHTS)
        return true;
    if (!reference || json_is_null(reference))
        return config->settings.previous > 0 ||
               api_fail_at(problem, API_BODY, "#/reference", "reference_missing",
                           "a reference is required unless compare is previous");
    return api_weights_from_json(&config->reference, &config->bins, reference, "#/reference",
                                 problem);
}

/* Terminates a text and takes it out of its buffer; NULL if memory was exhausted. */
static char *take_text(struct api_buffer *text)
{
    api_append(text, "", 1);
    char *copy = text->failed ? NULL : strdup(text->data);
    api_buffer_free(text);
    return copy;
}

void api_config_write_definition(const struct api_bins *bins, const struct api_weights *reference,
                                 struct api_buffer *out)
{
    api_append_text(out, "{\"bins\":");
    api_bins_write(bins, out);
    api_append_text(out, ",\"reference\":");
    api_weights_write(reference, bins, out);
    api_append_text(out, "}");
}

/* MAX_ANNOTATIONS: bytes of annotations as JSON. MAX_DESCRIBED: bins whose descriptions are kept; of more, they are written anew for each response. */
enum { MAX_ANNOTATIONS = 16 << 10, MAX_DESCRIBED = 100 };

static bool write_texts(struct api_config *config, const json_t *annotations)
{
    struct api_buffer definition = {0}, others = {0};
    api_config_write_definition(&config->bins, &config->reference, &definition);
    api_append_text(&others, "{");
    api_settings_write(&config->settings, &others);
    if (api_style_names[config->reference.style])
        api_write_json(&others, ",'number_format':%s", api_style_names[config->reference.style]);
    api_append_text(&others, ",\"annotations\":");
    if (json_object_size(annotations) > 0)
        api_append_json(&others, annotations);
    else
        api_append_text(&others, "{}");
    api_append_text(&others, "}");
    config->definition = take_text(&definition);
    config->others = take_text(&others);
    return config->definition && config->others;
}

/* Reads how the fields of the reference were written, unless its values told. */
static bool read_format(struct api_config *config, const json_t *members,
                        struct api_problem *problem)
{
    const json_t *format = json_object_get(members, "number_format");
    const char *name = json_string_value(format);
    if (!format || json_is_null(format) || config->reference.style != API_PLAIN)
        return true;
    for (int style = 0; name && style < API_STYLES; style++)
        if (api_style_names[style] && strcmp(api_style_names[style], name) == 0) {
            config->reference.style = (enum api_style)style;
            return true;
        }
    return api_fail_at(
        problem, API_BODY, "#/number_format", "option_invalid",
        "number_format must be decimal_point, decimal_comma, dates, dates_month_first or "
        "null");
}

static bool read_annotations(struct api_config *config, const json_t *members,
                             struct api_problem *problem)
{
    const json_t *annotations = json_object_get(members, "annotations");
    if (annotations && !json_is_object(annotations) && !json_is_null(annotations))
        return api_fail_at(problem, API_BODY, "#/annotations", "option_invalid",
                           "annotations must be an object");
    if (!write_texts(config, annotations))
        return api_fail_oom(problem);
    return strlen(config->others) < MAX_ANNOTATIONS ||
           api_fail_at(problem, API_BODY, "#/annotations", "members_too_large",
                       "annotations may have at most 16 KiB");
}

struct api_config *api_config_new(const struct api_monitor_settings *given, const json_t *members,
                                  struct api_bins *bins, struct api_weights *reference,
                                  struct api_problem *problem)
{
    struct api_config *config = calloc(1, sizeof *config);
    if (!config) {
        api_fail_oom(problem);
        return NULL;
    }
    config->refcount = 1;
    config->bins = *bins;
    config->reference = *reference;
    *bins = (struct api_bins){.n = 0};
    *reference = (struct api_weights){.n = 0};
    config->settings = *given;
    if (api_settings_from_json(&config->settings, members, api_config_members, problem) &&
        api_settings_check(&config->settings, problem) &&
        check_reference(config, json_object_get(members, "reference"), problem) &&
        read_bins(config, members, problem) && read_reference(config, members, problem) &&
        (config->reference.form == API_NO_WEIGHTS || config->reference.n > 0 ||
         api_fail_at(problem, API_BODY, "#/reference", "reference_empty",
                     "the reference has no value")) &&
        (config->bins.n_bins > MAX_DESCRIBED || api_bins_describe(&config->bins) ||
         api_fail_oom(problem)) &&
        read_format(config, members, problem) && read_annotations(config, members, problem))
        return config;
    api_config_release(config);
    return NULL;
}

/* Sets the format of numbers, or removes it. False if memory is exhausted. */
static bool set_format(json_t *members, enum api_style style)
{
    const char *name = api_style_names[style];
    json_object_del(members, "number_format");
    return !name || json_object_set_new(members, "number_format", json_string(name)) == 0;
}

/* Makes a config of two texts; of a style if there is one, instead of that in the texts. */
static struct api_config *load(const char *definition, const char *others,
                               const enum api_style *style, struct api_problem *problem)
{
    const size_t size = strlen(definition) + strlen(others);
    struct api_buffer text = {0};
    struct api_json json = {0};
    struct api_monitor_settings settings;
    struct api_bins bins = {.n = 0};
    struct api_weights reference = {.n = 0};
    struct api_config *config = NULL;
    api_settings_init(&settings);
    if (size > API_MAX_CONFIG) {
        api_fail(problem, "store_unavailable", "%zu bytes of JSON are more than is read", size);
        return NULL;
    }
    if (*definition && *others) {
        api_append(&text, definition, strlen(definition) - 1);
        api_append(&text, ",", 1);
        api_append_text(&text, others + 1);
    }
    bool is_read = text.size > 0 && !text.failed && api_json_load(&json, text.data, text.size);
    const char *zone = json_string_value(json_object_get(json.root, "timezone")),
               *rule = json_string_value(json_object_get(json.root, "timezone_rule"));
    if (zone && rule) /* the name may be unknown on this machine now */
        api_zone_keep(zone, rule);
    if (is_read && (!style || set_format(json.root, *style)))
        config = api_config_new(&settings, json.root, &bins, &reference, problem);
    else if (!is_read && !text.failed && !json.out_of_memory)
        api_fail(problem, "store_unavailable", "it is not JSON: %s", json.error.text);
    else
        api_fail_oom(problem);
    api_json_free(&json);
    api_buffer_free(&text);
    return config;
}

struct api_config *api_config_load(const char *definition, const char *others,
                                   struct api_problem *problem)
{
    return load(definition, others, NULL, problem);
}

struct api_config *api_config_renew(const struct api_config *config,
                                    const struct api_config *former, struct api_problem *problem)
{
    return load(config->definition, former->others, &config->reference.style, problem);
}

/* ---- Its memory */

bool api_config_retain(struct api_config *config, struct api_budget *budget, size_t more,
                       struct api_problem *problem)
{
    /* FIXED: bytes of a snapshot, without its counts, of the settings that it is scored by, and what malloc adds. COUNTS:
     * arrays with a number for each bin. */
    enum { COUNTS = 4, FIXED = 1792 };
    size_t size = sizeof *config + FIXED + strlen(config->definition) + strlen(config->others) +
                  api_bins_size(&config->bins) + COUNTS * config->bins.n_bins * sizeof(double) +
                  api_pool_size(&config->settings, &config->bins) + more;
    if (!api_budget_retain(budget, size, true))
        return api_fail_oom(problem);
    config->budget = budget;
    config->retained = size;
    return true;
}

double api_config_result_ns(const struct api_config *config)
{
    double sizes = log2((double)api_settings_pool(&config->settings));
    return 5000 + (300 + 120 * sizes) * (double)config->bins.n_bins;
}

struct api_config *api_config_hold(struct api_config *config)
{
    atomic_fetch_add(&config->refcount, 1);
    return config;
}

void api_config_release(struct api_config *config)
{
    if (!config || atomic_fetch_sub(&config->refcount, 1) > 1)
        return;
    api_budget_forget(config->budget, config->retained);
    api_bins_free(&config->bins);
    api_weights_free(&config->reference);
    free(config->definition);
    free(config->others);
    free(config);
}
