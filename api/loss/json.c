/* Requests and responses of /kl_div as application/json. */
#include "api/json/json_cursor.h"
#include "api/loss/codecs.h"
#include "api/loss/json_tensor.h"
#include "api/loss/warnings.h"
#include "api/text/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* reader: a pass over the members of the body's object. */
struct reader {
    struct api_json_cursor json;
    struct api_call *call;
    struct api_problem *problem;
    const char *values[API_TENSORS]; /* start of each tensor's value */
    size_t ndim, shape[KL_MAX_DIMS]; /* of the member `shape`, if there is one */
    bool has_shape;
    unsigned nulls;   /* bits: those that were read */
    uint64_t options; /* likewise */
};

static bool read_tensor(struct reader *r, enum kl_operand name)
{
    struct api_json_cursor *c = &r->json;
    struct api_tensor *tensor = &r->call->tensors[name];
    if (tensor->present)
        return api_tensor_fail(tensor, NULL, r->problem, "tensor_repeated", "it is given twice");
    r->values[name] = c->p;
    c->p = api_json_tensor_read(tensor, c->text, c->p, r->call->options.dtype, r->problem);
    return c->p;
}

/* Reads null in place of a tensor that may be absent. */
static bool read_null(struct reader *r, size_t name)
{
    if (r->nulls >> name & 1)
        return api_json_repeated(&r->json);
    r->nulls |= 1u << name;
    return api_json_skip(&r->json);
}

static bool read_number(struct reader *r, double *number)
{
    struct api_json_cursor *c = &r->json;
    const char *end = api_number_read(c->p, KL_FLOAT64, number);
    char *end_of_integer;
    if (!end)
        return api_json_wrong(c, "expected a value");
    errno = 0;
    strtoll(c->p, &end_of_integer, 10);
    c->p = end;
    return (!isinf(*number) && (errno != ERANGE || end_of_integer != end)) ||
           api_fail(r->problem, "number_too_large", "a number of the options is too large");
}

static bool read_shape(struct reader *r)
{
    if (r->has_shape)
        return api_json_repeated(&r->json);
    r->has_shape = true;
    return api_json_sizes(&r->json, r->shape, KL_MAX_DIMS, &r->ndim) ||
           api_fail_at(r->problem, API_BODY, "#/shape", "shape_invalid",
                       "shape must be an array of at most 64 non-negative integers");
}

/* Reads the value of an option, a text to `text`. No option takes arrays and objects. */
static bool read_value(struct reader *r, char text[API_JSON_TEXT], struct api_value *value)
{
    struct api_json_cursor *c = &r->json;
    const char first = api_json_peek(c);
    *value = (struct api_value){.kind = API_OTHER, .text = text, .boolean = first == 't'};
    if (first == '[' || first == '{')
        return api_json_skip(c);
    if (first == '"') {
        value->kind = API_STRING;
        return api_json_string(c, text);
    }
    if (first == 't' || first == 'f' || first == 'n') {
        value->kind = first == 'n' ? API_NULL : API_BOOLEAN;
        return api_json_skip(c);
    }
    value->kind = API_NUMBER;
    return read_number(r, &value->number);
}

/* Members that are no options. */
static const char *const others[] = {"input",   "target",         "grad_output", "weight", "mask",
                                     "indices", "log_normalizer", "shape",       NULL};

/* Adds the value at the cursor. Valid values are short; a longer one is cut, and then invalid. */
static bool add_value(struct reader *r, struct api_option_input *setting, char text[API_JSON_TEXT])
{
    struct api_value value;
    if (!read_value(r, text, &value) || !api_option_add(setting, &value))
        return false;
    bool is_cut = value.kind == API_STRING && r->json.is_cut;
    value.kind = API_OTHER;
    return !is_cut || api_option_add(setting, &value);
}

static bool read_option(struct reader *r, const char *name)
{
    struct api_json_cursor *c = &r->json;
    struct api_option_input setting;
    char text[API_JSON_TEXT];
    if (!api_option_begin(&setting, &r->call->options, (struct api_origin){"#/", name}, others,
                          r->problem))
        return false;
    if (api_option_is_repeated(&setting, &r->options))
        return api_json_repeated(c);
    if (api_json_peek(c) != '[' || !(setting.row->is_list || api_json_is_boxed(c)))
        return add_value(r, &setting, text) && api_option_end(&setting);
    api_json_open(c, '[');
    while (api_json_item(c))
        if (!add_value(r, &setting, text))
            return false;
    return !r->problem->code && api_option_end(&setting);
}

static bool read_member(struct reader *r, const char *name)
{
    for (size_t i = 0; i < API_TENSORS; i++)
        if (strcmp(name, api_tensor_names[i]) == 0)
            return i >= KL_OPERANDS && api_json_peek(&r->json) == 'n'
                       ? read_null(r, i)
                       : read_tensor(r, (enum kl_operand)i);
    if (strcmp(name, "shape") == 0)
        return read_shape(r);
    if (strcmp(name, "inputs") == 0)
        return api_fail_at(r->problem, API_BODY, "#/inputs", "option_unknown",
                           "inputs is a member of inference requests, which go to "
                           "/v2/models/kl_div/infer; here the members are input and target");
    return read_option(r, name);
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
static bool finish_tensors(struct reader *r)
{
    struct api_call *call = r->call;
    enum kl_dtype dtype = call->options.dtype;
    if (r->has_shape && call->tensors[KL_INDICES].present)
        return api_fail_at(r->problem, API_BODY, "#/shape", "shape_invalid",
                           "shape is that of input and target alike, and a sparse target has its "
                           "own: leave it out, and nest the arrays");
    for (size_t i = 0; i < API_TENSORS; i++) {
        struct api_tensor *tensor = &call->tensors[i];
        if (!tensor->present)
            continue;
        if (tensor->dtype < API_BYTE && tensor->dtype != dtype &&
            !api_json_tensor_read(tensor, r->json.text, r->values[i], dtype, r->problem))
            return false;
        if (r->has_shape && has_shape_of_operands(call, i, r->ndim, r->shape) &&
            !api_json_tensor_reshape(tensor, r->ndim, r->shape, r->problem))
            return false;
    }
    return true;
}

/* Decodes tensors into the buffers of the call, other members as options in addition to the query's. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct reader r = {.call = call, .problem = problem};
    struct api_json_cursor *c = &r.json;
    const char *nul = memchr(request->body, '\0', request->body_size);
    char name[API_JSON_TEXT];
    if (nul)
        return api_fail(problem, "json_malformed", "there is a NUL at byte %zu",
                        (size_t)(nul - request->body));
    api_json_begin(c, request->body, request->body_size, true, problem);
    if (api_json_peek(c) == '[')
        return api_fail_at(problem, API_BODY, "#", "body_not_object",
                           "the body must be an object with members input and target");
    if (!api_json_open(c, '{'))
        return false;
    while (api_json_member(c, name))
        if (!read_member(&r, name))
            return false;
    return !problem->code && api_json_end(c) && finish_tensors(&r);
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
    if (warnings.bits)
        api_warnings_json(&warnings, out);
    else
        api_append_text(out, "[]");
    api_append_text(out, "}\n");
}

static const char *const media_types[] = {"application/json", NULL};
const struct api_codec api_codec_json = {.media_types = media_types,
                                         .decode = decode,
                                         .encode = encode,
                                         .parsed = 1,
                                         .ns_per_element = API_TEXT_NS,
                                         .compresses = true};
