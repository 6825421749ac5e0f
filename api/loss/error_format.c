#include "api/loss/error_format.h"

#include "api/loss/oip.h"
#include "api/loss/warnings.h"

#include <stdio.h>
#include <string.h>

/* Appends the object of RFC 9457, with the warnings as a member. */
static void write_problem(const struct api_exchange *x, struct api_buffer *out)
{
    const struct api_warnings warnings = {.bits = x->response.warnings & API_DEPRECATIONS,
                                          .reduction = x->response.reduction};
    char trace_id[API_TRACE_ID], span_id[API_SPAN_ID];
    api_append_text(out, "{");
    api_problem_write(&x->problem, out);
    if (api_trace_is_set(&x->trace)) {
        api_trace_ids(&x->trace, trace_id, span_id);
        api_append_format(out, ",\"trace_id\":\"%s\"", trace_id);
    }
    if (warnings.bits) {
        api_append_text(out, ",\"warnings\":");
        api_warnings_json(&warnings, out);
    }
    api_append_text(out, "}\n");
}

static bool fail_not_found(const char *path, struct api_problem *problem)
{
    return api_fail(problem, "not_found", "there is nothing at '%.100s'; GET / lists the paths",
                    path);
}

/* ---- Open Inference Protocol */

/* The protocol's error is {"error": "..."} alone. */
static void write_inference_error(const struct api_exchange *x, struct api_buffer *out)
{
    const struct api_problem *problem = &x->problem;
    char text[sizeof problem->detail + sizeof problem->location + 8];
    bool placed = problem->where == API_BODY && problem->location[0] && problem->location[1];
    snprintf(text, sizeof text, "%s%s%s%s", problem->detail, placed ? " (at " : "",
             placed ? problem->location : "", placed ? ")" : "");
    api_append_text(out, "{\"error\":");
    api_append_json_string(out, text);
    api_append_text(out, "}");
}

/* The detail names the model and the version that are served. */
static bool fail_no_model(const char *path, struct api_problem *problem)
{
    static const char models[] = "/v2/models/", repository[] = "/v2/repository/models/",
                      versions[] = API_OIP_MODEL "/versions/";
    bool is_model = strncmp(path, models, sizeof models - 1) == 0;
    if (!is_model && strncmp(path, repository, sizeof repository - 1) != 0)
        return api_fail(problem, "not_found", "there is nothing at '%.100s'", path);
    const char *name = path + (is_model ? sizeof models : sizeof repository) - 1;
    if (strncmp(name, versions, sizeof versions - 1) == 0) {
        const char *version = name + sizeof versions - 1;
        int size = (int)strcspn(version, "/");
        if (strncmp(version, API_OIP_VERSION "/", 2) != 0)
            return api_fail(problem, "not_found",
                            "unknown version '%.*s' of model " API_OIP_MODEL
                            ": this server has " API_OIP_VERSION,
                            size < 60 ? size : 60, version);
    }
    int size = (int)strcspn(name, "/");
    if (strncmp(name, API_OIP_MODEL, strlen(API_OIP_MODEL)) != 0 ||
        size != sizeof API_OIP_MODEL - 1)
        return api_fail(problem, "not_found",
                        "unknown model '%.*s': this server has " API_OIP_MODEL,
                        size < 60 ? size : 60, name);
    return api_fail(problem, "not_found", "the model has nothing at '%.100s'", path);
}

/* ---- The table */

const struct api_error_format *api_error_format_of(const char *path)
{
    static const struct api_error_format inference = {"application/json", false,
                                                      write_inference_error, fail_no_model},
                                         problem = {"application/problem+json", true, write_problem,
                                                    fail_not_found};
    return strncmp(path, "/v2", 3) == 0 && (path[3] == '\0' || path[3] == '/') ? &inference
                                                                               : &problem;
}
