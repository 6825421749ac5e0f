/* api_region: a region and what it holds. Private to this room. */
#pragma once

#include "api/json/problem.h"
#include "api/regions/mapping.h"

#include <pthread.h>
#include <sys/stat.h>

struct api_regions {
    pthread_mutex_t lock; /* of the list, and of all counts of references */
    struct api_region *first;
    size_t open, open_bytes; /* of regions, those that only calls still use included */
    size_t max;
    const char *prefix;
    struct api_budget *budget;
};

struct api_region {
    struct api_region *next;
    struct api_regions *of;
    size_t refcount; /* of the list, and of slices */
    int fd;          /* of the object, for reading */
    struct stat object;
    size_t offset, size; /* bytes of it */

    pthread_mutex_t lock;                /* of what follows */
    struct api_mapping reading, writing; /* empty before their first use */
    size_t accounted;                    /* bytes that got their memory here, in the budget */

    const char *key; /* after the name */
    char name[];
};

/* api_region_key: the bytes of an object that a region is. */
struct api_region_key {
    const char *key; /* name of the object, with a slash before it or without */
    size_t offset, byte_size;
};

/* Drops a reference; the last one closes and frees the region. */
void api_region_release(struct api_region *region);
