/* Work of the store's thread between requests. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Closes windows that are due, deletes rows that are past retention or of deleted monitors, and finds out whether the
 * store can be written. */
bool api_maintain(struct api_monitors *monitors);

/* True if there is something to do now. Finds when the next window is due. */
bool api_maintenance_is_due(struct api_monitors *monitors);
