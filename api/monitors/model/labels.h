/* api_label_table: how often each distinct text occurs. */
#pragma once

#include "api/memory/buffer.h"

/* Zeroed at first, but for its budget. `entries` are in order of their first sight; `slots` is a hash
 * table of 1 + their numbers. */
struct api_label_table {
    struct api_buffer texts, entries, slots, sorted;
    size_t n, n_slots; /* distinct texts */
};

void api_labels_set_budget(struct api_label_table *labels, struct api_budget *budget);
void api_labels_free(struct api_label_table *labels);

/* Counts a text, in the half of the rows that chooses labels or in the other; false if memory is
 * exhausted. */
bool api_labels_add(struct api_label_table *labels, const char *text, size_t size, bool chooses);

/* Number of a text that was counted, in order of their first sight; labels->n of another. */
size_t api_labels_find(const struct api_label_table *labels, const char *text, size_t size);

/* Counts a text that was counted before; false if it was not. */
bool api_labels_count_known(struct api_label_table *labels, const char *text, size_t size);

/* api_label: a text, which ends with a NUL and has no other, and how often it occurs, in all and in the half that chooses. */
struct api_label {
    const char *text;
    size_t count, choosing;
};

/* Sorts by frequency, or by that in the half that chooses, ties by bytes, and returns the first `max` or fewer; they
 * last as long as the table, to which nothing may be added afterwards. */
struct api_label *api_labels_sort(struct api_label_table *labels, bool by_choosing, size_t max,
                                  size_t *n);

/* Distinct text number `i`, in order of their first sight. */
struct api_label api_labels_get(const struct api_label_table *labels, size_t i);
