/* Mutes, and columns without a monitor, in the store, for its thread. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Reads the names of a row, its first values; false if one is too long, as only a damaged store has it. */
bool api_named_read(struct api_named *named, const struct api_datum *values);

/* Reads all mutes into a list that is empty. */
bool api_mutes_read(struct api_monitors *monitors, struct api_named_rows *mutes);

/* After a transaction has changed mutes, or deleted monitors: deletes mutes that are over, or whose monitor or group
 * is gone; makes other servers read them again; and reads those that are left. */
bool api_mutes_renew(struct api_monitors *monitors, struct api_named_rows *mutes);

/* True if a monitor is neither at warning or critical nor stale; with the name "", if all monitors of the group are so. */
bool api_mutes_is_ok(const struct api_registry *registry, const char *group, const char *name);

/* True if a mute that lasts until a state is ok is over. Ends those, in a transaction. */
bool api_mutes_are_due(const struct api_registry *registry);
bool api_mutes_end(struct api_monitors *monitors);

/* ---- Columns */

/* Appends what is to be known of a column to a list of changes. */
void api_columns_add(struct api_buffer *changes, const char *group, const char *name, bool left_out,
                     int64_t missed);

/* Reads all columns into a list that is empty. */
bool api_columns_read(struct api_monitors *monitors, struct api_named_rows *columns);

/* Writes changes, which may be none; deletes columns that have a monitor now, or whose group is gone; makes other servers
 * read them again; and reads those that are left. */
bool api_columns_renew(struct api_monitors *monitors, const struct api_buffer *changes,
                       struct api_named_rows *columns);
