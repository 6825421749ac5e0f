#include "api/memory/spare.h"

#include <stddef.h>
#include <stdlib.h>

/* The place that the calling thread looks at first: what it kept is in the caches of its core. */
static size_t own_place(void)
{
    static atomic_size_t threads;
    static _Thread_local size_t number; /* from 1 */
    if (number == 0)
        number = atomic_fetch_add(&threads, 1) + 1;
    return number;
}

void *api_spare_take(struct api_spare *spare)
{
    void *object = NULL;
    for (size_t i = 0, own = own_place(); i < API_SPARES && !object; i++) {
        _Atomic(void *) *place = &spare->places[(own + i) % API_SPARES].object;
        if (atomic_load_explicit(place, memory_order_relaxed))
            object = atomic_exchange(place, NULL);
    }
    return object;
}

void api_spare_keep(struct api_spare *spare, void *object)
{
    for (size_t i = 0, own = own_place(); i < API_SPARES && object; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&spare->places[(own + i) % API_SPARES].object, &none,
                                           object))
            return;
    }
    free(object);
}
