/* Counting by bins, each instruction set against the definition; and edges. */
#include "lib/drift.h"
#include "lib/drift/quickselect.h"
#include "lib/simd/kernel.h"
#include "lib/simd/reference.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LONG: values for which cells pay, and more. */
enum { PLACES = KL_MAX_BINS + KL_OUTER_BINS, LONG = 17000 + SOME_OF(23000) };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts edges and makes them ascend. */
static void ascend(double *edges, size_t bins)
{
    qsort(edges, bins + 1, sizeof *edges, by_value);
    for (size_t i = 1; i <= bins; i++)
        if (!(edges[i] > edges[i - 1]))
            edges[i] = nextafter(edges[i - 1], (double)INFINITY);
}

static double even(size_t i, size_t bins, unsigned long long *state)
{
    (void)state;
    return (double)i / (double)bins * 6 - 3;
}

static double heavy_tailed(size_t i, size_t bins, unsigned long long *state)
{
    (void)i, (void)bins;
    return exp(40 * uniform(state) - 20);
}

static double neighbours(size_t i, size_t bins, unsigned long long *state)
{
    (void)bins, (void)state;
    double first = (double)(i / 3) - 2;
    for (size_t j = 0; j < i % 3; j++)
        first = nextafter(first, (double)INFINITY);
    return first;
}

static double subnormal(size_t i, size_t bins, unsigned long long *state)
{
    (void)state;
    return ((double)i - (double)(bins / 2)) * 0x1p-1074;
}

static double huge(size_t i, size_t bins, unsigned long long *state)
{
    return i == 0 ? -DBL_MAX : i == bins ? DBL_MAX : (uniform(state) - 0.5) * 1e308 * 3;
}

static double outlying(size_t i, size_t bins, unsigned long long *state)
{
    return i == 0 ? -1e30 : i == bins ? 1e300 : uniform(state);
}

static double unbounded(size_t i, size_t bins, unsigned long long *state)
{
    return i == 0 ? -(double)INFINITY : i == bins ? (double)INFINITY : uniform(state) * 4 - 2;
}

static double (*const kinds[])(size_t, size_t, unsigned long long *) = {
    even, heavy_tailed, neighbours, subnormal, huge, outlying, unbounded};

static const size_t sizes[] = {1, 2, 5, 10, 11, 12, 13, 31, 100, 1000};

/* Draws edges, their neighbours, special values, and what lies around the edges. */
static double draw(const double *edges, size_t bins, unsigned long long *state)
{
    static const double specials[] = {0,      -0.0,    NAN,     -NAN,     INFINITY, -INFINITY,
                                      5e-324, -5e-324, DBL_MAX, -DBL_MAX, 1e-310,   1e5};
    double kind = uniform(state), edge = edges[(size_t)(uniform(state) * (double)(bins + 1))];
    if (kind < 0.1)
        return specials[(size_t)(kind * 10 * (double)COUNT(specials))];
    if (kind < 0.3)
        return edge;
    if (kind < 0.5)
        return nextafter(edge, kind < 0.4 ? -(double)INFINITY : (double)INFINITY);
    return kind < 0.7 ? edge * 2 * uniform(state) : uniform(state) * 8 - 4;
}

/* Counts n values, `odd` bytes off alignment, twice, by the kernel in use and by the definition. */
static void compare(const double *edges, size_t bins, enum kl_dtype dtype, size_t n, size_t odd,
                    unsigned long long *state, const char *name)
{
    size_t size = n * kl_dtype_size(dtype) + odd;
    char *values = before_the_edge(size);
    uint64_t *ours = calloc(PLACES, sizeof *ours), *exact = calloc(PLACES, sizeof *exact);
    for (size_t i = 0; i < n; i++) {
        kl_store(dtype, values, i, draw(edges, bins, state));
        exact[kl_bin(edges, bins, kl_load(dtype, values, i))] += 2;
    }
    kl_bin_counts(edges, bins, dtype, values, n, ours);
    kl_bin_counts(edges, bins, dtype, values, n, ours);
    for (size_t i = 0; i < bins + KL_OUTER_BINS; i++)
        cr_expect(ours[i] == exact[i], "%s %s bins %zu n %zu: bin %zu has %zu, not %zu", name,
                  kl_dtype_name(dtype), bins, n, i, (size_t)ours[i], (size_t)exact[i]);
    free(ours), free(exact);
    unmap(values, size);
}

