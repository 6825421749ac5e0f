#include "api/json_load.h"

#include <pthread.h>
#include <stdlib.h>

static _Thread_local bool allocation_failed;

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    allocation_failed |= !memory;
    return memory;
}

static void hook(void) { json_set_alloc_funcs(allocate, free); }

json_t *api_json_load(const char *text, size_t size, json_error_t *error, bool *out_of_memory)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hook);
    allocation_failed = false;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, error);
    *out_of_memory = !root && allocation_failed;
    return root;
}
