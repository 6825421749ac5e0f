/* Counts of float64 values by bins, in ns a value, beside reading them; and the time of kl_drift. */
#include "lib/drift.h"
#include "lib/simd/kernel.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdio.h>

enum { MAX = 1 << 22, RUNS = 15 };

static double *values, edges[KL_MAX_BINS + 2];
static uint64_t counts[KL_MAX_BINS + KL_OUTER_BINS];
static volatile unsigned long long sink;

static double normal(void) { return sqrt(-2 * log(1 - drand48())) * cos(2 * M_PI * drand48()); }

static double time_of(enum kl_dtype dtype, size_t bins, size_t n)
{
    double times[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double start = now_ns();
        kl_bin_counts(edges, bins, dtype, values, n, counts);
        times[i] = (now_ns() - start) / (double)n;
    }
    return median(times, RUNS);
}

static double time_of_reading(size_t n)
{
    double times[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double start = now_ns();
        sink += read_both((const char *)values, (const char *)(values + n / 2), n * 4);
        times[i] = (now_ns() - start) / (double)n;
    }
    return median(times, RUNS);
}

/* Edges at quantiles of normal values, and of their exponentials, whose tail is long. */
static size_t make_edges(size_t bins, bool long_tail)
{
    enum { SAMPLE = 1 << 16 };
    static double sample[SAMPLE];
    for (size_t i = 0; i < SAMPLE; i++)
        sample[i] = long_tail ? exp(normal()) : normal();
    return kl_quantile_edges(sample, SAMPLE, bins, edges);
}

static void rows(size_t wanted, bool long_tail)
{
    static const size_t sizes[] = {1 << 10, 1 << 16, MAX};
    size_t bins = make_edges(wanted, long_tail);
    for (size_t i = 0; i < MAX; i++)
        values[i] = long_tail ? exp(normal()) : normal();
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        if (!kl_simd_select((*k)->name, NULL))
            continue;
        printf("| %-8s %4zu bins%s |", (*k)->name, wanted, long_tail ? ", long tail" : "");
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            printf(" %.2f |", time_of(KL_FLOAT64, bins, sizes[i]));
        puts("");
    }
    kl_simd_select("auto", NULL);
    printf("| reading |");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        printf(" %.2f |", time_of_reading(sizes[i]));
    puts("");
}

static double time_of_drift(size_t bins)
{
    enum { CALLS = 1000 };
    static const struct kl_drift_options options = {.pseudocount = 0.5, .significance = 0.01};
    double current[KL_MAX_BINS], reference[KL_MAX_BINS], times[RUNS];
    struct kl_drift_bin of_bins[KL_MAX_BINS];
    struct kl_drift scores;
    for (size_t i = 0; i < bins; i++) {
        current[i] = floor(100 * drand48());
        reference[i] = floor(1000 * drand48());
    }
    for (int i = 0; i < RUNS; i++) {
        double start = now_ns();
        for (int j = 0; j < CALLS; j++)
            kl_drift(current, reference, bins, &options, &scores, of_bins);
        times[i] = (now_ns() - start) / CALLS / 1000;
    }
    return median(times, RUNS);
}

int main(void)
{
    srand48(1);
    values = aligned_alloc(64, MAX * sizeof *values);
    printf("\nBinning of float64, one thread, ns a value\n\n| values | 2^10 | 2^16 | 2^22 |\n");
    printf("|---|---|---|---|\n");
    rows(10, false);
    rows(100, false);
    rows(100, true);
    printf("\nScores, microseconds a call: 20 bins %.1f, 1,000 bins %.1f\n", time_of_drift(20),
           time_of_drift(1000));
    free(values);
    return 0;
}
