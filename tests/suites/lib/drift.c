/* Scores against the table of drift.jsonl, and what must hold of all. */
#include "lib/drift.h"
#include "lib/drift/chi_squared.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table */

static size_t numbers_of(const json_t *array, double **numbers)
{
    size_t n = json_array_size(array);
    *numbers = calloc(n + 3, sizeof **numbers);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, i);
        (*numbers)[i] = json_is_string(value) ? strtod(json_string_value(value), NULL)
                                              : json_number_value(value);
    }
    return n;
}

/* One of the two bounds must hold. */
static void near(double ours, const json_t *exact, double relative, double absolute,
                 const char *what, size_t line)
{
    double value = number_of(exact);
    cr_expect(isfinite(value) ? fabs(ours - value) <= fmax(relative * fabs(value), absolute)
                              : ours == value,
              "line %zu: %s %.17g, not %.17g", line, what, ours, value);
}

static void check_scores(const json_t *row, size_t line)
{
    double *current, *reference;
    size_t bins = numbers_of(json_object_get(row, "current"), &current);
    numbers_of(json_object_get(row, "reference"), &reference);
    const json_t *exact = json_object_get(row, "scores");
    const struct kl_drift_options options = {
        .pseudocount = number_of(json_object_get(row, "pseudocount")),
        .significance = number_of(json_object_get(row, "significance")),
        .exact_reference = json_is_true(json_object_get(row, "exact"))};
    struct kl_drift_bin *of_bins = calloc(bins, sizeof *of_bins);
    struct kl_drift ours, alone;
    kl_drift(current, reference, bins, &options, &ours, of_bins);
    kl_drift(current, reference, bins, &options, &alone, NULL);
    cr_expect(memcmp(&ours, &alone, sizeof ours) == 0, "line %zu", line);
    const struct {
        const char *name;
        double value, unit;
    } scores[] = {{"n", ours.n, 1},
                  {"n_reference", ours.n_reference, 1},
                  {"kl", ours.kl, 1},
                  {"kl_reverse", ours.kl_reverse, 1},
                  {"js", ours.js, 1},
                  {"psi", ours.psi, 1},
                  {"statistic", ours.statistic, 2 * ours.n},
                  {"critical_kl", ours.critical_kl, 1},
                  {"noise_floor", ours.noise_floor, 1},
                  {"unseen_ratio", ours.unseen_ratio, 1},
                  {"df", (double)ours.df, 1}};
    for (size_t i = 0; i < COUNT(scores); i++)
        near(scores[i].value, json_object_get(exact, scores[i].name), 1e-12, 1e-18 * scores[i].unit,
             scores[i].name, line);
    if (number_of(json_object_get(exact, "p_value")) > 1e-300)
        near(ours.p_value, json_object_get(exact, "p_value"), 1e-10,
             1e-7 * !(ours.statistic > 1e-14), "p_value", line);
    for (size_t i = 0; i < bins; i++)
        near(of_bins[i].contribution, json_array_get(json_object_get(row, "contributions"), i),
             1e-12, 1e-18, "contribution", line);
    free(current), free(reference), free(of_bins);
}

static void check_edges(const json_t *row, const char *name, size_t line)
{
    double *values, *expected, made[KL_MAX_BINS + 2];
    uint64_t counts[KL_MAX_BINS + KL_OUTER_BINS] = {0};
    bool widths = strcmp(name, "widths") == 0;
    size_t n = numbers_of(json_object_get(row, widths ? "ends" : "values"), &values);
    size_t edges = numbers_of(json_object_get(row, name), &expected);
    size_t wanted = (size_t)number_of(json_object_get(row, "bins"));
    size_t bins = widths ? kl_width_edges(values[0], values[1], wanted, made)
                         : kl_quantile_edges(values, n, wanted, made);
    cr_expect(bins + 1 == edges && memcmp(made, expected, edges * sizeof *made) == 0,
              "line %zu: %zu edges, not %zu", line, bins + 1, edges);
    kl_bin_counts(made, bins, KL_FLOAT64, values, n, counts);
    for (size_t i = 0; i < bins && !widths; i++)
        cr_expect_eq((json_int_t)counts[i + 1],
                     json_integer_value(json_array_get(json_object_get(row, "counts"), i)),
                     "line %zu", line);
    free(values), free(expected);
}

