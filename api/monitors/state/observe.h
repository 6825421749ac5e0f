/* Observations find the window that they belong to. */
#pragma once

#include "api/monitors/state/transaction.h"

/* End of the window that an observation of that time belongs to, or would begin. */
int64_t api_window_end(const struct api_monitor_settings *settings, int64_t time);

/* Adds counts to the window that a time belongs to; *dirty becomes that window. */
bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor, const uint64_t *counts,
                 int64_t time, struct api_dirty_window **dirty);
