/* The G-test of windows without drift rejects about as often as its significance tells. */
#include "lib/drift.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>

static const struct kl_drift_options usual = {.pseudocount = 0.5, .significance = 0.01};

static void add_uniform(size_t n, const double *edges, unsigned long long *state, uint64_t *counts)
{
    double values[500];
    for (size_t length; n > 0; n -= length) {
        length = n < COUNT(values) ? n : COUNT(values);
        for (size_t i = 0; i < length; i++)
            values[i] = uniform(state);
        kl_bin_counts(edges, 10, KL_FLOAT64, values, length, counts);
    }
}

/* alarms: windows of one size that were rejected, at 1 % and at 5 %. */
enum { SIZES = 3, TRIALS = 10000 };
static const size_t windows[SIZES] = {50, 500, 10000}, references[SIZES] = {500, 10000, 100000};

struct alarms {
    size_t at_1, at_5;
};

static void draw_counts(size_t n, unsigned long long *state, double *as_doubles)
{
    double edges[11];
    uint64_t counts[13] = {0};
    kl_width_edges(0, 1, 10, edges);
    add_uniform(n, edges, state, counts);
    for (size_t j = 0; j < 10; j++)
        as_doubles[j] = (double)counts[1 + j];
}

/* Tests windows of each size against one reference. */
static void try_windows(const double *reference, unsigned long long *state, struct alarms *alarms)
{
    for (size_t i = 0; i < SIZES; i++) {
        double window[10];
        struct kl_drift scores;
        draw_counts(windows[i], state, window);
        kl_drift(window, reference, 10, &usual, &scores, NULL);
        alarms[i].at_1 += scores.p_value < 0.01;
        alarms[i].at_5 += scores.p_value < 0.05;
    }
}

/* Windows of five values a bin are rejected 1.6 times as often as the limit distribution tells, in the
 * limit of many trials; larger ones 1.2 times at most. */
static bool promised(size_t window, size_t alarms, double nominal)
{
    double rate = (double)alarms / TRIALS, max = window <= 50 ? 1.9 : 1.5;
    return rate < max * nominal && rate > nominal / 1.5;
}

/* The G-test of windows without drift, of ten bins, rejects about as often as its significance tells. A
 * large reference serves some windows. */
Test(false_alarms, are_as_frequent_as_promised)
{
    unsigned long long state = 6;
    for (size_t i = 0; i < SIZES; i++) {
        struct alarms alarms[SIZES] = {{0}};
        double reference[10];
        for (size_t trial = 0; trial < TRIALS; trial++) {
            if (trial % (1 + references[i] / 10000) == 0)
                draw_counts(references[i], &state, reference);
            try_windows(reference, &state, alarms);
        }
        for (size_t k = 0; k < SIZES; k++)
            cr_expect(promised(windows[k], alarms[k].at_1, 0.01) &&
                          promised(windows[k], alarms[k].at_5, 0.05),
                      "window %zu, reference %zu: %zu at 1 %%, %zu at 5 %% of %d", windows[k],
                      references[i], alarms[k].at_1, alarms[k].at_5, TRIALS);
    }
}