static void for_each_kernel(void (*check)(const char *name, enum kl_dtype dtype))
{
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        if ((*k)->supported()) {
            cr_assert(kl_simd_select((*k)->name, NULL));
            for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++)
                check((*k)->name, dtype);
        }
    cr_assert(kl_simd_select("auto", NULL));
}

static void make_edges(size_t kind, size_t bins, double *edges, unsigned long long *state)
{
    for (size_t i = 0; i <= bins; i++)
        edges[i] = kinds[kind](i, bins, state);
    ascend(edges, bins);
}

static void check_lengths(const char *name, enum kl_dtype dtype)
{
    double edges[KL_MAX_BINS + 1];
    unsigned long long state = 1 + dtype;
    for (size_t n = 0; n <= 300; n++) {
        size_t bins = sizes[n % COUNT(sizes)];
        make_edges(n % COUNT(kinds), bins, edges, &state);
        compare(edges, bins, dtype, n, n / 2 % 2, &state, name);
        compare(edges, bins < 100 ? bins : 13, dtype, n, 0, &state, name);
    }
}

static void check_kinds(const char *name, enum kl_dtype dtype)
{
    double edges[KL_MAX_BINS + 1];
    unsigned long long state = 7 + dtype;
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            make_edges(kind, sizes[i], edges, &state);
            compare(edges, sizes[i], dtype, 3001, 1, &state, name);
            if (i % 2)
                compare(edges, sizes[i], dtype, LONG, 1, &state, name);
        }
}

Test(bins, counts_are_those_of_the_definition_at_every_length_up_to_unmapped_memory)
{
    for_each_kernel(check_lengths);
}

Test(bins, counts_are_those_of_the_definition_for_all_kinds_of_edges)
{
    for_each_kernel(check_kinds);
}

Test(bins, last_interval_is_closed)
{
    const double edges[] = {0, 1, 2}, values[] = {-1, 0, 1, 2, 3, (double)NAN, -0.0, 1, 2};
    const uint64_t expected[] = {1, 2, 4, 1, 1};
    uint64_t counts[5] = {0};
    kl_bin_counts(edges, 2, KL_FLOAT64, values, COUNT(values), counts);
    cr_expect_arr_eq(counts, expected, sizeof counts);
}

/* An order of n values: some sorted, some with few values. */
static double ordered(size_t kind, size_t i, size_t n, unsigned long long *state)
{
    switch (kind) {
    case 0:
        return (double)i;
    case 1:
        return (double)(n - i);
    case 2:
        return (double)(i < n / 2 ? i : n - i);
    case 3:
        return (double)(i % 7);
    case 4:
        return -0.0;
    case 5:
        return (double)(i * 7919 % n);
    default:
        return floor(uniform(state) * (kind == 6 ? 3 : 1e9));
    }
}

Test(bins, selection_puts_ranks_where_a_sort_does)
{
    enum { MAX = 20000, KINDS = 8 };
    static double values[MAX], sorted[MAX];
    unsigned long long state = 5;
    for (size_t n = 1; n <= MAX; n = n * 3 / 2 + 1)
        for (size_t kind = 0; kind < KINDS; kind++) {
            size_t ranks[40], n_ranks = 0;
            for (size_t i = 0; i < n; i++)
                values[i] = sorted[i] = ordered(kind, i, n, &state);
            for (size_t i = 0; i < 40 && i < n; i++)
                ranks[n_ranks++] = n <= 40 ? i : i * (n - 1) / 39;
            qsort(sorted, n, sizeof *sorted, by_value);
            kl_select(values, n, ranks, n_ranks);
            for (size_t i = 0; i < n_ranks; i++)
                cr_expect(values[ranks[i]] == sorted[ranks[i]], "kind %zu n %zu", kind, n);
            qsort(values, n, sizeof *values, by_value);
            cr_expect_arr_eq(values, sorted, n * sizeof *values);
        }
}

