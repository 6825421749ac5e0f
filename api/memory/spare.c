#include "api/memory/spare.h"

#include <stddef.h>
#include <stdlib.h>

enum { MOST = sizeof((struct api_spare *)0)->objects / sizeof(_Atomic(void *)) };

void *api_spare_take(struct api_spare *spare)
{
    void *object = NULL;
    for (size_t i = 0; i < MOST && !object; i++)
        if (atomic_load_explicit(&spare->objects[i], memory_order_relaxed))
            object = atomic_exchange(&spare->objects[i], NULL);
    return object;
}

void api_spare_keep(struct api_spare *spare, void *object)
{
    for (size_t i = 0; i < MOST && object; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&spare->objects[i], &none, object))
            return;
    }
    free(object);
}
