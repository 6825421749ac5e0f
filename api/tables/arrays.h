/* Arrays with one axis as columns of tables. */
#pragma once

#include "api/tables/columns.h"

enum api_array_kind {
    API_ARRAY_FLOAT,
    API_ARRAY_SIGNED,
    API_ARRAY_UNSIGNED,
    API_ARRAY_BOOL,
    API_ARRAY_TEXT
};

/* api_array_type: the type of an array's elements, of `size` bytes each. */
struct api_array_type {
    enum api_array_kind kind;
    enum kl_dtype dtype; /* of API_ARRAY_FLOAT */
    size_t size;
    bool swapped; /* true if bytes, or those of each character, are in the other order */
};

/* Finds a type by numpy's code, "<f8", ">U5", or by the name in safetensors, "F64"; false if columns
 * cannot have it. */
bool api_array_type_numpy(const char *descr, struct api_array_type *type);
bool api_array_type_safetensors(const char *name, struct api_array_type *type);

/* Gives `n` elements to the sink as a column: floats at once, others one by one. Turns bytes that are
 * swapped around in place; `data` needs no alignment. Fails with value_invalid for text that is no
 * Unicode. */
bool api_array_give(const struct api_table *table, const struct api_sink *sink, size_t column,
                    const struct api_array_type *type, char *data, size_t n,
                    struct api_problem *problem);
