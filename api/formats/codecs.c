#include "api/formats/codecs.h"

#include "api/accept.h"
#include "api/formats/json.h"
#include "api/formats/multipart.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/formats/oip.h"
#include "api/formats/safetensors.h"
#include "api/response.h"
#include "api/text/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const json[] = {"application/json", NULL};
static const char *const safetensors[] = {
    "application/vnd.safetensors", "application/x-safetensors", "application/safetensors", NULL};
static const char *const npy[] = {"application/x-npy", NULL};
static const char *const npz[] = {"application/x-npz", NULL};
static const char *const form[] = {"multipart/form-data", NULL};
static const char *const inference[] = {"application/octet-stream", NULL};

static double whole_body(const struct api_request *request) { return (double)request->body_size; }

/* Estimates the inflated size: typical archives inflate to less than 100 times their size,
 * stored ones not at all. */
static double deflated_body(const struct api_request *request)
{
    enum { TYPICAL_INFLATION = 100 };
    return (double)request->body_size * TYPICAL_INFLATION;
}

static double json_part(const struct api_request *request)
{
    const char *header = api_request_header(request, "Inference-Header-Content-Length");
    double size = header ? strtod(header, NULL) : 0;
    return size > 0 && size <= (double)request->body_size ? size : (double)request->body_size;
}

/* Nanoseconds for an element as decimal text, and for one that is copied. */
static double text_ns(const struct api_call *call)
{
    (void)call;
    return 45;
}

static double copy_ns(const struct api_call *call)
{
    (void)call;
    return 1;
}

static double inference_ns(const struct api_call *call)
{
    return (call->oip.wanted & ~call->oip.binary) ? text_ns(call) : copy_ns(call);
}

enum { JSON, SAFETENSORS, NPZ, NPY, FORM, INFERENCE, N_CODECS };
static const struct api_codec codecs[N_CODECS] = {
    [JSON] = {json, api_json_decode, whole_body, api_json_encode, text_ns, true, false},
    [SAFETENSORS] = {safetensors, api_safetensors_decode, NULL, api_safetensors_encode, copy_ns,
                     false, false},
    [NPZ] = {npz, api_npz_decode, deflated_body, api_npz_encode, copy_ns, false, false},
    [NPY] = {npy, NULL, NULL, api_npy_encode, copy_ns, false, true},
    [FORM] = {form, api_multipart_decode, whole_body, NULL, NULL, false, false},
    [INFERENCE] = {inference, api_oip_decode, json_part, api_oip_encode, inference_ns, true, false},
};

const struct api_codec *const api_inference_codec = &codecs[INFERENCE];

/* Content-Types that clients send by default. */
static const char *const unspecific[] = {"application/x-www-form-urlencoded", "text/plain"};

static bool is_type(const char *value, size_t length, const char *type)
{
    return length == strlen(type) && strncasecmp(value, type, length) == 0;
}

static const char *skip_blank(const char *p) { return p + strspn(p, " \t"); }

static bool unsupported(const char *content_type, struct api_problem *problem)
{
    char readable[300];
    api_codec_list_readable(readable, sizeof readable);
    return api_fail(problem, "media_type_unsupported",
                    "Content-Type '%.80s' is not supported here; use one of: %s", content_type,
                    readable);
}

static bool is_unspecific(const char *value, size_t length)
{
    for (size_t i = 0; i < sizeof unspecific / sizeof *unspecific; i++)
        if (is_type(value, length, unspecific[i]))
            return true;
    return length == 0;
}

const struct api_codec *api_codec_for_body(struct api_exchange *x)
{
    const char *content_type = api_request_header(&x->request, "Content-Type");
    const char *value = content_type ? skip_blank(content_type) : "";
    size_t length = api_essence_length(value);
    x->is_untyped = is_unspecific(value, length);
    if (x->is_untyped)
        return &codecs[JSON];
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i].media_types; *type; type++)
            if (codecs[i].decode && is_type(value, length, *type)) {
                x->is_untyped = i == INFERENCE &&
                                !api_request_header(&x->request, "Inference-Header-Content-Length");
                return &codecs[i];
            }
    unsupported(content_type, &x->problem);
    return NULL;
}

