/* Parses JSON with jansson in memory that is allocated beforehand. The first text that is parsed replaces jansson's
 * functions of memory, which are the process's (json_set_alloc_funcs): a thread that holds a parsed text gives jansson
 * memory of that text, all others use malloc. */
#pragma once

#include "api/memory/buffer.h"

#include <jansson.h>

/* api_json: a parsed text and its memory. Empty if zeroed, `budget` aside. One thread has at
 * most one at a time. */
struct api_json {
    json_t *root;
    struct api_budget *budget; /* for memory beyond the 16 KiB of each thread */
    char *memory;
    size_t size, used;
    json_error_t error;
    bool out_of_memory;
};

/* Parses a text; refuses duplicate keys and NULs. Returns false if the text is malformed,
 * described in json->error, or if memory is exhausted, with json->out_of_memory set. Allocates
 * before jansson starts, because jansson aborts if an allocation fails within a number. */
bool api_json_load(struct api_json *json, const char *text, size_t size);

/* The value of an array of one, which R's jsonlite makes of every scalar; others as they are. */
static inline const json_t *api_json_unboxed(const json_t *value)
{
    return json_array_size(value) == 1 ? json_array_get(value, 0) : value;
}

/* Appends a value, with the members of objects in the order of their insertion. */
void api_append_json(struct api_buffer *out, const json_t *value);

/* Frees the text; it may be empty. */
void api_json_free(struct api_json *json);
