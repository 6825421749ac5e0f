/* Requests of /kl_div as multipart/form-data (RFC 7578), as curl -F and browsers send forms. */
#include "api/files/form.h"
#include "api/files/npy_header.h"
#include "api/json/json_text.h"
#include "api/loss/codecs.h"
#include "api/loss/json_tensor.h"
#include "api/loss/npy.h"

#include <stdio.h>
#include <string.h>

enum { MAX_OPTION = 1024 };

struct part {
    char *content, *end;
};

struct reader {
    struct api_call *call;
    struct api_form form;
    struct part parts[API_TENSORS]; /* the parts that are tensors */
    struct api_problem *problem;
};

static bool read_content(struct reader *r, const char *name, char *content, char *end)
{
    size_t size = (size_t)(end - content);
    *end = '\0';
    for (size_t i = 0; i < API_TENSORS; i++) {
        if (strcmp(name, api_tensor_names[i]) != 0)
            continue;
        r->call->tensors[i].present = r->parts[i].content != NULL;
        r->parts[i] = (struct part){content, end};
        return api_tensor_find(r->call->tensors, name, NULL, r->problem) != NULL;
    }
    if (api_option_find(name) >= 0 && (size > MAX_OPTION || strlen(content) != size))
        return api_form_malformed(
            &r->form, "the text of an option has at most 1024 characters, and no NUL", r->problem);
    return api_option_set_text(&r->call->options, (struct api_origin){"#/", name}, content,
                               api_tensor_names, r->problem);
}

static bool read_json(struct reader *r, struct api_tensor *tensor, const struct part *part)
{
    struct api_call *call = r->call;
    const char *p = api_json_start(part->content);
    if (p == part->end)
        return api_tensor_fail(tensor, NULL, r->problem, "multipart_malformed",
                               "the part is empty: it must hold a .npy file, or a JSON array");
    p = api_json_tensor_read(tensor, part->content, p, call->options.dtype, r->problem);
    if (!p && r->problem->where == API_NOWHERE) {
        char words[64];
        snprintf(words, sizeof words, "part %s, ", api_tensor_name(tensor));
        api_problem_prefix(r->problem, words);
    }
    if (!p)
        return false;
    return api_json_skip_space(p) == part->end ||
           api_tensor_fail(tensor, NULL, r->problem, "json_malformed", "bytes follow the array");
}

/* Reads the tensors after all options, which determine the dtype of JSON. */
static bool read_tensors(struct reader *r)
{
    for (size_t i = 0; i < API_TENSORS; i++) {
        const struct part *part = &r->parts[i];
        struct api_tensor *tensor = &r->call->tensors[i];
        size_t size = (size_t)(part->end - part->content);
        tensor->present = false;
        if (!part->content)
            continue;
        if (!(api_npy_is(part->content, size)
                  ? api_npy_read(tensor, part->content, size, r->problem)
                  : read_json(r, tensor, part)))
            return false;
    }
    return true;
}

/* Decodes a form. Parts named as tensors (input, target, mask) are tensors: .npy files or JSON arrays. All
 * other parts are options as text. Changes the body: a NUL ends each part. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct reader r = {.call = call, .problem = problem};
    struct api_form_part part;
    if (!api_form_begin(&r.form, api_request_header(request, "Content-Type"), request->body,
                        request->body_size, problem))
        return false;
    while (api_form_next(&r.form, &part, problem)) {
        char *content = request->body + (part.content - request->body);
        if (!read_content(&r, part.name, content, content + part.size))
            return false;
    }
    return !problem->code && read_tensors(&r);
}

static const char *const media_types[] = {"multipart/form-data", NULL};
const struct api_codec api_codec_multipart = {
    .media_types = media_types, .decode = decode, .parsed = 1};
