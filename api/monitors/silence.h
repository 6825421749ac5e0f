/* Changes that no window brings: a monitor becomes stale, or is heard again; and the end of a mute tells how it is. */
#pragma once

#include "api/monitors/rows/transaction.h"

/* Stores the events, and the changes for receivers, of some hundred monitors at a time; ends mutes that last until a monitor is
 * ok. Monitors that were stale when their last observation came, as history that is loaded, or that have been stale for a
 * day, have neither event nor change. */
bool api_silence_watch(struct api_monitors *monitors);

/* Stores that a group, or one of its monitors unless `name` is NULL, gets a mute, if receivers know that it drifts or is
 * silent: of a group the worst monitor stands for all. Who was told already by whom and why it is muted is not told again. */
bool api_silence_tell_mute(struct api_monitors *monitors, const char *group, const char *name,
                           const struct api_mute *mute);

/* True if there may be anything to store. */
bool api_silence_is_due(const struct api_monitors *monitors, int64_t now);
