/* Changes that no window brings: a monitor becomes stale, or is heard again; and the end of a mute tells how it is. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Stores the events, and the changes for receivers, of some hundred monitors at a time. Monitors that were stale when their
 * last observation came, as history that is loaded, or that have been stale for a day, have neither event nor change. */
bool api_silence_watch(struct api_monitors *monitors);

/* True if there may be anything to store. */
bool api_silence_is_due(const struct api_monitors *monitors, int64_t now);
