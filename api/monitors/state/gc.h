/* Deletes windows that are too old, and the rows of deleted monitors, in small steps between requests. */
#pragma once

#include "api/monitors/rows/touch.h"

/* Takes one round of steps. */
bool api_gc(struct api_monitors *monitors);

/* True if more steps may be left. */
static inline bool api_gc_is_unfinished(const struct api_monitors *monitors)
{
    return monitors->has_orphans || monitors->gc_from < INT64_MAX;
}

/* Has a monitor, and those with higher ids, be looked at: windows, or a revision without windows, may have expired. */
void api_gc_look_again(struct api_monitors *monitors, int64_t monitor);

/* Deletes the rows of a window. */
bool api_gc_delete_window(struct api_monitors *monitors, int64_t monitor, int64_t window);

/* Deletes windows of a monitor that ended too long before its newest, and events of such times, a hundred
 * of each at most. The last event stays. *expired becomes true if there were any. */
bool api_gc_expire(struct api_monitors *monitors, struct api_monitor *monitor, bool *expired);
