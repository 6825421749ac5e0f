#include "api/monitors/rows/known.h"

#include "api/monitors/model/segment.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sets */

struct api_known_set *api_known_new(const char *group, const char *name)
{
    struct api_known_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->refcount = 1;
    set->group = strdup(group);
    set->name = strdup(name);
    if (set->group && set->name)
        return set;
    api_known_release(set);
    return NULL;
}

struct api_known_set *api_known_hold(struct api_known_set *set)
{
    atomic_fetch_add(&set->refcount, 1);
    return set;
}

void api_known_release(struct api_known_set *set)
{
    if (!set || atomic_fetch_sub(&set->refcount, 1) > 1)
        return;
    for (size_t i = 0; i < set->n; i++)
        api_config_release(set->monitors[i].config);
    free(set->monitors);
    api_buffer_free(&set->names);
    api_labels_free(&set->left_out);
    free(set->group);
    free(set->name);
    free(set);
}

int api_known_compare(const void *a, const void *b)
{
    return strcmp(((const struct api_known *)a)->name, ((const struct api_known *)b)->name);
}

const struct api_known *api_known_find(const struct api_known_set *set, const char *name)
{
    const struct api_known key = {.name = name};
    return set->n == 0
               ? NULL
               : bsearch(&key, set->monitors, set->n, sizeof *set->monitors, api_known_compare);
}

bool api_known_leaves_out(const struct api_known_set *set, const char *column)
{
    return api_labels_find(&set->left_out, column, strlen(column)) < set->left_out.n;
}

/* ---- The cache */

/* FNV-1a of both names. */
static struct api_known_set **list_of(struct api_known_cache *cache, const char *group,
                                      const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = group; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return &cache->lists[(hash >> 32) % API_KNOWN_LISTS];
}

struct api_known_set *api_known_get(struct api_known_cache *cache, const char *group,
                                    const char *name)
{
    pthread_mutex_lock(&cache->lock);
    struct api_known_set *set = *list_of(cache, group, name);
    while (set && (strcmp(set->group, group) != 0 || strcmp(set->name, name) != 0))
        set = set->next;
    if (set)
        api_known_hold(set);
    pthread_mutex_unlock(&cache->lock);
    return set;
}

/* True for a set of the group, or of the group whose segment it is. */
static bool concerns(const struct api_known_set *set, const char *group)
{
    size_t parent = api_segment_parent(group);
    return strcmp(set->group, group) == 0 ||
           (parent > 0 && strlen(set->group) == parent && strncmp(set->group, group, parent) == 0);
}

/* Removes those of a group from a list, or all. */
static void remove_from(struct api_known_cache *cache, struct api_known_set **list,
                        const char *group)
{
    for (struct api_known_set *set = *list; set; set = *list) {
        if (group && !concerns(set, group)) {
            list = &set->next;
            continue;
        }
        *list = set->next;
        cache->bytes -= set->bytes;
        api_known_release(set);
    }
}

static void remove_all(struct api_known_cache *cache, const char *group)
{
    for (size_t i = 0; i < API_KNOWN_LISTS && cache->bytes > 0; i++)
        remove_from(cache, &cache->lists[i], group);
}

void api_known_forget(struct api_known_cache *cache, const char *group)
{
    pthread_mutex_lock(&cache->lock);
    remove_all(cache, group);
    pthread_mutex_unlock(&cache->lock);
}

/* Removes a set of the same names, which is older. */
static void remove_same(struct api_known_cache *cache, struct api_known_set **list,
                        const struct api_known_set *than)
{
    for (struct api_known_set *set = *list; set; list = &set->next, set = *list) {
        if (strcmp(set->group, than->group) != 0 || strcmp(set->name, than->name) != 0)
            continue;
        *list = set->next;
        cache->bytes -= set->bytes;
        api_known_release(set);
        return;
    }
}

void api_known_put(struct api_known_cache *cache, struct api_known_set *set, size_t room)
{
    if (set->bytes > room)
        return;
    pthread_mutex_lock(&cache->lock);
    if (cache->bytes + set->bytes > room)
        remove_all(cache, NULL);
    struct api_known_set **list = list_of(cache, set->group, set->name);
    remove_same(cache, list, set);
    set->next = *list;
    *list = api_known_hold(set);
    cache->bytes += set->bytes;
    pthread_mutex_unlock(&cache->lock);
}
