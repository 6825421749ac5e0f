/* States of monitors, from the verdicts of their windows in order. */
#pragma once

#include "api/monitors/model/pool.h"

/* State after a window, from the state before it and the verdicts of up to `n` windows in order, this
 * one last, none of them insufficient. The first window makes the state ok, or worse at once if
 * fire_after is 1; it rises to what each of the last fire_after windows reached, and falls to what
 * none of the last clear_after exceeded. */
enum api_verdict api_state_after(enum api_verdict before, const enum api_verdict *verdicts,
                                 size_t n, size_t fire_after, size_t clear_after);

/* api_levels: the last levels of windows, in order. */
struct api_levels {
    size_t max, n;
    enum api_verdict of[1000];
};

/* api_state_history: the last windows of a monitor, and the state after them: the higher one of two, by the counts of bins and by the numbers of
 * rows. */
struct api_state_history {
    size_t fire_after, clear_after; /* clear_after of rows, and of counts without pools */
    bool has_pools;                 /* the state by counts falls by them alone */
    bool has_alarm;                 /* by the rows of a window that was learned */
    enum api_verdict state, by_counts;
    struct api_levels verdicts, rows;
};

/* Begins without a window, as a new monitor does. */
void api_state_begin(struct api_state_history *history,
                     const struct api_monitor_settings *settings);

/* Learns the next window, without a change of the state: its level by counts; that by rows. */
void api_state_learn(struct api_state_history *history, const struct api_scores *scores);
void api_state_learn_rows(struct api_state_history *history, const struct api_volume *volume);

/* Sets the state after the last window. If there were alarms by rows among the last ones, the state by counts is the highest level that
 * these windows had by counts. */
void api_state_set(struct api_state_history *history, enum api_verdict state);

/* Adds the next window, by which the state rises, and without pools falls. */
void api_state_advance(struct api_state_history *history, const struct api_scores *scores);

/* Adds the newest window, and has the state fall by pools, too; tells of its turns. */
void api_state_follow(struct api_state_history *history, const struct api_evidence *evidence,
                      const struct api_scores *scores, struct api_turns *turns);

/* How a monitor is: a verdict; or API_STALE, without observations. */
enum { API_STALE = API_VERDICTS, API_STATES };
const char *api_state_name(int state);

/* api_event: a change of a monitor's state, which a window brought; or the begin or the end of a silence. */
struct api_event {
    int64_t at; /* end of the window; of a silence, when the server noticed it */
    int from, to;
    double kl;      /* of the window; NaN without one */
    int64_t window; /* its id, or 0 */
    int64_t began; /* when the drift began, of a change from ok or less to more; else API_NO_TIME */
};

/* Appends its members, `"at":...,...`. */
void api_event_write(const struct api_event *event, struct api_buffer *out);
