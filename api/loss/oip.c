#include "api/loss/oip.h"

#include "api/files/dtypes.h"
#include "api/json/json_text.h"
#include "api/loss/json_tensor.h"
#include "api/loss/oip_inputs.h"
#include "api/loss/warnings.h"
#include "api/request/response.h"
#include "api/request/route.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* MAX_MEMBERS: bytes of the JSON part without its arrays of data. */
enum { MAX_MEMBERS = 64 << 10 };

static bool malformed(struct api_oip_reader *r, const char *location, const char *what)
{
    return api_fail_at(r->problem, API_BODY, location, "inference_malformed", "%s", what);
}

/* ---- Parameters */

/* True for parameters of Triton's and MLServer's clients that have no meaning for a loss. */
static bool is_ignored(const char *name)
{
    static const char *const words[] = {"sequence_id", "sequence_start", "sequence_end", "priority",
                                        "timeout",     "headers",        "content_type", NULL};
    size_t i = 0;
    while (words[i] && strcmp(name, words[i]) != 0)
        i++;
    return words[i] || strncmp(name, "triton_", 7) == 0;
}

/* Adds a string, or the text of a number or word; the option checks it. */
static bool add_value(struct api_oip_reader *r, struct api_option_input *setting)
{
    char text[API_JSON_TEXT];
    if (!api_json_characters(&r->json, text))
        return malformed(r, "#/parameters", "a parameter has more than 1024 characters");
    return api_option_add(setting, &(struct api_value){.kind = API_TEXT, .text = text});
}

static bool read_parameter(struct api_oip_reader *r, const char *name)
{
    const struct api_origin origin = {"#/parameters/", name};
    struct api_json_cursor *c = &r->json;
    struct api_option_input setting;
    if (is_ignored(name))
        return api_json_skip(c);
    if (!api_option_begin(&setting, &r->call->options, origin, NULL, r->problem))
        return false;
    if (api_option_is_repeated(&setting, &r->options))
        return api_json_repeated(c);
    if (api_json_peek(c) != '[' || !setting.row->is_list)
        return add_value(r, &setting) && api_option_end(&setting);
    api_json_open(c, '[');
    while (api_json_item(c))
        if (!add_value(r, &setting))
            return false;
    return !r->problem->code && api_option_end(&setting);
}

static const char non_finite[] = "non_finite";

/* Chooses the form of non-finite numbers; query and parameters must not contradict. */
static bool set_form(struct api_oip_reader *r, enum api_location where, const char *word)
{
    static const char *const words[] = {
        [API_QUOTED] = "string", [API_BARE] = "bare", [API_NULL_WORD] = "null"};
    const size_t n = sizeof words / sizeof *words;
    const char *location = where == API_QUERY ? non_finite : "#/parameters/non_finite";
    size_t form = 0;
    while (form < n && strcmp(word, words[form]) != 0)
        form++;
    if (form == n)
        return api_fail_at(r->problem, where, location, "inference_malformed",
                           "non_finite must be \"bare\", \"string\" or \"null\"");
    if (r->has_form && form != r->call->oip.nonfinite)
        return api_fail_at(r->problem, where, location, "option_conflict",
                           "non_finite is given twice, with different values");
    r->has_form = true;
    r->call->oip.nonfinite = (enum api_nonfinite)form;
    return true;
}

static bool read_form_of_query(struct api_oip_reader *r, const char *query)
{
    struct api_parameter parameter;
    for (const char *rest = query ? query : "";;) {
        struct api_problem problem = {0};
        bool good = api_query_next(&rest, &parameter, &problem);
        if (!good && !problem.code)
            return true;
        if (strcmp(parameter.name, non_finite) == 0 && !set_form(r, API_QUERY, parameter.value))
            return false;
    }
}

static bool read_form(struct api_oip_reader *r)
{
    char word[API_JSON_TEXT];
    const char *start = r->json.p;
    if (!api_json_characters(&r->json, word) || !memchr(start, '"', (size_t)(r->json.p - start)))
        *word = '\0';
    return set_form(r, API_BODY, word);
}

static bool read_parameters(struct api_oip_reader *r)
{
    enum { BINARY_OUTPUT, NON_FINITE };
    static const char *const names[] = {"binary_data_output", non_finite, NULL};
    struct api_json_cursor *c = &r->json;
    char name[API_JSON_TEXT];
    unsigned given = 0;
    size_t i;
    if (api_json_peek(c) != '{')
        return api_json_skip(c) && malformed(r, "#/parameters", "parameters must be an object");
    while (api_json_field(c, names, &given, name, &i))
        if (!(i == BINARY_OUTPUT ? api_oip_read_flag(c, &r->is_binary)
              : i == NON_FINITE  ? read_form(r)
                                 : read_parameter(r, name)))
            return false;
    return !r->problem->code;
}

/* ---- Outputs */

