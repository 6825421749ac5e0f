/* api_observations: the values of a request, on its way from the body into the store. */
#pragma once

#include "api/monitors/http/request.h"
#include "api/monitors/http/timeline.h"
#include "api/monitors/model/unseen.h"
#include "api/text/hash.h"

/* api_observed: one column, and the window that it went to. */
struct api_observed {
    const struct api_known *known; /* of x->known */
    struct api_monitor
        *monitor;  /* while the store's thread runs; NULL if it is not the same any more */
    size_t column; /* of the table */
    struct api_counting counting;
    struct api_dirty_window *dirty; /* while the store's thread runs */
    int64_t window;                 /* number of that window */
    struct api_snapshot *snapshot;
    struct api_unseen unseen;      /* of the window */
    bool is_window_ahead;          /* the monitor's newest window lies ahead of the clock */
    struct api_timeline *timeline; /* windows of its rows; NULL: all are of one request's time */
};

/* api_observations: a request's, for the columns of a table or for one monitor. */
struct api_observations {
    struct api_exchange *x;
    struct api_buffer warnings;
    struct api_observed *observed;
    size_t n;
    size_t reserved; /* bytes of the budget for counts and windows of the columns */
    int64_t time;
    bool is_timed;               /* each row has a time of its own */
    const char *time_name;       /* the column that has it; while the body is parsed */
    size_t time_column;          /* its index */
    const struct api_zone *zone; /* of such times; NULL: each monitor's */
    struct api_timeline *timelines;
    size_t n_timelines;
    size_t verdicts[API_VERDICTS]; /* windows of the timelines by their verdicts */
    bool replayed;                 /* the key was used for the same before: nothing is counted */
    bool is_stored;                /* not an evaluation */
    size_t unknown;                /* columns without a monitor */
    double reads, reads_before;    /* former windows that are read: in all; of segments before */
    struct api_buffer touches;     /* const struct api_known *: of x->job */
    struct api_buffer columns;     /* names of those that might have one: see api_columns_note */
    unsigned char key[API_HASH], body[API_HASH]; /* hashes, if there is a key: x->job.key */
    struct api_buffer pairs; /* int64_t: the monitor and the window of each response to the key */
};

/* Undoes the coding of the body, reads it, and counts its values by the bins of their monitors. With `is_stored` the
 * request may have an Idempotency-Key. */
bool api_parse(struct api_observations *o, bool is_stored);

/* The steps of that: room for the columns of a table; one of them, to be counted by a config; their counts, once all are
 * chosen; and, of counts that are not stored, the snapshots, which are compared with the configs' references. */
bool api_observe_begin(struct api_observations *o, size_t n_columns);
bool api_observe_column(struct api_observations *o, const struct api_known *known, size_t column);
bool api_count_values(struct api_observations *o, struct api_table *table);
bool api_snapshot_columns(struct api_observations *o);

/* Estimate of the time to write their results, in ns. */
double api_results_ns(const struct api_observations *o);

/* Values that a column has, missing ones too; the time of the first of its windows, and how many it has. */
size_t api_observed_count(const struct api_observed *observed);
int64_t api_observed_first(const struct api_observations *o, const struct api_observed *observed);
size_t api_observed_windows(const struct api_observed *observed);

/* Rows with times of their own, see timed.c. Reads the parameters `time` and `timezone`; has the columns be counted by
 * windows, when their monitors are known; adds the counts to the windows, in their order, and writes each time's before the
 * next, as requests of their own would; writes how many windows have which verdict, as a member. */
bool api_timed_begin(struct api_observations *o, const json_t *parameters,
                     const struct api_table *table);
bool api_timed_read(struct api_observations *o, struct api_table *table);
bool api_timed_check(size_t windows, size_t monitors, struct api_problem *problem);
bool api_timed_store(struct api_observations *o, struct api_monitors *monitors);
void api_timed_write(const struct api_observations *o, struct api_buffer *out);
void api_timed_free(struct api_observations *o);

/* Warns of the columns that are so: names the first, and says how many. */
void api_warn_of_some(struct api_observations *o,
                      bool (*is_so)(const struct api_observed *observed), const char *code,
                      const char *message);

/* Sets `reads`; fails if it is too much. Called in the store's thread, once `monitor` of what is observed
 * is set. */
bool api_check_reads(struct api_observations *o);

/* Finds the monitors of what is observed, in the store's thread; *are_same is false if one is not the same any more. False if the
 * store or memory fails. */
bool api_observations_touch(struct api_observations *o, struct api_monitors *monitors,
                            bool *are_same);

/* Forgets the columns and their warnings. */
void api_observations_drop(struct api_observations *o);

/* Lists the monitors that a request changes: those that it observes, and those whose columns it lacks. */
bool api_list_touches(struct api_observations *o);

/* Counts a request that lacks columns for their monitors, if these are stale by requests. */
bool api_count_missed(const struct api_observations *o, struct api_monitors *monitors);

/* Steps in the store's thread: counts are added to windows, or the windows of an earlier request with the
 * same key are read. */
enum api_outcome api_apply_run(struct api_exchange *x, struct api_monitors *monitors);
bool api_apply_read_back(struct api_exchange *x, struct api_monitors *monitors);
