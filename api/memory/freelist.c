#include "api/memory/freelist.h"

#include <stddef.h>
#include <stdlib.h>

/* The slot that the calling thread looks at first: what it kept is in the caches of its core. */
static size_t own_slot(void)
{
    static atomic_size_t threads;
    static _Thread_local size_t number; /* from 1 */
    if (number == 0)
        number = atomic_fetch_add(&threads, 1) + 1;
    return number;
}

void *api_freelist_get(struct api_freelist *list)
{
    void *object = NULL;
    for (size_t i = 0, own = own_slot(); i < API_FREELIST_SIZE && !object; i++) {
        _Atomic(void *) *slot = &list->slots[(own + i) % API_FREELIST_SIZE].object;
        if (atomic_load_explicit(slot, memory_order_relaxed))
            object = atomic_exchange(slot, NULL);
    }
    return object;
}

void api_freelist_put(struct api_freelist *list, void *object)
{
    for (size_t i = 0, own = own_slot(); i < API_FREELIST_SIZE && object; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&list->slots[(own + i) % API_FREELIST_SIZE].object,
                                           &none, object))
            return;
    }
    free(object);
}
