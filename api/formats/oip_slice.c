#include "api/formats/oip_slice.h"

#include "api/text/json_reader.h"
#include "api/text/nearest.h"

#include <string.h>

enum { REGION, BYTE_SIZE, OFFSET, PARAMETERS };
static const char *const names[PARAMETERS] = {"shared_memory_region", "shared_memory_byte_size",
                                              "shared_memory_offset"};

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

static bool malformed(const struct api_slice *slice, size_t parameter, const char *value,
                      const char *detail, struct api_problem *problem)
{
    return api_slice_fail(slice, names[parameter], "inference_malformed", problem, "%s %s",
                          names[parameter], value ? detail : "is missing");
}

/* Checks that every parameter of that kind has a known name. */
static bool check_names(const struct api_slice *slice, const char *parameters,
                        struct api_problem *problem)
{
    char name[API_JSON_TEXT];
    const char *value;
    struct api_json_reader reader = api_json_read_object(parameters);
    while (api_json_next_member(&reader, name, &value)) {
        const char *nearest = api_nearest(name, names, PARAMETERS);
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
    api_json_members(parameters, names, values, PARAMETERS);
    if (!service->regions)
        return api_slice_fail(
            slice, names[REGION], "shared_memory_off", problem,
            "shared memory is not enabled; start the server with --shared-memory PREFIX");
    if (!check_names(slice, parameters, problem))
        return false;
    if (!api_json_string(values[REGION], name))
        return malformed(slice, REGION, values[REGION], "must be a string", problem);
    if (!api_json_size(values[BYTE_SIZE], &slice->size))
        return malformed(slice, BYTE_SIZE, values[BYTE_SIZE], "must be a number of bytes", problem);
    if (values[OFFSET] && !api_json_size(values[OFFSET], &slice->offset))
        return malformed(slice, OFFSET, values[OFFSET], "must be a number of bytes", problem);
    slice->name = name;
    return api_slice_begin(slice, service->regions, problem);
}
