#include "api/formats/safetensors.h"

#include "api/formats/dtypes.h"
#include "api/formats/safetensors_file.h"
#include "api/response.h"
#include "api/text/json_reader.h"
#include "api/warnings.h"

#include <stdint.h>
#include <string.h>

/* ALIGNMENT: multiple of bytes to which headers are padded. */
enum { ALIGNMENT = 8 };

/* MAX_HEADER: limit in bytes; two tensors and some options take a few hundred. */
enum { MAX_HEADER = 64 << 10 };

struct reader {
    struct api_call *call;
    const char *data;
    size_t data_size;
    struct api_span spans[API_TENSORS]; /* `owner` is the tensor's place in the call */
    size_t n_spans;
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const struct api_tensor *tensor, const char *field,
                      const char *what)
{
    return api_tensor_fail(tensor, field, r->problem, "safetensors_malformed", "%s", what);
}

static bool read_dtype(struct reader *r, const struct api_tensor *tensor, const char *member,
                       enum kl_dtype *dtype)
{
    char name[API_JSON_TEXT];
    if (!api_json_string(member, name))
        return malformed(r, tensor, "dtype", "it has no dtype, or one that is not a string");
    bool is_mask = api_tensor_is_mask(tensor);
    if (api_dtype_find(API_SAFETENSORS, name, strlen(name), is_mask, dtype))
        return true;
    char known[60];
    api_dtype_list(API_SAFETENSORS, is_mask, known, sizeof known);
    return api_tensor_fail(tensor, "dtype", r->problem, "dtype_unsupported",
                           "dtype %.20s is not one of %s%s", name, known,
                           api_dtype_unsupported_reason(API_SAFETENSORS, name, is_mask));
}

static bool read_tensor(struct reader *r, const char *name, const char *info)
{
    struct api_tensor *tensor = api_tensor_find(r->call->tensors, name, NULL, r->problem);
    enum kl_dtype dtype = KL_FLOAT64;
    enum { DTYPE, SHAPE, OFFSETS, MEMBERS };
    static const char *const names[MEMBERS] = {"dtype", "shape", "data_offsets"};
    const char *members[MEMBERS];
    size_t ndim, count, two, offsets[2];
    if (!tensor)
        return false;
    if (*info != '{')
        return malformed(r, tensor, NULL, "its entry in the header is not an object");
    api_json_members(info, names, members, MEMBERS);
    if (!read_dtype(r, tensor, members[DTYPE], &dtype))
        return false;
    if (!api_json_sizes(members[SHAPE], tensor->shape, KL_MAX_DIMS, &ndim))
        return malformed(r, tensor, "shape",
                         "shape must be an array of at most 64 non-negative integers");
    if (!api_json_sizes(members[OFFSETS], offsets, 2, &two) || two != 2)
        return malformed(r, tensor, "data_offsets",
                         "data_offsets must be an array of two non-negative integers");
    if (offsets[0] > offsets[1] || offsets[1] > r->data_size)
        return api_tensor_fail(tensor, "data_offsets", r->problem, "safetensors_malformed",
                               "data_offsets [%zu, %zu] are not within the %zu bytes of data",
                               offsets[0], offsets[1], r->data_size);
    api_tensor_set(tensor, dtype, ndim, r->data + offsets[0]);
    if (!kl_tensor_count(&tensor->view, &count) ||
        count * api_dtype_size(dtype) != offsets[1] - offsets[0])
        return api_tensor_fail(tensor, "shape", r->problem, "safetensors_malformed",
                               "shape and dtype do not fit the %zu bytes between data_offsets",
                               offsets[1] - offsets[0]);
    r->spans[r->n_spans++] =
        (struct api_span){offsets[0], offsets[1], (size_t)(tensor - r->call->tensors)};
    return true;
}

