/* api_bins: the bins of a monitor: intervals of numbers, or labels, or one of any value; and outer bins beside them. */
#pragma once

#include "api/json/problem.h"
#include "api/monitors/model/labels.h"

#include <jansson.h>
#include <stdint.h>

#define API_MAX_BINS 1000

/* Limits, in bytes, of a label and of all labels of a monitor. A store may hold longer ones, of before
 * there were limits. */
enum { API_MAX_LABEL = 1 << 10, API_MAX_LABELS = 64 << 10 };

/* In order, intervals have underflow, the n intervals, overflow, missing; labels have the n
 * labels, other, missing. Empty if zeroed. Bins of presence are of the label `present`, which any value has that is not
 * missing. */
struct api_bins {
    bool labelled, is_presence;
    size_t n;      /* intervals or labels */
    size_t n_bins; /* with the outer bins */
    double *edges; /* n + 1, ascending; the outer ones may be infinite */
    struct api_label_table labels;
    struct api_buffer described; /* what api_bins_describe gives, one text after another */
    uint32_t *described_at;      /* their offsets, with the end; NULL before they are made */
};

/* Reads {"edges": [...]}, {"labels": [...]} or {"presence": true}; labels are strings, or numbers and booleans, which become
 * texts as values of those types do. */
bool api_bins_from_json(struct api_bins *bins, const json_t *object, struct api_problem *problem);

/* Checks the labels of bins that a body has; fails with labels_too_large. */
bool api_bins_check(const struct api_bins *bins, struct api_problem *problem);

/* Makes bins of copies of edges (n + 1), or of labels, which are distinct. False if memory is
 * exhausted. */
bool api_bins_of_edges(struct api_bins *bins, const double *edges, size_t n);
bool api_bins_of_labels(struct api_bins *bins, const struct api_label *labels, size_t n);
bool api_bins_of_presence(struct api_bins *bins);
void api_bins_free(struct api_bins *bins);

/* Bytes that they hold. */
size_t api_bins_size(const struct api_bins *bins);

static inline const char *api_bins_label(const struct api_bins *bins, size_t i)
{
    return api_labels_get(&bins->labels, i).text;
}

/* Index of a text among labels; `n_bins` if it is none. */
size_t api_bins_find(const struct api_bins *bins, const char *text, size_t size);

/* Index of the first interval or label; of missing values; of other labels. */
size_t api_bins_first(const struct api_bins *bins);
size_t api_bins_missing(const struct api_bins *bins);
size_t api_bins_other(const struct api_bins *bins);

/* Index of the outer bin of that name, of this kind of bins; `n_bins` if it is none. */
size_t api_bins_outer(const struct api_bins *bins, const char *name);

/* Name of the outer bin of that index, NULL for an interval or a label. */
const char *api_bins_outer_name(const struct api_bins *bins, size_t bin);

/* Sum of the counts of n bins; 0 if there are none, as `counts` is NULL. */
static inline double api_counts_sum(const double *counts, size_t n)
{
    double sum = 0;
    for (size_t i = 0; counts && i < n; i++)
        sum += counts[i];
    return sum;
}

/* Appends what api_bins_from_json reads. */
void api_bins_write(const struct api_bins *bins, struct api_buffer *out);

/* Appends the name of a bin as a JSON string: "[0, 1)", a label, an outer bin's. */
void api_bins_write_name(const struct api_bins *bins, size_t bin, struct api_buffer *out);

/* Makes the descriptions of all bins: each result has them. False if memory is exhausted. */
bool api_bins_describe(struct api_bins *bins);

/* Appends `"name":...,"kind":...,"lower":...,"upper":...`. */
void api_bins_write_description(const struct api_bins *bins, size_t bin, struct api_buffer *out);
