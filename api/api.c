#include "api/api.h"

#include "api/loss/error_format.h"
#include "api/loss/warnings.h"
#include "api/monitors/batch.h"
#include "api/request/access.h"
#include "api/request/body.h"
#include "api/request/coding.h"
#include "api/request/etag.h"
#include "api/request/response.h"
#include "api/request/route.h"
#include "api/steps.h"
#include "api/web/web.h"

#include <string.h>

/* WORTH_COMPRESSING: the minimal size, in bytes, of JSON that is compressed. */
enum { WORTH_COMPRESSING = 1 << 10 };

/* Fails unless there is an endpoint for the path, and for the method. */
static bool check_route(struct api_exchange *x, bool method_allowed)
{
    if (!x->response.endpoint)
        return api_error_format_of(x->request.path)->fail_not_found(x->request.path, &x->problem);
    if (method_allowed)
        return true;
    char *allow = x->response.header_text;
    api_route_methods(x, allow, sizeof x->response.header_text);
    api_response_header(&x->response, "Allow", allow);
    const struct api_endpoint *wanted = api_route_with_name(x);
    if (wanted)
        return api_fail(&x->problem, "method_not_allowed",
                        "%.60s lacks the name of a monitor: the endpoint is %s %s", x->request.path,
                        wanted->method, wanted->path);
    bool reserves = x->response.endpoint->flags & API_RESERVES;
    return api_fail(&x->problem, "method_not_allowed", "%.60s takes %s, not %.20s%s",
                    x->request.path, allow, x->request.method,
                    reserves ? "; no monitor can be called so" : "");
}

/* ---- Header fields for browsers */

static void add_cors(struct api_exchange *x)
{
    if (!x->service->cors_origin)
        return;
    api_response_header(&x->response, "Access-Control-Allow-Origin", x->service->cors_origin);
    api_response_header(
        &x->response, "Access-Control-Expose-Headers",
        "ETag, Idempotent-Replayed, Inference-Header-Content-Length, KL-Div-Warnings, "
        "Link, Location, Retry-After, Server-Timing, X-Request-Id");
}

/* Adds X-Content-Type-Options to every response, and Strict-Transport-Security where clients come by
 * TLS. Responses to GET and HEAD, which a browser shows, also get Content-Security-Policy,
 * Referrer-Policy and, unless pages of other origins may read, Cross-Origin-Resource-Policy: each
 * header costs 0.6 % of the time of a small loss. */
static void add_security_headers(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    const char *method = x->request.method;
    api_response_header(response, "X-Content-Type-Options", "nosniff");
    if (x->service->tls)
        api_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return;
    api_response_header(response, "Content-Security-Policy",
                        response->policy ? response->policy
                                         : "default-src 'none'; frame-ancestors 'none'");
    api_response_header(response, "Referrer-Policy", "no-referrer");
    if (!x->service->cors_origin)
        api_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

/* Answers OPTIONS of a served path with its methods. Browsers ask for them before a page of
 * another origin may send. */
static void respond_to_options(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    api_route_methods(x, response->header_text, sizeof response->header_text);
    response->status = 204;
    api_response_header(response, "Allow", response->header_text);
    if (x->service->cors_origin) {
        add_cors(x);
        api_response_header(response, "Access-Control-Allow-Methods", response->header_text);
        api_response_header(
            response, "Access-Control-Allow-Headers",
            "Accept, Authorization, Content-Encoding, Content-Type, Idempotency-Key, "
            "If-Match, If-None-Match, Inference-Header-Content-Length, Traceparent, X-Request-Id");
        api_response_header(response, "Access-Control-Max-Age", "86400");
    }
    add_security_headers(x);
}

/* ---- Responses */

static void write_problem(struct api_exchange *x)
{
    const struct api_error_format *format = api_error_format_of(x->request.path);
    struct api_response *response = &x->response;
    api_buffer_free(&response->body);
    response->policy = NULL;
    response->content_type = format->content_type;
    format->write(x, &response->body);
}

static void response_with_problem(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    response->code = x->problem.code;
    response->status = api_problem_status(&x->problem);
    response->compress = false;
    response->cache_control = response->policy = NULL;
    api_response_free(response);
    response->body.budget = NULL;
    if (response->status != 404 || !api_web_wants_not_found(x) || !api_web_not_found(x))
        write_problem(x);
    if (response->body.failed) /* the response is its status alone */
        api_buffer_free(&response->body);
    if (response->status == 503)
        api_response_header(response, "Retry-After", "1");
}

static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    return content_type && strncmp(content_type, json, sizeof json - 1) == 0;
}

