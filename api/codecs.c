#include "api/codecs.h"

#include "api/json.h"
#include "api/multipart.h"
#include "api/npy.h"
#include "api/npz.h"
#include "api/safetensors.h"

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

static const struct api_codec codecs[] = {
    {json, api_json_decode, api_json_encode},
    {safetensors, api_safetensors_decode, api_safetensors_encode},
    {npy, NULL, api_npy_encode},
    {npz, api_npz_decode, NULL},
    {form, api_multipart_decode, NULL},
};
#define N_CODECS (sizeof codecs / sizeof *codecs)

static const char form_type[] = "application/x-www-form-urlencoded";

/* The length of "type/subtype" at the start of a header value. */
static size_t essence_length(const char *value) { return strcspn(value, "; \t,"); }

static bool is_type(const char *value, size_t length, const char *type)
{
    return length == strlen(type) && strncasecmp(value, type, length) == 0;
}

static const char *skip_blank(const char *p) { return p + strspn(p, " \t"); }

static bool unsupported(const char *content_type, struct api_problem *problem)
{
    char readable[200];
    api_codec_list_readable(readable, sizeof readable);
    return api_fail(problem, "media_type_unsupported",
                    "Content-Type '%.80s' is not among those this path reads: %s", content_type,
                    readable);
}

const struct api_codec *api_codec_for_body(const char *content_type, struct api_problem *problem)
{
    const char *value = content_type ? skip_blank(content_type) : "";
    size_t length = essence_length(value);
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
    size_t length = essence_length(value);
    char first = body[strspn(body, " \t\r\n")];
    if ((length > 0 && !is_type(value, length, form_type)) || first == '{' || first == '\0')
        return true;
    return api_fail(problem, "media_type_unsupported",
                    "the body does not begin with {, so it needs a Content-Type: application/json");
}

/* One element of Accept: how well it fits a media type, 0 not at all, 3 exactly. */
static int specificity(const char *range, size_t length, const char *type)
{
    size_t slash = strcspn(type, "/");
    if (is_type(range, length, type))
        return 3;
    if (length == slash + 2 && range[slash] == '/' && range[slash + 1] == '*' &&
        strncasecmp(range, type, slash) == 0)
        return 2;
    return is_type(range, length, "*/*") ? 1 : 0;
}

/* The q of the element whose parameters start here; 1 without one. */
static double quality(const char *parameters, const char *end)
{
    for (const char *p = parameters; p < end; p++) {
        if (*p != ';')
            continue;
        const char *name = skip_blank(p + 1);
        if ((*name == 'q' || *name == 'Q') && name[1] == '=')
            return strtod(name + 2, NULL);
    }
    return 1;
}

static double quality_of_type(const char *accept, const char *type)
{
    int best = 0;
    double q = 0;
    for (const char *p = accept; *p; p += *p == ',') {
        p = skip_blank(p);
        const char *end = p + strcspn(p, ",");
        size_t length = essence_length(p);
        int fit = specificity(p, length, type);
        if (fit > best) {
            best = fit;
            q = quality(p + length, end);
        }
        p = end;
    }
    return q;
}

static void not_acceptable(const char *accept, struct api_problem *problem)
{
    char writable[200] = "";
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
            double q = quality_of_type(accept, *type);
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
