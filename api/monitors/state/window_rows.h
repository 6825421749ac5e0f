/* Windows as rows of the store. */
#pragma once

#include "api/monitors/model/window.h"
#include "api/store/store.h"

/* Reads a row; false if memory is exhausted. */
bool api_window_read(struct api_window *window, const struct api_datum *values);

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
bool api_counts_run(double *counts, size_t n_bins, struct api_store *store,
                    enum api_statement statement, const struct api_datum *parameters);
