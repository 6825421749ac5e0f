/* The one program that goes through windows in order: after a window has changed, came late or is gone; or as other settings would
 * have it. */
#pragma once

#include "api/monitors/model/state.h"
#include "api/monitors/state/transaction.h"

/* Scores a closed window of which settings, reference, texts that are no labels, and windows before are set; keeps in it
 * what the store has of these. */
bool api_score_closed(struct api_monitors *monitors, struct api_pending_monitor *pending,
                      struct api_snapshot *snapshot);

/* api_replay: what windows would have raised. Zeroed before its first use. */
struct api_replay {
    int64_t from, to; /* start of the first window, end of the last; API_NO_TIME if there is none */
    size_t windows;
    size_t alarms;            /* changes to warning or worse, from something lower */
    struct api_event *events; /* all changes, in order */
    size_t n_events;
};

/* Judges the closed windows of a pending monitor's revision that are at a position or after it, by its settings, and writes those
 * that change: windows that this transaction has changed, later ones whose pools had them, and states as far as they change. The
 * event of a change names the window that brought it. `gone`: a window that was there and is deleted, of which later windows are
 * compared with others, too; or NULL. At most 10,000 windows are judged, or those of a million counts. */
bool api_rejudge(struct api_monitors *monitors, struct api_pending_monitor *pending,
                 struct api_position from, const struct api_window *gone);

/* Judges the last closed windows of a monitor's revision, in order and from insufficient_data on, as they would have
 * been judged by the settings of a config: those that start at most 60 days before the newest one, at most 2,000, and
 * as many as have 100,000 counts. A window is compared with what it was compared with; or if that changes, with
 * windows among these. Nothing is written. */
bool api_replay_windows(struct api_monitors *monitors, const struct api_monitor *monitor,
                        struct api_config *config, struct api_replay *replay);
void api_replay_free(struct api_replay *replay);

/* Appends it as an object, its changes newest first. */
void api_replay_write(const struct api_replay *replay, struct api_buffer *out);