/* Edges must ascend, be finite and hold all values. */
static void check_edges(const double *edges, size_t bins, size_t max, const double *values,
                        size_t n)
{
    uint64_t counts[PLACES] = {0};
    cr_expect(bins >= 1 && bins <= max, "%zu of %zu", bins, max);
    for (size_t i = 0; i <= bins; i++)
        cr_expect(isfinite(edges[i]) && (i == 0 || edges[i] > edges[i - 1]), "edge %zu", i);
    kl_bin_counts(edges, bins, KL_FLOAT64, values, n, counts);
    cr_expect(counts[0] + counts[bins + 1] + counts[bins + 2] == 0);
}

Test(bins, edges_ascend_and_hold_all_values)
{
    static double values[500], edges[KL_MAX_BINS + 2];
    static const double units[] = {1, 0.8e308, 5e-324, 0.1};
    unsigned long long state = 9;
    for (size_t n = 1; n <= COUNT(values); n += 1 + n / 4)
        for (size_t bins = 1; bins <= KL_MAX_BINS; bins = bins * 2 + 1)
            for (size_t kind = 0; kind < 16; kind++) {
                double unit = units[kind / 4], min = DBL_MAX, max = -DBL_MAX;
                for (size_t i = 0; i < n; i++) {
                    values[i] = kind % 4 < 2 ? (uniform(&state) - 0.5) * 3.5
                                             : floor(uniform(&state) * 3 * (double)(kind % 2));
                    values[i] = kind % 4 == 2 && unit > 1 ? DBL_MAX : values[i] * unit;
                    min = fmin(min, values[i]), max = fmax(max, values[i]);
                }
                size_t made = kl_quantile_edges(values, n, bins, edges);
                check_edges(edges, made, bins, values, n);
                made = kl_width_edges(min, max, bins, edges);
                check_edges(edges, made, bins, values, n);
            }
}

Test(bins, a_value_that_repeats_as_an_edge_has_a_bin_of_its_own)
{
    double values[] = {0, 0, 0, 0, 1, 0, 2, 0}, edges[6];
    const double expected[] = {0, 5e-324, 1.25 - 1, 2};
    size_t bins = kl_quantile_edges(values, COUNT(values), 4, edges);
    cr_expect_eq(bins, 3);
    cr_expect(memcmp(edges, expected, sizeof expected) == 0);
    double same[] = {7, 7, 7}, one[3];
    cr_expect_eq(kl_quantile_edges(same, 3, 10, edges), 1);
    cr_expect(edges[0] == 7 && edges[1] == nextafter(7, 8));
    cr_expect_eq(kl_width_edges(DBL_MAX, DBL_MAX, 1, one), 1);
    cr_expect(one[0] == nextafter(DBL_MAX, 0) && one[1] == DBL_MAX);
}

Test(bins, parts_count_what_the_whole_does)
{
    static double values[LONG];
    double edges[KL_MAX_BINS + 2];
    unsigned long long state = 11;
    for (size_t i = 0; i < LONG; i++)
        values[i] = log(uniform(&state));
    for (size_t wanted = 3; wanted < 300; wanted *= 5) {
        uint64_t whole[PLACES] = {0}, parts[PLACES] = {0};
        size_t bins = kl_quantile_edges(values, LONG, wanted, edges);
        kl_bin_counts(edges, bins, KL_FLOAT64, values, LONG, whole);
        for (size_t i = 0, n = 1; i < LONG; i += n, n = n * 2 < LONG - i ? n * 2 : LONG - i)
            kl_bin_counts(edges, bins, KL_FLOAT64, values + i, n, parts);
        cr_expect_arr_eq(whole, parts, sizeof whole);
    }
}
