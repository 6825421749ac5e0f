#include "api/loss/oip_inputs.h"

#include "api/files/dtypes.h"
#include "api/json/json_text.h"
#include "api/loss/json_tensor.h"
#include "api/text/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- Parameters */

enum { REGION, BYTE_SIZE, OFFSET, BINARY_SIZE, BINARY, CLASSES };
static const char *const parameter_names[] = {"shared_memory_region",
                                              "shared_memory_byte_size",
                                              "shared_memory_offset",
                                              "binary_data_size",
                                              "binary_data",
                                              "classification",
                                              NULL};

static bool fail_slice(struct api_oip_reader *r, const struct api_slice *slice, size_t parameter,
                       const char *detail)
{
    if (!r->call->service->regions)
        return api_slice_fail(
            slice, parameter_names[REGION], "shared_memory_off", r->problem,
            "shared memory is not enabled; start the server with --shared-memory PREFIX");
    return api_slice_fail(slice, parameter_names[parameter], "inference_malformed", r->problem,
                          "%s %s", parameter_names[parameter], detail);
}

/* Skips a parameter that means nothing here, unless its name is like those of shared memory. */
static bool skip_other(struct api_oip_reader *r, const struct api_slice *slice, const char *name)
{
    static const char start[] = "shared_memory_";
    if (strncmp(name, start, sizeof start - 1) != 0)
        return api_json_skip(&r->json);
    if (!r->call->service->regions)
        return fail_slice(r, slice, REGION, "");
    const char *nearest = api_nearest(name, parameter_names, OFFSET + 1);
    return api_slice_fail(
        slice, "", "inference_malformed", r->problem, "there is no parameter '%.60s'%s%s%s", name,
        nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

bool api_oip_read_flag(struct api_json_cursor *c, bool *flag)
{
    *flag = api_json_peek(c) == 't';
    return api_json_skip(c);
}

static bool read_parameter(struct api_oip_reader *r, struct api_oip_parameters *p, size_t i,
                           const char *name)
{
    struct api_json_cursor *c = &r->json;
    switch (i) {
    case REGION:
        return api_json_string(c, p->region) || fail_slice(r, &p->slice, i, "must be a string");
    case BYTE_SIZE:
    case OFFSET:
        return api_json_size(c, i == OFFSET ? &p->slice.offset : &p->slice.size) ||
               fail_slice(r, &p->slice, i, "must be a number of bytes");
    case BINARY_SIZE:
        p->has_size = true;
        if (!api_json_size(c, &p->binary_size))
            p->binary_size = SIZE_MAX;
        return !r->problem->code;
    case BINARY:
        p->has_binary = true;
        return api_oip_read_flag(c, &p->is_binary);
    case CLASSES:
        p->has_classes = true;
        return api_json_skip(c);
    default:
        return skip_other(r, &p->slice, name);
    }
}

bool api_oip_read_parameters(struct api_oip_reader *r, struct api_oip_parameters *p)
{
    char name[API_JSON_TEXT];
    size_t i;
    while (api_json_field(&r->json, parameter_names, &p->given, name, &i))
        if (!read_parameter(r, p, i, name))
            return false;
    p->is_shared = p->given & (1u << REGION | 1u << BYTE_SIZE | 1u << OFFSET);
    return !r->problem->code;
}

bool api_oip_slice_begin(struct api_oip_reader *r, struct api_slice *slice,
                         const struct api_oip_parameters *p)
{
    for (size_t i = REGION; i <= BYTE_SIZE; i++)
        if (!r->call->service->regions || !(p->given >> i & 1))
            return fail_slice(r, &p->slice, i, "is missing");
    r->call->is_shared = true;
    *slice = p->slice;
    slice->name = p->region;
    return api_slice_begin(slice, r->call->service->regions, r->problem);
}

/* ---- Inputs */

bool api_oip_fail(struct api_oip_reader *r, const char *list, size_t number, const char *field,
                  const char *code, const char *detail)
{
    char location[128];
    snprintf(location, sizeof location, "#/%s/%zu/%.60s", list, number, field);
    return api_fail_at(r->problem, API_BODY, location, code, "%s", detail);
}

enum { NAME, SHAPE, DATATYPE, PARAMETERS, DATA, MEMBERS };
static const char *const member_names[] = {"name", "shape", "datatype", "parameters", "data", NULL};

/* input: one that is read. */
struct input {
    size_t number;
    const char *at[MEMBERS];   /* the values of its members */
    const char *after_data;    /* what follows data that was skipped; NULL for none */
    struct api_tensor *tensor; /* NULL until name and datatype are read */
    enum kl_dtype dtype;
    unsigned given;
    struct api_oip_parameters parameters;
};

/* A cursor at a value that was skipped; `p` is NULL if there is none. */
static struct api_json_cursor cursor_at(const struct api_oip_reader *r, const char *value)
{
    struct api_json_cursor c = r->json;
    c.p = value;
    return c;
}

static bool find_dtype(struct api_oip_reader *r, struct input *input)
{
    struct api_type type = {.dtype = KL_FLOAT64};
    char text[API_JSON_TEXT];
    struct api_json_cursor c = cursor_at(r, input->at[DATATYPE]);
    const char *name = c.p && api_json_string(&c, text) ? text : "(absent, or no string)";
    bool good = api_tensor_type(input->tensor, API_INFERENCE, "datatype", name, &type, r->problem);
    input->dtype = type.dtype;
    return good;
}

/* Finds the tensor and its dtype; NULL with a problem. */
static struct api_tensor *begin_tensor(struct api_oip_reader *r, struct input *input)
{
    char name[API_JSON_TEXT];
    struct api_json_cursor c = cursor_at(r, input->at[NAME]);
    if (!c.p || !api_json_string(&c, name)) {
        api_oip_fail(r, "inputs", input->number, "name", "inference_malformed",
                     "an input has no name");
        return NULL;
    }
    struct api_tensor *tensor = input->tensor =
        api_tensor_find(r->call->tensors, name, &input->number, r->problem);
    if (!tensor)
        return NULL;
    tensor->is_input = true;
    tensor->input = input->number;
    return find_dtype(r, input) ? tensor : NULL;
}

/* Reads an array of data, or skips it if name or datatype may follow. An array ends within the JSON part. */
static bool read_data(struct api_oip_reader *r, struct input *input)
{
    struct api_json_cursor *c = &r->json;
    const char *start = c->p, *end = NULL;
    bool is_known = input->at[NAME] && input->at[DATATYPE];
    if (api_json_peek(c) != '[')
        return api_json_skip(c);
    if (!is_known || c->end != r->raw_end) {
        end = api_json_skip_value(start);
        if (!end || end > c->end) {
            c->p = c->end;
            return api_json_wrong(c, "expected ',' or ']'");
        }
    }
    if (!is_known)
        input->after_data = end;
    else if (begin_tensor(r, input))
        end = api_json_tensor_read(input->tensor, c->text, start, input->dtype, r->problem);
    if (!end || r->problem->code)
        return false;
    c->p = end;
    r->data_size += (size_t)(end - start);
    return true;
}

/* Ends the reading of data. */
static bool finish_data(struct api_oip_reader *r, struct input *input, size_t ndim,
                        const size_t *shape)
{
    const char *data = input->at[DATA];
    if (*data != '[')
        return api_tensor_fail(input->tensor, "data", r->problem, "inference_malformed",
                               "data must be an array%s", api_json_array_hint(data));
    if (input->after_data) {
        const char *end =
            api_json_tensor_read(input->tensor, r->json.text, data, input->dtype, r->problem);
        if (end && api_json_skip_space(end) != input->after_data) {
            r->json.p = api_json_skip_space(end);
            return api_json_wrong(&r->json, "expected ',' or '}'");
        }
    }
    return !r->problem->code && api_json_tensor_reshape(input->tensor, ndim, shape, r->problem);
}

/* Bytes of the elements of a tensor whose dtype and shape are set; SIZE_MAX if they overflow. */
static size_t size_of(const struct api_tensor *tensor, enum kl_dtype dtype)
{
    size_t count;
    return kl_tensor_count(&tensor->view, &count) ? count * api_dtype_size(dtype) : SIZE_MAX;
}

/* Finds the elements in shared memory, of which the parameters name as many bytes as shape and datatype
 * need. */
static bool read_shared(struct api_oip_reader *r, struct input *input, size_t ndim)
{
    struct api_tensor *tensor = input->tensor;
    struct api_slice *slice = &tensor->slice;
    if (input->parameters.has_size)
        return api_tensor_fail(tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "it is in shared memory and cannot be in the binary data, too");
    if (!api_oip_slice_begin(r, slice, &input->parameters))
        return false;
    api_tensor_set(tensor, input->dtype, ndim, slice->data);
    size_t size = size_of(tensor, input->dtype);
    return slice->size == size ||
           api_tensor_fail(tensor, "parameters/shared_memory_byte_size", r->problem,
                           "inference_malformed",
                           "shared_memory_byte_size is %zu, but shape and datatype need %zu bytes",
                           slice->size, size);
}

/* Completes a tensor after all members of its input. */
static bool finish_tensor(struct api_oip_reader *r, struct input *input)
{
    const struct api_oip_parameters *p = &input->parameters;
    struct api_json_cursor c = cursor_at(r, input->at[SHAPE]);
    size_t shape[KL_MAX_DIMS], ndim;
    struct api_tensor *tensor = input->tensor ? input->tensor : begin_tensor(r, input);
    if (!tensor)
        return false;
    if (!c.p || !api_json_sizes(&c, shape, KL_MAX_DIMS, &ndim))
        return api_tensor_fail(tensor, "shape", r->problem, "inference_malformed",
                               "shape must be an array of at most 64 non-negative integers");
    bool has_data = input->at[DATA] && *input->at[DATA] != 'n';
    if (has_data && p->is_shared)
        return api_tensor_fail(tensor, "data", r->problem, "inference_malformed",
                               "it is in shared memory and cannot have data, too");
    if (has_data)
        return finish_data(r, input, ndim, shape);
    if (ndim > 0)
        memcpy(tensor->shape, shape, ndim * sizeof *shape);
    if (p->is_shared)
        return read_shared(r, input, ndim);
    api_tensor_set(tensor, input->dtype, ndim, NULL);
    r->raws[r->n_raws++] = (struct api_oip_raw){tensor, input->dtype, p->has_size, p->binary_size};
    return true;
}

static bool read_input(struct api_oip_reader *r, size_t number)
{
    struct api_json_cursor *c = &r->json;
    struct input input = {.number = number, .parameters.slice.number = number};
    char name[API_JSON_TEXT];
    size_t i;
    while (api_json_field(c, member_names, &input.given, name, &i)) {
        if (i == MEMBERS)
            return api_oip_fail(
                r, "inputs", number, name, "inference_malformed",
                "an input may have only name, shape, datatype, parameters and data");
        input.at[i] = c->p;
        if (!(i == DATA         ? read_data(r, &input)
              : i == PARAMETERS ? api_oip_read_parameters(r, &input.parameters)
                                : api_json_skip(c)))
            return false;
    }
    return !r->problem->code && finish_tensor(r, &input);
}

bool api_oip_read_inputs(struct api_oip_reader *r)
{
    if (!api_json_open_if(&r->json, '['))
        return api_fail_at(r->problem, API_BODY, "#/inputs", "inference_malformed",
                           "the request must have an array of inputs");
    for (size_t i = 0; api_json_item(&r->json); i++)
        if (!read_input(r, i))
            return false;
    return !r->problem->code;
}

/* ---- The binary part */

/* Takes the next bytes, as many as shape and datatype need. */
static bool read_raw(struct api_oip_reader *r, const struct api_oip_raw *raw)
{
    struct api_tensor *tensor = raw->tensor;
    size_t size = size_of(tensor, raw->dtype), left = (size_t)(r->raw_end - r->raw);
    if (raw->has_size && raw->size != size)
        return api_tensor_fail(tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "binary_data_size differs from the size by shape and datatype");
    if (!raw->has_size && size > 0 && r->json.end == r->raw_end)
        return api_tensor_fail(tensor, NULL, r->problem, "inference_malformed",
                               "it has neither data nor binary_data_size");
    if (size > left)
        return api_tensor_fail(tensor, "shape", r->problem, "inference_malformed",
                               "shape and datatype need %zu bytes, but %zu are left of the "
                               "binary data",
                               size, left);
    tensor->view.data = r->raw;
    r->raw += size;
    return true;
}

bool api_oip_read_raws(struct api_oip_reader *r)
{
    for (size_t i = 0; i < r->n_raws; i++)
        if (!read_raw(r, &r->raws[i]))
            return false;
    return r->raw == r->raw_end || api_fail(r->problem, "inference_malformed",
                                            "%zu bytes of binary data are left after the inputs",
                                            (size_t)(r->raw_end - r->raw));
}