static bool read_metadata(struct reader *r, const char *metadata)
{
    /* members that libraries write */
    static const char *const also[] = {"format", NULL};
    char name[API_JSON_TEXT], text[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(metadata);
    if (*metadata != '{')
        return api_fail_at(r->problem, API_BODY, "#/__metadata__", "safetensors_malformed",
                           "__metadata__ must be an object of strings");
    while (api_json_next_member(&reader, name, &value)) {
        const struct api_origin origin = {"#/__metadata__/", name};
        if (!api_json_string(value, text))
            return api_fail_at(
                r->problem, API_BODY, "#/__metadata__", "safetensors_malformed",
                "__metadata__ must be an object of strings, but '%.100s' is not a string", name);
        if (strcmp(name, also[0]) != 0 &&
            !api_option_set_text(&r->call->options, origin, text, also, r->problem))
            return false;
    }
    return true;
}

/* Checks that the spans cover the data without gaps. */
static bool check_coverage(struct reader *r)
{
    size_t due;
    const struct api_span *wrong = api_spans_check(r->spans, r->n_spans, &due);
    if (wrong)
        return api_tensor_fail(&r->call->tensors[wrong->owner], "data_offsets", r->problem,
                               "safetensors_malformed",
                               "data_offsets begin at %zu, not at %zu: tensors must "
                               "neither overlap nor leave gaps",
                               wrong->begin, due);
    return due == r->data_size ||
           api_fail(r->problem, "safetensors_malformed",
                    "the tensors end at byte %zu of the data, but the data has %zu bytes", due,
                    r->data_size);
}

static bool check_header(const char *text, size_t size, struct api_problem *problem)
{
    const char *at, *what;
    return api_json_check(text, size, &at, &what) ||
           api_fail(problem, "safetensors_malformed", "the header is not JSON: byte %zu: %s",
                    (size_t)(at - text), what);
}

static bool read_members(struct reader *r, const char *header)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(header);
    while (api_json_next_member(&reader, name, &value))
        if (!(strcmp(name, "__metadata__") == 0 ? read_metadata(r, value)
                                                : read_tensor(r, name, value)))
            return false;
    return check_coverage(r);
}

bool api_safetensors_decode(struct api_call *call, const struct api_request *request,
                            struct api_problem *problem)
{
    const char *text = request->body + API_SAFETENSORS_PREFIX;
    size_t size = 0;
    if (!api_safetensors_header(request->body, request->body_size, MAX_HEADER, &size, problem) ||
        !check_header(text, size, problem))
        return false;
    struct reader r = {.call = call,
                       .data = text + size,
                       .data_size = request->body_size - API_SAFETENSORS_PREFIX - size,
                       .problem = problem};
    return read_members(&r, text);
}

static void write_metadata(const struct api_call *call, struct api_buffer *out)
{
    const struct api_warnings warnings = api_call_warnings(call);
    api_append_text(out, "\"__metadata__\":{");
    api_warnings_members(&warnings, out);
    api_append_text(out, "}");
}

/* Writes `,"loss":{...}`; returns the offset of the next tensor. */
static size_t write_entry(struct api_buffer *out, const char *name, const struct kl_tensor *view,
                          size_t begin, size_t size)
{
    api_append_text(out, ",\"");
    api_append_text(out, name);
    api_append_text(out, "\":{\"dtype\":\"");
    api_append_text(out, api_dtype_name(API_SAFETENSORS, view->dtype));
    api_append_text(out, "\",\"shape\":");
    api_append_sizes(out, view->shape, view->ndim);
    api_append_text(out, ",\"data_offsets\":");
    api_append_sizes(out, (const size_t[]){begin, begin + size}, 2);
    api_append_text(out, "}");
    return begin + size;
}

void api_safetensors_encode(struct api_call *call, struct api_response *response)
{
    struct api_buffer *out = &response->body, *tensor;
    struct kl_tensor view;
    size_t end = 0;
    uint64_t size = 0;
    api_append(out, &size, sizeof size);
    api_append_text(out, "{");
    write_metadata(call, out);
    for (size_t i = 0; i < API_OUTPUTS; i++)
        if ((tensor = api_call_output(call, i, &view)))
            end = write_entry(out, api_output_names[i], &view, end, tensor->size);
    api_append_text(out, "}");
    while (out->size % ALIGNMENT != 0 && !out->failed)
        api_append(out, " ", 1);
    size = out->size - API_SAFETENSORS_PREFIX;
    if (!out->failed)
        memcpy(out->data, &size, sizeof size);
    for (size_t i = 0; i < API_OUTPUTS; i++)
        if ((tensor = api_call_output(call, i, &view)))
            api_response_take(response, tensor);
}
