#include "api/memory/shared.h"

#include <stdlib.h>

struct api_shared *api_shared_new(struct api_budget *budget)
{
    struct api_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->refcount = 1;
    shared->bytes.budget = budget;
    return shared;
}

struct api_shared *api_shared_hold(struct api_shared *shared)
{
    if (shared)
        atomic_fetch_add(&shared->refcount, 1);
    return shared;
}

void api_shared_release(struct api_shared *shared)
{
    if (!shared || atomic_fetch_sub(&shared->refcount, 1) > 1)
        return;
    api_buffer_free(&shared->bytes);
    free(shared);
}
