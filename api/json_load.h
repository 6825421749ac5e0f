/* jansson, with failed allocations told apart from malformed text. */
#ifndef KLDIV_API_JSON_LOAD_H
#define KLDIV_API_JSON_LOAD_H

#include <jansson.h>
#include <stdbool.h>

/* json_loadb with duplicate keys rejected. NULL if the text is malformed, with *error set, or, as
 * *out_of_memory then says, if memory is out: jansson itself tells some of those as syntax
 * errors. */
json_t *api_json_load(const char *text, size_t size, json_error_t *error, bool *out_of_memory);

#endif
