/* Finds the window of observations, and adds their counts to it. */
#pragma once

#include "api/monitors/state/transaction.h"

/* *window becomes the number of the window that a time belongs to, if it is open and stays so for now: then a
 * concurrent transaction can add to it. Else it becomes 0. False if the store or memory fails. */
bool api_observe_only_adds(struct api_monitors *monitors, struct api_monitor *monitor, int64_t time,
                           int64_t *window);

/* Adds what was counted to the window that a time belongs to; *dirty becomes that window. */
bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor,
                 const struct api_tally *tally, int64_t time, struct api_dirty_window **dirty);
