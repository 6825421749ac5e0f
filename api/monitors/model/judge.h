/* Judges one sum of windows: api_judge says which level it reaches.
 *
 * G of cells that hold less than about 5 is not chi-squared (Cochran, "Some methods for strengthening the common chi-squared
 * tests", 1954), so that cells of labels whose smaller expected count is less are joined with `other`. What is lost by
 * that, a text that was never seen and is frequent now, is looked at by itself: the heaviest of those that have no bin. */
#pragma once

#include "api/monitors/model/settings.h"
#include "api/monitors/model/unseen.h"
#include "api/monitors/model/window.h"

struct api_pool;

/* api_evidence: a window that is judged: its counts, what it is compared with, and the windows before. */
struct api_evidence {
    const struct api_monitor_settings *settings;
    const struct api_bins *bins;
    struct api_position at;
    const double *counts, *reference; /* the latter may be NULL */
    bool exact;                       /* the reference holds probabilities */
    const struct api_unseen_counts *unseen;
    double unseen_share;         /* see api_weights_unseen_share */
    const struct api_pool *pool; /* windows before, or NULL */
    struct api_turns turns;
};

/* api_unseen_sum: texts without a bin of several windows together, by their hashes. */
enum { API_UNSEEN_SLOTS = 2048 };
struct api_unseen_sum {
    size_t n;
    double total, most; /* counts of all, and of the heaviest */
    struct api_unseen_count slots[API_UNSEEN_SLOTS];
};

/* api_sum: counts of windows together, and what they are compared with. `unseen` is of labels alone. */
struct api_sum {
    size_t windows, n_bins;
    double counts[API_MAX_BINS + KL_OUTER_BINS], reference[API_MAX_BINS + KL_OUTER_BINS];
    struct api_unseen_sum unseen;
};

double api_sum_n(const struct api_sum *sum);

/* Adds the texts of a window to a sum, which began empty. */
void api_unseen_sum_add(struct api_unseen_sum *sum, const struct api_unseen_counts *unseen);

/* Judges a sum. `known` are the scores of its bins as they are, or NULL. *pooled becomes what the level is of;
 * insufficient if the sum holds less than min_observations. */
enum api_verdict api_judge(const struct api_evidence *evidence, const struct api_sum *sum,
                           const struct kl_drift *known, struct api_pooled *pooled);

/* Divergence of a sum that is to be expected without any drift, after joining. */
double api_judge_noise_floor(const struct api_evidence *evidence, const struct api_sum *sum);

/* Scores a sum after joining. */
void api_judge_score(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct kl_drift *drift);

/* Minimal n for a verdict: 50 of labels, and of numbers at least 5 for each bin, if the settings leave it open. */
double api_min_observations(const struct api_monitor_settings *settings,
                            const struct api_bins *bins);
