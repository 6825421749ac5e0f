#include "api/json_load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Of memory for a character of text at most: jansson keeps 80, and what grows by doubling is
 * here left behind in its former sizes. A text without any content takes the rest. */
enum { MEMORY_EACH = 160, MEMORY_BESIDE = 4096, ALIGNMENT = 16 };

/* What the text that this thread parses lives in; NULL while it parses none. */
static _Thread_local struct api_json *current;

static bool is_ours(const void *memory)
{
    const char *p = memory;
    return current && current->memory.data <= p && p < current->memory.data + current->memory.size;
}

static void *allocate(size_t size)
{
    if (!current)
        return malloc(size);
    struct api_buffer *memory = &current->memory;
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > memory->capacity - memory->size) {
        current->out_of_memory = true;
        return NULL;
    }
    void *place = memory->data + memory->size;
    memory->size += rounded;
    return place;
}

static void release(void *memory)
{
    if (!is_ours(memory))
        free(memory);
}

static void hook(void) { json_set_alloc_funcs(allocate, release); }

bool api_json_load(struct api_json *json, const char *text, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hook);
    const char *nul = memchr(text, '\0', size); /* which jansson skips in some places */
    if (nul) {
        json->error.position = (int)(nul - text);
        strcpy(json->error.text, "there is a NUL");
        return false;
    }
    if (!api_buffer_reserve(&json->memory, MEMORY_EACH * size + MEMORY_BESIDE)) {
        json->out_of_memory = true;
        return false;
    }
    current = json;
    json->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &json->error);
    return json->root != NULL;
}

void api_json_free(struct api_json *json)
{
    json_decref(json->root);
    current = NULL;
    api_buffer_free(&json->memory);
}
