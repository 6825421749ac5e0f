/* api_columns: columns of tables that have no monitor in their group: new ones, which observations have; and those that were
 * left out when the group got its reference, or whose monitor was deleted, which are no news. Guarded by the lock of the
 * registry that holds them. The store has a row for each, up to API_MAX_UNMONITORED in all. */
#pragma once

#include "api/monitors/state/mutes.h"

/* API_MAX_NEW: new ones of a group. */
enum { API_MAX_UNMONITORED = 10000, API_MAX_NEW = 100 };

/* api_column_of: a column. `missed`: requests of the group in a row that lacked a new one; after API_MISSED it is forgotten. */
struct api_column_of {
    char group[API_MAX_NAME + 1], name[API_MAX_NAME + 1];
    bool left_out;
    int64_t missed;
};

/* api_columns: an array of api_column_of, in order of group and name. */
struct api_columns {
    struct api_buffer list;
    size_t counted; /* bytes that the budget has */
};

/* Finds a column; NULL if it is not known. */
const struct api_column_of *api_columns_find(const struct api_columns *columns, const char *group,
                                             const char *name);

/* Finds the columns of a group: *n of them from the one that it returns. */
const struct api_column_of *api_columns_group(const struct api_columns *columns, const char *group,
                                              size_t *n);

/* Sets the names of a column; false if one is too long, as only a damaged store has it. Sorts a list. */
bool api_column_set(struct api_column_of *column, const char *group, size_t group_size,
                    const char *name, size_t name_size);
void api_columns_sort(struct api_columns *columns);

/* Appends what is to be known of a column to a list of changes. */
void api_columns_add(struct api_buffer *changes, const char *group, const char *name, bool left_out,
                     int64_t missed);

/* Frees a list, which is empty then. */
void api_columns_free(struct api_columns *columns, struct api_budget *budget);
