/* Columns of tables that have no monitor in their group: new ones, which observations have; and those that were left out when
 * the group got its reference, or whose monitor was deleted, which are no news. The store has a row for each, up to
 * API_MAX_UNMONITORED in all. Called in the store's thread; false if the store or memory fails. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* API_MAX_NEW: new ones of a group. */
enum { API_MAX_UNMONITORED = 10000, API_MAX_NEW = 100 };

/* Appends a name to a list. */
void api_columns_add(struct api_buffer *names, const char *name);

/* Notes the columns without a monitor of a table of observations: those that are new, and which of those that were new it
 * lacks; after API_MISSED tables in a row these are forgotten. */
bool api_columns_note(struct api_monitors *monitors, const char *group,
                      const struct api_buffer *names);

/* Notes columns that nobody wants a monitor for. Forgets those of what is gone, or that have a monitor. */
bool api_columns_leave_out(struct api_monitors *monitors, const char *group,
                           const struct api_buffer *names);
bool api_columns_prune(struct api_monitors *monitors);

/* Appends the names of new columns of a group, as JSON strings with commas between. */
bool api_columns_write_new(struct api_monitors *monitors, const char *group,
                           struct api_buffer *out);
