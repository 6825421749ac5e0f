#include "api/endpoints.h"

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
        api_append_format(out, "%-5s %-14s %s\n", e->method, e->path, e->summary);
    api_append_text(out, "\nTry it:\n\n"
                         "curl 'http://HOST/kl_div?reduction=batchmean' -d "
                         "'{\"input\": [[-1, -0.5], [-2, -0.2]], "
                         "\"target\": [[0.4, 0.6], [0.1, 0.9]]}'\n");
    return true;
}

const struct api_endpoint api_endpoints[] = {
    {"POST", "/kl_div", "the loss of two tensors", false, api_kl_div_begin, api_kl_div},
    {"GET", "/", "this page", false, NULL, root},
    {"GET", "/openapi.json", "the contract", false, NULL, openapi},
    {"GET", "/metrics", "counters, for Prometheus", true, NULL, metrics},
    {"GET", "/livez", "whether the process lives", true, NULL, live},
    {"GET", "/healthz", "the same", true, NULL, live},
    {"GET", "/readyz", "whether requests are welcome", true, NULL, ready},
    {0},
};

const char *api_endpoint_path(const struct api_endpoint *endpoint) { return endpoint->path; }

bool api_endpoint_is_probe(const struct api_endpoint *endpoint) { return endpoint->probe; }
