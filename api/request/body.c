#include "api/request/body.h"

#include "api/request/coding.h"
#include "api/request/endpoint.h"
#include "api/request/response.h"

#include <stdint.h>
#include <string.h>

/* Time, in ns, to inflate to a byte. */
static const double inflate_ns = 4;

bool api_body_check_coding(struct api_exchange *x)
{
    const char *coding = x->coding = api_request_header(&x->request, "Content-Encoding");
    if (!coding || api_coding_is_known(coding))
        return true;
    api_response_header(&x->response, "Accept-Encoding", api_codings);
    return api_fail(&x->problem, "content_coding_unsupported",
                    "Content-Encoding '%.40s' is not supported here; use one of: %s", coding,
                    api_codings);
}

bool api_body_check_size(struct api_exchange *x)
{
    size_t max = x->service->max_body;
    size_t size = x->request.content_length + API_PADDING;
    size_t limit = x->service->budget ? api_budget_limit(x->service->budget, size) : 0;
    if (limit && limit < max)
        max = limit;
    if (x->request.content_length > max || (limit && api_block_size(size) > limit))
        return api_fail(&x->problem, "body_too_large",
                        "the body has %llu bytes; this server accepts at most %zu",
                        (unsigned long long)x->request.content_length, max);
    return true;
}

void api_body_find_coding(struct api_exchange *x)
{
    static const char magic[] = "\x1f\x8b\x08";
    const char *body = x->request.body;
    if (!api_coding_is_none(x->coding) || x->response.endpoint->steps->max_body != API_WHOLE_BODY ||
        x->request.body_size < sizeof magic - 1 || memcmp(body, magic, sizeof magic - 1) != 0)
        return;
    bool is_safetensors = x->request.body_size >= 9 && memcmp(body + 5, "\0\0\0{", 4) == 0;
    x->coding = is_safetensors ? x->coding : "gzip";
}

bool api_body_undo_coding(struct api_exchange *x, struct api_buffer *inflated, double max_ns)
{
    struct api_request *request = &x->request;
    struct api_inflation inflation = {.coding = x->coding,
                                      .bytes = request->body,
                                      .size = request->body_size,
                                      .max = x->max_body,
                                      .stop = x->stop};
    if (api_coding_is_none(inflation.coding) || inflated->size > 0)
        return true;
    double affordable = max_ns / inflate_ns;
    inflation.affordable = affordable < (double)SIZE_MAX ? (size_t)affordable : SIZE_MAX;
    if (!api_inflate(&inflation, inflated, &x->problem))
        return false;
    if (inflation.is_partial) {
        api_buffer_free(inflated);
        x->cost_ns = max_ns + inflation.estimate * (inflate_ns + API_PARSE_NS);
        return true;
    }
    request->body = inflated->data;
    request->body_size = inflated->size;
    return true;
}

/* Bytes that a body of the endpoint has at most, beside the service's own limit. */
static size_t max_of(const struct api_steps *steps)
{
    return steps->max_body ? steps->max_body : API_SMALL_BODY;
}

bool api_body_check_small(struct api_exchange *x, uint64_t size)
{
    const struct api_steps *steps = x->response.endpoint->steps;
    size_t max = max_of(steps);
    if (size <= max)
        return true;
    if (!steps->small)
        return api_fail(&x->problem, "body_too_large",
                        "this request needs no body, and one of %llu bytes is more than %zu",
                        (unsigned long long)size, max);
    return api_fail(&x->problem, "body_too_large",
                    "the body has %llu bytes, and %s has at most %zu", (unsigned long long)size,
                    steps->small, max);
}

bool api_body_check_header(struct api_exchange *x)
{
    const struct api_steps *steps = x->response.endpoint->steps;
    size_t max = max_of(steps);
    x->max_body = max < x->service->max_body ? max : x->service->max_body;
    if (max == API_WHOLE_BODY)
        return true;
    if (steps->small && !x->coding &&
        !api_coding_is_none(api_request_header(&x->request, "Content-Encoding")))
        return api_fail(&x->problem, "content_coding_unsupported",
                        "%s must not have a Content-Encoding", steps->small);
    return api_body_check_small(x, x->request.content_length);
}
