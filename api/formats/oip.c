#include "api/formats/oip.h"

#include "api/formats/dtypes.h"
#include "api/formats/json_tensor.h"
#include "api/text/json_reader.h"
#include "api/text/json_text.h"
#include "api/text/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* MAX_ENVELOPE: the most bytes of the JSON part without its tensors. */
enum { MAX_ENVELOPE = 64 << 10 };

struct reader {
    struct api_call *call;
    const char *text, *end;          /* the JSON part */
    const char *raw, *raw_end;       /* unread rest of the binary part */
    struct api_buffer envelope;      /* the JSON part, with [k] in place of the k-th data array */
    const char *values[API_TENSORS]; /* start of each data array */
    size_t n_values;
    size_t input; /* index of the current input */
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *place, const char *what)
{
    return api_fail_at(r->problem, API_BODY, place, "inference_malformed", "%s", what);
}

/* ---- The two parts of a body */

/* Splits the body. Without the header, or if the header gives the whole size, all is JSON. */
static bool split(struct reader *r, const struct api_request *request)
{
    const char *header = api_request_header(request, "Inference-Header-Content-Length");
    size_t size = 0;
    r->text = request->body;
    r->raw_end = request->body + request->body_size;
    r->raw = r->end = r->raw_end;
    if (!header)
        return true;
    const char *p = header;
    for (; *p >= '0' && *p <= '9' && size <= request->body_size; p++)
        size = size * 10 + (size_t)(*p - '0');
    if (*p || size == 0 || size > request->body_size)
        return api_fail(r->problem, "inference_malformed",
                        "Inference-Header-Content-Length '%.40s' is not a number from 1 to the %zu "
                        "bytes of the body",
                        header, request->body_size);
    r->raw = r->end = request->body + size;
    return true;
}

/* Start of the array after a key "data" that ends at `key_end`; NULL for other keys and values. */
static const char *data_after(const char *key, const char *key_end)
{
    static const char word[] = "\"data\"";
    if (key_end - key != sizeof word - 1 || memcmp(key, word, sizeof word - 1) != 0)
        return NULL;
    const char *colon = api_json_skip_space(key_end);
    const char *value = *colon == ':' ? api_json_skip_space(colon + 1) : NULL;
    return value && *value == '[' ? value : NULL;
}

/* Copies the JSON part with padding and without data arrays. Malformed JSON is copied too, for
 * the check to report. */
static const char *make_envelope(struct reader *r)
{
    const char *copied = r->text;
    for (const char *p = strchrnul(r->text, '"'); *p && p < r->end; p = strchrnul(p, '"')) {
        const char *key_end = api_json_skip_string(p);
        if (!key_end || key_end > r->end)
            break;
        const char *value = data_after(p, key_end);
        p = key_end;
        if (!value)
            continue;
        const char *value_end = api_json_skip_value(value);
        if (!value_end || value_end > r->end || r->n_values == API_TENSORS)
            break;
        api_append(&r->envelope, copied, (size_t)(value - copied));
        api_append(&r->envelope, "[", 1);
        api_append_unsigned(&r->envelope, r->n_values);
        api_append(&r->envelope, "]", 1);
        r->values[r->n_values++] = value;
        copied = p = value_end;
    }
    size_t rest = (size_t)(r->end - copied);
    if (r->envelope.size + rest > MAX_ENVELOPE) {
        api_fail(r->problem, "members_too_large",
                 "the request without data may have at most 64 KiB");
        return NULL;
    }
    api_append(&r->envelope, copied, rest);
    if (!api_buffer_room(&r->envelope, API_PADDING)) {
        api_fail_for_memory(r->problem);
        return NULL;
    }
    memset(r->envelope.data + r->envelope.size, 0, API_PADDING);
    return r->envelope.data;
}

