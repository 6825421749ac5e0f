#include "api/loss/oip_inputs.h"

#include "api/files/dtypes.h"
#include "api/json/json_reader.h"
#include "api/json/json_text.h"
#include "api/loss/json_tensor.h"
#include "api/text/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- Shared memory */

enum { REGION, BYTE_SIZE, OFFSET, PARAMETERS };
static const char *const slice_names[PARAMETERS] = {
    "shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"};

static bool is_of_slice(const char *name)
{
    static const char start[] = "shared_memory_";
    return strncmp(name, start, sizeof start - 1) == 0;
}

bool api_oip_has_slice(const char *parameters)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(parameters ? parameters : "null");
    while (api_json_next_member(&reader, name, &value))
        if (is_of_slice(name))
            return true;
    return false;
}

static bool fail_parameter(const struct api_slice *slice, size_t parameter, const char *value,
                           const char *detail, struct api_problem *problem)
{
    return api_slice_fail(slice, slice_names[parameter], "inference_malformed", problem, "%s %s",
                          slice_names[parameter], value ? detail : "is missing");
}

/* Checks that every parameter of that kind has a known name. */
static bool check_names(const struct api_slice *slice, const char *parameters,
                        struct api_problem *problem)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(parameters);
    while (api_json_next_member(&reader, name, &value)) {
        const char *nearest = api_nearest(name, slice_names, PARAMETERS);
        if (is_of_slice(name) && (!nearest || strcmp(name, nearest) != 0))
            return api_slice_fail(slice, "", "inference_malformed", problem,
                                  "there is no parameter '%.60s'%s%s%s", name,
                                  nearest ? "; did you mean '" : "", nearest ? nearest : "",
                                  nearest ? "'?" : "");
    }
    return true;
}

bool api_oip_slice_begin(struct api_slice *slice, const char *parameters,
                         const struct api_service *service, struct api_problem *problem)
{
    const char *values[PARAMETERS];
    char name[API_JSON_TEXT];
    api_json_members(parameters, slice_names, values, PARAMETERS);
    if (!service->regions)
        return api_slice_fail(
            slice, slice_names[REGION], "shared_memory_off", problem,
            "shared memory is not enabled; start the server with --shared-memory PREFIX");
    if (!check_names(slice, parameters, problem))
        return false;
    if (!api_json_string(values[REGION], name))
        return fail_parameter(slice, REGION, values[REGION], "must be a string", problem);
    if (!api_json_size(values[BYTE_SIZE], &slice->size))
        return fail_parameter(slice, BYTE_SIZE, values[BYTE_SIZE], "must be a number of bytes",
                              problem);
    if (values[OFFSET] && !api_json_size(values[OFFSET], &slice->offset))
        return fail_parameter(slice, OFFSET, values[OFFSET], "must be a number of bytes", problem);
    slice->name = name;
    return api_slice_begin(slice, service->regions, problem);
}

/* ---- Inputs */

bool api_oip_fail(struct api_oip_reader *r, const char *list, size_t number, const char *field,
                  const char *code, const char *detail)
{
    char location[128];
    snprintf(location, sizeof location, "#/%s/%zu/%.60s", list, number, field);
    return api_fail_at(r->problem, API_BODY, location, code, "%s", detail);
}

static bool read_datatype(struct api_oip_reader *r, const struct api_tensor *tensor,
                          const char *member, enum kl_dtype *dtype)
{
    char text[API_JSON_TEXT];
    const char *name = api_json_string(member, text) ? text : "(absent, or no string)";
    struct api_type type = {.dtype = *dtype};
    bool good = api_tensor_type(tensor, API_INFERENCE, "datatype", name, &type, r->problem);
    *dtype = type.dtype;
    return good;
}

static bool read_data(struct api_oip_reader *r, struct api_tensor *tensor, enum kl_dtype dtype,
                      const char *data, size_t ndim, const size_t *shape)
{
    const char *after = NULL, *array = api_oip_body_data(&r->body, data, &after);
    if (!array)
        return api_tensor_fail(tensor, "data", r->problem, "inference_malformed",
                               "data must be an array%s", api_json_array_hint(data));
    const char *end = api_json_tensor_read(tensor, r->body.text, array, dtype, r->problem);
    if (end && api_json_skip_space(end) != after)
        return api_json_expected(r->body.text, api_json_skip_space(end), "',' or '}'", r->problem);
    return end && api_json_tensor_reshape(tensor, ndim, shape, r->problem);
}

/* Bytes of the elements of a tensor whose dtype and shape are set; SIZE_MAX if they overflow. */
static size_t size_of(const struct api_tensor *tensor, enum kl_dtype dtype)
{
    size_t count;
    return kl_tensor_count(&tensor->view, &count) ? count * api_dtype_size(dtype) : SIZE_MAX;
}

