#include "api/json/json_load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Memory, in bytes, that jansson 2.14 asks for; it gets none of it twice. A character of a string is copied as a
 * token and as a key, each after a buffer that doubles has grown with it. A value, counted by the character before
 * it, has a head and a slot in a table that doubles, and a slot among its parents if it is written again; an object
 * has buckets, too. MEMORY_OVERHEAD is for an empty text, and for members that are added from a query. */
enum { MEMORY_EACH = 6, MEMORY_VALUE = 256, MEMORY_OBJECT = 384, MEMORY_OVERHEAD = 8192 };
enum { ALIGNMENT = 16 };

/* SMALL: bytes of each thread for a text that needs no more: most requests without their tensors. */
enum { SMALL = 16 << 10 };
static _Thread_local char small[SMALL] __attribute__((aligned(ALIGNMENT)));

/* Text that this thread parses or reads; NULL if there is none. */
static _Thread_local struct api_json *current;

static void *allocate(size_t size)
{
    if (!current)
        return malloc(size);
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > current->size - current->used) {
        current->out_of_memory = true;
        return NULL;
    }
    void *slot = current->memory + current->used;
    current->used += rounded;
    return slot;
}

static void release(void *memory)
{
    const char *p = memory;
    if (!current || p < current->memory || p >= current->memory + current->size)
        free(memory);
}

static void hook(void) { json_set_alloc_funcs(allocate, release); }

static bool get_memory(struct api_json *json, size_t size)
{
    json->size = size;
    json->memory =
        size <= sizeof small ? small : api_block_resize(json->budget, NULL, 0, &json->size);
    json->out_of_memory = !json->memory;
    return json->memory != NULL;
}

/* Bytes that a text may need: an upper bound, also if it is malformed. */
static size_t memory_for(const char *text, size_t size)
{
    size_t bytes = MEMORY_OVERHEAD + MEMORY_EACH * size;
    bool is_quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            is_quoted = !is_quoted;
        else if (is_quoted)
            i += text[i] == '\\';
        else if (text[i] == '{')
            bytes += MEMORY_OBJECT;
        else if (text[i] == '[' || text[i] == ',' || text[i] == ':')
            bytes += MEMORY_VALUE;
    }
    return bytes;
}

bool api_json_load(struct api_json *json, const char *text, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hook);
    const char *nul = memchr(text, '\0', size); /* jansson accepts NULs in some positions */
    if (nul) {
        json->error.line = 1;
        json->error.position = json->error.column = (int)(nul - text);
        strcpy(json->error.text, "there is a NUL");
        return false;
    }
    if (!get_memory(json, memory_for(text, size)))
        return false;
    current = json;
    json->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &json->error);
    enum json_error_code code = json_error_code(&json->error);
    if (!json->root && (code == json_error_null_character || code == json_error_null_byte_in_key))
        strcpy(json->error.text, "a text may not hold the character \\u0000");
    if (!json->root) /* what is made before api_json_free must not be of its memory */
        current = NULL;
    return json->root != NULL;
}

static int append(const char *bytes, size_t size, void *out)
{
    api_append(out, bytes, size);
    return 0;
}

/* Writes with memory of malloc: jansson frees it at the end. Memory of the parsed text is never freed, and would be used up
 * by a value that is written often. */
void api_append_json(struct api_buffer *out, const json_t *value)
{
    struct api_json *parsed = current;
    current = NULL;
    out->failed |= json_dump_callback(value, append, out, JSON_COMPACT) != 0;
    current = parsed;
}

void api_json_free(struct api_json *json)
{
    if (!json->memory)
        return;
    json_decref(json->root);
    current = NULL;
    if (json->memory != small)
        api_block_free(json->budget, json->memory, json->size);
}
