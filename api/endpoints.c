#include "api/endpoints.h"

#include "api/formats/oip.h"
#include "api/oip_model.h"

#include <string.h>

static bool text_reply(struct api_exchange *x, const char *content_type, const char *text)
{
    x->reply->content_type = content_type;
    api_append_text(&x->reply->body, text);
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
    x->reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (x->service->metrics)
        x->service->metrics(x->service->host, &x->reply->body);
    return true;
}

static bool openapi(struct api_exchange *x)
{
    return text_reply(x, "application/json", api_openapi);
}

static bool root(struct api_exchange *x)
{
    struct api_buffer *out = &x->reply->body;
    x->reply->content_type = "text/plain; charset=utf-8";
    api_append_format(out,
                      "kldiv " KLDIV_VERSION ": the Kullback-Leibler divergence loss, KL(target || "
                      "input)\n\n");
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        api_append_format(out, "%-5s %-45s %s\n", e->method, e->path, e->summary);
    api_append_text(out, "\nTry it:\n\n"
                         "curl 'http://HOST/kl_div?reduction=batchmean' -d "
                         "'{\"input\": [[-1, -0.5], [-2, -0.2]], "
                         "\"target\": [[0.4, 0.6], [0.1, 0.9]]}'\n");
    return true;
}

#define MODEL "/v2/models/" API_OIP_MODEL "[/versions/" API_OIP_VERSION "]"

const struct api_endpoint api_endpoints[] = {
    {"POST", "/kl_div", "the loss of two tensors", false, api_kl_div_begin, api_kl_div},
    {"POST", MODEL "/infer", "the same, by the Open Inference Protocol", false, api_infer_begin,
     api_infer},
    {"GET", "/", "this page", false, NULL, root},
    {"GET", "/openapi.json", "the contract", false, NULL, openapi},
    {"GET", "/metrics", "counters, for Prometheus", true, NULL, metrics},
    {"GET", "/v2[/]", "of that protocol: this server", false, NULL, api_oip_server},
    {"GET", "/v2/health/live", "whether the process lives", true, NULL, api_oip_live},
    {"GET", "/v2/health/ready", "whether requests are welcome", true, NULL, api_oip_ready},
    {"GET", MODEL, "its one model", false, NULL, api_oip_model},
    {"GET", "/v2/models/stats", "what all models have done", false, NULL, api_oip_stats},
    {"GET", MODEL "/ready", "whether it is ready", true, NULL, api_oip_model_ready},
    {"GET", MODEL "/config", "its configuration", false, NULL, api_oip_config},
    {"GET", MODEL "/stats", "what it has done", false, NULL, api_oip_stats},
    {"POST", "/v2/repository/index", "all models", false, NULL, api_oip_index},
    {"GET", "/livez", "whether the process lives", true, NULL, live},
    {"GET", "/healthz", "the same", true, NULL, live},
    {"GET", "/readyz", "whether requests are welcome", true, NULL, ready},
    {0},
};

bool api_endpoint_has_path(const struct api_endpoint *endpoint, const char *path)
{
    const char *p = endpoint->path;
    for (; *p && *p != '['; p++, path++)
        if (*p != *path)
            return false;
    if (!*p)
        return !*path;
    const char *close = strchr(p, ']');
    size_t optional = (size_t)(close - p - 1);
    return strcmp(path, close + 1) == 0 ||
           (strncmp(path, p + 1, optional) == 0 && strcmp(path + optional, close + 1) == 0);
}

const char *api_endpoint_path(const struct api_endpoint *endpoint) { return endpoint->path; }

bool api_endpoint_is_probe(const struct api_endpoint *endpoint) { return endpoint->probe; }
