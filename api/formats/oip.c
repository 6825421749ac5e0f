#include "api/formats/oip.h"

#include "api/formats/json_tensor.h"
#include "api/text/json_text.h"
#include "api/text/json_walk.h"
#include "api/text/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The JSON part less its tensors. */
enum { MAX_ENVELOPE = 64 << 10 };

const char *const api_oip_datatypes[KL_DTYPES] = {
    [KL_FLOAT64] = "FP64", [KL_FLOAT32] = "FP32", [KL_FLOAT16] = "FP16", [KL_BFLOAT16] = "BF16"};

struct reader {
    struct api_call *call;
    const char *text, *end;          /* the JSON part */
    const char *raw, *raw_end;       /* what is not read of the binary part */
    struct api_buffer envelope;      /* the JSON part, with [k] for the k-th array of data */
    const char *values[API_TENSORS]; /* where these arrays start */
    size_t n_values;
    struct api_problem *problem;
};

static bool malformed(struct reader *r, const char *place, const char *what)
{
    return api_fail_at(r->problem, API_BODY, place, "inference_malformed", "%s", what);
}

/* ---- The two parts of a body */

/* Without the header, and where it says all of the body, all is JSON. */
static bool split(struct reader *r, const struct api_request *request)
{
    const char *header = request->inference_header_length;
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

/* Where a value of a member "data" starts, if it is an array and `key_end` ends such a key. */
static const char *data_after(const char *key, const char *key_end)
{
    static const char word[] = "\"data\"";
    if (key_end - key != sizeof word - 1 || memcmp(key, word, sizeof word - 1) != 0)
        return NULL;
    const char *colon = api_json_skip_space(key_end);
    const char *value = *colon == ':' ? api_json_skip_space(colon + 1) : NULL;
    return value && *value == '[' ? value : NULL;
}

/* Copies the JSON part without its arrays of data, and with padding. What is not JSON is left for
 * the check to tell. */
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
        api_fail(r->problem, "members_too_large", "what is not data may take 64 KiB");
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

/* *root becomes the request, in the envelope. */
static bool load(struct reader *r, const char **root)
{
    const char *at, *what, *text = make_envelope(r);
    if (!text)
        return false;
    if (!api_json_check(text, r->envelope.size, &at, &what)) {
        api_json_malformed(text, at, what, r->problem);
        bool whole = api_json_check(text, (size_t)(at - text), &at, &what);
        if (whole && r->end == r->raw_end) /* something follows the object */
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

/* What Triton's clients send for purposes that a loss does not have. */
static const char *const ignored[] = {
    "binary_data_output", "sequence_id", "sequence_start", "sequence_end",
    "priority",           "timeout",     "headers",        NULL};

static bool is_ignored(const char *name)
{
    for (const char *const *word = ignored; *word; word++)
        if (strcmp(name, *word) == 0)
            return true;
    return false;
}

/* Strings, and all else as it is written. */
static bool take_parameter(struct reader *r, const char *name, const char *value)
{
    const struct api_origin origin = {"#/parameters/", name};
    char text[API_JSON_TEXT];
    if (!api_json_string(value, text)) {
        const char *end = api_json_skip_value(value);
        size_t size = end ? (size_t)(end - value) : 0;
        if (size >= sizeof text)
            return malformed(r, "#/parameters", "a parameter has more than 1024 characters");
        while (size > 0 && strchr(" \t\r\n", value[size - 1]))
            size--;
        snprintf(text, sizeof text, "%.*s", (int)size, value);
    }
    return api_option_set_text(&r->call->options, origin, text, ignored, r->problem);
}

static bool is_word(const char *value, const char *word)
{
    return value && strncmp(value, word, strlen(word)) == 0;
}

static bool take_parameters(struct reader *r, const char *parameters)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_walk walk = api_json_walk_object(parameters);
    if (parameters && *parameters != '{' && !is_word(parameters, "null"))
        return malformed(r, "#/parameters", "parameters must be an object");
    while (api_json_next_member(&walk, name, &value))
        if (!is_ignored(name) && !take_parameter(r, name, value))
            return false;
    r->call->oip.binary =
        is_word(api_json_member(parameters, "binary_data_output"), "true") ? ~0u : 0;
    return true;
}

/* ---- Inputs */

static bool read_datatype(struct reader *r, const struct api_tensor *tensor, const char *member,
                          enum kl_dtype *dtype)
{
    char name[API_JSON_TEXT] = "(absent, or no string)";
    bool is_string = api_json_string(member, name);
    bool is_mask = api_tensor_is_mask(r->call, tensor);
    if (is_mask && is_string && (strcmp(name, "BOOL") == 0 || strcmp(name, "UINT8") == 0)) {
        *dtype = API_BYTE;
        return true;
    }
    for (size_t i = 0; is_string && !is_mask && i < KL_DTYPES; i++)
        if (strcmp(name, api_oip_datatypes[i]) == 0) {
            *dtype = (enum kl_dtype)i;
            return true;
        }
    return api_tensor_fail(r->call, tensor, "datatype", r->problem, "dtype_unsupported",
                           "datatype %.30s is none of %s", name,
                           is_mask ? "BOOL, UINT8" : "FP64, FP32, FP16, BF16");
}

static bool read_data(struct reader *r, struct api_tensor *tensor, enum kl_dtype dtype,
                      const char *data, size_t ndim, const size_t *shape)
{
    size_t k, n;
    if (!api_json_sizes(data, &k, 1, &n) || n != 1 || k >= r->n_values)
        return api_tensor_fail(r->call, tensor, "data", r->problem, "inference_malformed",
                               "data must be an array");
    const char *end =
        api_json_tensor_read(r->text, r->values[k], (enum kl_operand)(tensor - r->call->tensors),
                             dtype, tensor, r->problem);
    return end && api_json_tensor_reshape(tensor, ndim, shape, api_tensor_name(r->call, tensor),
                                          r->problem);
}

/* The next bytes of the binary part, as many as shape and datatype ask for, which `given` must
 * agree with if it is there. */
static bool take_raw(struct reader *r, struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim,
                     const char *given)
{
    size_t count, said, left = (size_t)(r->raw_end - r->raw);
    api_tensor_set(tensor, dtype, ndim, r->raw);
    bool fits = kl_tensor_count(&tensor->view, &count);
    size_t size = fits ? count * api_dtype_size(dtype) : SIZE_MAX;
    if (given && (!api_json_size(given, &said) || said != size))
        return api_tensor_fail(r->call, tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "binary_data_size is not what shape and datatype ask for");
    if (size > left)
        return api_tensor_fail(r->call, tensor, "shape", r->problem, "inference_malformed",
                               "shape and datatype ask for %zu bytes, and %zu are left of the "
                               "binary data",
                               size, left);
    r->raw += size;
    return true;
}

static bool take_input(struct reader *r, const char *input)
{
    enum { NAME, SHAPE, DATATYPE, PARAMETERS, DATA, MEMBERS };
    static const char *const names[MEMBERS] = {"name", "shape", "datatype", "parameters", "data"};
    const char *members[MEMBERS];
    char name[API_JSON_TEXT];
    api_json_members(input, names, members, MEMBERS);
    if (!api_json_string(members[NAME], name))
        return malformed(r, "#/inputs", "an input has no name");
    struct api_tensor *tensor = api_call_tensor(r->call, name, r->problem);
    enum kl_dtype dtype = KL_FLOAT64;
    size_t shape[API_MAX_DIMS], ndim;
    if (!tensor || !read_datatype(r, tensor, members[DATATYPE], &dtype))
        return false;
    if (!api_json_sizes(members[SHAPE], shape, API_MAX_DIMS, &ndim))
        return api_tensor_fail(r->call, tensor, "shape", r->problem, "inference_malformed",
                               "shape must be an array of at most 64 integers from 0 on");
    if (api_json_member(members[PARAMETERS], "shared_memory_region"))
        return api_tensor_fail(r->call, tensor, "parameters/shared_memory_region", r->problem,
                               "inference_malformed", "shared memory is not supported");
    if (members[DATA])
        return read_data(r, tensor, dtype, members[DATA], ndim, shape);
    if (ndim > 0)
        memcpy(tensor->shape, shape, ndim * sizeof *shape);
    return take_raw(r, tensor, dtype, ndim,
                    api_json_member(members[PARAMETERS], "binary_data_size"));
}

static bool take_inputs(struct reader *r, const char *inputs)
{
    const char *input;
    struct api_json_walk walk = api_json_walk_array(inputs);
    if (!inputs || *inputs != '[')
        return malformed(r, "#/inputs", "the request must have an array of inputs");
    while (api_json_next_item(&walk, &input))
        if (!take_input(r, input))
            return false;
    if (r->raw != r->raw_end)
        return api_fail(r->problem, "inference_malformed",
                        "%zu bytes of binary data are left after the inputs",
                        (size_t)(r->raw_end - r->raw));
    return true;
}

static size_t find_output(const char *name)
{
    size_t i = 0;
    while (i < API_OUTPUTS && strcmp(name, api_output_names[i]) != 0)
        i++;
    return i;
}

/* A gradient that is named here need not be asked for by an option besides. */
static bool take_output(struct reader *r, const char *output)
{
    struct api_call *call = r->call;
    char name[API_JSON_TEXT];
    const char *parameters = api_json_member(output, "parameters");
    const char *binary = api_json_member(parameters, "binary_data");
    if (!api_json_string(api_json_member(output, "name"), name))
        return malformed(r, "#/outputs", "an output has no name");
    size_t i = find_output(name);
    if (i == API_OUTPUTS)
        return api_fail_at(r->problem, API_BODY, "#/outputs", "output_unknown",
                           "there is no output '%.60s': there are loss, gradient.input and "
                           "gradient.target",
                           name);
    if (api_json_member(parameters, "shared_memory_region"))
        return malformed(r, "#/outputs", "shared memory is not supported");
    unsigned bit = 1u << i;
    call->oip.wanted |= bit;
    if (i > 0)
        call->options.value[API_GRADIENT] |= 1 << (i - 1);
    if (binary)
        call->oip.binary =
            is_word(binary, "true") ? call->oip.binary | bit : call->oip.binary & ~bit;
    return true;
}

/* Those that are listed go out and no others; without a list all that there are. */
static bool take_outputs(struct reader *r, const char *outputs)
{
    const char *output;
    struct api_json_walk walk = api_json_walk_array(outputs);
    if (outputs && *outputs != '[' && !is_word(outputs, "null"))
        return malformed(r, "#/outputs", "outputs must be an array");
    r->call->oip.wanted = 0;
    while (api_json_next_item(&walk, &output))
        if (!take_output(r, output))
            return false;
    if (r->call->oip.wanted == 0)
        r->call->oip.wanted = ~0u;
    return true;
}

static bool take_id(struct reader *r, const char *id)
{
    char text[API_JSON_TEXT];
    if (!id)
        return true;
    if (!api_json_string(id, text))
        return malformed(r, "#/id", "id must be a string");
    api_append(&r->call->oip.id, text, strlen(text) + 1);
    return !r->call->oip.id.failed || api_fail_for_memory(r->problem);
}

static bool take_members(struct reader *r, const char *root)
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
    return take_id(r, members[ID]) && take_parameters(r, members[PARAMETERS]) &&
           take_inputs(r, members[INPUTS]) && take_outputs(r, members[OUTPUTS]);
}

bool api_oip_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem)
{
    struct reader r = {.call = call, .problem = problem, .envelope.budget = call->loss.budget};
    const char *root = NULL;
    bool good = split(&r, request) && load(&r, &root) && take_members(&r, root);
    api_buffer_free(&r.envelope);
    return good;
}
