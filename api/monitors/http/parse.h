/* api_observations: the values of a request, on its way from the body into the store. */
#pragma once

#include "api/monitors/http/request.h"
#include "api/monitors/model/unseen.h"
#include "api/text/hash.h"

/* api_observed: one column, and the window that it went to. */
struct api_observed {
    char *name;
    struct api_held held;
    struct api_monitor
        *monitor;  /* while the store's thread runs; NULL if it is not the same any more */
    size_t column; /* of the table */
    struct api_counting counting;
    struct api_dirty_window *dirty; /* while the store's thread runs */
    int64_t window;                 /* number of that window */
    struct api_snapshot *snapshot;
    struct api_unseen unseen; /* of the window */
    bool is_window_ahead;     /* the monitor's newest window lies ahead of the clock */
};

/* api_observations: a request's, for the columns of a table or for one monitor. */
struct api_observations {
    struct api_exchange *x;
    struct api_buffer warnings;
    struct api_observed *observed;
    size_t n;
    size_t reserved; /* bytes of the budget for counts and windows of the columns */
    int64_t time;
    bool replayed;              /* the key was used for the same before: nothing is counted */
    bool is_stored;             /* not an evaluation */
    size_t unknown;             /* columns without a monitor */
    struct api_buffer columns;  /* what is to be known of those: see api_columns_renew */
    struct api_columns renewed; /* after it, until they are published */
    unsigned char key[API_HASH], body[API_HASH]; /* hashes, if there is a key: x->job.key */
    struct api_buffer pairs; /* int64_t: the monitor and the window of each response to the key */
};

/* Undoes the coding of the body, reads it, and counts its values by the bins of their monitors. With `is_stored` the
 * request may have an Idempotency-Key. */
bool api_parse(struct api_observations *o, bool is_stored);

/* Forgets the columns and their warnings. */
void api_observations_drop(struct api_observations *o);

/* Counts a request that lacks columns for their monitors, if these are stale by requests; *misses becomes true if there is
 * one. With `looks` nothing is counted. */
bool api_count_missed(const struct api_observations *o, struct api_monitors *monitors, bool looks,
                      bool *misses);

/* Steps in the store's thread: counts are added to windows, or the windows of an earlier request with the
 * same key are read. */
enum api_outcome api_apply_run(struct api_exchange *x, struct api_monitors *monitors);
bool api_apply_read_back(struct api_exchange *x, struct api_monitors *monitors);
void api_apply_publish(struct api_exchange *x, struct api_monitors *monitors);
