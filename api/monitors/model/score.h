/* api_view: a window's counts with all that its result is made of; its scores. */
#ifndef KLDIV_API_MONITORS_MODEL_SCORE_H
#define KLDIV_API_MONITORS_MODEL_SCORE_H

#include "api/monitors/model/config.h"
#include "api/monitors/model/window.h"
#include "lib/drift.h"

/* Many requests may share a view, which none of them changes. */
struct api_view {
    atomic_uint references;
    struct api_config *config;    /* of the window's revision */
    struct api_settings settings; /* by which the window is scored */
    struct api_window window;     /* id 0 if nothing is stored */
    enum api_verdict state;       /* of the monitor */
    double *counts;               /* one for each place, whose sum is window.n */
    double *reference;            /* counts, or exact probabilities; NULL if there is none */
    bool exact;
};

/* Makes a view with one reference, with counts of 0 and without a reference; holds the config. NULL
 * if memory is exhausted. */
struct api_view *api_view_new(struct api_config *config);

/* Makes a view of an open window with copies of its counts and its reference; NULL likewise. */
struct api_view *api_view_copy(const struct api_view *view);

/* Sets the reference to the config's own. False if memory is exhausted. */
bool api_view_refer(struct api_view *view);
void api_view_release(struct api_view *view); /* NULL is fine */

/* api_scores: scores of a view; if !known there is no reference, and scores are NaN. */
struct api_scores {
    bool known, infinite;
    struct kl_drift drift;
    double missing_ratio;
    enum api_verdict verdict;
    int64_t top; /* see top.h */
    double top_share;
};

/* Scores a view. `of_bins` has room for its places, or is NULL. */
void api_view_score(const struct api_view *view, struct api_scores *scores,
                    struct kl_drift_bin *of_bins);

/* Appends the members of the result, `"window":...,...`, with its bins or without. */
void api_view_write(const struct api_view *view, bool with_bins, struct api_buffer *out);

#endif
