/* api_window: a window of a monitor, as a row of the store. */
#ifndef KLDIV_API_MONITORS_STATE_WINDOW_ROWS_H
#define KLDIV_API_MONITORS_STATE_WINDOW_ROWS_H

#include "api/monitors/model/settings.h"
#include "api/monitors/model/top.h"
#include "api/monitors/model/verdict.h"
#include "api/store/store.h"

/* Times are microseconds since 1970. Scores are those of the last scoring, NaN where there was no
 * reference or no scoring. */
struct api_window {
    int64_t id, revision, start, end;
    bool closed, restated;
    double n, kl, kl_reverse, js, psi, p_value, unseen_ratio, missing_ratio;
    enum api_verdict verdict;
    enum api_verdict state; /* of the monitor after the window, once closed */
    int64_t top;            /* see top.h; API_TOP_UNKNOWN where there was no scoring */
    double top_share;
    char *settings;     /* by which it was scored, as JSON; NULL if it was not */
    double *reference;  /* counts that it was compared with, unless the config's; or NULL */
    size_t n_reference; /* places of those */
};

/* Reads a row; false if memory is exhausted. */
bool api_window_read(struct api_window *window, const struct api_datum *values);
void api_window_free(struct api_window *window);

/* Writes the row of a window. */
bool api_window_store(struct api_store *store, int64_t monitor, const struct api_window *window);

/* api_window_list: rows that a statement gives. `failed` if memory was exhausted. */
struct api_window_list {
    struct api_window *windows;
    size_t n, capacity;
    bool failed;
};
bool api_window_list_run(struct api_window_list *list, struct api_store *store,
                         enum api_statement statement, const struct api_datum *parameters);
void api_window_list_free(struct api_window_list *list);

/* Adds the counts that a statement gives as rows of bin and count. */
bool api_counts_run(double *counts, size_t places, struct api_store *store,
                    enum api_statement statement, const struct api_datum *parameters);

#endif
