/* Requests and responses of /kl_div as safetensors. */
#include "api/files/dtypes.h"
#include "api/files/safetensors_file.h"
#include "api/loss/codecs.h"
#include "api/loss/warnings.h"
#include "api/request/response.h"
#include "api/text/nearest.h"

#include <stdint.h>
#include <string.h>

/* ALIGNMENT: multiple of bytes to which headers are padded. */
enum { ALIGNMENT = 8 };

/* MAX_HEADER: limit in bytes; two tensors and some options take a few hundred. */
enum { MAX_HEADER = 64 << 10 };

static bool read_tensor(struct api_call *call, struct api_safetensors *file)
{
    struct api_safetensor entry;
    struct api_type type;
    for (size_t i = 0; i < API_TENSORS; i++)
        if (call->tensors[i].present && strcmp(file->name, api_tensor_names[i]) == 0)
            return api_json_repeated(&file->json);
    struct api_tensor *tensor = api_tensor_find(call->tensors, file->name, NULL, file->problem);
    if (!tensor || !api_safetensors_read(file, &entry) ||
        !api_tensor_type(tensor, API_SAFETENSORS, "dtype", entry.dtype, &type, file->problem) ||
        !api_safetensors_fit(file, &entry, type.size))
        return false;
    memcpy(tensor->shape, entry.shape, entry.ndim * sizeof *entry.shape);
    api_tensor_set(tensor, type.dtype, entry.ndim, file->data + entry.begin);
    return true;
}

/* True for a name that must be meant as an option: libraries write any other. Short names are not sure. */
static bool is_misspelt(const char *name)
{
    enum { LONG = 6 };
    const char *known[API_OPTIONS];
    size_t n = 0;
    for (size_t i = 0; i < API_OPTIONS; i++)
        if (strlen(api_loss_options[i].name) >= LONG)
            known[n++] = api_loss_options[i].name;
    const char *nearest = api_nearest(name, known, n);
    return nearest && *nearest == *name;
}

static bool read_option(struct api_call *call, struct api_json_cursor *c, const char *name,
                        uint64_t *options)
{
    const struct api_origin origin = {"#/__metadata__/", name};
    struct api_option_input setting;
    char text[API_JSON_TEXT];
    if (!api_option_begin(&setting, &call->options, origin, NULL, c->problem))
        return false;
    if (api_option_is_repeated(&setting, options))
        return api_json_repeated(c);
    if (!api_json_string(c, text) || c->is_cut)
        return api_fail_at(c->problem, API_BODY, "#/__metadata__", "safetensors_malformed",
                           "the option '%.100s' is not a string of at most 1024 bytes", name);
    return api_option_add(&setting, &(struct api_value){.kind = API_TEXT, .text = text}) &&
           api_option_end(&setting);
}

/* Reads the options in __metadata__. */
static bool read_metadata(struct api_call *call, struct api_json_cursor *c)
{
    char name[API_JSON_TEXT];
    uint64_t options = 0;
    if (!api_json_open_if(c, '{'))
        return api_fail_at(c->problem, API_BODY, "#/__metadata__", "safetensors_malformed",
                           "__metadata__ must be an object");
    while (api_json_member(c, name)) {
        bool is_option = api_option_find(name) >= 0 || is_misspelt(name);
        if (!(is_option ? read_option(call, c, name, &options) : api_json_skip(c)))
            return false;
    }
    return !c->problem->code;
}

/* Decodes the tensors of a call in place, and the strings of __metadata__ as options. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct api_safetensors file;
    file.body = request->body;
    file.size = request->body_size;
    file.max_header = MAX_HEADER;
    file.problem = problem;
    bool good = api_safetensors_begin(&file, call->service->budget);
    while (good && api_safetensors_next(&file))
        good = strcmp(file.name, "__metadata__") == 0 ? read_metadata(call, &file.json)
                                                      : read_tensor(call, &file);
    return api_safetensors_end(&file, good);
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

static void encode(struct api_call *call, struct api_response *response)
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

static const char *const media_types[] = {
    "application/vnd.safetensors", "application/x-safetensors", "application/safetensors", NULL};
const struct api_codec api_codec_safetensors = {
    .media_types = media_types, .decode = decode, .encode = encode, .ns_per_element = API_COPY_NS};
