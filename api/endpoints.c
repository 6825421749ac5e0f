#include "api/endpoints.h"

#include "api/formats/oip.h"
#include "api/oip_model.h"
#include "api/warnings.h"

#include <string.h>

static bool text_reply(struct api_exchange *x, const char *content_type, const char *text)
{
    x->reply.content_type = content_type;
    api_append_text(&x->reply.body, text);
    return true;
}

static bool live(struct api_exchange *x)
{
    return text_reply(x, "application/json", "{\"status\":\"ok\"}\n");
}

static bool ready(struct api_exchange *x)
{
    if (x->service->ready && !x->service->ready(x->service->host))
        return api_fail(&x->problem, "draining", "the server is shutting down");
    return live(x);
}

static bool metrics(struct api_exchange *x)
{
    x->reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (x->service->metrics)
        x->service->metrics(x->service->host, &x->reply.body);
    return true;
}

static bool openapi(struct api_exchange *x)
{
    return text_reply(x, "application/json", api_openapi);
}

static bool root(struct api_exchange *x)
{
    struct api_buffer *out = &x->reply.body;
    x->reply.content_type = "text/plain; charset=utf-8";
    api_append_text(out, "kldiv " KLDIV_VERSION ": the Kullback-Leibler divergence loss, "
                         "KL(target || input)\n\n");
    for (const struct api_endpoint *e = api_endpoints_of(x); e->path; e++)
        api_append_format(out, "%-5s %-45s %s\n", e->method, e->path, e->summary);
    api_append_text(out, "\nTry it:\n\n"
                         "curl 'http://HOST/kl_div?reduction=batchmean' -d "
                         "'{\"input\": [[-1, -0.5], [-2, -0.2]], "
                         "\"target\": [[0.4, 0.6], [0.1, 0.9]]}'\n");
    return true;
}

#define MODEL "/v2/models/" API_OIP_MODEL "[/versions/" API_OIP_VERSION "]"

const struct api_endpoint api_endpoints[] = {
    {"POST", "/kl_div", "Loss of two tensors", 0, api_kl_div_begin, api_loss_prepare, api_loss,
     api_kl_div_end},
    {"POST", MODEL "/infer", "Loss, by the Open Inference Protocol", 0, api_infer_begin,
     api_loss_prepare, api_loss, api_infer_end},
    {"GET", "/", "This page", 0, NULL, NULL, root, NULL},
    {"GET", "/openapi.json", "Contract", 0, NULL, NULL, openapi, NULL},
    {"GET", "/metrics", "Counters, for Prometheus", API_PROBE, NULL, NULL, metrics, NULL},
    {"GET", "/v2[/]", "Server metadata", 0, NULL, NULL, api_oip_server, NULL},
    {"GET", "/v2/health/live", "Liveness probe", API_HEALTH, NULL, NULL, api_oip_live, NULL},
    {"GET", "/v2/health/ready", "Readiness probe", API_HEALTH, NULL, NULL, api_oip_ready, NULL},
    {"GET", MODEL, "Model metadata", 0, NULL, NULL, api_oip_model, NULL},
    {"GET", "/v2/models/stats", "Statistics of all models", 0, NULL, NULL, api_oip_stats, NULL},
    {"GET", MODEL "/ready", "Readiness probe of the model", API_HEALTH, NULL, NULL,
     api_oip_model_ready, NULL},
    {"GET", MODEL "/config", "Model configuration", 0, NULL, NULL, api_oip_config, NULL},
    {"GET", MODEL "/stats", "Statistics of the model", 0, NULL, NULL, api_oip_stats, NULL},
    {"POST", "/v2/repository/index", "List of models", 0, NULL, NULL, api_oip_index, NULL},
    {"GET", "/livez", "Liveness probe", API_HEALTH, NULL, NULL, live, NULL},
    {"GET", "/healthz", "Liveness probe", API_HEALTH, NULL, NULL, live, NULL},
    {"GET", "/readyz", "Readiness probe", API_HEALTH, NULL, NULL, ready, NULL},
    {0},
};

/* ---- Form of problems */

/* Appends the object of RFC 9457, with the warnings as a member. */
static void write_problem(const struct api_exchange *x, struct api_buffer *out)
{
    const struct api_warnings warnings = {.bits = x->reply.warnings & API_DEPRECATIONS,
                                          .reduction = x->reply.reduction};
    api_append_text(out, "{");
    api_problem_write(&x->problem, out);
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

static const struct api_dialect dialects[] = {
    {"/v2", "application/json", false, api_oip_write_problem, api_oip_fail_not_found},
    {"", "application/problem+json", true, write_problem, fail_not_found},
};

/* Finds the dialect of a path. A prefix ends at the end of a segment. */
const struct api_dialect *api_dialect_of(const char *path)
{
    const struct api_dialect *dialect = dialects;
    for (;; dialect++) {
        size_t size = strlen(dialect->prefix);
        if (size == 0 || (strncmp(path, dialect->prefix, size) == 0 &&
                          (path[size] == '\0' || path[size] == '/')))
            return dialect;
    }
}
