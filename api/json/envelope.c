#include "api/json/envelope.h"

#include "api/json/json_text.h"

#include <string.h>

bool api_envelope_copy(struct api_envelope *envelope, const char *end)
{
    size_t size = (size_t)(end - envelope->copied);
    if (envelope->text.size + size > envelope->max)
        return api_fail(envelope->problem, "members_too_large", "%s", envelope->too_large);
    api_append(&envelope->text, envelope->copied, size);
    envelope->copied = end;
    return true;
}

void api_envelope_cut(struct api_envelope *envelope, const char *end)
{
    envelope->copied = end;
    envelope->cuts[envelope->n_cuts].text_end = envelope->text.size;
    envelope->cuts[envelope->n_cuts++].body_end = end;
}

const char *api_envelope_walk(struct api_envelope *envelope, const char *p)
{
    for (p = api_json_skip_space(p + 1); *p != '}'; p = api_json_skip_space(p)) {
        const char *key = envelope->last = p, *end = *p == '"' ? api_json_skip_string(p) : NULL;
        p = end ? api_json_skip_space(end) : NULL;
        if (!p || *p != ':')
            return NULL;
        p = envelope->member(envelope, key, end, api_json_skip_space(p + 1));
        if (!p || envelope->problem->code)
            return NULL;
        if (p > envelope->copied && (size_t)(p - envelope->copied) > envelope->max) {
            api_envelope_copy(envelope, p);
            return NULL;
        }
        p = api_json_skip_space(p);
        if (*p == ',')
            p++;
        else if (*p != '}')
            return NULL;
    }
    return p + 1;
}

/* Copies the rest of a body. If its reader met malformed JSON in the last member, only the start of a long
 * rest: jansson needs no more to find the error. */
static bool copy_rest(struct api_envelope *envelope, bool is_malformed)
{
    const char *last = envelope->last, *end = envelope->body + envelope->size;
    size_t max = envelope->max / 2;
    while (end > last && strchr(" \t\r\n", end[-1]))
        end--;
    if (is_malformed && end > last && (size_t)(end - last) > max && last >= envelope->copied)
        end = last + max;
    return api_envelope_copy(envelope, end);
}

/* Position in the body of byte `offset` of the text. */
static const char *position_in_body(const struct api_envelope *envelope, size_t offset)
{
    const char *base = envelope->start;
    size_t from = 0;
    for (size_t i = 0; i < envelope->n_cuts && envelope->cuts[i].text_end <= offset; i++) {
        base = envelope->cuts[i].body_end;
        from = envelope->cuts[i].text_end;
    }
    return base + (offset - from);
}

static bool is_empty(const struct api_buffer *text)
{
    size_t i = 1;
    if (text->failed || text->size < 2 || text->data[0] != '{')
        return false;
    while (i < text->size - 1 && strchr(" \t\r\n", text->data[i]))
        i++;
    return i == text->size - 1 && text->data[i] == '}';
}

static bool parse(const struct api_envelope *envelope, struct api_json *json)
{
    struct api_problem *problem = envelope->problem;
    if (envelope->text.failed)
        return api_fail_oom(problem);
    if (api_json_load(json, envelope->text.data, envelope->text.size))
        return true;
    if (json->out_of_memory)
        return api_fail_oom(problem);
    if (json_error_code(&json->error) == json_error_numeric_overflow)
        return api_fail(problem, "number_too_large", "a number of the options is too large");
    int position = json->error.position > 0 ? json->error.position : 0;
    return api_json_malformed(envelope->body, position_in_body(envelope, (size_t)position),
                              json->error.text, problem);
}

bool api_envelope_read(struct api_envelope *envelope, bool may_be_empty, struct api_json *json)
{
    struct api_problem *problem = envelope->problem;
    const char *body = envelope->body, *nul = memchr(body, '\0', envelope->size);
    const char *start = envelope->start = envelope->copied = envelope->last = api_json_start(body);
    if (nul)
        return api_fail(problem, "json_malformed", "there is a NUL at byte %zu",
                        (size_t)(nul - body));
    if (*start == '[')
        return api_fail_at(problem, API_BODY, "#", "body_not_object", "%s", envelope->not_object);
    if (*start != '{')
        return api_json_expected(body, start, "'{'", problem);
    bool good = api_envelope_walk(envelope, start) != NULL;
    return !problem->code && copy_rest(envelope, !good) &&
           ((may_be_empty && is_empty(&envelope->text)) || parse(envelope, json));
}
