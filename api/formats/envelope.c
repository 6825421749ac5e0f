#include "api/formats/envelope.h"

#include "api/text/json_text.h"

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

bool api_envelope_finish(struct api_envelope *envelope, const char *last, const char *body_end,
                         bool is_malformed)
{
    size_t max = envelope->max / 2;
    while (body_end > last && strchr(" \t\r\n", body_end[-1]))
        body_end--;
    if (is_malformed && body_end > last && (size_t)(body_end - last) > max &&
        last >= envelope->copied)
        body_end = last + max;
    return api_envelope_copy(envelope, body_end);
}

/* Position in the body of byte `offset` of the text. */
static const char *place_in_body(const struct api_envelope *envelope, size_t offset)
{
    const char *base = envelope->start;
    size_t from = 0;
    for (size_t i = 0; i < envelope->n_cuts && envelope->cuts[i].text_end <= offset; i++) {
        base = envelope->cuts[i].body_end;
        from = envelope->cuts[i].text_end;
    }
    return base + (offset - from);
}

bool api_envelope_is_empty(const struct api_envelope *envelope)
{
    const struct api_buffer *text = &envelope->text;
    size_t i = 1;
    if (text->failed || text->size < 2 || text->data[0] != '{')
        return false;
    while (i < text->size - 1 && strchr(" \t\r\n", text->data[i]))
        i++;
    return i == text->size - 1 && text->data[i] == '}';
}

bool api_envelope_parse(const struct api_envelope *envelope, struct api_json *json)
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
    return api_json_malformed(envelope->body, place_in_body(envelope, (size_t)position),
                              json->error.text, problem);
}
