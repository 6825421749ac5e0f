/* Snapshots of windows that the store holds, made in the store's thread. */
#pragma once

#include "api/monitors/rows/touch.h"
#include "api/monitors/rows/window_rows.h"

/* Makes the snapshot of a window of a monitor, by the config of the window's revision; takes the window.
 * NULL if the store or memory fails. */
struct api_snapshot *api_snapshot_of(struct api_monitors *monitors, struct api_monitor *monitor,
                                     struct api_window *window);

/* Makes the snapshot of the first window that a statement gives; *snapshot becomes NULL if there is none. False if the store
 * or memory fails. */
bool api_snapshot_read(struct api_monitors *monitors, struct api_monitor *monitor,
                       enum api_statement statement, const struct api_datum *of,
                       struct api_snapshot **snapshot);

/* Sets the reference of a snapshot: that of the config; counts of the windows before a position; or those that a closed
 * window was compared with. */
bool api_snapshot_compare(struct api_monitors *monitors, int64_t monitor, struct api_position at,
                          struct api_snapshot *snapshot);

/* Sets what is known of the values of a reference of counts. */
void api_snapshot_set_spread(struct api_snapshot *snapshot, const struct api_moments *moments);

/* Reads the texts of a window that are no labels, by which it is judged. */
bool api_snapshot_unseen(struct api_monitors *monitors, int64_t monitor,
                         struct api_snapshot *snapshot);

/* Sets what a snapshot is judged by beside its counts: its texts that are no labels, as the store has them; and the
 * windows before, of which pools are made: those in memory, if it is after them, or else as the store has them. */
bool api_snapshot_pool(struct api_monitors *monitors, struct api_monitor *monitor,
                       struct api_snapshot *snapshot);

/* Judges the number of rows of a snapshot's window, if its settings ask for it, by those of closed windows before. */
bool api_snapshot_volume(struct api_monitors *monitors, int64_t monitor,
                         struct api_snapshot *snapshot);

/* Reads the last closed windows of a monitor, of which pools are made, unless they are in memory. */
bool api_touch_pool(struct api_monitors *monitors, struct api_monitor *monitor);

/* Finds when the drift began that has raised the state at a closed window, which is written: see api_pool_began; of one that is
 * compared with the windows before it, its start. */
bool api_window_began(struct api_monitors *monitors, struct api_monitor *monitor,
                      const struct api_window *window, int64_t *began);

/* Adds a window that has closed to those in memory, if it is after them; else they are read again later. */
bool api_touch_add_to_pool(struct api_monitors *monitors, struct api_monitor *monitor,
                           const struct api_snapshot *snapshot);

/* api_period: closed windows of a monitor's revision that start in [from, to), and what they add up to. */
struct api_period {
    int64_t from, to;
    int64_t windows;            /* how many there are */
    int64_t first, newest, end; /* starts of the first and the last of them; the latest end */
};

/* Finds the windows, and adds their counts to `counts`, their moments to `moments`. Fails with windows_missing if there are none, and if they
 * have more than `max` counts. `names` are the parameters or members that give the period, for the problem. Called in
 * the store's thread. */
bool api_period_add_up(struct api_monitors *monitors, struct api_monitor *monitor,
                       const char *const names[2], int64_t max, struct api_period *period,
                       double *counts, struct api_moments *moments, struct api_problem *problem);
