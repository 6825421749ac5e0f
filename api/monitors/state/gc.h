/* Deletes windows that are too old, and the rows of deleted monitors, in small steps between requests. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Takes one round of steps; monitors->gc_unfinished becomes true if more steps may be left. */
bool api_gc(struct api_monitors *monitors);

/* Deletes the rows of a window. */
bool api_gc_delete_window(struct api_monitors *monitors, int64_t monitor, int64_t window);

/* Deletes windows of a monitor that ended too long before its newest, and events of such times, a hundred
 * of each at most. The last event stays. *expired becomes true if there were any. */
bool api_gc_expire(struct api_monitors *monitors, struct api_pending_monitor *pending,
                   bool *expired);

/* Remembers a deleted monitor, so that its rows are collected. False if memory is exhausted. */
bool api_gc_add_tombstone(struct api_monitors *monitors, int64_t monitor);

/* Remembers a row of deleted monitors; the context is struct api_monitors, whose out_of_memory it may set. */
void api_gc_read_deleted(void *context, const struct api_datum *values);

/* Deletes monitors of this name, or of the group if it is NULL, that were left out because they could not be read;
 * adds their number to *n, and deletes their rows later. The monitors in the registry must be deleted before. */
bool api_gc_delete_left_out(struct api_monitors *monitors, const char *group, const char *name,
                            size_t *n);
