/* Counts of values by bins, over the vocabulary of template.h. A value is in the bin whose number is that
 * of the thresholds it is above; NaN is above none, and is counted apart. Few thresholds are all compared with
 * each value. More are searched by a bucket index: a linear map of the value to a cell finds the first
 * threshold it may be above, and a branchless binary search of the thresholds in that cell the rest; where
 * values are spread like the thresholds that is a step or two, instead of log2 of their number. Both are exact:
 * the map is monotonic, and each comparison is of the value itself. */

/* COMPARED: thresholds that are compared with each value, while the sums stay in registers. WHOLE: a
 * multiple of SEARCHED and of all numbers of lanes. */
enum { COMPARED = 6, COMPARED_AT_ONCE = 1024, SEARCHED = 4, SEARCHED_AT_ONCE = 256, WHOLE = 8 };

INLINE uint64_t sum_of_lanes(si v)
{
    uint64_t lanes[SINGLE_LANES], sum = 0;
    memcpy(lanes, &v, sizeof lanes);
    for (size_t i = 0; i < SINGLE_LANES; i++)
        sum += lanes[i];
    return sum;
}

/* Up to SINGLE_LANES doubles, and NaN in the other lanes. */
INLINE sd load_or_nan(const char *from, size_t n)
{
    double part[SINGLE_LANES];
    if (__builtin_expect(n >= SINGLE_LANES, 1))
        return s_load_f64(from);
    for (size_t i = 0; i < SINGLE_LANES; i++)
        part[i] = (double)NAN;
    memcpy(part, from, n * sizeof *part);
    return s_load_f64(part);
}

/* Adds to passed[i] how many of n doubles are above above[i]. */
TARGET_ATTR static void count_above(const char *values, size_t n, const double *above,
                                    uint64_t *passed)
{
    sd limits[COMPARED];
    si counts[COMPARED];
#pragma GCC unroll 6
    for (size_t j = 0; j < COMPARED; j++) {
        limits[j] = s_set(above[j]);
        counts[j] = s_bits(s_set(0));
    }
    for (size_t i = 0; i < n; i += SINGLE_LANES) {
        sd v = load_or_nan(values + i * sizeof(double), n - i);
#pragma GCC unroll 6
        for (size_t j = 0; j < COMPARED; j++)
            counts[j] = s_masked_increment(counts[j], s_gt(v, limits[j]));
    }
#pragma GCC unroll 6
    for (size_t j = 0; j < COMPARED; j++)
        passed[j] += sum_of_lanes(counts[j]);
}

/* The number of n doubles that are not NaN. */
TARGET_ATTR static uint64_t count_numbers(const char *values, size_t n)
{
    si numbers = s_bits(s_set(0));
    for (size_t i = 0; i < n; i += SINGLE_LANES) {
        sd v = load_or_nan(values + i * sizeof(double), n - i);
        numbers = s_masked_increment(numbers, s_eq(v, v));
    }
    return sum_of_lanes(numbers);
}

/* Each threshold against each value. */
TARGET_ATTR static void count_by_comparisons(const struct kl_thresholds *t, const char *values,
                                             size_t n, uint64_t *counts)
{
    uint64_t passed[KL_FEW_THRESHOLDS + COMPARED] = {0}, numbers = 0;
    for (size_t i = 0; i < n; i += COMPARED_AT_ONCE) {
        const char *part = values + i * sizeof(double);
        size_t length = n - i < COMPARED_AT_ONCE ? n - i : COMPARED_AT_ONCE;
        numbers += count_numbers(part, length);
        for (size_t j = 0; j < t->n; j += COMPARED)
            count_above(part, length, t->above + j, passed + j);
    }
    counts[0] += numbers - passed[0];
    for (size_t j = 1; j < t->n; j++)
        counts[j] += passed[j - 1] - passed[j];
    counts[t->n] += passed[t->n - 1];
    counts[t->n + 1] += n - numbers;
}

/* The cells of whole vectors, in the low bits, as those of doubles in [2^52, 2^53) are integers; of NaN
 * the first. Returns `numbers` plus how many of the values are not NaN. */
INLINE si cells_of(const struct kl_thresholds *t, const double *values, size_t n, si numbers,
                   double *cells)
{
    const sd origin = s_set(t->origin), scale = s_set(t->scale);
    for (size_t i = 0; i < n; i += SINGLE_LANES) {
        sd v = s_load_f64(values + i);
        sd cell = s_max(s_mul(s_sub(v, origin), scale), s_set(0));
        s_store_f64(cells + i, s_add(s_min(cell, s_set(KL_CELLS - 1)), s_set(0x1p52)));
        numbers = s_masked_increment(numbers, s_eq(v, v));
    }
    return numbers;
}

/* Counts SEARCHED values from their cells on, all at once, as each waits for its loads, and apart, as
 * additions to one address wait for each other. */
INLINE void search(const struct kl_thresholds *t, const double *v, const double *cells,
                   uint32_t histograms[][SEARCHED])
{
    uint64_t cell[SEARCHED];
    size_t bins[SEARCHED];
    memcpy(cell, cells, sizeof cell);
#pragma GCC unroll 4
    for (size_t k = 0; k < SEARCHED; k++)
        bins[k] = t->first[cell[k] % KL_CELLS];
    for (size_t step = (size_t)1 << t->steps >> 1; step > 0; step /= 2)
#pragma GCC unroll 4
        for (size_t k = 0; k < SEARCHED; k++)
            bins[k] += v[k] > t->above[bins[k] + step - 1] ? step : 0;
#pragma GCC unroll 4
    for (size_t k = 0; k < SEARCHED; k++)
        histograms[bins[k]][k]++;
}

/* The last, partial vectors are filled with NaN. */
TARGET_ATTR static void count_by_search(const struct kl_thresholds *t, const char *values, size_t n,
                                        uint64_t *counts)
{
    uint32_t histograms[KL_MAX_THRESHOLDS + 1][SEARCHED];
    si lanes = s_bits(s_set(0));
    size_t counted = 0;
    memset(histograms, 0, (t->n + 1) * sizeof *histograms);
    for (size_t i = 0; i < n; i += SEARCHED_AT_ONCE) {
        double v[SEARCHED_AT_ONCE], cells[SEARCHED_AT_ONCE];
        size_t length = n - i < SEARCHED_AT_ONCE ? n - i : SEARCHED_AT_ONCE;
        memcpy(v, values + i * sizeof *v, length * sizeof *v);
        while (length % WHOLE)
            v[length++] = (double)NAN;
        lanes = cells_of(t, v, length, lanes, cells);
        for (size_t k = 0; k < length; k += SEARCHED)
            search(t, v + k, cells + k, histograms);
        counted += length;
    }
    uint64_t numbers = sum_of_lanes(lanes);
    for (size_t i = 0; i <= t->n; i++)
        for (size_t k = 0; k < SEARCHED; k++)
            counts[i] += histograms[i][k];
    counts[0] -= counted - numbers;
    counts[t->n + 1] += n - numbers;
}

TARGET_ATTR static void bin_counts(const struct kl_thresholds *t, const void *values, size_t n,
                                   uint64_t *counts)
{
    if (t->n <= KL_FEW_THRESHOLDS)
        count_by_comparisons(t, values, n, counts);
    else
        count_by_search(t, values, n, counts);
}
