/* Requests and responses of /kl_div as application/json. */
#include "api/json/envelope.h"
#include "api/json/json_reader.h"
#include "api/json/json_text.h"
#include "api/loss/codecs.h"
#include "api/loss/json_tensor.h"
#include "api/loss/warnings.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* MAX_ENVELOPE: maximum bytes of the body without its tensors, which jansson parses: options, a
 * few hundred bytes. jansson needs up to 80 bytes of memory per byte of text, so the limit
 * bounds its memory. */
enum { MAX_ENVELOPE = 64 << 10 };

/* USUAL_ENVELOPE: bytes of it that need no allocation. */
enum { USUAL_ENVELOPE = 256 };

/* reader: a pass over the members of the body's object. Tensors are read at once; the other
 * members are copied into the envelope, errors included, and jansson checks them. */
struct reader {
    struct api_envelope envelope;
    struct api_call *call;
    const char *values[API_TENSORS]; /* start of each tensor's value */
    enum kl_dtype dtype;             /* dtype of the tensors that are read in the pass */
};

/* Omits the member that ends at `end` from the envelope, with one adjacent comma. */
static void cut(struct reader *r, const char *end)
{
    struct api_buffer *envelope = &r->envelope.text;
    const char *next = api_json_skip_space(end);
    if (*next == ',' && *api_json_skip_space(next + 1) == '"') {
        end = next + 1;
    } else if (*next == '}') {
        size_t size = envelope->size;
        while (size > 0 && strchr(" \t\r\n", envelope->data[size - 1]))
            size--;
        if (size > 0 && envelope->data[size - 1] == ',')
            envelope->size = size - 1;
    } else if (*next != ',') {
        api_json_expected(r->envelope.body, next, "',' or '}'", r->envelope.problem);
    }
    api_envelope_cut(&r->envelope, end);
}

static const char *read_tensor(struct reader *r, enum kl_operand name, const char *key,
                               const char *value)
{
    struct api_tensor *tensor = &r->call->tensors[name];
    if (tensor->present) {
        api_tensor_fail(tensor, NULL, r->envelope.problem, "tensor_repeated", "it is given twice");
        return NULL;
    }
    const char *end =
        api_json_tensor_read(tensor, r->envelope.body, value, r->dtype, r->envelope.problem);
    if (!end || !api_envelope_copy(&r->envelope, key))
        return NULL;
    r->values[name] = value;
    cut(r, end);
    return end;
}

/* Reads a dtype that precedes the tensors, which then need not be read twice. */
static void peek_dtype(struct reader *r, const char *value, const char *end)
{
    for (size_t i = 0; i < KL_DTYPES; i++)
        if (api_json_is_text(value, end, kl_dtype_name((enum kl_dtype)i)))
            r->dtype = (enum kl_dtype)i;
}

static const char *read_member(struct api_envelope *envelope, const char *key, const char *key_end,
                               const char *value)
{
    struct reader *r = envelope->context;
    for (size_t i = 0; i < API_TENSORS; i++)
        if (!(i >= KL_OPERANDS && strncmp(value, "null", 4) == 0) &&
            api_json_is_text(key, key_end, api_tensor_names[i]))
            return read_tensor(r, (enum kl_operand)i, key, value);
    const char *end = api_json_skip_value(value);
    if (end && *value == '"' && api_json_is_text(key, key_end, "dtype"))
        peek_dtype(r, value, api_json_skip_string(value));
    return end;
}

static bool read_shape(const json_t *member, size_t *shape, size_t *ndim,
                       struct api_problem *problem)
{
    *ndim = json_array_size(member);
    bool good = json_is_array(member) && *ndim <= KL_MAX_DIMS;
    for (size_t i = 0; good && i < *ndim; i++) {
        const json_t *size = json_array_get(member, i);
        good = json_is_integer(size) && json_integer_value(size) >= 0;
        shape[i] = (size_t)json_integer_value(size);
    }
    return good || api_fail_at(problem, API_BODY, "#/shape", "shape_invalid",
                               "shape must be an array of at most 64 non-negative integers");
}

static struct api_value value_of(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        return (struct api_value){.kind = API_STRING, .text = json_string_value(json)};
    case JSON_INTEGER:
    case JSON_REAL:
        return (struct api_value){.kind = API_NUMBER, .number = json_number_value(json)};
    case JSON_TRUE:
    case JSON_FALSE:
        return (struct api_value){.kind = API_BOOLEAN, .boolean = json_is_true(json)};
    case JSON_NULL:
        return (struct api_value){.kind = API_NULL};
    default:
        return (struct api_value){.kind = API_OTHER};
    }
}

static bool read_option(struct api_options *options, struct api_origin origin, const json_t *json,
                        const char *const *also, struct api_problem *problem)
{
    struct api_option_input setting;
    struct api_value value = value_of(api_json_unboxed(json));
    size_t i;
    json_t *item;
    if (!api_option_begin(&setting, options, origin, also, problem))
        return false;
    if (!json_is_array(json) || !setting.row->is_list)
        return api_option_add(&setting, &value) && api_option_end(&setting);
    json_array_foreach(json, i, item)
    {
        value = value_of(item);
        if (!api_option_add(&setting, &value))
            return false;
    }
    return api_option_end(&setting);
}

/* Members that are no options: those of operands were cut, the others may be null. */
static const char *const others[] = {"input", "target", "grad_output", "weight",
                                     "mask",  "shape",  NULL};

