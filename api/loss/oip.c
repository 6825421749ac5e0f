#include "api/loss/oip.h"

#include "api/files/dtypes.h"
#include "api/json/json_reader.h"
#include "api/json/json_text.h"
#include "api/loss/json_tensor.h"
#include "api/loss/oip_inputs.h"
#include "api/loss/warnings.h"
#include "api/request/query.h"
#include "api/request/response.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool malformed(struct api_oip_reader *r, const char *location, const char *what)
{
    return api_fail_at(r->problem, API_BODY, location, "inference_malformed", "%s", what);
}

/* ---- Parameters */

/* Parameters that are no options: those of the response, and those of Triton's and MLServer's clients that
 * have no meaning for a loss. */
static const char *const ignored[] = {
    "binary_data_output", "non_finite", "sequence_id", "sequence_start", "sequence_end",
    "priority",           "timeout",    "headers",     "content_type",   NULL};

static bool is_ignored(const char *name)
{
    static const char reserved[] = "triton_";
    if (strncmp(name, reserved, sizeof reserved - 1) == 0)
        return true;
    for (const char *const *word = ignored; *word; word++)
        if (strcmp(name, *word) == 0)
            return true;
    return false;
}

/* Adds a string, or the text of a number or word; the option checks it. */
static bool add_value(struct api_oip_reader *r, struct api_option_input *setting, const char *value)
{
    char text[API_JSON_TEXT];
    if (!api_json_characters(value, text))
        return malformed(r, "#/parameters", "a parameter has more than 1024 characters");
    return api_option_add(setting, &(struct api_value){.kind = API_TEXT, .text = text});
}

static bool read_parameter(struct api_oip_reader *r, const char *name, const char *value)
{
    const struct api_origin origin = {"#/parameters/", name};
    struct api_option_input setting;
    const char *item;
    if (!api_option_begin(&setting, &r->call->options, origin, NULL, r->problem))
        return false;
    if (*value != '[' || !setting.row->is_list)
        return add_value(r, &setting, api_json_scalar(value)) && api_option_end(&setting);
    struct api_json_reader reader = api_json_read_array(value);
    while (api_json_next_item(&reader, &item))
        if (!add_value(r, &setting, item))
            return false;
    return api_option_end(&setting);
}

static bool is_word(const char *value, const char *word)
{
    return value && strncmp(value, word, strlen(word)) == 0;
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

static bool read_form(struct api_oip_reader *r, const char *value)
{
    char word[API_JSON_TEXT] = "";
    if (!value)
        return true;
    api_json_string(api_json_scalar(value), word);
    return set_form(r, API_BODY, word);
}

static bool read_parameters(struct api_oip_reader *r, const char *parameters)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(parameters);
    if (parameters && *parameters != '{' && !is_word(parameters, "null"))
        return malformed(r, "#/parameters", "parameters must be an object");
    while (api_json_next_member(&reader, name, &value))
        if (!is_ignored(name) && !read_parameter(r, name, value))
            return false;
    r->call->oip.binary =
        is_word(api_json_member(parameters, "binary_data_output"), "true") ? ~0u : 0;
    return read_form(r, api_json_member(parameters, non_finite));
}

/* ---- Outputs */

static size_t find_output(const char *name)
{
    size_t i = 0;
    while (i < API_SUM && strcmp(name, api_output_names[i]) != 0)
        i++;
    return i;
}

static bool check_output(struct api_oip_reader *r, size_t output, const char *name,
                         const char *parameters)
{
    char detail[200];
    if (find_output(name) == API_SUM) {
        snprintf(
            detail, sizeof detail,
            "there is no output '%.60s'; the outputs are loss, gradient.input and gradient.target",
            name);
        return api_oip_fail(r, "outputs", output, "name", "output_unknown", detail);
    }
    if (api_json_member(parameters, "classification"))
        return api_oip_fail(r, "outputs", output, "parameters/classification",
                            "inference_malformed", "a loss has no classes");
    return true;
}

/* Notes that an output goes into the response, and how. A named gradient needs no option. */
static bool want_output(struct api_oip_reader *r, size_t number, size_t output,
                        const char *parameters)
{
    struct api_call *call = r->call;
    struct api_slice *slice = &call->oip.slices[output];
    const char *binary = api_json_member(parameters, "binary_data");
    unsigned bit = 1u << output;
    call->oip.wanted |= bit;
    if (output > 0)
        call->options.gradient |= 1u << (output - 1);
    if (binary)
        call->oip.binary =
            is_word(binary, "true") ? call->oip.binary | bit : call->oip.binary & ~bit;
    api_slice_end(slice); /* an output that is named twice goes where it is named last */
    if (!api_oip_has_slice(parameters))
        return true;
    *slice = (struct api_slice){.writes = true, .number = number};
    call->is_shared = true;
    return api_oip_slice_begin(slice, parameters, call->service, r->problem);
}

