/* Counts of a diagnosis, and its messages. */
#pragma once

#include "lib/diagnose/not_finite.h"

/* kl_kind: a guess at what a row holds, from its extremes and its sum. */
enum kl_kind { KL_LIKE_PROBABILITIES, KL_LIKE_COUNTS, KL_LIKE_LOGARITHMS, KL_LIKE_LOGITS };
#define KL_KINDS 4

/* kl_finding_count: the rows with one finding, and extremes of the number that is wrong. */
struct kl_finding_count {
    size_t count, first; /* row */
    size_t kinds[KL_KINDS];
    double min, max;
};

struct kl_finding_counts {
    size_t rows;  /* looked at */
    double bound; /* that the sum of all losses does not exceed, or NaN or infinite */
    struct kl_finding_count of[KL_FINDINGS];
};

/* Fills the diagnosis from the counts. */
void kl_report(const struct kl_diagnosis_context *context, const struct kl_finding_counts *counts,
               struct kl_diagnosis *diagnosis);
