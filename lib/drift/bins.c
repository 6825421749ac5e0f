#include "lib/drift.h"
#include "lib/simd/kernel.h"

#include <math.h>
#include <string.h>

/* WIDENED: doubles that the first-level cache has room for. MAX_AT_ONCE: what fits the counts of a
 * kernel. WORTH_CELLS: values for which it pays to lay out cells, in some 20 microseconds. */
enum { WIDENED = 2048, MAX_AT_ONCE = 1 << 30, WORTH_CELLS = 1 << 14 };

/* A value is at an edge or above it if it is above the double before the edge. The last interval is
 * closed. */
static void set_thresholds(const double *edges, size_t bins, struct kl_thresholds *t)
{
    const size_t all = sizeof t->above / sizeof *t->above;
    t->n = bins + 1;
    for (size_t i = 0; i < bins; i++)
        t->above[i] = nextafter(edges[i], -(double)INFINITY);
    t->above[bins] = edges[bins];
    for (size_t i = t->n; i < (t->n <= KL_FEW_THRESHOLDS ? KL_FEW_THRESHOLDS : all); i++)
        t->above[i] = (double)INFINITY;
}

/* The cell of a number, by the operations of the kernels. */
static size_t cell_of(const struct kl_thresholds *t, double v)
{
    double cell = (v - t->origin) * t->scale;
    cell = cell > 0 ? cell < KL_CELLS - 1 ? cell : KL_CELLS - 1 : 0;
    return (size_t)rint(cell);
}

/* Spreads the cells over the thresholds but for `trimmed` at each end, and finds the steps that it takes
 * to search a cell. */
static void spread_cells(size_t trimmed, struct kl_thresholds *t)
{
    size_t max = 0, next = 0;
    t->origin = t->above[trimmed];
    t->scale = (KL_CELLS - 1) / (t->above[t->n - 1 - trimmed] - t->origin);
    if (!isnormal(t->scale) || !isfinite(t->origin))
        t->origin = 0, t->scale = 1;
    for (size_t cell = 0; cell < KL_CELLS; cell++) {
        t->first[cell] = (uint16_t)next;
        while (next < t->n && cell_of(t, t->above[next]) == cell)
            next++;
        max = next - t->first[cell] > max ? next - t->first[cell] : max;
    }
    for (t->steps = 0; max >> t->steps;)
        t->steps++;
}

/* A search of all thresholds, whatever the cell. */
static void join_cells(struct kl_thresholds *t)
{
    memset(t->first, 0, sizeof t->first);
    t->origin = 0, t->scale = 1;
    for (t->steps = 0; t->n >> t->steps;)
        t->steps++;
}

/* Long tails would leave few cells to the bulk: keeps the trim that takes the fewest steps. */
static void prepare_search(struct kl_thresholds *t)
{
    static const size_t divisors[] = {4, 8, 16, 32, 128, SIZE_MAX};
    size_t best = 0, steps = SIZE_MAX;
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        spread_cells(t->n / divisors[i], t);
        if (t->steps <= steps)
            best = i, steps = t->steps;
    }
    spread_cells(t->n / divisors[best], t);
}

void kl_bin_counts(const double *edges, size_t bins, enum kl_dtype dtype, const void *values,
                   size_t n, uint64_t *counts)
{
    const struct kl_kernel *kernel = kl_kernel();
    const char *from = values;
    struct kl_thresholds thresholds;
    double widened[WIDENED];
    const uint64_t below = counts[0];
    const size_t max = dtype == KL_FLOAT64 ? MAX_AT_ONCE : WIDENED;
    set_thresholds(edges, bins, &thresholds);
    if (thresholds.n > KL_FEW_THRESHOLDS)
        n < WORTH_CELLS ? join_cells(&thresholds) : prepare_search(&thresholds);
    for (size_t length; n > 0; n -= length) {
        length = n < max ? n : max;
        if (dtype != KL_FLOAT64)
            kernel->widen[dtype](from, widened, length);
        kernel->bin_counts(&thresholds, dtype == KL_FLOAT64 ? from : (const char *)widened, length,
                           counts);
        from += length * kl_dtype_size(dtype);
    }
    if (isinf(edges[0])) { /* no double is before -inf: the first interval has that value */
        counts[1] += counts[0] - below;
        counts[0] = below;
    }
}
