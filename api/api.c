#include "api/api.h"

#include "api/endpoints.h"
#include "api/formats/oip.h"
#include "api/reply.h"
#include "api/warnings.h"

#include <stdio.h>
#include <string.h>

static bool has_method(const struct api_endpoint *endpoint, const char *method)
{
    return strcmp(endpoint->method, method) == 0 ||
           (strcmp(endpoint->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* "GET, HEAD": what the path takes; empty if it does not exist. */
static void list_methods(const char *path, char *to, size_t size)
{
    size_t used = 0;
    *to = '\0';
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        if (api_endpoint_has_path(e, path) && used < size)
            used += (size_t)snprintf(to + used, size - used, "%s%s%s", used ? ", " : "", e->method,
                                     strcmp(e->method, "GET") == 0 ? ", HEAD" : "");
}

static bool route(struct api_exchange *x)
{
    char *allow = x->reply->header_text;
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        if (api_endpoint_has_path(e, x->request->path) && has_method(e, x->request->method)) {
            x->reply->endpoint = e;
            return true;
        }
    for (const struct api_endpoint *e = api_endpoints; e->path; e++)
        if (api_endpoint_has_path(e, x->request->path))
            x->reply->endpoint = e;
    list_methods(x->request->path, allow, sizeof x->reply->header_text);
    if (!*allow)
        return api_fail(&x->problem, "not_found",
                        "there is nothing at '%.100s'; GET / lists what there is",
                        x->request->path);
    api_reply_header(x->reply, "Allow", allow);
    return api_fail(&x->problem, "method_not_allowed", "%.60s takes %s, not %.20s",
                    x->request->path, allow, x->request->method);
}

static void add_cors(const struct api_service *service, struct api_reply *reply)
{
    if (!service->cors_origin)
        return;
    api_reply_header(reply, "Access-Control-Allow-Origin", service->cors_origin);
    api_reply_header(reply, "Access-Control-Expose-Headers",
                     "Inference-Header-Content-Length, KL-Div-Warnings, Link, Retry-After, "
                     "Server-Timing, X-Request-Id");
}

/* OPTIONS of a path that exists: what it takes, which browsers ask before they let a page of
 * another origin post. */
static bool answer_options(struct api_exchange *x)
{
    struct api_reply *reply = x->reply;
    if (strcmp(x->request->method, "OPTIONS") != 0)
        return false;
    list_methods(x->request->path, reply->header_text, sizeof reply->header_text);
    if (!*reply->header_text)
        return false;
    reply->status = 204;
    api_reply_header(reply, "Allow", reply->header_text);
    if (x->service->cors_origin) {
        add_cors(x->service, reply);
        api_reply_header(reply, "Access-Control-Allow-Methods", reply->header_text);
        api_reply_header(reply, "Access-Control-Allow-Headers",
                         "Accept, Authorization, Content-Encoding, Content-Type, "
                         "Inference-Header-Content-Length, X-Request-Id");
        api_reply_header(reply, "Access-Control-Max-Age", "86400");
    }
    return true;
}

/* As RFC 9457 has it, with the warnings beside. */
static void write_problem(struct api_exchange *x)
{
    struct api_reply *reply = x->reply;
    const struct api_warnings warnings = {.bits = reply->warnings & API_DEPRECATIONS,
                                          .reduction = reply->reduction};
    api_append_text(&reply->body, "{");
    api_problem_write(&x->problem, &reply->body);
    if (warnings.bits) {
        api_append_text(&reply->body, ",\"warnings\":");
        api_warnings_json(&warnings, &reply->body);
    }
    api_append_text(&reply->body, "}\n");
}

static void reply_with_problem(struct api_exchange *x)
{
    struct api_reply *reply = x->reply;
    reply->code = x->problem.code;
    reply->status = api_problem_status(&x->problem);
    api_reply_free(reply);
    reply->body.budget = NULL;
    if (api_oip_owns(x->request->path)) {
        reply->content_type = "application/json";
        api_oip_write_problem(&x->problem, &reply->body);
    } else {
        reply->content_type = "application/problem+json";
        write_problem(x);
    }
    if (reply->body.failed) /* then the status alone must do */
        api_buffer_free(&reply->body);
    if (reply->status == 503)
        api_reply_header(reply, "Retry-After", "1");
    add_cors(x->service, reply);
}

bool api_begin(const struct api_service *service, const struct api_request *request,
               struct api_reply *reply)
{
    struct api_exchange x = {.service = service, .request = request, .reply = reply};
    *reply = (struct api_reply){.body.budget = service->budget};
    if (answer_options(&x))
        return false;
    bool found = route(&x);
    if (found && !reply->endpoint->begin) /* health and metrics answer also when memory is out */
        reply->body.budget = NULL;
    if (found && (!reply->endpoint->begin || reply->endpoint->begin(&x)))
        return true;
    reply_with_problem(&x);
    return false;
}

void api_handle(const struct api_service *service, const struct api_request *request,
                struct api_reply *reply)
{
    struct api_exchange x = {.service = service, .request = request, .reply = reply};
    bool good = reply->endpoint->handle(&x);
    if (good && reply->body.failed)
        good = api_fail_for_memory(&x.problem);
    if (good) {
        reply->status = 200;
        add_cors(service, reply);
    } else {
        reply_with_problem(&x);
    }
    if (reply->warnings & API_DEPRECATIONS)
        api_reply_header(reply, "Link",
                         "<https://pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html>; "
                         "rel=\"deprecation\"");
}

void api_refuse(const struct api_service *service, const struct api_request *request,
                struct api_reply *reply, const char *code, const char *detail)
{
    struct api_exchange x = {.service = service, .request = request, .reply = reply};
    const struct api_endpoint *endpoint = reply->endpoint;
    api_fail(&x.problem, code, "%s", detail);
    api_reply_free(reply);
    *reply = (struct api_reply){.body.budget = service->budget, .endpoint = endpoint};
    reply_with_problem(&x);
}
