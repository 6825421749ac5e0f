#include "api/regions/endpoints.h"

#include "api/json/json_reader.h"
#include "api/regions/region.h"
#include "api/regions/regions.h"
#include "api/request/body.h"
#include "api/request/response.h"

#include <string.h>

/* The name in the path, or NULL. */
static const char *name_of(const struct api_exchange *x)
{
    return x->captures.n > 0 ? x->captures.value[0] : NULL;
}

static bool fail_unknown(struct api_exchange *x)
{
    return api_fail(&x->problem, "region_unknown", "no region '%.60s' is registered", name_of(x));
}

bool api_region_status(struct api_exchange *x)
{
    const char *name = name_of(x);
    if (!x->service->regions)
        return name ? fail_unknown(x) : api_response_json(&x->response, "[]");
    return api_regions_write(x->service->regions, name, &x->response.body)
               ? api_response_json(&x->response, "")
               : fail_unknown(x);
}

/* ---- Registration */

enum { KEY, OFFSET, BYTE_SIZE, MEMBERS };
static const char *const member_names[MEMBERS] = {"key", "offset", "byte_size"};

static bool fail_member(const char *member, const char *what, struct api_problem *problem)
{
    char location[100];
    api_pointer_to_member(location, sizeof location, "#/", member);
    return api_fail_at(problem, API_BODY, location, "region_malformed",
                       "%.60s %s: a region is registered with {\"key\": \"/NAME\", \"offset\": "
                       "BYTES, \"byte_size\": BYTES}; offset is optional",
                       member, what);
}

/* Checks that the name can be told in JSON, by which requests name regions. */
static bool check_name(const char *name, struct api_problem *problem)
{
    const unsigned char *p = (const unsigned char *)name;
    for (size_t size; *p; p += size)
        if (!(size = api_utf8_length(p)))
            return api_fail(problem, "region_malformed", "the name of the region is not UTF-8");
    return true;
}

static bool read_members(const char *root, struct api_region_key *key, char text[API_JSON_TEXT],
                         struct api_problem *problem)
{
    const char *members[MEMBERS];
    const char *other = api_json_members(root, member_names, members, MEMBERS);
    if (other && api_json_string(other, text))
        return fail_member(text, "is no member", problem);
    *key = (struct api_region_key){.key = text};
    if (!api_json_string(members[KEY], text))
        return fail_member("key", members[KEY] ? "is no string" : "is missing", problem);
    if (members[OFFSET] && !api_json_size(members[OFFSET], &key->offset))
        return fail_member("offset", "is not a number of bytes", problem);
    return api_json_size(members[BYTE_SIZE], &key->byte_size) ||
           fail_member("byte_size", members[BYTE_SIZE] ? "is not a number of bytes" : "is missing",
                       problem);
}

static bool register_region(struct api_exchange *x)
{
    struct api_region_key key;
    char text[API_JSON_TEXT];
    const char *root;
    if (!x->service->regions)
        return api_fail(
            &x->problem, "shared_memory_off",
            "shared memory is not enabled; start the server with --shared-memory PREFIX");
    if (!check_name(name_of(x), &x->problem) || !api_body_read_small(x, &root) ||
        !read_members(root, &key, text, &x->problem))
        return false;
    api_response_json(&x->response,
                      "{}"); /* first: without memory for the response nothing is registered */
    return x->response.body.failed ||
           api_regions_register(x->service->regions, name_of(x), &key, &x->problem);
}

bool api_region_unregister(struct api_exchange *x)
{
    if (x->service->regions)
        api_regions_unregister(x->service->regions, name_of(x));
    return api_response_json(&x->response, "{}");
}

/* ---- CUDA */

bool api_cuda_region_status(struct api_exchange *x)
{
    return name_of(x) ? fail_unknown(x) : api_response_json(&x->response, "[]");
}

static bool refuse_cuda_region(struct api_exchange *x)
{
    return api_fail(&x->problem, "shared_memory_off",
                    "this server has no GPU: register system shared memory instead");
}

bool api_cuda_region_unregister(struct api_exchange *x)
{
    return api_response_json(&x->response, "{}");
}

#define KIND "a request to register a region"

const struct api_steps api_region_register = {.small = KIND, .write = register_region};
const struct api_steps api_cuda_region_register = {.small = KIND, .write = refuse_cuda_region};
