/* api_replay: the alarms that a monitor's closed windows would have raised by other settings. */
#pragma once

#include "api/monitors/model/state.h"
#include "api/monitors/state/transaction.h"

/* Zeroed before its first use. */
struct api_replay {
    int64_t from, to; /* start of the first window, end of the last; API_NO_TIME if there is none */
    size_t windows;
    size_t alarms;            /* changes to warning or worse, from something lower */
    struct api_event *events; /* all changes, in order */
    size_t n_events;
};

/* Judges the last closed windows of a monitor's revision, in order and from insufficient_data on, as they would have
 * been judged by the settings of a config: those that start at most 60 days before the newest one, at most 2,000, and
 * as many as have 100,000 counts. A window is compared with what it was compared with; or if that changes, with
 * windows among these. Reads the store, in its thread. False with a problem, or if the store or memory fails. */
bool api_replay_windows(struct api_monitors *monitors, const struct api_monitor *monitor,
                        struct api_config *config, struct api_replay *replay,
                        struct api_problem *problem);
void api_replay_free(struct api_replay *replay);

/* Appends it as an object, its changes newest first. */
void api_replay_write(const struct api_replay *replay, struct api_buffer *out);
