/* The program that goes through windows in order: after one is deleted; or as other settings would have it. */
#pragma once

#include "api/monitors/model/state.h"
#include "api/monitors/rows/touch.h"

/* Scores a closed window of which settings, reference, texts that are no labels, and windows before are set; keeps in it
 * what the store has of these. */
bool api_score_closed(struct api_monitors *monitors, struct api_monitor *monitor,
                      struct api_snapshot *snapshot);

/* api_replay: what windows would have raised. Zeroed before its first use. */
struct api_replay {
    int64_t from, to; /* start of the first window, end of the last; API_NO_TIME if there is none */
    size_t windows;
    size_t alarms;            /* changes to warning or worse, from something lower */
    struct api_event *events; /* all changes, in order */
    size_t n_events;
};

/* api_gone: deleted windows in a row, of those that were closed, and of this revision: where the first was; and the last, NULL if
 * there was none. */
struct api_gone {
    struct api_position first;
    const struct api_window *last;
};

/* Judges the closed windows after deleted ones again, by what is left: the ones whose pool or reference had one of them, and states
 * as far as they change; of 10,000 windows at most, or those of a million counts. Adds their number to *judged. Events of the past
 * stay. */
bool api_rejudge(struct api_monitors *monitors, struct api_monitor *monitor,
                 const struct api_gone *gone, size_t *judged);

/* Judges the last closed windows of a monitor's revision, in order and from insufficient_data on, as they would have
 * been judged by the settings of a config: those that start at most 60 days before the newest one, at most 2,000, and
 * as many as have 100,000 counts, or are compared with 100,000 others of a season. A window is compared with what it was compared with; or if that changes, with
 * windows among these. Nothing is written. */
bool api_replay_windows(struct api_monitors *monitors, struct api_monitor *monitor,
                        struct api_config *config, struct api_replay *replay);
void api_replay_free(struct api_replay *replay);

/* Appends it as an object, its changes newest first. */
void api_replay_write(const struct api_replay *replay, struct api_buffer *out);