static void check_chi_squared(const json_t *row, size_t line)
{
    size_t df = (size_t)number_of(json_object_get(row, "df"));
    double x = number_of(json_object_get(row, "x"));
    double p = number_of(json_object_get(row, "p"));
    double tail = kl_chi_squared(x, df).tail;
    near(tail / p, json_object_get(row, "tail"), 1e-12, 0, "tail", line);
    near(kl_chi_squared_point(p, df), json_object_get(row, "x"), 1e-12, 0, "point", line);
}

Test(drift, scores_and_edges_are_those_of_the_table)
{
    size_t size, line = 0;
    char *file = read_file("tests/tools/golden/drift.jsonl", &size), *rest = file;
    for (char *text; (text = strtok_r(rest, "\n", &rest));) {
        json_t *row = json_loads(text, 0, NULL);
        line++;
        cr_assert(row, "line %zu", line);
        if (json_object_get(row, "scores"))
            check_scores(row, line);
        else if (json_object_get(row, "edges"))
            check_edges(row, "edges", line);
        else if (json_object_get(row, "widths"))
            check_edges(row, "widths", line);
        else
            check_chi_squared(row, line);
        json_decref(row);
    }
    cr_assert_gt(line, 500);
    free(file);
}

/* ---- What holds of all counts */

enum { MAX_BINS = 60 };

struct counts {
    size_t bins;
    double current[MAX_BINS], reference[MAX_BINS];
    struct kl_drift_options options;
};

static const struct kl_drift_options usual = {.pseudocount = 0.5, .significance = 0.01};

static struct counts draw(unsigned long long *state)
{
    struct counts c = {.options = usual};
    double max = exp(25 * uniform(state));
    c.bins = 1 + (size_t)(uniform(state) * MAX_BINS);
    for (size_t i = 0; i < c.bins; i++) {
        c.current[i] = uniform(state) < 0.2 ? 0 : floor(max * uniform(state));
        c.reference[i] = uniform(state) < 0.2 ? 0 : floor(10 * max * uniform(state));
    }
    c.current[0]++, c.reference[0]++;
    c.options.pseudocount = 0.25 + uniform(state);
    return c;
}

static struct kl_drift score(const struct counts *c, struct kl_drift_bin *of_bins)
{
    struct kl_drift scores;
    kl_drift(c->current, c->reference, c->bins, &c->options, &scores, of_bins);
    return scores;
}

static bool same(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b) + 1e-18; }

Test(drift, contributions_are_not_negative_and_sum_to_the_divergence)
{
    unsigned long long state = 1;
    for (int i = 0; i < 2000; i++) {
        struct counts c = draw(&state);
        struct kl_drift_bin of_bins[MAX_BINS];
        struct kl_drift s = score(&c, of_bins);
        double sum = 0, shares = 0, current = 0, reference = 0;
        for (size_t j = 0; j < c.bins; j++) {
            cr_expect(of_bins[j].contribution >= 0 && of_bins[j].share >= 0);
            cr_expect(c.current[j] + c.reference[j] > 0 || of_bins[j].contribution == 0);
            sum += of_bins[j].contribution, shares += of_bins[j].share;
            current += of_bins[j].current, reference += of_bins[j].reference;
        }
        cr_expect(same(sum, s.kl), "%.17g, not %.17g", sum, s.kl);
        cr_expect(same(shares, s.kl > 0 ? 1 : 0) && same(current, 1) && same(reference, 1));
        cr_expect(s.kl >= 0 && s.kl_reverse >= 0 && s.js >= 0 && s.js <= M_LN2 &&
                  s.statistic >= 0 && s.p_value >= 0 && s.p_value <= 1);
        cr_expect(same(s.psi, s.kl + s.kl_reverse));
    }
}

Test(drift, the_two_directions_mirror_each_other)
{
    unsigned long long state = 2;
    for (int i = 0; i < 2000; i++) {
        struct counts c = draw(&state), mirrored = c;
        memcpy(mirrored.current, c.reference, sizeof c.current);
        memcpy(mirrored.reference, c.current, sizeof c.current);
        struct kl_drift a = score(&c, NULL), b = score(&mirrored, NULL);
        cr_expect(same(a.kl, b.kl_reverse) && same(a.kl_reverse, b.kl) && same(a.js, b.js) &&
                  same(a.psi, b.psi) && same(a.statistic, b.statistic));
    }
}