/* sign: bytes by which a body is recognized. No JSON text has them: an archive and a .npy file begin
 * otherwise, and the length of a safetensors header ends with NULs. */
static const struct sign {
    const char *bytes;
    size_t offset, size;
    const struct api_codec *codec; /* NULL: the body needs `type` */
    const char *type;
} signs[] = {
    {"PK\3\4", 0, 4, &codecs[NPZ], NULL},
    {"\0\0\0{\"", 5, 5, &codecs[SAFETENSORS], NULL},
    {"\x93NUMPY", 0, 6, NULL,
     "application/x-npz, which numpy.savez writes, or a part of multipart/form-data"},
};

static const struct sign *recognize(const struct api_request *request)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (request->body_size >= signs[i].offset + signs[i].size &&
            memcmp(request->body + signs[i].offset, signs[i].bytes, signs[i].size) == 0)
            return &signs[i];
    return NULL;
}

static bool fail_untyped(struct api_exchange *x, const struct sign *sign)
{
    char *readable = x->response.header_text;
    api_codec_list_readable(readable, sizeof x->response.header_text);
    api_response_header(&x->response, "Accept", readable);
    if (sign)
        return api_fail(&x->problem, "media_type_unsupported",
                        "the body needs a Content-Type that names its format: it looks like %s",
                        sign->type);
    return api_fail(&x->problem, "media_type_unsupported",
                    "the body does not begin with {, so it needs a Content-Type that names its "
                    "format: %s",
                    readable);
}

static bool is_object(const struct api_request *request)
{
    return *api_json_start(request->body) == '{';
}

bool api_codec_check_body(struct api_exchange *x)
{
    const struct api_request *request = &x->request;
    if (request->body_size == 0 && x->decoder == &codecs[JSON])
        return true;
    const struct sign *sign = recognize(request);
    if (sign && sign->codec)
        x->decoder = sign->codec;
    else if (sign || !is_object(request))
        return fail_untyped(x, sign);
    else if (!memmem(request->body, request->body_size, "\"inputs\"", 8))
        x->decoder = &codecs[JSON];
    return true;
}

bool api_codec_check_answer(struct api_exchange *x, const struct api_call *call)
{
    if (call->options.partial && x->encoder == api_inference_codec)
        return api_fail(&x->problem, "partial_unsupported",
                        "inference responses hold a loss and gradients, not a partial result; use "
                        "POST /kl_div");
    if (call->options.partial && x->encoder->loss_only)
        return api_fail(
            &x->problem, "not_acceptable",
            "%s holds one array, but a partial result has two: accept application/x-npz",
            x->response.content_type);
    if (x->encoder != api_inference_codec)
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

static void not_acceptable(const char *accept, struct api_problem *problem)
{
    char writable[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < N_CODECS && used < sizeof writable; i++)
        if (codecs[i].encode)
            used += (size_t)snprintf(writable + used, sizeof writable - used, used ? ", %s" : "%s",
                                     codecs[i].media_types[0]);
    api_fail(problem, "not_acceptable",
             "Accept '%.100s' allows none of the formats of this path: %s", accept, writable);
}

const struct api_codec *api_codec_for_answer(const char *accept, const char **media_type,
                                             struct api_problem *problem)
{
    const struct api_codec *best = NULL;
    double best_quality = 0;
    if (!accept || !*skip_blank(accept) || strcmp(accept, "*/*") == 0) {
        *media_type = codecs[JSON].media_types[0];
        return &codecs[JSON];
    }
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i].media_types; *type && codecs[i].encode; type++) {
            double q = api_accept_quality(accept, *type);
            if (q > best_quality) {
                best_quality = q;
                best = &codecs[i];
                *media_type = *type;
            }
        }
    if (!best)
        not_acceptable(accept, problem);
    return best;
}

void api_codec_list_readable(char *to, size_t size)
{
    size_t used = 0;
    *to = '\0';
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i].media_types; *type && used < size; type++)
            if (codecs[i].decode)
                used += (size_t)snprintf(to + used, size - used, used ? ", %s" : "%s", *type);
}
