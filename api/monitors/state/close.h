/* Windows are written, scored and closed. */
#ifndef KLDIV_API_MONITORS_STATE_CLOSE_H
#define KLDIV_API_MONITORS_STATE_CLOSE_H

#include "api/monitors/state/transaction.h"

/* Writes what jobs have added, and closes what is due. */
bool api_flush(struct api_monitors *monitors);

/* Marks all open windows of a monitor so that they close, or those that are due. */
bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone);

#endif
