/* States of monitors, from the verdicts of their windows in order of their starts. */
#pragma once

#include "api/monitors/state/transaction.h"

/* Updates the state after a window that is scored, writes the window, and the event of a change. A
 * window that is not the newest has the ones after it judged again. */
bool api_update_state(struct api_monitors *monitors, struct api_pending_monitor *pending,
                      struct api_snapshot *snapshot);