/* Reads the next bytes of the binary part, as many as shape and datatype need. `given`, if
 * present, must be equal. */
static bool read_raw(struct api_oip_reader *r, struct api_tensor *tensor, enum kl_dtype dtype,
                     size_t ndim, const char *given)
{
    size_t said, left = (size_t)(r->body.raw_end - r->body.raw);
    api_tensor_set(tensor, dtype, ndim, r->body.raw);
    size_t size = size_of(tensor, dtype);
    if (given && (!api_json_size(given, &said) || said != size))
        return api_tensor_fail(tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "binary_data_size differs from the size by shape and datatype");
    if (!given && size > 0 && r->body.end == r->body.raw_end)
        return api_tensor_fail(tensor, NULL, r->problem, "inference_malformed",
                               "it has neither data nor binary_data_size");
    if (size > left)
        return api_tensor_fail(tensor, "shape", r->problem, "inference_malformed",
                               "shape and datatype need %zu bytes, but %zu are left of the "
                               "binary data",
                               size, left);
    r->body.raw += size;
    return true;
}

/* Finds the elements in shared memory, of which the parameters name as many bytes as shape and datatype
 * need. */
static bool read_shared(struct api_oip_reader *r, struct api_tensor *tensor, enum kl_dtype dtype,
                        size_t ndim, const char *parameters)
{
    struct api_slice *slice = &tensor->slice;
    *slice = (struct api_slice){.number = r->input};
    r->call->is_shared = true;
    if (api_json_member(parameters, "binary_data_size"))
        return api_tensor_fail(tensor, "parameters/binary_data_size", r->problem,
                               "inference_malformed",
                               "it is in shared memory and cannot be in the binary data, too");
    if (!api_oip_slice_begin(slice, parameters, r->call->service, r->problem))
        return false;
    api_tensor_set(tensor, dtype, ndim, slice->data);
    size_t size = size_of(tensor, dtype);
    return slice->size == size ||
           api_tensor_fail(tensor, "parameters/shared_memory_byte_size", r->problem,
                           "inference_malformed",
                           "shared_memory_byte_size is %zu, but shape and datatype need %zu bytes",
                           slice->size, size);
}

enum { NAME, SHAPE, DATATYPE, TENSOR_PARAMETERS, DATA, TENSOR_MEMBERS };

/* Finds the tensor that an input's members name. */
static struct api_tensor *find_tensor(struct api_oip_reader *r,
                                      const char *const members[TENSOR_MEMBERS], const char *other)
{
    char name[API_JSON_TEXT];
    if (other) {
        api_json_string(other, name);
        api_oip_fail(r, "inputs", r->input, name, "inference_malformed",
                     "an input may have only name, shape, datatype, parameters and data");
        return NULL;
    }
    if (!api_json_string(members[NAME], name)) {
        api_oip_fail(r, "inputs", r->input, "name", "inference_malformed", "an input has no name");
        return NULL;
    }
    return api_tensor_find(r->call->tensors, name, &r->input, r->problem);
}

static bool read_input(struct api_oip_reader *r, const char *input)
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
        return api_tensor_fail(tensor, "shape", r->problem, "inference_malformed",
                               "shape must be an array of at most 64 non-negative integers");
    bool has_data = members[DATA] && *members[DATA] != 'n';
    bool is_shared = api_oip_has_slice(members[TENSOR_PARAMETERS]);
    if (has_data && is_shared)
        return api_tensor_fail(tensor, "data", r->problem, "inference_malformed",
                               "it is in shared memory and cannot have data, too");
    if (has_data)
        return read_data(r, tensor, dtype, members[DATA], ndim, shape);
    if (ndim > 0)
        memcpy(tensor->shape, shape, ndim * sizeof *shape);
    if (is_shared)
        return read_shared(r, tensor, dtype, ndim, members[TENSOR_PARAMETERS]);
    return read_raw(r, tensor, dtype, ndim,
                    api_json_member(members[TENSOR_PARAMETERS], "binary_data_size"));
}

bool api_oip_read_inputs(struct api_oip_reader *r, const char *inputs)
{
    const char *input;
    struct api_json_reader reader = api_json_read_array(inputs);
    if (!inputs || *inputs != '[')
        return api_fail_at(r->problem, API_BODY, "#/inputs", "inference_malformed",
                           "the request must have an array of inputs");
    for (; api_json_next_item(&reader, &input); r->input++)
        if (!read_input(r, input))
            return false;
    if (r->body.raw != r->body.raw_end)
        return api_fail(r->problem, "inference_malformed",
                        "%zu bytes of binary data are left after the inputs",
                        (size_t)(r->body.raw_end - r->body.raw));
    return true;
}
