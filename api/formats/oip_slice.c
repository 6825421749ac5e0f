#include "api/formats/oip_slice.h"

#include "api/text/json_reader.h"

enum { REGION, BYTE_SIZE, OFFSET, PARAMETERS };
static const char *const names[PARAMETERS] = {"shared_memory_region", "shared_memory_byte_size",
                                              "shared_memory_offset"};

bool api_oip_has_slice(const char *parameters)
{
    const char *values[PARAMETERS];
    if (!parameters)
        return false;
    api_json_members(parameters, names, values, PARAMETERS);
    return values[REGION] || values[BYTE_SIZE] || values[OFFSET];
}

static bool malformed(const struct api_slice *slice, size_t parameter, const char *detail,
                      struct api_problem *problem)
{
    return api_slice_fail(slice, names[parameter], "inference_malformed", problem, "%s %s",
                          names[parameter], detail);
}

bool api_oip_slice_begin(struct api_slice *slice, const char *parameters,
                         const struct api_service *service, struct api_problem *problem)
{
    const char *values[PARAMETERS];
    char name[API_JSON_TEXT];
    api_json_members(parameters, names, values, PARAMETERS);
    if (!service->regions)
        return api_slice_fail(slice, names[REGION], "shared_memory_off", problem,
                              "this server maps no shared memory: --shared-memory PREFIX lets it");
    if (!api_json_string(values[REGION], name))
        return malformed(slice, REGION, "must be a string", problem);
    if (!api_json_size(values[BYTE_SIZE], &slice->size))
        return malformed(slice, BYTE_SIZE, "must be a number of bytes", problem);
    if (values[OFFSET] && !api_json_size(values[OFFSET], &slice->offset))
        return malformed(slice, OFFSET, "must be a number of bytes", problem);
    slice->name = name;
    return api_slice_begin(slice, service->regions, problem);
}