/* Notes that an output goes into the response, and how. A named gradient needs no option. */
static bool want_output(struct api_oip_reader *r, const char *name,
                        const struct api_oip_parameters *p)
{
    size_t output = 0, number = p->slice.number;
    char detail[200];
    while (output < API_SUM && strcmp(name, api_output_names[output]) != 0)
        output++;
    if (output == API_SUM) {
        snprintf(
            detail, sizeof detail,
            "there is no output '%.60s'; the outputs are loss, gradient.input and gradient.target",
            name);
        return api_oip_fail(r, "outputs", number, "name", "output_unknown", detail);
    }
    if (p->has_classes)
        return api_oip_fail(r, "outputs", number, "parameters/classification",
                            "inference_malformed", "a loss has no classes");
    const unsigned bit = 1u << output;
    r->call->oip.wanted |= bit;
    r->gradients |= bit >> 1;
    if (p->has_binary) {
        r->binary_outputs = (r->binary_outputs & ~bit) | (p->is_binary ? bit : 0);
        r->json_outputs = (r->json_outputs & ~bit) | (p->is_binary ? 0 : bit);
    }
    struct api_slice *slice = &r->call->oip.slices[output];
    api_slice_end(slice); /* an output that is named twice goes where it is named last */
    return !p->is_shared || api_oip_slice_begin(r, slice, p);
}

static bool read_output(struct api_oip_reader *r, size_t number)
{
    enum { NAME, PARAMETERS, MEMBERS };
    static const char *const names[] = {"name", "parameters", NULL};
    struct api_oip_parameters p = {.slice = {.writes = true, .number = number}};
    char member[API_JSON_TEXT], name[API_JSON_TEXT];
    bool has_name = false;
    unsigned given = 0;
    size_t i;
    while (api_json_field(&r->json, names, &given, member, &i)) {
        if (i == MEMBERS)
            return api_oip_fail(r, "outputs", number, member, "inference_malformed",
                                "an output may have only name and parameters");
        if (i == NAME)
            has_name = api_json_string(&r->json, name);
        else if (!api_oip_read_parameters(r, &p))
            return false;
    }
    if (!has_name)
        return api_oip_fail(r, "outputs", number, "name", "inference_malformed",
                            "an output has no name");
    return !r->problem->code && want_output(r, name, &p);
}

/* Reads the list of outputs, which selects them. */
static bool read_outputs(struct api_oip_reader *r)
{
    if (!api_json_open_if(&r->json, '['))
        return malformed(r, "#/outputs", "outputs must be an array");
    r->call->oip.wanted = 0;
    for (size_t i = 0; api_json_item(&r->json); i++)
        if (!read_output(r, i))
            return false;
    return !r->problem->code;
}

/* ---- The request */

static bool read_id(struct api_oip_reader *r)
{
    char text[API_JSON_TEXT];
    if (!api_json_string(&r->json, text))
        return malformed(r, "#/id", "id must be a string");
    api_append(&r->call->oip.id, text, strlen(text) + 1);
    return !r->call->oip.id.failed || api_fail_oom(r->problem);
}

/* A member that may be there, and then must name what the path names; an empty string names
 * nothing. */
static bool check_name(struct api_oip_reader *r, const char *member, const char *kind,
                       const char *served)
{
    char text[API_JSON_TEXT], location[40];
    if (api_json_string(&r->json, text) && (!*text || strcmp(text, served) == 0))
        return true;
    snprintf(location, sizeof location, "#/%s", member);
    return api_fail_at(r->problem, API_BODY, location, "inference_malformed",
                       "unknown %s '%.60s': this server has %s", kind, text, served);
}

enum { INPUTS, ID, PARAMETERS, OUTPUTS, MODEL_NAME, MODEL_VERSION };
static const char *const member_names[] = {
    "inputs", "id", "parameters", "outputs", "model_name", "model_version", NULL};

static bool read_member(struct api_oip_reader *r, size_t i, const char *name)
{
    bool is_null = i != INPUTS && member_names[i] && api_json_peek(&r->json) == 'n';
    if (is_null) /* as absent */
        return api_json_skip(&r->json);
    switch (i) {
    case INPUTS:
        return api_oip_read_inputs(r);
    case ID:
        return read_id(r);
    case PARAMETERS:
        return read_parameters(r);
    case OUTPUTS:
        return read_outputs(r);
    case MODEL_NAME:
        return check_name(r, name, "model", API_OIP_MODEL);
    case MODEL_VERSION:
        return check_name(r, name, "version", API_OIP_VERSION);
    default:
        return api_fail(r->problem, "option_unknown",
                        "there is no member '%.60s' in an inference request: tensors go into "
                        "inputs, as {name, shape, datatype, data}, and options into parameters",
                        name);
    }
}

/* Reads the JSON part. */
static bool read_request(struct api_oip_reader *r)
{
    struct api_json_cursor *c = &r->json;
    char name[API_JSON_TEXT];
    unsigned given = 0;
    size_t i;
    bool is_object = api_json_peek(c) == '{';
    while (api_json_field(c, member_names, &given, name, &i))
        if (!read_member(r, i, name))
            return false;
    if (!r->problem->code && !api_json_end(c) && c->end == r->raw_end)
        api_problem_prefix(r->problem, "binary data need Inference-Header-Content-Length: ");
    if (r->problem->code && !is_object)
        api_problem_prefix(r->problem, "not an inference request, which begins with {: ");
    if (!is_object)
        return api_fail(r->problem, "body_not_object", "the request must be a JSON object");
    if ((size_t)(c->end - c->text) - r->data_size > MAX_MEMBERS)
        return api_fail(r->problem, "members_too_large",
                        "the request without data may have at most 64 KiB");
    if (!(given & 1u << INPUTS))
        return malformed(r, "#/inputs", "the request must have an array of inputs");
    return !r->problem->code;
}

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

