#include "api/regions/regions.h"

#include "api/json/format.h"
#include "api/regions/object.h"
#include "api/regions/region.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MAX_BYTES: of all regions together. Each may be mapped twice, and whole, also where its object has no memory:
 * without a limit regions could take all 128 TiB of addresses that a process has. */
#define MAX_BYTES ((size_t)16 << 40)

/* ---- A region */

/* Frees a region that is not in the list. */
static void free_region(struct api_region *region)
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
        free_region(region);
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

/* Opens a region with one reference, which is not in the list yet; NULL with a problem. */
static struct api_region *open_region(struct api_regions *regions, const char *name,
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
    free_region(region);
    return NULL;
}

/* ---- The list */

struct api_regions *api_regions_new(const char *prefix, size_t max, struct api_budget *budget)
{
    struct api_regions *regions = calloc(1, sizeof *regions);
    if (!regions)
        return NULL;
    pthread_mutex_init(&regions->lock, NULL);
    regions->prefix = prefix;
    regions->max = max < API_REGIONS ? max : API_REGIONS;
    regions->budget = budget;
    return regions;
}

void api_regions_free(struct api_regions *regions)
{
    if (!regions)
        return;
    api_regions_unregister(regions, NULL);
    pthread_mutex_destroy(&regions->lock);
    free(regions);
}

/* The link that leads to the region of a name, or the link at the end of the list. */
static struct api_region **find(struct api_regions *regions, const char *name)
{
    struct api_region **link = &regions->first;
    while (*link && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

struct api_region *api_regions_find(struct api_regions *regions, const char *name)
{
    pthread_mutex_lock(&regions->lock);
    struct api_region *region = *find(regions, name);
    if (region)
        region->refcount++;
    pthread_mutex_unlock(&regions->lock);
    return region;
}

/* Adds a region at the end of the list. */
static bool add(struct api_regions *regions, struct api_region *region, struct api_problem *problem)
{
    struct api_region **link = find(regions, region->name);
    if (*link)
        return api_fail(problem, "region_registered",
                        "the region '%.60s' is registered already: unregister it first",
                        region->name);
    if (regions->open == regions->max)
        return api_fail(problem, "too_many_regions",
                        "%zu regions are registered, the maximum of this server: unregister some",
                        regions->max);
    if (region->size > MAX_BYTES - regions->open_bytes)
        return api_fail_at(
            problem, API_BODY, "#/byte_size", "too_many_regions",
            "regions of %zu bytes are registered; the maximum of all together is %zu",
            regions->open_bytes, MAX_BYTES);
    *link = region;
    regions->open++;
    regions->open_bytes += region->size;
    return true;
}

bool api_regions_register(struct api_regions *regions, const char *name,
                          const struct api_region_key *key, struct api_problem *problem)
{
    struct api_region *region = open_region(regions, name, key, problem);
    if (!region)
        return false;
    pthread_mutex_lock(&regions->lock);
    bool good = add(regions, region, problem);
    pthread_mutex_unlock(&regions->lock);
    if (!good)
        free_region(region);
    return good;
}

/* Takes a region from the list, or all if the name is NULL. */
static struct api_region *take(struct api_regions *regions, const char *name)
{
    pthread_mutex_lock(&regions->lock);
    struct api_region **link = name ? find(regions, name) : &regions->first, *taken = *link;
    *link = name && taken ? taken->next : NULL;
    if (name && taken)
        taken->next = NULL;
    pthread_mutex_unlock(&regions->lock);
    return taken;
}

void api_regions_unregister(struct api_regions *regions, const char *name)
{
    struct api_region *region = take(regions, name);
    while (region) {
        struct api_region *next = region->next;
        api_region_release(region);
        region = next;
    }
}

bool api_regions_write(struct api_regions *regions, const char *name, struct api_buffer *out)
{
    size_t n = 0;
    api_append_text(out, "[");
    pthread_mutex_lock(&regions->lock);
    for (const struct api_region *r = regions->first; r; r = r->next) {
        if (name && strcmp(r->name, name) != 0)
            continue;
        api_append(out, ",", n++ > 0);
        api_write_json(out, "{'name':%s,'key':%s,'offset':%zu,'byte_size':%zu}", r->name, r->key,
                       r->offset, r->size);
    }
    pthread_mutex_unlock(&regions->lock);
    api_append_text(out, "]");
    return !name || n > 0;
}

size_t api_regions_count(struct api_regions *regions, size_t *bytes)
{
    size_t n = 0;
    *bytes = 0;
    pthread_mutex_lock(&regions->lock);
    for (const struct api_region *region = regions->first; region; region = region->next, n++)
        *bytes += region->size;
    pthread_mutex_unlock(&regions->lock);
    return n;
}
