/* api_moments: sums of values beside their counts, of which mean and standard deviation follow. Sums of several requests or
 * servers add up. */
#pragma once

#include "api/monitors/model/bins.h"

#include <math.h>

/* api_long_sum: an unevaluated sum of two doubles (Dekker, "A floating-point technique for extending the available
 * precision", 1971), so that the order and the parts in which values come change no digit of what is made of it. */
struct api_long_sum {
    double high, low;
};

/* api_moments: sums of deviations from a value among the bins, so that squares of large values do not cancel each other.
 * `covered` counts all values that were seen, missing and infinite ones too; n counts the finite ones, which are in the
 * sums. Empty if zeroed. */
struct api_moments {
    double covered, n;
    struct api_long_sum sum, squares;
};

/* api_tally: counts by bins, and moments. Numbers wait until there are enough to be counted at once. */
struct api_tally {
    uint64_t *counts; /* one for each bin */
    struct api_moments moments;
    double *waiting;
    size_t n_waiting, max_waiting;
};
void api_tally_number(struct api_tally *tally, const struct api_bins *bins, double number);
void api_tally_missing(struct api_tally *tally, const struct api_bins *bins);

/* Counts the numbers that wait. */
void api_tally_flush(struct api_tally *tally, const struct api_bins *bins);

/* api_spread: mean and standard deviation of finite values, of them all as numpy.std has it; NaN if nothing is known. */
struct api_spread {
    double mean, sd;
};
#define API_NO_SPREAD                                                                              \
    {                                                                                              \
        (double)NAN, (double)NAN                                                                   \
    }

void api_moments_take(struct api_moments *moments, const struct api_bins *bins,
                      const double *values, size_t n);
void api_moments_add(struct api_moments *to, const struct api_moments *added);

/* Unknown if some of the values came as counts alone. */
struct api_spread api_moments_spread(const struct api_moments *moments, const struct api_bins *bins,
                                     double values);
