/* Judges one sum of windows: api_judge says which level it reaches.
 *
 * G of cells that hold less than about 5 is not chi-squared (Cochran, "Some methods for strengthening the common chi-squared
 * tests", 1954), so that cells of labels whose smaller expected count is less are joined with `other`. What is lost by
 * that is looked at by tests of their own: the heaviest of the joined labels, beside the largest share that it may have
 * in the reference; the joined labels together, beside `other`; and the heaviest text that has no bin. With exact
 * probabilities a label that is impossible is never joined. The highest level of these tests counts.
 *
 * Windows after a drift are judged in sums that hold it. So a test counts as ok if the newest 1, 2, 4 ... windows of the
 * sum, up to half of it, are e^3 times likelier under the reference than under the other windows, in the cells of the
 * test: they have left the drift. By chance a window of the same distribution says so with probability e^-3 at most (Wald,
 * "Sequential tests of statistical hypotheses", 1945). The rule only takes levels away. */
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

/* Scores n counts against as many of a reference by the settings of the evidence. Without `of_bins`, which may be NULL,
 * there is no critical_kl. */
void api_evidence_score(const struct api_evidence *evidence, const double *counts,
                        const double *reference, size_t n, struct kl_drift *drift,
                        struct kl_drift_bin *of_bins);

/* api_unseen_sum: texts without a bin of several windows together, by their hashes. */
enum { API_UNSEEN_SLOTS = 2048 };
struct api_unseen_sum {
    size_t n;
    double total, most; /* counts of all, and of the heaviest */
    uint64_t heaviest;  /* its hash */
    struct api_unseen_count slots[API_UNSEEN_SLOTS];
};

/* api_sum: counts of windows together, and what they are compared with. `unseen` is of labels alone. */
struct api_sum {
    size_t windows, n_bins;
    double counts[API_MAX_BINS + KL_OUTER_BINS], reference[API_MAX_BINS + KL_OUTER_BINS];
    struct api_unseen_sum unseen;
    const double *counts_of[API_MAX_POOL]; /* of each window, newest first */
    const struct api_unseen_counts *unseen_of[API_MAX_POOL];
};

double api_sum_n(const struct api_sum *sum);

/* Adds the texts of a window to a sum, which began empty. How often a text is in it. */
void api_unseen_sum_add(struct api_unseen_sum *sum, const struct api_unseen_counts *unseen);
double api_unseen_sum_count(const struct api_unseen_sum *sum, const char *text);

/* Judges a sum. `known` are the scores of its bins as they are, or NULL. *pooled becomes the test that the level is of;
 * insufficient if the sum holds less than min_observations. */
enum api_verdict api_judge(const struct api_evidence *evidence, const struct api_sum *sum,
                           const struct kl_drift *known, struct api_pooled *pooled);

/* Divergence of a sum that is to be expected without any drift, after joining. */
double api_judge_noise_floor(const struct api_evidence *evidence, const struct api_sum *sum);

/* api_cells: the cell that each bin is in, after joining. */
struct api_cells {
    size_t n;
    unsigned short of_bin[API_MAX_BINS + KL_OUTER_BINS];
};
void api_judge_cells(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct api_cells *cells);

/* G of a sum in the cells of another, against what it is compared with. */
double api_judge_g(const struct api_evidence *evidence, const struct api_sum *sum,
                   const struct api_cells *cells);

/* Scores a sum after joining. */
void api_judge_score(const struct api_evidence *evidence, const struct api_sum *sum,
                     struct kl_drift *drift);

/* Minimal n for a verdict: 50 of labels, and of numbers at least 5 for each bin, if the settings leave it open. */
double api_min_observations(const struct api_monitor_settings *settings,
                            const struct api_bins *bins);
