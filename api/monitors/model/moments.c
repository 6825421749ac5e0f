#include "api/monitors/model/moments.h"

#include "lib/drift.h"

#include <float.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static double shift(const struct api_bins *bins) { return bins->edges[bins->n / 2]; }

/* Adds a double: Knuth's two-sum gives what the rounded sum lacks. */
INLINE void add(struct api_long_sum *sum, double x)
{
    double high = sum->high + x, part = high - sum->high;
    sum->low += (sum->high - (high - part)) + (x - part);
    sum->high = high;
}

INLINE void add_long(struct api_long_sum *sum, const struct api_long_sum *added)
{
    add(sum, added->high);
    add(sum, added->low);
}

/* lanes: sums of every LANES-th value, which do not wait for one another, WIDTH of them in a vector. */
enum { LANES = 16, WIDTH = 4, VECTORS = LANES / WIDTH };
typedef double vector __attribute__((vector_size(WIDTH * sizeof(double))));
typedef int64_t mask __attribute__((vector_size(WIDTH * sizeof(int64_t))));
struct lanes {
    vector high[VECTORS], low[VECTORS];
};
INLINE void add_vector(struct lanes *lanes, size_t i, const vector *x)
{
    vector high = lanes->high[i] + *x, part = high - lanes->high[i];
    lanes->low[i] += (lanes->high[i] - (high - part)) + (*x - part);
    lanes->high[i] = high;
}

INLINE void end_lanes(struct lanes *lanes, struct api_long_sum *sum)
{
    for (size_t i = 1; i < VECTORS; i++) {
        add_vector(lanes, 0, &lanes->high[i]);
        add_vector(lanes, 0, &lanes->low[i]);
    }
    for (size_t i = 0; i < WIDTH; i++)
        add_long(sum, &(struct api_long_sum){lanes->high[0][i], lanes->low[0][i]});
}

INLINE void take(struct api_moments *moments, double from, const double *values, size_t n)
{
    struct lanes sum = {0}, squares = {0};
    mask finite = {0};
    double part[LANES];
    for (size_t i = 0, size; i < n; i += size) {
        size = n - i < LANES ? n - i : LANES;
        for (size_t j = size; j < LANES; j++)
            part[j] = (double)INFINITY;
        memcpy(part, values + i, size * sizeof *part);
        for (size_t j = 0; j < VECTORS; j++) {
            vector x;
            memcpy(&x, part + WIDTH * j, sizeof x);
            mask is_finite = (x <= DBL_MAX) & (x >= -DBL_MAX);
            vector deviation = (vector)((mask)(x - from) & is_finite),
                   square = deviation * deviation;
            finite -= is_finite;
            add_vector(&sum, j, &deviation);
            add_vector(&squares, j, &square);
        }
    }
    moments->covered += (double)n;
    for (size_t i = 0; i < WIDTH; i++)
        moments->n += (double)finite[i];
    end_lanes(&sum, &moments->sum);
    end_lanes(&squares, &moments->squares);
}

#ifdef __x86_64__
static __attribute__((target("avx2"))) void take_avx2(struct api_moments *moments, double from,
                                                      const double *values, size_t n)
{
    take(moments, from, values, n);
}
#endif

void api_moments_take(struct api_moments *moments, const struct api_bins *bins,
                      const double *values, size_t n)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        take_avx2(moments, shift(bins), values, n);
        return;
    }
#endif
    take(moments, shift(bins), values, n);
}

void api_moments_add(struct api_moments *to, const struct api_moments *added)
{
    to->covered += added->covered;
    to->n += added->n;
    add_long(&to->sum, &added->sum);
    add_long(&to->squares, &added->squares);
}

struct api_spread api_moments_spread(const struct api_moments *moments, const struct api_bins *bins,
                                     double values)
{
    if (bins->labelled || moments->covered != values || !(moments->n > 0))
        return (struct api_spread)API_NO_SPREAD;
    double mean = (moments->sum.high + moments->sum.low) / moments->n;
    double squares = (moments->squares.high + moments->squares.low) / moments->n;
    double sd = isfinite(squares) ? sqrt(fmax(0, squares - mean * mean)) : (double)NAN;
    return (struct api_spread){shift(bins) + mean, sd};
}

/* ---- Counts with them */

void api_tally_flush(struct api_tally *tally, const struct api_bins *bins)
{
    if (tally->n_waiting == 0)
        return;
    kl_bin_counts(bins->edges, bins->n, KL_FLOAT64, tally->waiting, tally->n_waiting,
                  tally->counts);
    api_moments_take(&tally->moments, bins, tally->waiting, tally->n_waiting);
    tally->n_waiting = 0;
}

void api_tally_number(struct api_tally *tally, const struct api_bins *bins, double number)
{
    tally->waiting[tally->n_waiting++] = number;
    if (tally->n_waiting == tally->max_waiting)
        api_tally_flush(tally, bins);
}

void api_tally_missing(struct api_tally *tally, const struct api_bins *bins)
{
    tally->counts[api_bins_missing(bins)]++;
    tally->moments.covered++;
}
