/* Columns of tables that have no monitor in their group: new ones, which observations have; and those that were
 * left out when the group got its reference, or whose monitor was deleted, which are no news. Guarded by the lock of the
 * registry that holds them. The store has a row for each, up to API_MAX_UNMONITORED in all. */
#pragma once

#include "api/monitors/state/mutes.h"

/* API_MAX_NEW: new ones of a group. */
enum { API_MAX_UNMONITORED = 10000, API_MAX_NEW = 100 };

/* api_column_of: a row. `missed`: requests of the group in a row that lacked a new one; after API_MISSED it is forgotten. */
struct api_column_of {
    struct api_named of;
    bool left_out;
    int64_t missed;
};

/* Finds a column; NULL if it is not known. */
static inline const struct api_column_of *api_columns_find(const struct api_named_rows *columns,
                                                           const char *group, const char *name)
{
    return api_named_find(columns, sizeof(struct api_column_of), group, name);
}

/* Finds the columns of a group: *n of them from the one that it returns. */
static inline const struct api_column_of *api_columns_group(const struct api_named_rows *columns,
                                                            const char *group, size_t *n)
{
    return api_named_group(columns, sizeof(struct api_column_of), group, n);
}
