/* Drift of binned data, part of libkldiv: counts of a window against those of a reference in, scores
 * out; and the counts of arrays of values. Pure functions, which any thread may call at any time. It is installed as
 * kldiv_drift.h.
 *
 *     double edges[KL_MAX_BINS + 1];
 *     size_t bins = kl_quantile_edges(values, n, 10, edges);
 *     uint64_t counts[KL_MAX_BINS + KL_OUTER_BINS] = {0};
 *     kl_bin_counts(edges, bins, KL_FLOAT64, values, n, counts);
 */
#ifndef KLDIV_LIB_DRIFT_H
#define KLDIV_LIB_DRIFT_H

#include "kldiv.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- Bins ----------------------------------------------------------------------------- */

/* KL_MAX_BINS: the maximum of intervals. KL_OUTER_BINS: the bins beside them: below, above, missing. */
#define KL_MAX_BINS 1000
#define KL_OUTER_BINS 3

/* Adds n values to counts of `bins` + KL_OUTER_BINS bins, by `bins` + 1 edges in ascending
 * order, e, of which the outer ones may be infinite: counts[0] of values below e[0], -inf too; counts[1 + i] of those in [e[i], e[i + 1]), the
 * last interval with its upper edge, as numpy.histogram has it; counts[bins + 1] of those above
 * e[bins], inf too; counts[bins + 2] of NaN. Values need no alignment. Takes 55 KiB of stack. */
void kl_bin_counts(const double *edges, size_t bins, enum kl_dtype dtype, const void *values,
                   size_t n, uint64_t *counts);

/* Makes edges of up to `bins` intervals at the quantiles of n finite values, at least one, of which it
 * changes the order: those of numpy.quantile(values, arange(bins + 1) / bins), to the bit, but that
 * -0 is 0, and that between values whose difference overflows they are finite. A value that repeats as
 * an edge gets a bin of its own, from it to the next double, so that more intervals than `bins` never
 * arise; the greatest double's begins at the double before it. Returns the number of intervals;
 * `edges` has room for bins + 2 (bins is 1 to KL_MAX_BINS). */
size_t kl_quantile_edges(double *values, size_t n, size_t bins, double *edges);

/* Makes edges of `bins` equal intervals from `min` to `max`, finite, as numpy.linspace does; of
 * one, as for a value that repeats above, if the two are equal. Intervals that rounding leaves empty
 * are left out. Returns the number of intervals; `edges` has room for bins + 1. */
size_t kl_width_edges(double min, double max, size_t bins, double *edges);

/* ---- Scores --------------------------------------------------------------------------- */

struct kl_drift_options {
    double pseudocount;   /* added to each count; 0 to 2^53 */
    double significance;  /* of the test, in (0, 1] */
    bool exact_reference; /* the reference holds probabilities, known exactly, and not counts */
};

/* kl_drift_bin: fractions of the bin in the reference and in the current counts, its contribution to
 * the divergence, p ln(p / q) - p + q, at least 0, and the contribution over the divergence, 0 of a
 * divergence that is not above 0, NaN of an infinite one. Contributions sum to the divergence; against
 * an exact reference whose sum is not 1 they sum to kl + sum q - 1, as it is not scaled. */
struct kl_drift_bin {
    double reference, current, contribution, share;
};

/* kl_drift: scores in nats; all NaN, and df 0, of counts that have none. */
struct kl_drift {
    double n, n_reference; /* sums of the counts; n_reference is infinite if it is exact */
    double kl;             /* KL(current || reference) */
    double kl_reverse;     /* KL(reference || current) */
    double js;             /* Jensen-Shannon divergence */
    double psi;            /* population stability index, kl + kl_reverse */
    double statistic;      /* G, of the raw counts */
    double p_value;        /* of G, by the chi-squared distribution with df degrees of freedom */
    double critical_kl;    /* divergence that G has at `significance` */
    double noise_floor;    /* divergence to be expected without any drift */
    double unseen_ratio;   /* of current counts in bins where the reference has none */
    size_t df;
};

/* Scores `current` against `reference`, counts of `bins` bins each, whole or not, at least 0, with
 * sums above 0. With c and r the counts, n and N their sums over the B bins where c + r > 0, and a the
 * pseudocount: p = (c + a) / (n + a B), q = (r + a) / (N + a B); an exact reference is q as it is.
 * `of_bins` has room for the bins, or is NULL. G is that of the 2 x B table of raw counts, as
 * scipy.stats.chi2_contingency(lambda_="log-likelihood", correction=False) has it, or against an exact
 * reference 2 n KL(c / n || q).
 *
 * A bin with p > 0 and q = 0 makes kl and that contribution infinite; one with p = 0 and q > 0
 * makes kl_reverse infinite; psi is if either is. G is infinite where an exact reference holds 0 for what was
 * counted. All of this is 0 where p and q are equal as doubles; js is at most ln 2. An exact reference
 * may sum to 1 + e: then kl is at least -e, and a size of e up to 2^-53 B counts as rounding of 0.
 * Scores of counts whose sums n and N are at most 2^53, and so exact, are within a relative 1e-12 or an
 * absolute 1e-18; greater sums round, and G errs by up to 2^-52 (n + N), which may leave no digit of p_value
 * where the two nearly agree. p_value is within a relative 1e-10 down to
 * 1e-300, for any number of bins. With one bin df, critical_kl and noise_floor are 0 and p_value is 1.
 *
 * Scores that do not exist are NaN, in *scores and of_bins, and df is 0: if a count is negative, NaN or infinite,
 * a sum is 0 or overflows, or an option is outside of what its comment says. */
void kl_drift(const double *current, const double *reference, size_t bins,
              const struct kl_drift_options *options, struct kl_drift *scores,
              struct kl_drift_bin *of_bins);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
