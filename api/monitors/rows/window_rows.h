/* Windows as rows of the store. */
#pragma once

#include "api/monitors/model/score.h"
#include "api/monitors/model/unseen.h"
#include "api/store/store.h"

/* Adds the moments of a row to others, if it has some; the column of moments, NULL if they tell of no value. */
void api_moments_read(const struct api_datum *datum, struct api_moments *moments);
struct api_datum api_moments_datum(const struct api_moments *moments);

/* Reads the column of a volume; of no window if there is none. */
void api_volume_read(const struct api_datum *datum, struct api_volume *volume);

/* A time as a value, and back: NULL for API_NO_TIME. */
struct api_datum api_time_datum(int64_t time);
int64_t api_time_of(const struct api_datum *datum);

/* Write the row of the window of a snapshot; what observations change of it. */
bool api_window_store(struct api_store *store, int64_t monitor,
                      const struct api_snapshot *snapshot);
bool api_window_store_n(struct api_store *store, int64_t monitor,
                        const struct api_snapshot *snapshot);

/* Adds the most frequent texts of a request that are no labels to those of its window. */
bool api_unseen_store(struct api_store *store, int64_t monitor, int64_t window,
                      struct api_label_table *unseen);

/* Append them as objects: those that a statement gives, and those of a window. */
bool api_unseen_run(struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters, struct api_unseen *unseen);
bool api_unseen_read(struct api_store *store, int64_t monitor, const struct api_snapshot *snapshot,
                     struct api_unseen *unseen);

/* api_window_list: rows that a statement gives. */
struct api_window_list {
    struct api_window *windows;
    size_t n;
    struct api_buffer rows; /* the memory of `windows` */
};
bool api_window_list_run(struct api_window_list *list, struct api_store *store,
                         enum api_statement statement, const struct api_datum *parameters);

/* Adds a row of a statement to a list; ends one that rows were added to. */
void api_window_list_add(void *context, const struct api_datum *values);
bool api_window_list_end(struct api_window_list *list, struct api_store *store);
void api_window_list_free(struct api_window_list *list);

/* api_counts_sum: what counts and moments of rows are added to. Its reader takes it as the context. */
struct api_counts_sum {
    double *counts;
    size_t n_bins;
    struct api_moments *moments;
};
void api_counts_add_row(void *context, const struct api_datum *values);

/* Adds the counts and the moments of the windows that a statement gives. */
bool api_counts_run(double *counts, size_t n_bins, struct api_moments *moments,
                    struct api_store *store, enum api_statement statement,
                    const struct api_datum *parameters);
