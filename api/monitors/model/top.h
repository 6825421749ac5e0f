/* Bins of a window that contribute most to its divergence. */
#pragma once

#include "api/monitors/model/bins.h"
#include "lib/drift.h"

/* A top is a number, as windows and the store keep it: the indices of up to three bins, each plus 1, in
 * 16 bits each, the largest contribution in the lowest; 0 if nothing contributes. API_TOP_UNKNOWN is
 * that of a window without a scoring, or scored by a version that kept none. */
#define API_TOP_UNKNOWN (-1)

int64_t api_top_of(const struct kl_drift_bin *of_bins, size_t n_bins);

/* Sum of the shares of these bins, in (0, 1]; NaN where there is none, or no share: the divergence is
 * infinite, or not above 0. */
double api_top_share(int64_t top, const struct kl_drift_bin *of_bins);

/* True if it is known, and names no bins but these. */
bool api_top_fits(int64_t top, const struct api_bins *bins);

/* Appends the names as an array; the top must fit the bins. */
void api_top_write(int64_t top, const struct api_bins *bins, struct api_buffer *out);
