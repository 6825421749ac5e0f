#include "api/loss/oip_body.h"

#include "api/json/json_reader.h"
#include "api/json/json_text.h"
#include "api/text/number.h"

#include <string.h>

/* Bytes of the JSON part without its arrays of data. */
enum { MAX_ENVELOPE = 64 << 10 };

size_t api_oip_json_size(const struct api_request *request)
{
    const char *p = api_request_header(request, "Inference-Header-Content-Length");
    size_t size = 0;
    if (!p)
        return request->body_size;
    for (; *p >= '0' && *p <= '9' && size <= request->body_size; p++)
        size = size * 10 + (size_t)(*p - '0');
    return *p || size > request->body_size ? 0 : size;
}

static bool split(struct api_oip_body *b, const struct api_request *request,
                  struct api_problem *problem)
{
    const char *header = api_request_header(request, "Inference-Header-Content-Length");
    size_t size = api_oip_json_size(request);
    if (header && size == 0)
        return api_fail(problem, "inference_malformed",
                        "Inference-Header-Content-Length '%.40s' is not a number from 1 to the %zu "
                        "bytes of the body",
                        header, request->body_size);
    b->text = api_json_skip_mark(request->body);
    b->raw = b->end = request->body + size;
    b->raw_end = request->body + request->body_size;
    if (b->text > b->end) /* the JSON part ends within a byte order mark */
        b->text = request->body;
    return true;
}

/* Start of the array after a key "data" that ends at `key_end`; NULL for other keys and values. */
static const char *data_after(const char *key, const char *key_end)
{
    if (!api_json_is_text(key, key_end, "data"))
        return NULL;
    const char *colon = api_json_skip_space(key_end);
    const char *value = *colon == ':' ? api_json_skip_space(colon + 1) : NULL;
    return value && *value == '[' ? value : NULL;
}

/* Copies the text before an array, and brackets in its place. Gives the end of the array; NULL if it
 * has none, which the check of the envelope will report, or with a problem. */
static const char *cut(struct api_oip_body *b, const char *copied, const char *value,
                       struct api_problem *problem)
{
    const char *end = api_json_skip_value(value);
    if (!end || end > b->end)
        return NULL;
    if (b->n_cuts == API_TENSORS) {
        api_fail(problem, "inference_malformed", "the request has more than 5 arrays of data");
        return NULL;
    }
    api_append(&b->envelope, copied, (size_t)(value - copied));
    b->cuts[b->n_cuts].at = b->envelope.size;
    b->cuts[b->n_cuts].value = value;
    b->cuts[b->n_cuts++].end = end;
    api_append(&b->envelope, "[]", 2);
    return end;
}

/* Copies the JSON part with padding and without arrays of data. Malformed JSON is copied, too. */
static bool make_envelope(struct api_oip_body *b, struct api_problem *problem)
{
    const char *copied = b->text;
    for (const char *p = strchrnul(b->text, '"'); *p && p < b->end; p = strchrnul(p, '"')) {
        const char *key_end = api_json_skip_string(p);
        if (!key_end || key_end > b->end)
            break;
        const char *value = data_after(p, key_end);
        p = value ? cut(b, copied, value, problem) : key_end;
        if (!p)
            break;
        copied = value ? p : copied;
    }
    size_t rest = (size_t)(b->end - copied);
    if (problem->code)
        return false;
    if (b->envelope.size + rest > MAX_ENVELOPE)
        return api_fail(problem, "members_too_large",
                        "the request without data may have at most 64 KiB");
    api_append(&b->envelope, copied, rest);
    if (!api_buffer_room(&b->envelope, API_PADDING))
        return api_fail_oom(problem);
    memset(b->envelope.data + b->envelope.size, 0, API_PADDING);
    return true;
}

bool api_oip_body_read(struct api_oip_body *b, const struct api_request *request, const char **root,
                       struct api_problem *problem)
{
    const char *at, *what;
    if (!split(b, request, problem) || !make_envelope(b, problem))
        return false;
    const char *text = b->envelope.data;
    if (!api_json_check(text, b->envelope.size, false, &at, &what)) {
        api_json_malformed(text, at, what, problem);
        bool whole = api_json_check(text, (size_t)(at - text), false, &at, &what);
        if (whole && b->end == b->raw_end) /* bytes follow the object */
            api_problem_prefix(problem, "binary data need Inference-Header-Content-Length: ");
        if (*text != '{')
            api_problem_prefix(problem, "not an inference request, which begins with {: ");
        return false;
    }
    *root = api_json_skip_space(text);
    return **root == '{' ||
           api_fail(problem, "body_not_object", "the request must be a JSON object");
}

const char *api_oip_body_data(const struct api_oip_body *body, const char *brackets,
                              const char **end)
{
    for (size_t i = 0; i < body->n_cuts; i++)
        if (body->envelope.data + body->cuts[i].at == brackets) {
            *end = body->cuts[i].end;
            return body->cuts[i].value;
        }
    return NULL;
}