static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    const char *header = api_request_header(request, "Inference-Header-Content-Length");
    size_t size = api_oip_json_size(request);
    struct api_oip_reader r = {.raw = request->body + size,
                               .raw_end = request->body + request->body_size,
                               .call = call,
                               .problem = problem};
    if (!read_form_of_query(&r, request->query))
        return false;
    if (header && size == 0)
        return api_fail(problem, "inference_malformed",
                        "Inference-Header-Content-Length '%.40s' is not a number from 1 to the %zu "
                        "bytes of the body",
                        header, request->body_size);
    api_json_begin(&r.json, request->body, size, false, problem);
    if (!read_request(&r) || !api_oip_read_raws(&r))
        return false;
    call->options.gradient |= r.gradients;
    call->oip.binary = ((r.is_binary ? ~0u : 0) & ~r.json_outputs) | r.binary_outputs;
    if (call->oip.wanted == 0) /* an empty list, like no list, stands for all outputs */
        call->oip.wanted = ~0u;
    return true;
}

/* ---- Responses */

static void write_head(const struct api_call *call, struct api_buffer *out)
{
    const struct api_warnings warnings = api_call_warnings(call);
    api_append_text(out, "{\"model_name\":\"" API_OIP_MODEL
                         "\",\"model_version\":\"" API_OIP_VERSION "\"");
    if (call->oip.id.size > 1) {
        api_append_text(out, ",\"id\":");
        api_append_json_string(out, call->oip.id.data);
    }
    api_append_text(out, ",\"parameters\":{");
    api_warnings_members(&warnings, out);
    api_append_text(out, "},\"outputs\":[");
}

/* Writes the start of an output's object. */
static void begin_output(struct api_buffer *out, const char *name, const struct kl_tensor *view)
{
    api_append_text(out, "{\"name\":\"");
    api_append_text(out, name);
    api_append_text(out, "\",\"datatype\":\"");
    api_append_text(out, api_dtype_name(API_INFERENCE, view->dtype));
    api_append_text(out, "\",\"shape\":");
    api_append_sizes(out, view->shape, view->ndim);
}

/* Writes one output, with its data or the size of its binary part. Data of bfloat16 have the digits of
 * float32, in which clients hold it. */
static void write_output(struct api_buffer *out, const char *name, const struct kl_tensor *view,
                         size_t size, bool binary, enum api_nonfinite nonfinite)
{
    begin_output(out, name, view);
    if (binary) {
        api_append_text(out, ",\"parameters\":{\"binary_data_size\":");
        api_append_unsigned(out, size);
        api_append_text(out, "}}");
        return;
    }
    size_t count = size / kl_dtype_size(view->dtype);
    struct kl_tensor flat = {view->dtype, 1, &count, view->data};
    api_append_text(out, ",\"data\":");
    api_json_tensor_write(out, &flat, nonfinite,
                          view->dtype == KL_BFLOAT16 ? KL_FLOAT32 : view->dtype);
    api_append_text(out, "}");
}

/* Writes the outputs in call->oip, as JSON or binary. */
static void encode(struct api_call *call, struct api_response *response)
{
    struct api_buffer *out = &response->body, *binary[API_OUTPUTS], *tensor;
    struct kl_tensor view;
    size_t n_binary = 0;
    const char *separator = "";
    write_head(call, out);
    for (size_t i = 0; i < API_RESULTS; i++) {
        if (!(call->oip.wanted >> i & 1) || !(tensor = api_call_output(call, i, &view)))
            continue;
        bool is_shared = call->oip.slices[i].in, is_binary = call->oip.binary >> i & 1;
        api_append_text(out, separator);
        separator = ",";
        if (is_shared) {
            begin_output(out, api_output_names[i], &view);
            api_append_text(out, "}");
            continue;
        }
        write_output(out, api_output_names[i], &view, tensor->size, is_binary, call->oip.nonfinite);
        if (is_binary)
            binary[n_binary++] = tensor;
    }
    api_append_text(out, "]}");
    response->compress = true;
    response->content_type = n_binary ? "application/octet-stream" : "application/json";
    if (n_binary == 0)
        return;
    snprintf(response->header_text, sizeof response->header_text, "%zu", out->size);
    api_response_header(response, "Inference-Header-Content-Length", response->header_text);
    for (size_t i = 0; i < n_binary; i++)
        api_response_take(response, binary[i]);
}

static const char *const media_types[] = {"application/octet-stream", NULL};
const struct api_codec api_codec_oip = {.media_types = media_types,
                                        .decode = decode,
                                        .encode = encode,
                                        .parsed = 1,
                                        .ns_per_element = API_TEXT_NS,
                                        .compresses = true};
