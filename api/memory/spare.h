/* api_spare: a few freed objects of one kind, kept for the next ones. glibc takes up to a microsecond
 * for objects of some KiB among many small ones, which it then tidies up first. */
#ifndef KLDIV_API_MEMORY_SPARE_H
#define KLDIV_API_MEMORY_SPARE_H

#include <stdatomic.h>

enum { API_SPARES = 8, API_CACHE_LINE = 64 };

/* Static and zeroed. Any thread may use it. */
struct api_spare {
    struct {
        _Alignas(API_CACHE_LINE) _Atomic(void *) object;
    } places[API_SPARES];
};

/* Takes an object, with the contents it had, the calling thread's own first; NULL if there is none. */
void *api_spare_take(struct api_spare *spare);

/* Keeps an object; frees it if there are enough. */
void api_spare_keep(struct api_spare *spare, void *object);

#endif
