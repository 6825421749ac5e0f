#include "api/request/body.h"

#include "api/request/coding.h"
#include "api/request/response.h"

#include <stdint.h>

/* Time, in ns, to inflate to a byte. */
static const double inflate_ns = 4;

bool api_body_check_coding(struct api_exchange *x)
{
    const char *coding = x->coding = api_request_header(&x->request, "Content-Encoding");
    if (api_coding_is_known(coding))
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
    size_t limit = x->service->budget ? api_budget_max(x->service->budget, size) : 0;
    if (limit && limit < max)
        max = limit;
    if (x->request.content_length > max || (limit && api_block_size(size) > limit))
        return api_fail(&x->problem, "body_too_large",
                        "the body has %llu bytes; this server accepts at most %zu",
                        (unsigned long long)x->request.content_length, max);
    return true;
}

bool api_body_undo_coding(struct api_exchange *x, struct api_buffer *inflated, double max_ns)
{
    struct api_request *request = &x->request;
    struct api_inflation inflation = {.coding = x->coding,
                                      .bytes = request->body,
                                      .size = request->body_size,
                                      .max = x->service->max_body,
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

static bool check_small(struct api_exchange *x, const char *what, unsigned long long size)
{
    enum { MAX_SMALL = 16 << 10 };
    return size <= MAX_SMALL ||
           api_fail(&x->problem, "body_too_large", "the body has %llu bytes, and %s has at most %d",
                    size, what, MAX_SMALL);
}

bool api_body_check_small(struct api_exchange *x, const char *what)
{
    return (api_coding_is_none(api_request_header(&x->request, "Content-Encoding")) ||
            api_fail(&x->problem, "content_coding_unsupported",
                     "%s must not have a Content-Encoding", what)) &&
           check_small(x, what, x->request.content_length);
}

bool api_body_begin_small(struct api_exchange *x, const char *what, struct api_json_cursor *json)
{
    api_json_begin(json, x->request.body, x->request.body_size, false, &x->problem);
    return check_small(x, what, x->request.body_size);
}