static bool is_tensor_or_shape(const char *name)
{
    const char *const *other = others + KL_OPERANDS;
    while (*other && strcmp(name, *other) != 0)
        other++;
    return *other != NULL;
}

static bool read_options(struct api_call *call, json_t *root, struct api_problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        const struct api_origin origin = {"#/", name};
        if (strcmp(name, "inputs") == 0)
            return api_fail_at(problem, API_BODY, "#/inputs", "option_unknown",
                               "inputs is a member of inference requests, which go to "
                               "/v2/models/kl_div/infer; here the members are input and target");
        if (!is_tensor_or_shape(name) &&
            !read_option(&call->options, origin, value, others, problem))
            return false;
    }
    return true;
}

/* True if the member `shape` applies to the tensor: always to an operand, to others if they are
 * flat with as many elements. */
static bool has_shape_of_operands(const struct api_call *call, size_t name, size_t ndim,
                                  const size_t *shape)
{
    const struct kl_tensor *view = &call->tensors[name].view;
    const struct kl_tensor whole = {.ndim = ndim, .shape = shape};
    size_t count;
    return name < KL_OPERANDS || (view->ndim == 1 && kl_tensor_count(&whole, &count) &&
                                  view->shape[0] == count && !call->options.given[API_DIM]);
}

/* Completes the tensors after the pass: dtypes, shapes, second reads. */
static bool finish_tensors(struct reader *r, json_t *root)
{
    struct api_call *call = r->call;
    enum kl_dtype dtype = call->options.dtype;
    json_t *member = json_object_get(root, "shape");
    size_t shape[KL_MAX_DIMS] = {0}, ndim = 0;
    if (member && !read_shape(member, shape, &ndim, r->envelope.problem))
        return false;
    for (size_t i = 0; i < API_TENSORS; i++) {
        struct api_tensor *tensor = &call->tensors[i];
        if (!tensor->present)
            continue;
        if (i != KL_MASK && tensor->view.dtype != dtype &&
            !api_json_tensor_read(tensor, r->envelope.body, r->values[i], dtype,
                                  r->envelope.problem))
            return false;
        if (member && has_shape_of_operands(call, i, ndim, shape) &&
            !api_json_tensor_reshape(tensor, ndim, shape, r->envelope.problem))
            return false;
    }
    return true;
}

/* Decodes tensors into the buffers of the call, other members as options in addition to the query's. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct reader r = {
        .envelope = {.body = request->body,
                     .size = request->body_size,
                     .max = MAX_ENVELOPE,
                     .too_large = "members other than tensors may have at most 64 KiB",
                     .not_object = "the body must be an object with members input and target",
                     .problem = problem,
                     .member = read_member,
                     .context = &r,
                     .text.budget = call->loss.budget},
        .call = call,
        .dtype = call->options.dtype};
    char text[USUAL_ENVELOPE];
    api_buffer_borrow(&r.envelope.text, text, sizeof text);
    struct api_json json = {.budget = call->loss.budget}; /* without a root for an empty object */
    bool good = api_envelope_read(&r.envelope, true, &json) &&
                read_options(call, json.root, problem) && finish_tensors(&r, json.root);
    if (json.memory)
        api_json_free(&json);
    api_buffer_free(&r.envelope.text);
    return good;
}

/* Appends an output, with `before` in front; false, and nothing, if it was not computed. */
static bool write_output(struct api_call *call, struct api_buffer *out, const char *before,
                         size_t output, struct kl_tensor *view)
{
    if (!api_call_output(call, output, view))
        return false;
    api_append_text(out, before);
    api_json_tensor_write(out, view, API_QUOTED, view->dtype);
    return true;
}

/* Appends the gradients that were computed: `,"gradient":{"input":[...]}`. */
static void write_gradients(struct api_call *call, struct api_buffer *out)
{
    struct kl_tensor view;
    bool has_input =
        write_output(call, out, ",\"gradient\":{\"input\":", API_GRADIENTS + KL_INPUT, &view);
    bool has_target =
        write_output(call, out, has_input ? ",\"target\":" : ",\"gradient\":{\"target\":",
                     API_GRADIENTS + KL_TARGET, &view);
    if (has_input || has_target)
        api_append_text(out, "}");
}

static void encode(struct api_call *call, struct api_response *response)
{
    const struct kl_plan *plan = &call->plan;
    struct api_buffer *out = &response->body;
    struct kl_tensor view;
    if (write_output(call, out, "{\"loss\":", API_LOSS, &view)) {
        api_append_text(out, ",\"shape\":");
        api_append_sizes(out, view.shape, view.ndim);
    } else {
        write_output(call, out, "{\"sum\":", API_SUM, &view);
        write_output(call, out, ",\"divisor\":", API_DIVISOR, &view);
    }
    api_append_text(out, ",\"dtype\":\"");
    api_append_text(out, kl_dtype_name(plan->dtype));
    api_append_text(out, "\",\"reduction\":\"");
    api_append_text(out, kl_reduction_name(plan->reduction));
    api_append_text(out, "\"");
    write_gradients(call, out);
    api_append_text(out, ",\"warnings\":");
    const struct api_warnings warnings = api_call_warnings(call);
    api_warnings_json(&warnings, out);
    api_append_text(out, "}\n");
}

static const char *const media_types[] = {"application/json", NULL};
const struct api_codec api_codec_json = {.media_types = media_types,
                                         .decode = decode,
                                         .encode = encode,
                                         .parsed = 1,
                                         .ns_per_element = API_TEXT_NS,
                                         .compresses = true};
