/* api_previous: the sum of the counts of a monitor's last closed windows, which `compare` previous compares
 * with. It is a row of the store, changed in the transactions that change the windows, so that a window
 * costs its own counts and not those of all that it is compared with. Counts are whole numbers of at
 * most 2^53 in all: sums are exact, in any order. */
#pragma once

#include "api/monitors/model/window.h"
#include "api/store/store.h"

/* api_previous_of: which windows are added up: the last k closed ones of a revision. */
struct api_previous_of {
    int64_t monitor, revision, k;
    size_t n_bins;
};

/* Zeroed before its first use. */
struct api_previous {
    bool is_read, holds; /* holds: the store has a sum of `of`: what follows */
    bool has_changed;
    struct api_previous_of of;
    int64_t n; /* windows in the sum; less than k only if there are no more */
    struct api_position oldest, newest;
    double *counts;
    struct api_moments moments;
};

void api_previous_free(struct api_previous *previous);

/* Reads the sum. If the store has none, adds it up if `may_build`. False if the store or memory fails. */
bool api_previous_read(struct api_previous *previous, struct api_store *store,
                       const struct api_previous_of *of, bool may_build);

/* Adds to `to` and `moments` those of up to k closed windows before a position, from a sum that was read. If more than half of
 * k windows lie between the position and the end of the sum, the windows are added up anew. */
bool api_previous_add_up(const struct api_previous *previous, struct api_store *store,
                         struct api_position before, double *to, struct api_moments *moments);

/* Takes part in a change of windows: one was closed, and is stored; counts were added to one that was
 * closed before; one is about to be deleted, after the last of which comes api_previous_refill. Nothing
 * happens to a sum that does not hold. */
bool api_previous_close(struct api_previous *previous, struct api_store *store,
                        struct api_position window, const double *counts,
                        const struct api_moments *moments);
void api_previous_restate(struct api_previous *previous, struct api_position window,
                          const double *added, const struct api_moments *moments);
bool api_previous_delete(struct api_previous *previous, struct api_store *store,
                         struct api_position window);
bool api_previous_refill(struct api_previous *previous, struct api_store *store);

/* Writes a sum that has changed. */
bool api_previous_store(struct api_previous *previous, struct api_store *store);
