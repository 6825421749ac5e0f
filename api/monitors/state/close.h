/* Windows are written, scored and closed. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Writes the counts that jobs have added, and closes windows that are due. */
bool api_flush(struct api_monitors *monitors);

/* Marks all open windows of a monitor, or only the ones that are due, so that they close. */
bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone);
