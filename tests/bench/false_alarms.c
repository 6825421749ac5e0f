/* Alarms of windows that have not drifted: the G-test at 1 % and 5 %, and a fixed divergence of 0.1. */
#include "lib/drift.h"

#include <stdio.h>
#include <stdlib.h>

enum { BINS = 10, MAX = 100000, TRIALS = 10000 };

static const size_t references[] = {500, 10000, MAX}, windows[] = {50, 200, 1000, 10000};
static double values[MAX];

static void draw(size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = drand48();
}

static void count(const double *edges, size_t bins, size_t n, double *counts)
{
    uint64_t whole[BINS + KL_OUTER_BINS] = {0};
    kl_bin_counts(edges, bins, KL_FLOAT64, values, n, whole);
    for (size_t i = 0; i < bins + KL_OUTER_BINS; i++)
        counts[i] = (double)whole[i];
}

/* Percentages of alarms of windows against references of their own, by equal bins or by those at the
 * quantiles of the reference. */
static void row(size_t n_reference, size_t n, bool quantiles)
{
    static const struct kl_drift_options options = {.pseudocount = 0.5, .significance = 0.01};
    size_t at_1 = 0, at_5 = 0, fixed = 0, trials = TRIALS * 500 / (500 + n_reference / 50);
    for (size_t i = 0; i < trials; i++) {
        double edges[BINS + 2], current[BINS + KL_OUTER_BINS], reference[BINS + KL_OUTER_BINS];
        struct kl_drift scores;
        draw(n_reference);
        size_t bins = quantiles ? kl_quantile_edges(values, n_reference, BINS, edges)
                                : kl_width_edges(0, 1, BINS, edges);
        count(edges, bins, n_reference, reference);
        draw(n);
        count(edges, bins, n, current);
        kl_drift(current, reference, bins + KL_OUTER_BINS, &options, &scores, NULL);
        at_1 += scores.p_value < 0.01, at_5 += scores.p_value < 0.05, fixed += scores.kl >= 0.1;
    }
    double unit = 100 / (double)trials;
    printf("| %zu | %zu | %s | %.1f | %.1f | %.1f |\n", n_reference, n,
           quantiles ? "quantiles" : "equal", (double)at_1 * unit, (double)at_5 * unit,
           (double)fixed * unit);
    fflush(stdout);
}

int main(void)
{
    srand48(1);
    printf("\nFalse alarms, percent of windows without drift\n\n");
    printf("| reference | window | ten bins | G-test, 1 %% | G-test, 5 %% | divergence of 0.1 |\n");
    printf("|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        for (size_t j = 0; j < sizeof windows / sizeof *windows; j++)
            for (int quantiles = 0; quantiles < 2; quantiles++)
                row(references[i], windows[j], quantiles);
    return 0;
}
