/* Settings of Triton's trace and logging extensions
 * (https://github.com/triton-inference-server/server/tree/main/docs/protocol). They are fixed here: a
 * request that sets what is set succeeds, another fails. */
#include "api/json/json_reader.h"
#include "api/json/json_text.h"
#include "api/loss/handlers.h"
#include "api/request/body.h"
#include "api/request/response.h"

#include <string.h>

/* setting: a name, and the JSON of its value. */
struct setting {
    const char *name, *value;
};

/* N_TRACE, N_LOGGING: settings of each extension. */
enum { N_TRACE = 6, N_LOGGING = 6 };

/* No request is traced. */
static const struct setting trace[N_TRACE] = {
    {"trace_level", "[\"OFF\"]"}, {"trace_rate", "\"1000\""}, {"trace_count", "\"-1\""},
    {"log_frequency", "\"0\""},   {"trace_file", "\"\""},     {"trace_mode", "\"triton\""}};

/* Fills in what --log-level chose when the server started. */
static void find_logging(const struct api_service *service, struct setting to[N_LOGGING])
{
    unsigned level = service->log_level;
    const struct setting settings[N_LOGGING] = {
        {"log_file", "\"\""},
        {"log_info", level >= API_LOG_INFO ? "true" : "false"},
        {"log_warnings", level >= API_LOG_WARNING ? "true" : "false"},
        {"log_errors", "true"},
        {"log_verbose_level", level > API_LOG_INFO ? "1" : "0"},
        {"log_format", "\"default\""}};
    memcpy(to, settings, sizeof settings);
}

static bool response_with(struct api_exchange *x, const struct setting *settings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        api_append_format(&x->response.body, "%s\"%s\":%s", i ? "," : "{", settings[i].name,
                          settings[i].value);
    return api_response_json(&x->response, "}");
}

/* ---- Setting what is set */

/* True if a value is that of the setting, or null, which restores it. Numbers may be strings. */
static bool is_same(const char *value, const struct setting *setting)
{
    char given[API_JSON_TEXT], fixed[API_JSON_TEXT];
    return strncmp(value, "null", 4) == 0 ||
           (api_json_characters(api_json_scalar(value), given) &&
            api_json_characters(api_json_scalar(setting->value), fixed) &&
            strcmp(given, fixed) == 0);
}

static bool check_member(struct api_exchange *x, const struct setting *settings, size_t n,
                         const char *name, const char *value)
{
    char location[256];
    api_pointer_to_member(location, sizeof location, "#/", name);
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, settings[i].name) == 0)
            return is_same(value, &settings[i]) ||
                   api_fail_at(&x->problem, API_BODY, location, "setting_fixed",
                               "the setting %s is %s, and cannot be changed", name,
                               settings[i].value);
    return api_fail_at(&x->problem, API_BODY, location, "setting_fixed",
                       "there is no setting '%.60s' here", name);
}

/* Checks a body, which may be empty, and responds with the settings. */
static bool set(struct api_exchange *x, const struct setting *settings, size_t n)
{
    char name[API_JSON_TEXT];
    const char *root, *value;
    if (api_json_skip_mark(x->request.body) == x->request.body + x->request.body_size)
        return response_with(x, settings, n);
    if (!api_body_read_small(x, &root))
        return false;
    struct api_json_reader reader = api_json_read_object(root);
    if (*root != '{')
        return api_fail(&x->problem, "bad_request", "the settings must be a JSON object");
    while (api_json_next_member(&reader, name, &value))
        if (!check_member(x, settings, n, name, value))
            return false;
    return response_with(x, settings, n);
}

/* ---- Endpoints */

bool api_oip_trace(struct api_exchange *x) { return response_with(x, trace, N_TRACE); }

static bool set_trace(struct api_exchange *x) { return set(x, trace, N_TRACE); }

bool api_oip_logging(struct api_exchange *x)
{
    struct setting logging[N_LOGGING];
    find_logging(x->service, logging);
    return response_with(x, logging, N_LOGGING);
}

static bool set_logging(struct api_exchange *x)
{
    struct setting logging[N_LOGGING];
    find_logging(x->service, logging);
    return set(x, logging, N_LOGGING);
}

#define KIND "a body of settings"

const struct api_steps api_oip_set_trace = {.small = KIND, .write = set_trace};
const struct api_steps api_oip_set_logging = {.small = KIND, .write = set_logging};
