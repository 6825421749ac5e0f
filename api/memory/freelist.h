/* api_freelist: a few freed objects of one kind, kept for the next ones. glibc takes up to a microsecond
 * for objects of some KiB among many small ones, which it then tidies up first. */
#pragma once

#include <stdatomic.h>

enum { API_FREELIST_SIZE = 8, API_CACHE_LINE = 64 };

/* Static and zeroed. Any thread may use it. */
struct api_freelist {
    struct {
        _Alignas(API_CACHE_LINE) _Atomic(void *) object;
    } slots[API_FREELIST_SIZE];
};

/* Takes an object, with the contents it had, the calling thread's own first; NULL if there is none. */
void *api_freelist_get(struct api_freelist *list);

/* Keeps an object; frees it if there are enough. */
void api_freelist_put(struct api_freelist *list, void *object);
