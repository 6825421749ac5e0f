#include "api/loss/codecs.h"

#include "api/files/archive.h"
#include "api/files/npy_header.h"
#include "api/files/safetensors_file.h"
#include "api/json/json_text.h"
#include "api/request/response.h"
#include "api/text/accept.h"
#include "api/text/nearest.h"

#include <stdio.h>
#include <string.h>

extern const struct api_codec api_codec_json, api_codec_safetensors, api_codec_npz, api_codec_npy,
    api_codec_multipart, api_codec_oip;

static const struct api_codec *const codecs[] = {&api_codec_json,      &api_codec_safetensors,
                                                 &api_codec_npz,       &api_codec_npy,
                                                 &api_codec_multipart, &api_codec_oip};
#define N_CODECS (sizeof codecs / sizeof *codecs)

/* Content-Types that clients send by default. */
static const char *const unspecific[] = {"", "application/x-www-form-urlencoded", "text/plain",
                                         NULL};

/* Adds the media types of bodies as the header Accept, and returns them. */
static const char *add_accept(struct api_response *response)
{
    api_codec_list_readable(response->header_text, sizeof response->header_text);
    api_response_header(response, "Accept", response->header_text);
    return response->header_text;
}

const struct api_codec *api_codec_for_body(struct api_exchange *x)
{
    const char *content_type = api_request_header(&x->request, "Content-Type");
    if (content_type && strcmp(content_type, api_codec_json.media_types[0]) == 0)
        return &api_codec_json;
    x->is_untyped = !content_type || api_is_media_type(content_type, unspecific);
    if (x->is_untyped)
        return &api_codec_json;
    for (size_t i = 0; i < N_CODECS; i++)
        if (codecs[i]->decode && api_is_media_type(content_type, codecs[i]->media_types)) {
            x->is_untyped = codecs[i] == &api_codec_oip &&
                            !api_request_header(&x->request, "Inference-Header-Content-Length");
            return codecs[i];
        }
    api_fail(&x->problem, "media_type_unsupported",
             "Content-Type '%.80s' is not supported here; use one of: %s", content_type,
             add_accept(&x->response));
    return NULL;
}

static bool fail_untyped(struct api_exchange *x)
{
    const char *readable = add_accept(&x->response);
    if (api_npy_is(x->request.body, x->request.body_size))
        return api_fail(&x->problem, "media_type_unsupported",
                        "the body needs a Content-Type that names its format: it looks like "
                        "application/x-npz, which numpy.savez writes, or a part of "
                        "multipart/form-data");
    return api_fail(&x->problem, "media_type_unsupported",
                    "the body does not begin with {, so it needs a Content-Type that names its "
                    "format: %s",
                    readable);
}

bool api_codec_check_body(struct api_exchange *x)
{
    const struct api_request *request = &x->request;
    if (request->body_size == 0 && x->decoder == &api_codec_json)
        return true;
    if (api_archive_is(request->body, request->body_size))
        x->decoder = &api_codec_npz;
    else if (api_safetensors_is(request->body, request->body_size))
        x->decoder = &api_codec_safetensors;
    else if (*api_json_start(request->body) != '{')
        return fail_untyped(x);
    else if (!memmem(request->body, request->body_size, "\"inputs\"", 8))
        x->decoder = &api_codec_json;
    return true;
}

bool api_codec_check_response(struct api_exchange *x, const struct api_call *call)
{
    if (call->options.partial && x->encoder == &api_codec_oip)
        return api_fail(&x->problem, "partial_unsupported",
                        "inference responses hold a loss and gradients, not a partial result; use "
                        "POST /kl_div");
    if (call->options.partial && x->encoder->loss_only)
        return api_fail(
            &x->problem, "not_acceptable",
            "%s holds one array, but a partial result has two: accept application/x-npz",
            x->response.content_type);
    if (x->encoder != &api_codec_oip)
        for (size_t i = 0; i < API_RESULTS; i++)
            if (call->oip.slices[i].in)
                return api_slice_fail(
                    &call->oip.slices[i], "shared_memory_region", "not_acceptable", &x->problem,
                    "%s cannot describe tensors in shared memory: accept application/octet-stream",
                    x->response.content_type);
    return !x->encoder->loss_only || !call->options.gradient ||
           api_fail(&x->problem, "not_acceptable",
                    "%s holds only the loss, but a gradient is requested: accept application/x-npz",
                    x->response.content_type);
}

const struct api_codec *api_codec_for_response(const char *accept, const char **media_type,
                                               struct api_problem *problem)
{
    const struct api_codec *best = NULL;
    double best_quality = 0;
    char writable[300] = "";
    *media_type = api_codec_json.media_types[0];
    if (!accept || !accept[strspn(accept, " \t")] || strcmp(accept, "*/*") == 0)
        return &api_codec_json;
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i]->media_types; *type && codecs[i]->encode; type++) {
            double q = api_accept_quality(accept, *type);
            if (q > best_quality) {
                best_quality = q;
                best = codecs[i];
                *media_type = *type;
            }
        }
    if (best)
        return best;
    if (api_accept_quality(accept, "application/problem+json") > 0)
        return &api_codec_json;
    for (size_t i = 0; i < N_CODECS; i++)
        if (codecs[i]->encode)
            api_append_word(writable, sizeof writable, codecs[i]->media_types[0]);
    api_fail(problem, "not_acceptable",
             "Accept '%.100s' allows none of the formats of this path: %s", accept, writable);
    return NULL;
}

void api_codec_list_readable(char *to, size_t size)
{
    *to = '\0';
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i]->media_types; *type; type++)
            if (codecs[i]->decode)
                api_append_word(to, size, *type);
}