static bool read_output(struct api_oip_reader *r, size_t number, const char *output)
{
    enum { OUTPUT_NAME, OUTPUT_PARAMETERS, OUTPUT_MEMBERS };
    static const char *const names[OUTPUT_MEMBERS] = {"name", "parameters"};
    const char *members[OUTPUT_MEMBERS];
    char name[API_JSON_TEXT];
    const char *other = api_json_members(output, names, members, OUTPUT_MEMBERS);
    const char *parameters = members[OUTPUT_PARAMETERS];
    if (other) {
        api_json_string(other, name);
        return api_oip_fail(r, "outputs", number, name, "inference_malformed",
                            "an output may have only name and parameters");
    }
    if (!api_json_string(members[OUTPUT_NAME], name))
        return api_oip_fail(r, "outputs", number, "name", "inference_malformed",
                            "an output has no name");
    return check_output(r, number, name, parameters) &&
           want_output(r, number, find_output(name), parameters);
}

/* Reads the list of outputs, which selects them; without a list all are sent. */
static bool read_outputs(struct api_oip_reader *r, const char *outputs)
{
    const char *output;
    struct api_json_reader reader = api_json_read_array(outputs);
    if (outputs && *outputs != '[' && !is_word(outputs, "null"))
        return malformed(r, "#/outputs", "outputs must be an array");
    r->call->oip.wanted = 0;
    for (size_t i = 0; api_json_next_item(&reader, &output); i++)
        if (!read_output(r, i, output))
            return false;
    if (r->call->oip.wanted == 0)
        r->call->oip.wanted = ~0u;
    return true;
}

static bool read_id(struct api_oip_reader *r, const char *id)
{
    char text[API_JSON_TEXT];
    if (!id || is_word(id, "null"))
        return true;
    if (!api_json_string(id, text))
        return malformed(r, "#/id", "id must be a string");
    api_append(&r->call->oip.id, text, strlen(text) + 1);
    return !r->call->oip.id.failed || api_fail_oom(r->problem);
}

/* A member that may be there, and then must name what the path names; an empty string names
 * nothing. */
static bool check_name(struct api_oip_reader *r, const char *member, const char *kind,
                       const char *value, const char *served)
{
    char text[API_JSON_TEXT] = "", location[40];
    if (!value || is_word(value, "null"))
        return true;
    if (api_json_string(value, text) && (!*text || strcmp(text, served) == 0))
        return true;
    snprintf(location, sizeof location, "#/%s", member);
    return api_fail_at(r->problem, API_BODY, location, "inference_malformed",
                       "unknown %s '%.60s': this server has %s", kind, text, served);
}

static bool read_members(struct api_oip_reader *r, const char *root)
{
    enum { ID, PARAMETERS, INPUTS, OUTPUTS, MODEL_NAME, MODEL_VERSION, MEMBERS };
    static const char *const names[MEMBERS] = {"id",      "parameters", "inputs",
                                               "outputs", "model_name", "model_version"};
    const char *members[MEMBERS];
    char name[API_JSON_TEXT];
    const char *other = api_json_members(root, names, members, MEMBERS);
    if (other) {
        api_json_string(other, name);
        return api_fail(r->problem, "option_unknown",
                        "there is no member '%.60s' in an inference request: tensors go into "
                        "inputs, as {name, shape, datatype, data}, and options into parameters",
                        name);
    }
    return check_name(r, "model_name", "model", members[MODEL_NAME], API_OIP_MODEL) &&
           check_name(r, "model_version", "version", members[MODEL_VERSION], API_OIP_VERSION) &&
           read_id(r, members[ID]) && read_parameters(r, members[PARAMETERS]) &&
           api_oip_read_inputs(r, members[INPUTS]) && read_outputs(r, members[OUTPUTS]);
}

static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct api_oip_reader r = {
        .call = call, .problem = problem, .body.envelope.budget = call->loss.budget};
    const char *root = NULL;
    bool good = read_form_of_query(&r, request->query) &&
                api_oip_body_read(&r.body, request, &root, problem) && read_members(&r, root);
    api_buffer_free(&r.body.envelope);
    return good;
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
