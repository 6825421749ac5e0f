/* The numbers that a monitor's row has of its last closed window, and of those before; states, from the verdicts of windows in
 * order of their starts. */
#pragma once

#include "api/monitors/model/state.h"
#include "api/monitors/rows/touch.h"
#include "api/monitors/rows/window_rows.h"
#include "api/monitors/state/outbox.h"

/* Read from the store: what windows make; the recent ones; when the next one is due. */
bool api_status_read(struct api_monitors *monitors, struct api_monitor *monitor);
bool api_status_read_recent(struct api_monitors *monitors, struct api_monitor *monitor);
bool api_status_read_next_close(struct api_monitors *monitors, struct api_monitor *monitor);

/* True if a window with that end, or start, lies so far ahead of the clock that the clock was wrong when its
 * observations came: they may come a day early. */
bool api_end_is_ahead(const struct api_monitors *monitors, const struct api_monitor *monitor,
                      int64_t end);
bool api_start_is_ahead(const struct api_monitors *monitors, int64_t start);

/* Gives the end of the newest window but for those that lie ahead; API_NO_TIME if there is none. */
bool api_status_newest_end(struct api_monitors *monitors, const struct api_monitor *monitor,
                           int64_t *end);

/* Makes the sentence of a snapshot that is scored. */
bool api_status_explain(struct api_monitors *monitors, int64_t monitor,
                        const struct api_snapshot *snapshot, const struct api_scores *scores,
                        const struct kl_drift_bin *of_bins, char sentence[API_SENTENCE]);

/* Reads the verdicts before a position, of windows of this revision, and the state after them. */
bool api_status_read_history(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_position at, struct api_state_history *history);

/* True if a window is the newest closed window, or would be once closed. */
bool api_status_is_last(const struct api_monitor_status *status, const struct api_window *window);

/* Writes a change as an event of a time, brought by a window or by none, which is 0; and for receivers. */
bool api_event_store(struct api_monitors *monitors, struct api_monitor *monitor, int64_t at,
                     int64_t window, const struct api_change *change);

/* Sets the state, and writes the event of a change, which a window brought that is written. */
bool api_change_state(struct api_monitors *monitors, struct api_monitor *monitor,
                      enum api_verdict state, const struct api_window *window);

/* Updates the state after a window that is scored, writes the window, and the event of a change. Of windows
 * that are judged alone, one that is not the newest has the ones after it judged again; of others it must be
 * the newest. */
bool api_update_state(struct api_monitors *monitors, struct api_monitor *monitor,
                      struct api_snapshot *snapshot);
