/* jansson, in memory that is had beforehand. */
#ifndef KLDIV_API_TEXT_JSON_LOAD_H
#define KLDIV_API_TEXT_JSON_LOAD_H

#include "api/memory/budget.h"

#include <jansson.h>

/* A parsed text and the memory it lives in. Zeroed but for `budget` it is empty. One thread
 * has one at a time. */
struct api_json {
    json_t *root;
    struct api_budget *budget; /* for more memory than each thread keeps */
    char *memory;
    size_t size, used;
    json_error_t error;
    bool out_of_memory;
};

/* Parses with duplicate keys and NULs refused. False if the text is malformed, as json->error
 * tells, or, as json->out_of_memory tells, there is no memory. All that jansson needs is had
 * before it starts: where an allocation fails in the middle of a number, it aborts. */
bool api_json_load(struct api_json *json, const char *text, size_t size);

/* Empty is fine. */
void api_json_free(struct api_json *json);

#endif
