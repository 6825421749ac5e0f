/* Views of windows that the store holds, made in the store's thread. */
#ifndef KLDIV_API_MONITORS_STATE_WINDOW_LOAD_H
#define KLDIV_API_MONITORS_STATE_WINDOW_LOAD_H

#include "api/monitors/state/transaction.h"
#include "api/monitors/state/window_rows.h"

/* Makes the view of a window of a monitor, by the config of the window's revision; takes the window.
 * NULL if the store or memory fails. */
struct api_view *api_view_of(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_window *window);

/* Sets the reference of a view: that of the config, or counts of the windows before; or those that a
 * closed window was compared with. `draft` is the monitor's, or NULL. */
bool api_view_compare(struct api_monitors *monitors, int64_t monitor, struct api_draft *draft,
                      struct api_view *view);

/* Reads the sum that the windows of a draft are compared with, if they are: see api_previous_read. */
bool api_draft_previous(struct api_monitors *monitors, struct api_draft *draft, bool makes);

/* Adds up the counts of the last k windows that closed before a position, by the draft's sum if it has
 * one of these. */
bool api_previous_counts(struct api_monitors *monitors, const struct api_draft *draft,
                         const struct api_previous_of *of, struct api_position before, double *to);

#endif
