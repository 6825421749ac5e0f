/* api_region: a region and what it holds. Private to this room. */
#ifndef KLDIV_API_REGIONS_REGION_H
#define KLDIV_API_REGIONS_REGION_H

#include "api/regions/mapping.h"
#include "api/regions/regions.h"

#include <pthread.h>
#include <sys/stat.h>

struct api_regions {
    pthread_mutex_t lock; /* of the list, and of all counts of references */
    struct api_region *first;
    size_t n, bytes;         /* of the list */
    size_t open, open_bytes; /* of regions, those that only calls still use included */
    size_t most;
    const char *prefix;
    struct api_budget *budget;
};

struct api_region {
    struct api_region *next;
    struct api_regions *of;
    size_t references; /* of the list, and of slices */
    int fd;            /* of the object, for reading */
    struct stat object;
    size_t offset, size; /* bytes of it */

    pthread_mutex_t lock;                /* of what follows */
    struct api_mapping reading, writing; /* empty before their first use */
    size_t charged;                      /* bytes that got their memory here, in the budget */

    const char *key; /* after the name */
    char name[];
};

/* Finds a region and refers to it; NULL if there is none. */
struct api_region *api_region_find(struct api_regions *regions, const char *name);

/* Drops a reference; the last one closes and frees the region. */
void api_region_release(struct api_region *region);

#endif
