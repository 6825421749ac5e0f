/* Views of windows that the store holds, made in the store's thread. */
#ifndef KLDIV_API_MONITORS_STORED_H
#define KLDIV_API_MONITORS_STORED_H

#include "api/monitors/work.h"

/* Makes the view of a window of a monitor, by the config of the window's revision; takes the window.
 * NULL if the store or memory fails. */
struct api_view *api_view_of(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_window *window);

/* Sets the reference of a view: that of the config, or counts of the windows before; or those that a
 * closed window was compared with. */
bool api_view_compare(struct api_monitors *monitors, int64_t monitor, struct api_view *view);

#endif
