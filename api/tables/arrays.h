/* Arrays with one axis as columns of tables. */
#pragma once

#include "api/files/dtypes.h"
#include "api/tables/columns.h"

/* api_array: the type of a column's elements, and where in a file they begin. table->arrays has one for each column. */
struct api_array {
    struct api_type type;
    size_t start;
};

/* Sets the array, of n elements, of the column that was added last. */
bool api_array_add(struct api_table *table, const struct api_array *array, size_t n,
                   struct api_problem *problem);

/* Gives the elements of a column in a file to the sink: floats at once, others one by one. Turns bytes that
 * are swapped around in place; elements need no alignment. Fails with value_invalid for text that is no
 * Unicode. */
bool api_array_give(const struct api_table *table, const struct api_sink *sink, size_t column,
                    char *file, struct api_problem *problem);