static void compress(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    bool large = is_json(response->content_type) &&
                 api_response_size(response) > WORTH_COMPRESSING &&
                 api_error_format_of(x->request.path)->compresses;
    if (!large && !response->compress)
        return;
    const char *accepted = api_request_header(&x->request, "Accept-Encoding");
    const char *coding = accepted ? api_coding_choose(accepted) : NULL;
    if (coding && !api_deflate_response(response, coding) && !x->is_stored)
        response->body.failed = true;
    api_response_header(response, "Vary", "Accept-Encoding");
}

static bool check_memory(struct api_exchange *x)
{
    return !x->response.body.failed || api_fail_oom(&x->problem);
}

/* Completes the response: the endpoint's, or that of the problem. */
static void finish(struct api_exchange *x, bool good)
{
    struct api_response *response = &x->response;
    if (good && response->status == 0)
        response->status = 200;
    good = good && check_memory(x);
    if (good && response->endpoint->flags & API_TAGGED)
        api_etag_compare(x);
    if (good)
        compress(x);
    good = good && check_memory(x);
    if (!good)
        response_with_problem(x);
    if (response->warnings & API_DEPRECATIONS)
        api_response_header(response, "Link",
                            "<https://pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html>; "
                            "rel=\"deprecation\"");
    add_cors(x);
    add_security_headers(x);
    if (x->state && response->endpoint->steps->count)
        response->endpoint->steps->count(x);
    api_steps_end(x);
    if (response->lost_header)
        api_refuse(x, "internal_error", "the response has too many header fields");
}

bool api_begin(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    bool method_allowed;
    response->endpoint = api_route_find(x, &method_allowed);
    const char *parent = api_request_header(&x->request, "Traceparent");
    if (parent)
        api_trace_read(&x->trace, parent);
    bool good = api_check_host(x);
    if (good && response->endpoint && strcmp(x->request.method, "OPTIONS") == 0) {
        respond_to_options(x); /* also without a token, which browsers do not send with it */
        return false;
    }
    bool is_page = !response->endpoint && api_web_wants_not_found(x);
    if (good && (is_page || api_check_token(x)) && check_route(x, method_allowed) &&
        api_check_scope(x) && api_check_origin(x)) {
        if (!(response->endpoint->flags & API_OPEN))
            response->body.budget = x->service->budget;
        const struct api_steps *steps = response->endpoint->steps;
        if ((!steps->check || steps->check(x)) && api_body_check_header(x))
            return true;
    }
    finish(x, false);
    return false;
}

bool api_handle(struct api_exchange *x, double max_ns)
{
    bool good = api_steps_take(x, max_ns);
    if (good && (x->work || x->cost_ns > max_ns))
        return false;
    finish(x, good && api_steps_write(x));
    return true;
}

bool api_wait(struct api_exchange *x)
{
    bool blocks = !x->resume; /* read now: once a job is queued, the exchange may have ended */
    if (!api_steps_submit(x)) {
        if (x->place == API_NOTIFIER)
            api_refuse(x, "test_running", "another test of the receiver is under way");
        else
            api_refuse(x, "overloaded", "too many requests wait for the store; try again");
        return false;
    }
    if (blocks)
        api_store_job_wait(&x->job);
    return true;
}

void api_refuse(struct api_exchange *x, const char *code, const char *detail)
{
    const struct api_endpoint *endpoint = x->response.endpoint;
    bool ignored;
    api_response_free(&x->response);
    x->response =
        (struct api_response){.endpoint = endpoint ? endpoint : api_route_find(x, &ignored)};
    x->problem.code = NULL;
    api_fail(&x->problem, code, "%s", detail);
    finish(x, false);
}

void api_end(struct api_exchange *x)
{
    api_steps_end(x);
    api_response_free(&x->response);
}
