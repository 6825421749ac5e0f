/* Windows are found and added to, written, scored, closed and deleted. */
#pragma once

#include "api/monitors/model/moments.h"
#include "api/monitors/rows/touch.h"

/* Adds what was counted to the window that a time belongs to; *dirty becomes that window. */
bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor,
                 const struct api_tally *tally, int64_t time, struct api_dirty_window **dirty);

/* Write the counts that jobs have added to a monitor, or to all that were touched, and close windows that are due; then the row. */
bool api_flush_monitor(struct api_monitors *monitors, struct api_monitor *monitor);
bool api_flush(struct api_monitors *monitors);

/* Marks all open windows of a monitor, or only the ones that are due, so that they close. */
bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone);

/* Deletes a window, and judges those after it again, by what is left: the ones whose pool or reference had it, and states
 * as far as they change; of 10,000 windows after it at most, or those of a million counts. Events of the past stay. Fails with
 * window_not_found. */
bool api_erase_window(struct api_monitors *monitors, struct api_monitor *monitor, int64_t window,
                      struct api_problem *problem);

/* Deletes the windows, of all revisions, open ones too, that start in [period[0], period[1]), and judges again as
 * api_erase_window does. Adds the number of those that are deleted to *n, of those that are judged to *judged. */
bool api_erase_windows(struct api_monitors *monitors, struct api_monitor *monitor,
                       const int64_t period[2], size_t *n, size_t *judged);