/* Divergences do not depend on the scale of counts, but G does. */
Test(drift, scaled_counts_scale_the_statistic)
{
    unsigned long long state = 3;
    for (int i = 0; i < 2000; i++) {
        struct counts c = draw(&state), scaled;
        for (size_t j = 0; j < c.bins; j++)
            c.current[j]++, c.reference[j]++;
        c.options.pseudocount = 0, scaled = c;
        for (size_t j = 0; j < c.bins; j++)
            scaled.current[j] *= 3, scaled.reference[j] *= 3;
        struct kl_drift a = score(&c, NULL), b = score(&scaled, NULL);
        cr_expect(same(a.kl, b.kl) && same(a.js, b.js) && same(3 * a.statistic, b.statistic));
        cr_expect(same(a.critical_kl, 3 * b.critical_kl) && a.df == b.df);
        for (size_t j = 0; j < c.bins; j++)
            scaled.reference[j] = 7 * c.current[j];
        b = score(&scaled, NULL);
        cr_expect(b.kl == 0 && b.psi == 0 && b.js == 0 && b.statistic == 0 && b.p_value == 1);
    }
}

/* The data-processing inequality: counts of two bins together have no greater divergence. */
Test(drift, joined_bins_do_not_raise_the_divergence)
{
    unsigned long long state = 4;
    for (int i = 0; i < 2000; i++) {
        struct counts c = draw(&state), joined = c;
        for (size_t j = 0; j < c.bins; j++)
            c.current[j]++, c.reference[j]++;
        c.bins += c.bins == 1, c.options.pseudocount = 0, joined = c;
        if (c.bins == 2)
            c.current[1] = joined.current[1] = c.reference[1] = joined.reference[1] = 1;
        joined.bins--;
        joined.current[0] += c.current[joined.bins];
        joined.reference[0] += c.reference[joined.bins];
        struct kl_drift a = score(&c, NULL), b = score(&joined, NULL);
        cr_expect(b.kl <= a.kl * (1 + 1e-12) && b.js <= a.js * (1 + 1e-12) &&
                  b.statistic <= a.statistic * (1 + 1e-12) && b.df + 1 == a.df);
    }
}

Test(drift, nothing_hides_and_infinity_shows)
{
    struct counts c = {.bins = 3,
                       .current = {5, 0, 3},
                       .reference = {7, 9, 0},
                       .options = {.pseudocount = 0, .significance = 0.01}};
    struct kl_drift_bin of_bins[3];
    struct kl_drift s = score(&c, of_bins);
    cr_expect(isinf(s.kl) && isinf(s.kl_reverse) && isinf(s.psi) && isfinite(s.js));
    cr_expect(isfinite(s.statistic) && s.p_value > 0 && s.unseen_ratio == 3. / 8);
    cr_expect(isinf(of_bins[2].contribution) && isfinite(of_bins[0].contribution));
    cr_expect(isnan(of_bins[0].share) && isnan(of_bins[2].share));
    c.options.exact_reference = true;
    const double exact[] = {0.25, 0.75, 0};
    memcpy(c.reference, exact, sizeof exact);
    s = score(&c, of_bins);
    cr_expect(isinf(s.kl) && isinf(s.statistic) && s.p_value == 0 && isinf(s.n_reference));
    cr_expect(of_bins[1].reference == 0.75 && of_bins[1].current == 0);
}

Test(drift, of_one_bin_there_is_nothing_to_test)
{
    struct counts c = {.bins = 3, .current = {0, 4, 0}, .reference = {0, 9, 0}, .options = usual};
    struct kl_drift s = score(&c, NULL);
    cr_expect(s.df == 0 && s.p_value == 1 && s.critical_kl == 0 && s.noise_floor == 0 && s.kl == 0);
}

