/* api_snapshot: a window's counts with all that its result is made of; its scores. */
#pragma once

#include "api/monitors/model/config.h"
#include "api/monitors/model/pool.h"
#include "api/monitors/model/sentence.h"

/* Many requests may share a snapshot, which none of them changes. */
struct api_snapshot {
    atomic_uint refcount;
    struct api_config *config;            /* of the window's revision */
    struct api_monitor_settings settings; /* by which the window is scored */
    struct api_window window;             /* id 0 if nothing is stored */
    enum api_verdict state;               /* of the monitor */
    double *counts;                       /* one for each bin, whose sum is window.n */
    double *reference; /* counts, or exact probabilities; NULL if there is none */
    bool exact;
    double unseen_share;             /* see api_weights_unseen_share; 1 if it is not the config's */
    struct api_unseen_counts unseen; /* of an open window, or one that is judged again */
    struct api_pool *pool;           /* windows before, or NULL; a closed window has its verdict */
    struct api_volume volume;        /* of a window that closes, or is judged again */
    struct api_spread reference_spread; /* of the values of the reference */
    struct api_turns turns;             /* of the monitor's state */
    char sentence[API_SENTENCE];        /* of a window that closes, or is restated */
};

/* Makes a snapshot with one reference, with counts of 0 and without a reference; holds the config. NULL
 * if memory is exhausted. */
struct api_snapshot *api_snapshot_new(struct api_config *config);

/* Makes a snapshot of an open window with copies of its counts and its reference; NULL likewise. */
struct api_snapshot *api_snapshot_copy(const struct api_snapshot *snapshot);

/* Sets the reference to the config's own. False if memory is exhausted. */
bool api_snapshot_refer(struct api_snapshot *snapshot);
void api_snapshot_release(struct api_snapshot *snapshot); /* NULL is fine */

/* Scores a snapshot. `of_bins` has room for its bins. */
void api_snapshot_score(const struct api_snapshot *snapshot, struct api_scores *scores,
                        struct kl_drift_bin *of_bins);

/* Writes because of what the window drifts; of one that drifts by a sum with those before it, because of what the sum
 * does: "with the 3 before: ...". `scores` and `of_bins` are of the snapshot. */
void api_snapshot_explain(const struct api_snapshot *snapshot, const struct api_scores *scores,
                          const struct kl_drift_bin *of_bins, const struct api_unseen *unseen,
                          char to[API_SENTENCE]);

/* The window with those before it, for its verdict. */
struct api_evidence api_snapshot_evidence(const struct api_snapshot *snapshot);

/* Appends the members of the result, `"window":...,...`, with its bins and their sentence or without. `unseen` has the
 * texts that are no labels. */
void api_snapshot_write(const struct api_snapshot *snapshot, bool with_bins,
                        const struct api_unseen *unseen, struct api_buffer *out);
