/* api_label_table: how often each distinct text occurs. */
#pragma once

#include "api/memory/buffer.h"

struct api_label_table;

/* Makes an empty table, on the budget; NULL if memory is exhausted. */
struct api_label_table *api_labels_new(struct api_budget *budget);
void api_labels_free(struct api_label_table *labels);

/* Counts a text without NULs; false if memory is exhausted. */
bool api_labels_add(struct api_label_table *labels, const char *text, size_t size);

/* api_label: a text, which ends with a NUL, and how often it occurs. */
struct api_label {
    const char *text;
    size_t count;
};

/* Number of distinct texts. */
size_t api_labels_count(const struct api_label_table *labels);

/* Sorts by frequency, ties by bytes, and returns the first `max` or fewer; they last as long as the
 * table, to which nothing may be added afterwards. */
const struct api_label *api_labels_sort(struct api_label_table *labels, size_t max, size_t *n);