/* A reference whose probabilities are rounded to seven places is taken as it is. */
Test(drift, an_exact_reference_is_not_scaled)
{
    struct counts c = {.bins = 2,
                       .current = {1, 1},
                       .reference = {0.5000004, 0.5000004},
                       .options = {.significance = 0.01, .exact_reference = true}};
    struct kl_drift_bin of_bins[2];
    struct kl_drift s = score(&c, of_bins);
    cr_expect(fabs(s.kl + log1p(8e-7)) < 1e-15, "%.17g", s.kl);
    cr_expect(of_bins[0].contribution > 0 && of_bins[0].share == 0 && s.p_value == 1);
    c.reference[0] = 0.1, c.reference[1] = 0.9, c.current[1] = 9;
    s = score(&c, of_bins);
    cr_expect(s.kl == 0 && s.js == 0 && s.statistic == 0);
}

/* ---- Counts that have no scores, and many bins */

static bool all_nan(const double *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(numbers[i]))
            return false;
    return true;
}

/* True if all scores are NaN, and those of bins. */
static bool has_no_scores(const struct counts *c)
{
    struct kl_drift_bin of_bins[MAX_BINS] = {{0}};
    const struct kl_drift s = score(c, of_bins);
    const double scores[] = {s.n,           s.n_reference, s.kl,          s.kl_reverse,
                             s.js,          s.psi,         s.statistic,   s.p_value,
                             s.critical_kl, s.noise_floor, s.unseen_ratio};
    return s.df == 0 && all_nan(scores, COUNT(scores)) &&
           all_nan(&of_bins[0].reference, c->bins * sizeof *of_bins / sizeof(double));
}

Test(drift, counts_without_scores_have_none)
{
    static const double bad[] = {NAN, -1, -5e-324, INFINITY, -(double)INFINITY};
    unsigned long long state = 8;
    for (int i = 0; i < 2000; i++) {
        const struct counts good = draw(&state);
        struct counts c = good;
        size_t at = (size_t)(uniform(&state) * (double)c.bins), way = (size_t)(uniform(&state) * 6);
        double value = bad[(size_t)(uniform(&state) * COUNT(bad))];
        cr_expect_not(has_no_scores(&good));
        c.options.exact_reference = i % 2;
        if (way < 2)
            (way ? c.current : c.reference)[at] = value;
        else if (way < 4)
            memset(way == 2 ? c.current : c.reference, 0, sizeof c.current);
        else if (way == 4)
            c.options.significance = value > 1 || isnan(value) ? value : 0;
        else
            c.options.pseudocount = value;
        cr_expect(has_no_scores(&c), "way %zu, %g in bin %zu of %zu", way, value, at, c.bins);
    }
    struct counts none = {.bins = 0, .options = usual}, nothing = {.bins = 9, .options = usual};
    cr_expect(has_no_scores(&none) && has_no_scores(&nothing));
}

/* The tail of a chi-squared distribution of many degrees of freedom, by Wilson's and Hilferty's normal one. */
static double nearly_tail(double x, double df)
{
    double spread = 2 / (9 * df);
    return erfc((cbrt(x / df) - 1 + spread) / sqrt(2 * spread)) / 2;
}

Test(drift, of_millions_of_bins)
{
    static const size_t bins[] = {100000, 1300000, 1500000, 4000000};
    double *current = calloc(4000000, sizeof *current),
           *reference = calloc(4000000, sizeof *reference);
    unsigned long long state = 10;
    for (size_t i = 0; i < COUNT(bins); i++) {
        struct kl_drift s;
        for (size_t j = 0; j < bins[i]; j++) /* which vary about as counts by chance do */
            current[j] = floor(90 + 36 * uniform(&state)),
            reference[j] = floor(90 + 36 * uniform(&state));
        kl_drift(current, reference, bins[i], &usual, &s, NULL);
        double p = nearly_tail(s.statistic, (double)s.df),
               per_count = (1 / s.n + 1 / s.n_reference) / 2;
        cr_expect_eq(s.df, bins[i] - 1);
        cr_expect(fabs(s.p_value - p) <= 1e-3 * p, "%zu bins: %g, not %g", bins[i], s.p_value, p);
        double at = nearly_tail(s.critical_kl / per_count, (double)s.df);
        cr_expect(fabs(at - 0.01) < 1e-5, "%zu bins: critical_kl %g is at %g", bins[i],
                  s.critical_kl, at);
    }
    free(current), free(reference);
}
