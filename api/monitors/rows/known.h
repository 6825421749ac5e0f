/* api_known: monitors as they were at one moment, with their configs, by which other threads read the bodies of requests. What a
 * request has read is checked in its transaction, against the rows. */
#pragma once

#include "api/monitors/model/config.h"
#include "api/monitors/model/labels.h"

#include <pthread.h>

struct api_known {
    int64_t id, revision, version;
    const char *name;
    struct api_config *config; /* held */
};

/* api_known_set: monitors of a group in order of their names: all, or the one of a name. It is not changed. */
struct api_known_set {
    atomic_uint refcount;
    char *group, *name; /* "" for all */
    bool has_group;     /* there is a monitor in the group */
    bool has_segments;  /* the group had segments when the set was read; false for one monitor */
    size_t n, bytes;    /* bytes: of configs, about */
    struct api_known *monitors;
    struct api_buffer names;
    struct api_label_table left_out; /* columns that are to have no monitor; of a whole group */
    struct api_known_set *next;      /* of the same hash */
};
/* Makes an empty one; NULL without memory. */
struct api_known_set *api_known_new(const char *group, const char *name);
struct api_known_set *api_known_hold(struct api_known_set *set);
void api_known_release(struct api_known_set *set); /* NULL is fine */

/* Compares monitors by their names, for qsort; finds one, NULL if it is not in the set. */
int api_known_compare(const void *a, const void *b);
const struct api_known *api_known_find(const struct api_known_set *set, const char *name);

/* True for a column that is to have no monitor: it is no news in observations. */
bool api_known_leaves_out(const struct api_known_set *set, const char *column);

/* api_known_cache: sets that are in memory, all of which go when there is no room for another. Any thread may use it. */
enum { API_KNOWN_LISTS = 4096 };
struct api_known_cache {
    pthread_mutex_t lock;
    struct api_known_set *lists[API_KNOWN_LISTS]; /* by the hash of their names */
    size_t bytes;
};

/* Gives a set, held; NULL if it is not in memory. */
struct api_known_set *api_known_get(struct api_known_cache *cache, const char *group,
                                    const char *name);

/* Forgets the sets of a group, and of that whose segment it is, or all, once its monitors change. */
void api_known_forget(struct api_known_cache *cache, const char *group);

/* Puts a set into the cache, which may have so many bytes. */
void api_known_put(struct api_known_cache *cache, struct api_known_set *set, size_t room);
