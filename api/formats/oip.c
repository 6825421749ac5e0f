#include "api/formats/oip.h"

#include "api/formats/dtypes.h"
#include "api/formats/json_tensor.h"
#include "api/formats/oip_body.h"
#include "api/text/json_reader.h"
#include "api/text/json_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct reader {
    struct api_call *call;
    struct api_oip_body body;
    size_t input; /* the number of the one that is read */
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *place, const char *what)
{
    return api_fail_at(r->problem, API_BODY, place, "inference_malformed", "%s", what);
}

/* ---- Parameters */

/* Parameters of Triton's and MLServer's clients that have no meaning for a loss. */
static const char *const ignored[] = {"binary_data_output",
                                      "sequence_id",
                                      "sequence_start",
                                      "sequence_end",
                                      "priority",
                                      "timeout",
                                      "headers",
                                      "content_type",
                                      NULL};

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
static bool add_value(struct reader *r, struct api_setting *setting, const char *value)
{
    char text[API_JSON_TEXT];
    if (!api_json_string(value, text)) {
        const char *end = api_json_skip_value(value);
        size_t size = end ? (size_t)(end - value) : 0;
        if (size >= sizeof text)
            return malformed(r, "#/parameters", "a parameter has more than 1024 characters");
        while (size > 0 && strchr(" \t\r\n", value[size - 1]))
            size--;
        memcpy(text, value, size);
        text[size] = '\0';
    }
    return api_setting_add(setting, &(struct api_value){.kind = API_TEXT, .text = text});
}

static bool read_parameter(struct reader *r, const char *name, const char *value)
{
    const struct api_origin origin = {"#/parameters/", name};
    struct api_setting setting;
    struct api_json_reader reader = api_json_read_array(value);
    const char *item;
    if (!api_setting_begin(&setting, &r->call->options, origin, NULL, r->problem))
        return false;
    if (*value != '[' || !api_option_is_list(setting.option))
        return add_value(r, &setting, value) && api_setting_end(&setting);
    while (api_json_next_item(&reader, &item))
        if (!add_value(r, &setting, item))
            return false;
    return api_setting_end(&setting);
}

static bool is_word(const char *value, const char *word)
{
    return value && strncmp(value, word, strlen(word)) == 0;
}

static bool read_parameters(struct reader *r, const char *parameters)
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
    return true;
}

/* ---- Inputs */

/* Fails at a field of the current input: "#/inputs/2/datatype". */
static bool fail_input(struct reader *r, const char *field, const char *code, const char *detail)
{
    char place[64];
    snprintf(place, sizeof place, "#/inputs/%zu%s%.40s", r->input, *field ? "/" : "", field);
    return api_fail_at(r->problem, API_BODY, place, code, "%s", detail);
}

static bool read_datatype(struct reader *r, const struct api_tensor *tensor, const char *member,
                          enum kl_dtype *dtype)
{
    char name[API_JSON_TEXT] = "(absent, or no string)", known[60];
    bool is_mask = api_tensor_is_mask(r->call, tensor);
    if (api_json_string(member, name) &&
        api_dtype_find(API_INFERENCE, name, strlen(name), is_mask, dtype))
        return true;
    api_dtype_list(API_INFERENCE, is_mask, known, sizeof known);
    return api_tensor_fail(r->call, tensor, "datatype", r->problem, "dtype_unsupported",
                           "datatype %.30s is not one of %s", name, known);
}

static bool read_data(struct reader *r, struct api_tensor *tensor, enum kl_dtype dtype,
                      const char *data, size_t ndim, const size_t *shape)
{
    const char *after = NULL, *array = api_oip_body_data(&r->body, data, &after);
    if (!array)
        return api_tensor_fail(r->call, tensor, "data", r->problem, "inference_malformed",
                               "data must be an array");
    const char *end = api_json_tensor_read(r->call, tensor, r->body.text, array, dtype, r->problem);
    if (end && api_json_skip_space(end) != after)
        return api_json_expected(r->body.text, api_json_skip_space(end), "',' or '}'", r->problem);
    return end && api_json_tensor_reshape(r->call, tensor, ndim, shape, r->problem);
}

