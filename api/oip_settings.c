#include "api/oip_settings.h"

#include "api/formats/coding.h"
#include "api/text/json_reader.h"
#include "api/text/json_text.h"

#include <string.h>

/* MAX_BODY: bytes of a body that names settings. */
enum { MAX_BODY = 16 << 10 };

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
    struct api_buffer *out = &x->response.body;
    x->response.content_type = "application/json";
    for (size_t i = 0; i < n; i++)
        api_append_format(out, "%s\"%s\":%s", i ? "," : "{", settings[i].name, settings[i].value);
    api_append_text(out, "}");
    return true;
}

/* ---- Setting what is set */

static bool check_size(struct api_exchange *x, unsigned long long size)
{
    return size <= MAX_BODY ||
           api_fail(&x->problem, "body_too_large",
                    "the body has %llu bytes, and settings have at most %d", size, MAX_BODY);
}

bool api_oip_setting_begin(struct api_exchange *x)
{
    if (!api_coding_is_none(api_request_header(&x->request, "Content-Encoding")))
        return api_fail(&x->problem, "content_coding_unsupported",
                        "a body of settings must not have a Content-Encoding");
    return check_size(x, x->request.content_length);
}

/* Copies the text of a string, number or word, or of an array of one; "" for other values. */
static void copy_text(const char *value, char to[API_JSON_TEXT])
{
    value = api_json_scalar(value);
    const char *end = api_json_skip_value(value);
    size_t size = end ? (size_t)(end - value) : strlen(value);
    *to = '\0';
    if (api_json_string(value, to) || strchr("[{", *value) || size >= API_JSON_TEXT)
        return;
    while (size > 0 && strchr(" \t\r\n", value[size - 1]))
        size--;
    memcpy(to, value, size);
    to[size] = '\0';
}

/* True if a value is that of the setting, or null, which restores it. Numbers may be strings. */
static bool is_same(const char *value, const struct setting *setting)
{
    char given[API_JSON_TEXT], fixed[API_JSON_TEXT];
    copy_text(value, given);
    copy_text(setting->value, fixed);
    return strncmp(value, "null", 4) == 0 ||
           (strcmp(given, fixed) == 0 && (*given || *api_json_scalar(value) == '"'));
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
    const char *at, *what, *value, *json = api_json_skip_mark(x->request.body);
    size_t size = x->request.body_size - (size_t)(json - x->request.body);
    char name[API_JSON_TEXT];
    if (!check_size(x, x->request.body_size))
        return false;
    if (size == 0)
        return response_with(x, settings, n);
    if (!api_json_check(json, size, &at, &what))
        return api_json_malformed(json, at, what, &x->problem);
    const char *root = api_json_skip_space(json);
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

bool api_oip_set_trace(struct api_exchange *x) { return set(x, trace, N_TRACE); }

bool api_oip_logging(struct api_exchange *x)
{
    struct setting logging[N_LOGGING];
    find_logging(x->service, logging);
    return response_with(x, logging, N_LOGGING);
}

bool api_oip_set_logging(struct api_exchange *x)
{
    struct setting logging[N_LOGGING];
    find_logging(x->service, logging);
    return set(x, logging, N_LOGGING);
}