/* Parses the envelope; *root becomes the request. */
static bool load(struct reader *r, const char **root)
{
    const char *at, *what, *text = make_envelope(r);
    if (!text)
        return false;
    if (!api_json_check(text, r->envelope.size, &at, &what)) {
        api_json_malformed(text, at, what, r->problem);
        bool whole = api_json_check(text, (size_t)(at - text), &at, &what);
        if (whole && r->end == r->raw_end) /* bytes follow the object */
            api_problem_prefix(r->problem, "binary data need Inference-Header-Content-Length: ");
        if (*text != '{')
            api_problem_prefix(r->problem, "not an inference request, which begins with {: ");
        return false;
    }
    *root = api_json_skip_space(text);
    return **root == '{' ||
           api_fail(r->problem, "body_not_object", "the request must be a JSON object");
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
    snprintf(place, sizeof place, "#/inputs/%zu%s%s", r->input, *field ? "/" : "", field);
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
    size_t k, n;
    if (!api_json_sizes(data, &k, 1, &n) || n != 1 || k >= r->n_values)
        return api_tensor_fail(r->call, tensor, "data", r->problem, "inference_malformed",
                               "data must be an array");
    const char *end =
        api_json_tensor_read(r->call, tensor, r->text, r->values[k], dtype, r->problem);
    return end && api_json_tensor_reshape(r->call, tensor, ndim, shape, r->problem);
}

/* Reads the next bytes of the binary part, as many as shape and datatype need. `given`, if
 * present, must be equal. */
static bool read_raw(struct reader *r, struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim,
                     const char *given)
{
    size_t count, said, left = (size_t)(r->raw_end - r->raw);
    api_tensor_set(tensor, dtype, ndim, r->raw);
    bool fits = kl_tensor_count(&tensor->view, &count);
    size_t size = fits ? count * api_dtype_size(dtype) : SIZE_MAX;
    if (given && (!api_json_size(given, &said) || said != size))
        return api_tensor_fail(r->call, tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "binary_data_size differs from the size by shape and datatype");
    if (!given && size > 0 && r->end == r->raw_end)
        return api_tensor_fail(r->call, tensor, NULL, r->problem, "inference_malformed",
                               "it has neither data nor binary_data_size");
    if (size > left)
        return api_tensor_fail(r->call, tensor, "shape", r->problem, "inference_malformed",
                               "shape and datatype need %zu bytes, but %zu are left of the "
                               "binary data",
                               size, left);
    r->raw += size;
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
    bool known = api_tensor_known(name);
    if (!known)
        snprintf(place, sizeof place, "#/inputs/%zu/name", r->input);
    return api_call_tensor(r->call, name, known ? NULL : place, r->problem);
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
    if (r->raw != r->raw_end)
        return api_fail(r->problem, "inference_malformed",
                        "%zu bytes of binary data are left after the inputs",
                        (size_t)(r->raw_end - r->raw));
    return true;
}

/* ---- Outputs */

static size_t find_output(const char *name)
{
    size_t i = 0;
    while (i < API_OUTPUTS && strcmp(name, api_output_names[i]) != 0)
        i++;
    return i;
}

static bool fail_output(struct reader *r, size_t output, const char *field, const char *code,
                        const char *detail)
{
    char place[64];
    snprintf(place, sizeof place, "#/outputs/%zu/%s", output, field);
    return api_fail_at(r->problem, API_BODY, place, code, "%s", detail);
}

static bool check_output(struct reader *r, size_t output, const char *name, const char *parameters)
{
    char detail[200];
    if (find_output(name) == API_OUTPUTS) {
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
    struct api_call *call = r->call;
    char name[API_JSON_TEXT];
    const char *parameters = api_json_member(output, "parameters");
    const char *binary = api_json_member(parameters, "binary_data");
    if (!api_json_string(api_json_member(output, "name"), name))
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

/* Checks an optional member against the path; an empty string is ignored. */
static bool check_word(struct reader *r, const char *name, const char *value, const char *expected)
{
    char text[API_JSON_TEXT], place[40], detail[200];
    if (!value || is_word(value, "null"))
        return true;
    if (api_json_string(value, text) && (!*text || strcmp(text, expected) == 0))
        return true;
    snprintf(place, sizeof place, "#/%s", name);
    snprintf(detail, sizeof detail, "%s is not %s, which the path names", name, expected);
    return malformed(r, place, detail);
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
    return check_word(r, "model_name", members[MODEL_NAME], API_OIP_MODEL) &&
           check_word(r, "model_version", members[MODEL_VERSION], API_OIP_VERSION) &&
           read_id(r, members[ID]) && read_parameters(r, members[PARAMETERS]) &&
           read_inputs(r, members[INPUTS]) && read_outputs(r, members[OUTPUTS]);
}

bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem)
{
    struct reader r = {.call = call, .problem = problem, .envelope.budget = call->loss.budget};
    const char *root = NULL;
    bool good = split(&r, request) && load(&r, &root) && read_members(&r, root);
    api_buffer_free(&r.envelope);
    return good;
}