/* Reads the next bytes of the binary part, as many as shape and datatype need. `given`, if
 * present, must be equal. */
static bool read_raw(struct reader *r, struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim,
                     const char *given)
{
    size_t count, said, left = (size_t)(r->body.raw_end - r->body.raw);
    api_tensor_set(tensor, dtype, ndim, r->body.raw);
    bool fits = kl_tensor_count(&tensor->view, &count);
    size_t size = fits ? count * api_dtype_size(dtype) : SIZE_MAX;
    if (given && (!api_json_size(given, &said) || said != size))
        return api_tensor_fail(r->call, tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "binary_data_size differs from the size by shape and datatype");
    if (!given && size > 0 && !api_oip_body_has_raw(&r->body))
        return api_tensor_fail(r->call, tensor, NULL, r->problem, "inference_malformed",
                               "it has neither data nor binary_data_size");
    if (size > left)
        return api_tensor_fail(r->call, tensor, "shape", r->problem, "inference_malformed",
                               "shape and datatype need %zu bytes, but %zu are left of the "
                               "binary data",
                               size, left);
    r->body.raw += size;
    return true;
}

enum { NAME, SHAPE, DATATYPE, TENSOR_PARAMETERS, DATA, TENSOR_MEMBERS };

/* Finds the tensor that an input's members name. */
static struct api_tensor *find_tensor(struct reader *r, const char *const members[TENSOR_MEMBERS],
                                      const char *other)
{
    char name[API_JSON_TEXT], place[64];
    if (other) {
        api_json_string(other, name);
        fail_input(r, name, "inference_malformed",
                   "an input has name, shape, datatype, parameters and data, and nothing else");
        return NULL;
    }
    if (!api_json_string(members[NAME], name)) {
        fail_input(r, "name", "inference_malformed", "an input has no name");
        return NULL;
    }
    bool free = api_tensor_is_free(r->call, name);
    if (!free)
        snprintf(place, sizeof place, "#/inputs/%zu/name", r->input);
    return api_call_tensor(r->call, name, free ? NULL : place, r->problem);
}

static bool read_input(struct reader *r, const char *input)
{
    static const char *const names[TENSOR_MEMBERS] = {"name", "shape", "datatype", "parameters",
                                                      "data"};
    const char *members[TENSOR_MEMBERS];
    const char *other = api_json_members(input, names, members, TENSOR_MEMBERS);
    struct api_tensor *tensor = find_tensor(r, members, other);
    enum kl_dtype dtype = KL_FLOAT64;
    size_t shape[KL_MAX_DIMS], ndim;
    if (!tensor)
        return false;
    tensor->is_input = true;
    tensor->input = r->input;
    if (!read_datatype(r, tensor, members[DATATYPE], &dtype))
        return false;
    if (!api_json_sizes(members[SHAPE], shape, KL_MAX_DIMS, &ndim))
        return api_tensor_fail(r->call, tensor, "shape", r->problem, "inference_malformed",
                               "shape must be an array of at most 64 integers from 0 on");
    if (api_json_member(members[TENSOR_PARAMETERS], "shared_memory_region"))
        return api_tensor_fail(r->call, tensor, "parameters/shared_memory_region", r->problem,
                               "inference_malformed", "shared memory is not supported");
    if (members[DATA] && !is_word(members[DATA], "null"))
        return read_data(r, tensor, dtype, members[DATA], ndim, shape);
    if (ndim > 0)
        memcpy(tensor->shape, shape, ndim * sizeof *shape);
    return read_raw(r, tensor, dtype, ndim,
                    api_json_member(members[TENSOR_PARAMETERS], "binary_data_size"));
}

static bool read_inputs(struct reader *r, const char *inputs)
{
    const char *input;
    struct api_json_reader reader = api_json_read_array(inputs);
    if (!inputs || *inputs != '[')
        return malformed(r, "#/inputs", "the request must have an array of inputs");
    for (; api_json_next_item(&reader, &input); r->input++)
        if (!read_input(r, input))
            return false;
    if (r->body.raw != r->body.raw_end)
        return api_fail(r->problem, "inference_malformed",
                        "%zu bytes of binary data are left after the inputs",
                        (size_t)(r->body.raw_end - r->body.raw));
    return true;
}

