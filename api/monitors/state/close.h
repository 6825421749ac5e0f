/* Windows are written, scored and closed. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Writes what jobs have added, and closes what is due. */
bool api_flush(struct api_monitors *monitors);

/* Marks all open windows of a monitor so that they close, or those that are due. */
bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone);
