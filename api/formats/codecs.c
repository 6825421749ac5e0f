#include "api/formats/codecs.h"

#include "api/accept.h"
#include "api/formats/json.h"
#include "api/formats/multipart.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/formats/oip.h"
#include "api/formats/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const json[] = {"application/json", NULL};
static const char *const safetensors[] = {
    "application/vnd.safetensors", "application/x-safetensors", "application/safetensors", NULL};
static const char *const npy[] = {"application/x-npy", NULL};
static const char *const npz[] = {"application/x-npz", NULL};
static const char *const form[] = {"multipart/form-data", NULL};
static const char *const inference[] = {"application/octet-stream", NULL};

static const struct api_codec codecs[] = {
    {json, false, api_json_decode, api_json_encode},
    {safetensors, false, api_safetensors_decode, api_safetensors_encode},
    {npy, false, NULL, api_npy_encode},
    {npz, true, api_npz_decode, NULL},
    {form, false, api_multipart_decode, NULL},
    {inference, false, api_oip_decode, api_oip_encode},
};
#define N_CODECS (sizeof codecs / sizeof *codecs)

static const char form_type[] = "application/x-www-form-urlencoded";

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
                    "Content-Type '%.80s' is not among those this path reads: %s", content_type,
                    readable);
}

const struct api_codec *api_codec_for_body(const char *content_type, struct api_problem *problem)
{
    const char *value = content_type ? skip_blank(content_type) : "";
    size_t length = api_essence_length(value);
    if (length == 0 || is_type(value, length, form_type))
        return &codecs[0];
    for (size_t i = 0; i < N_CODECS; i++)
        for (const char *const *type = codecs[i].media_types; *type; type++)
            if (codecs[i].decode && is_type(value, length, *type))
                return &codecs[i];
    unsupported(content_type, problem);
    return NULL;
}

bool api_codec_body_fits(const char *content_type, const char *body, struct api_problem *problem)
{
    const char *value = content_type ? skip_blank(content_type) : "";
    size_t length = api_essence_length(value);
    char first = body[strspn(body, " \t\r\n")];
    if ((length > 0 && !is_type(value, length, form_type)) || first == '{' || first == '\0')
        return true;
    char readable[300];
    api_codec_list_readable(readable, sizeof readable);
    return api_fail(problem, "media_type_unsupported",
                    "the body does not begin with {, so it needs a Content-Type that says what it "
                    "is: %s",
                    readable);
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
             "Accept '%.100s' allows none of the formats this path writes: %s", accept, writable);
}

const struct api_codec *api_codec_for_answer(const char *accept, const char **media_type,
                                             struct api_problem *problem)
{
    const struct api_codec *best = NULL;
    double best_quality = 0;
    if (!accept || !*skip_blank(accept) || strcmp(accept, "*/*") == 0) {
        *media_type = codecs[0].media_types[0];
        return &codecs[0];
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