/* ---- Outputs */

static size_t find_output(const char *name)
{
    size_t i = 0;
    while (i < API_SUM && strcmp(name, api_output_names[i]) != 0)
        i++;
    return i;
}

static bool fail_output(struct reader *r, size_t output, const char *field, const char *code,
                        const char *detail)
{
    char place[128];
    snprintf(place, sizeof place, "#/outputs/%zu/%.60s", output, field);
    return api_fail_at(r->problem, API_BODY, place, code, "%s", detail);
}

static bool check_output(struct reader *r, size_t output, const char *name, const char *parameters)
{
    char detail[200];
    if (find_output(name) == API_SUM) {
        snprintf(detail, sizeof detail,
                 "there is no output '%.60s': there are loss, gradient.input and gradient.target",
                 name);
        return fail_output(r, output, "name", "output_unknown", detail);
    }
    if (api_json_member(parameters, "shared_memory_region"))
        return fail_output(r, output, "parameters/shared_memory_region", "inference_malformed",
                           "shared memory is not supported");
    if (api_json_member(parameters, "classification"))
        return fail_output(r, output, "parameters/classification", "inference_malformed",
                           "a loss has no classes");
    return true;
}

/* Reads one output; a named gradient needs no option. */
static bool read_output(struct reader *r, size_t number, const char *output)
{
    enum { OUTPUT_NAME, OUTPUT_PARAMETERS, OUTPUT_MEMBERS };
    static const char *const names[OUTPUT_MEMBERS] = {"name", "parameters"};
    struct api_call *call = r->call;
    const char *members[OUTPUT_MEMBERS];
    char name[API_JSON_TEXT];
    const char *other = api_json_members(output, names, members, OUTPUT_MEMBERS);
    const char *parameters = members[OUTPUT_PARAMETERS];
    const char *binary = api_json_member(parameters, "binary_data");
    if (other) {
        api_json_string(other, name);
        return fail_output(r, number, name, "inference_malformed",
                           "an output has name and parameters, and nothing else");
    }
    if (!api_json_string(members[OUTPUT_NAME], name))
        return fail_output(r, number, "name", "inference_malformed", "an output has no name");
    if (!check_output(r, number, name, parameters))
        return false;
    size_t i = find_output(name);
    unsigned bit = 1u << i;
    call->oip.wanted |= bit;
    if (i > 0)
        call->options.gradient |= 1u << (i - 1);
    if (binary)
        call->oip.binary =
            is_word(binary, "true") ? call->oip.binary | bit : call->oip.binary & ~bit;
    return true;
}

/* Reads the list of outputs, which selects them; without a list all are sent. */
static bool read_outputs(struct reader *r, const char *outputs)
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

static bool read_id(struct reader *r, const char *id)
{
    char text[API_JSON_TEXT];
    if (!id || is_word(id, "null"))
        return true;
    if (!api_json_string(id, text))
        return malformed(r, "#/id", "id must be a string");
    api_append(&r->call->oip.id, text, strlen(text) + 1);
    return !r->call->oip.id.failed || api_fail_for_memory(r->problem);
}

/* A member that may be there, and then must name what the path names; an empty string names
 * nothing. */
static bool check_name(struct reader *r, const char *member, const char *kind, const char *value,
                       const char *served)
{
    char text[API_JSON_TEXT] = "", place[40];
    if (!value || is_word(value, "null"))
        return true;
    if (api_json_string(value, text) && (!*text || strcmp(text, served) == 0))
        return true;
    snprintf(place, sizeof place, "#/%s", member);
    return api_fail_at(r->problem, API_BODY, place, "inference_malformed",
                       "unknown %s '%.60s': this server has %s", kind, text, served);
}

static bool read_members(struct reader *r, const char *root)
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
           read_inputs(r, members[INPUTS]) && read_outputs(r, members[OUTPUTS]);
}

bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem)
{
    struct reader r = {.call = call, .problem = problem, .body.envelope.budget = call->loss.budget};
    const char *root = NULL;
    bool good = api_oip_body_read(&r.body, request, &root, problem) && read_members(&r, root);
    api_oip_body_free(&r.body);
    return good;
}
