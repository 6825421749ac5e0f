#include "api/regions/slice.h"

#include "api/regions/object.h"
#include "api/regions/region.h"
#include "api/regions/regions.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void format_location(const struct api_slice *slice, const char *parameter, char *to,
                            size_t size)
{
    snprintf(to, size, "#/%s/%zu/parameters%s%s", slice->writes ? "outputs" : "inputs",
             slice->number, *parameter ? "/" : "", parameter);
}

bool api_slice_fail(const struct api_slice *slice, const char *parameter, const char *code,
                    struct api_problem *problem, const char *format, ...)
{
    char location[100], detail[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    format_location(slice, parameter, location, sizeof location);
    return api_fail_at(problem, API_BODY, location, code, "%s", detail);
}

/* Checks the bytes against those of the region. */
static bool check_range(const struct api_slice *slice, struct api_problem *problem)
{
    const struct api_region *region = slice->in;
    if (slice->offset > region->size)
        return api_slice_fail(slice, "shared_memory_offset", "region_too_small", problem,
                              "the region '%.60s' has %zu bytes, but the offset is %zu",
                              region->name, region->size, slice->offset);
    return slice->size <= region->size - slice->offset ||
           api_slice_fail(slice, "shared_memory_byte_size", "region_too_small", problem,
                          "the region '%.60s' has %zu bytes, fewer than %zu from offset %zu",
                          region->name, region->size, slice->size, slice->offset);
}

static struct api_mapping *mapping_of(const struct api_slice *slice)
{
    return slice->writes ? &slice->in->writing : &slice->in->reading;
}

/* True if the object still has all bytes of the slice; *now is its present status. */
static bool is_there(const struct api_slice *slice, struct stat *now)
{
    const struct api_region *region = slice->in;
    return fstat(region->fd, now) == 0 &&
           (size_t)now->st_size >= region->offset + slice->offset + slice->size;
}

static bool fail_lost(const struct api_slice *slice, struct api_problem *problem)
{
    return api_slice_fail(
        slice, "shared_memory_region", "region_lost", problem,
        "the object '%.60s' of region '%.60s' was truncated, or /dev/shm has no memory left for "
        "it: restore it, unregister the region, and register it again",
        slice->in->key, slice->in->name);
}

/* Opens the object again, for writing. Another one may have got its name. */
static int open_to_write(const struct api_slice *slice, struct api_problem *problem)
{
    const struct api_region *region = slice->in;
    struct stat status;
    char location[100];
    format_location(slice, "shared_memory_region", location, sizeof location);
    int fd = api_object_open(region->of->prefix, region->key, true, &status, location, problem);
    if (fd < 0 ||
        (status.st_dev == region->object.st_dev && status.st_ino == region->object.st_ino))
        return fd;
    close(fd);
    api_slice_fail(
        slice, "shared_memory_region", "region_invalid", problem,
        "another object has the name '%.60s' now: unregister the region, and register it "
        "again",
        region->key);
    return -1;
}

/* Maps the region at its first use. Called with the region locked. */
static bool map(struct api_slice *slice, struct api_problem *problem)
{
    struct api_region *region = slice->in;
    struct api_mapping *mapping = mapping_of(slice);
    if (mapping->data)
        return true;
    int fd = slice->writes ? open_to_write(slice, problem) : region->fd;
    if (fd < 0)
        return false;
    bool good =
        api_mapping_open(mapping, fd, region->offset, region->size, slice->writes) ||
        api_slice_fail(slice, "shared_memory_region", "out_of_memory", problem,
                       "the region '%.60s' cannot be mapped: %s", region->name, strerror(errno));
    if (slice->writes)
        close(fd);
    return good;
}

bool api_slice_is_lost(const struct api_slice *slice)
{
    return slice->in && api_mapping_is_lost(mapping_of(slice));
}

static bool begin(struct api_slice *slice, struct api_problem *problem)
{
    struct stat now;
    if (!check_range(slice, problem))
        return false;
    if (!is_there(slice, &now))
        return fail_lost(slice, problem);
    pthread_mutex_lock(&slice->in->lock);
    bool good = map(slice, problem);
    pthread_mutex_unlock(&slice->in->lock);
    if (!good)
        return false;
    slice->data = mapping_of(slice)->data + slice->offset;
    return !api_slice_is_lost(slice) || fail_lost(slice, problem);
}

bool api_slice_begin(struct api_slice *slice, struct api_regions *regions,
                     struct api_problem *problem)
{
    slice->in = api_regions_find(regions, slice->name);
    if (!slice->in)
        api_slice_fail(slice, "shared_memory_region", "region_unknown", problem,
                       "no region '%.60s' is registered", slice->name);
    slice->name = NULL;
    if (slice->in && begin(slice, problem))
        return true;
    api_slice_end(slice);
    return false;
}

/* True if an object may lack memory somewhere. One that has more beyond its end hides that. */
static bool may_have_holes(int fd)
{
    enum { BLOCK = 512 };
    struct stat now;
    return fstat(fd, &now) != 0 ||
           (size_t)now.st_blocks < ((size_t)now.st_size + BLOCK - 1) / BLOCK;
}

static size_t holes_of(const struct api_slice *slice, size_t size)
{
    return api_object_holes(slice->in->fd, slice->in->offset + slice->offset, size);
}

bool api_slice_touch(struct api_slice *slice, size_t size, struct api_problem *problem)
{
    if (!slice->in || !may_have_holes(slice->in->fd))
        return true;
    size_t holes = holes_of(slice, size);
    if (!api_budget_reserve(slice->in->of->budget, holes))
        return api_fail_oom(problem);
    slice->touched = size;
    slice->holes = holes;
    return true;
}

/* At the end of a use: memory that the object got meanwhile, at most all of its bytes, stays in the budget until the
 * region is closed. */
static void account_holes(struct api_slice *slice)
{
    struct api_region *region = slice->in;
    struct api_budget *budget = region->of->budget;
    size_t holes = holes_of(slice, slice->touched);
    size_t got = slice->holes > holes ? slice->holes - holes : 0;
    pthread_mutex_lock(&region->lock);
    size_t max = mapping_of(slice)->size - region->accounted;
    api_budget_release(budget, slice->holes);
    got = got < max ? got : max;
    if (api_budget_reserve(budget, got))
        region->accounted += got;
    pthread_mutex_unlock(&region->lock);
}

bool api_slice_check(const struct api_slice *slice, struct api_problem *problem)
{
    struct stat now;
    return !slice->in || (is_there(slice, &now) && !api_slice_is_lost(slice)) ||
           fail_lost(slice, problem);
}

bool api_slice_check_apart(const struct api_slice *slice, const struct api_slice *other,
                           struct api_problem *problem)
{
    const struct api_region *a = slice->in, *b = other->in;
    if (!a || !b || a->object.st_dev != b->object.st_dev || a->object.st_ino != b->object.st_ino)
        return true;
    size_t start = a->offset + slice->offset, begins = b->offset + other->offset;
    bool apart = slice->size == 0 || other->size == 0 || start + slice->size <= begins ||
                 begins + other->size <= start;
    return apart || api_slice_fail(slice, "shared_memory_offset", "region_invalid", problem,
                                   "the output would be written over %s %zu",
                                   other->writes ? "output" : "input", other->number);
}

void api_slice_release(struct api_slice *slice)
{
    if (slice->holes > 0)
        account_holes(slice);
    if (slice->data)
        api_mapping_drop(mapping_of(slice));
    api_region_release(slice->in);
    *slice = (struct api_slice){0};
}
