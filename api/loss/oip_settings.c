/* Settings of Triton's trace and logging extensions
 * (https://github.com/triton-inference-server/server/tree/main/docs/protocol). They are fixed here: a
 * request that sets what is set succeeds, another fails. */
#include "api/json/json_cursor.h"
#include "api/json/json_text.h"
#include "api/loss/handlers.h"
#include "api/request/endpoint.h"
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

/* True if the value at the cursor is that of the setting, or null, which restores it. Numbers may be strings. */
static bool is_same(struct api_json_cursor *c, const struct setting *setting)
{
    char given[API_JSON_TEXT];
    const char *fixed = setting->value + strspn(setting->value, "[\"");
    size_t size = strcspn(fixed, "\"]");
    bool is_null = api_json_peek(c) == 'n';
    return api_json_characters(c, given) &&
           (is_null || (strlen(given) == size && memcmp(given, fixed, size) == 0));
}

static bool check_member(struct api_json_cursor *c, const struct setting *settings, size_t n,
                         const char *name, unsigned *given)
{
    char location[256];
    size_t i = 0;
    api_pointer_to_member(location, sizeof location, "#/", name);
    while (i < n && strcmp(name, settings[i].name) != 0)
        i++;
    if (i == n)
        return api_fail_at(c->problem, API_BODY, location, "setting_fixed",
                           "there is no setting '%.60s' here", name);
    if (*given >> i & 1)
        return api_json_repeated(c);
    *given |= 1u << i;
    return is_same(c, &settings[i]) ||
           api_fail_at(c->problem, API_BODY, location, "setting_fixed",
                       "the setting %s is %s, and cannot be changed", name, settings[i].value);
}

/* Checks a body, which may be empty, and responds with the settings. */
static bool set(struct api_exchange *x, const struct setting *settings, size_t n)
{
    char name[API_JSON_TEXT];
    struct api_json_cursor c;
    unsigned given = 0;
    if (api_json_skip_mark(x->request.body) == x->request.body + x->request.body_size)
        return response_with(x, settings, n);
    api_json_begin(&c, x->request.body, x->request.body_size, false, &x->problem);
    if (!api_json_open_if(&c, '{'))
        return api_json_end(&c) &&
               api_fail(&x->problem, "bad_request", "the settings must be a JSON object");
    while (api_json_member(&c, name))
        if (!check_member(&c, settings, n, name, &given))
            return false;
    return !x->problem.code && api_json_end(&c) && response_with(x, settings, n);
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
