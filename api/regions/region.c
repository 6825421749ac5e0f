#include "api/regions/region.h"

#include "api/regions/object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void api_region_free(struct api_region *region)
{
    api_mapping_close(&region->reading);
    api_mapping_close(&region->writing);
    if (region->fd >= 0)
        close(region->fd);
    api_budget_release(region->of->budget, region->accounted);
    pthread_mutex_destroy(&region->lock);
    free(region);
}

void api_region_release(struct api_region *region)
{
    pthread_mutex_lock(&region->of->lock);
    bool is_last = --region->refcount == 0;
    region->of->open -= is_last;
    region->of->open_bytes -= is_last ? region->size : 0;
    pthread_mutex_unlock(&region->of->lock);
    if (is_last)
        api_region_free(region);
}

static struct api_region *allocate(struct api_regions *regions, const char *name,
                                   const struct api_region_key *key)
{
    size_t name_size = strlen(name) + 1, key_size = strlen(key->key) + 1;
    struct api_region *region = calloc(1, sizeof *region + name_size + key_size);
    if (!region)
        return NULL;
    memcpy(region->name, name, name_size);
    region->key = memcpy(region->name + name_size, key->key, key_size);
    pthread_mutex_init(&region->lock, NULL);
    region->of = regions;
    region->refcount = 1;
    region->fd = -1;
    region->offset = key->offset;
    region->size = key->byte_size;
    return region;
}

/* Checks the bytes that are asked for against those of the object. */
static bool check_size(const struct api_region *region, struct api_problem *problem)
{
    size_t end, has = (size_t)region->object.st_size;
    if (region->size == 0)
        return api_fail_at(problem, API_BODY, "#/byte_size", "region_too_small",
                           "a region has at least one byte");
    return (!__builtin_add_overflow(region->offset, region->size, &end) && end <= has) ||
           api_fail_at(problem, API_BODY, "#/byte_size", "region_too_small",
                       "'%.60s' has %zu bytes; the region would need %zu from offset %zu",
                       region->key, has, region->size, region->offset);
}

struct api_region *api_region_open(struct api_regions *regions, const char *name,
                                   const struct api_region_key *key, struct api_problem *problem)
{
    struct api_region *region = allocate(regions, name, key);
    if (!region) {
        api_fail_oom(problem);
        return NULL;
    }
    region->fd =
        api_object_open(regions->prefix, key->key, false, &region->object, "#/key", problem);
    if (region->fd >= 0 && check_size(region, problem))
        return region;
    api_region_free(region);
    return NULL;
}
