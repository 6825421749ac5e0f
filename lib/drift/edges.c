#include "lib/drift.h"
#include "lib/drift/quickselect.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Linear interpolation between two values, to the bit as numpy's quantiles do it; and of two whose distance is
 * infinite, where numpy gives NaN. */
static double lerp(double a, double b, double t)
{
    double distance = b - a;
    if (isinf(distance))
        return a * (1 - t) + b * t;
    return t >= 0.5 ? b - distance * (1 - t) : a + distance * t;
}

/* Appends an edge above the last one; returns the new number of edges. */
static size_t append(double *edges, size_t n, double edge)
{
    edge += 0.0; /* -0 becomes 0 */
    if (n == 0 || edge > edges[n - 1])
        edges[n++] = edge;
    return n;
}

/* Appends what closes the bin of a value that is the last edge: the next double or, where that is
 * infinite, the value itself, after the double before it. */
static size_t append_own_bin(double *edges, size_t n, double value)
{
    if (value < DBL_MAX)
        return append(edges, n, nextafter(value, (double)INFINITY));
    edges[n - 1] = nextafter(value, 0);
    if (n > 1 && edges[n - 2] == edges[n - 1])
        n--;
    return append(edges, n, value);
}

/* position: a quantile's fractional index among n sorted values. */
struct position {
    size_t before, after;
    double weight;
};

static struct position position(size_t i, size_t bins, size_t n)
{
    double rank = (double)(n - 1) * ((double)i / (double)bins), before = floor(rank);
    if (rank >= (double)(n - 1))
        return (struct position){n - 1, n - 1, 0};
    return (struct position){(size_t)before, (size_t)before + 1, rank - before};
}

/* Appends the ranks of a quantile that are above those before. */
static size_t append_ranks(size_t *ranks, size_t n, struct position at)
{
    if (n == 0 || at.before > ranks[n - 1])
        ranks[n++] = at.before;
    if (at.after > ranks[n - 1])
        ranks[n++] = at.after;
    return n;
}

size_t kl_quantile_edges(double *values, size_t n, size_t bins, double *edges)
{
    size_t ranks[2 * (KL_MAX_BINS + 1)] = {0}, n_ranks = 0, n_edges = 0;
    double previous = 0;
    for (size_t i = 0; i <= bins; i++)
        n_ranks = append_ranks(ranks, n_ranks, position(i, bins, n));
    kl_select(values, n, ranks, n_ranks);
    for (size_t i = 0; i <= bins; i++) {
        struct position at = position(i, bins, n);
        double edge = lerp(values[at.before], values[at.after], at.weight);
        bool repeats = i > 0 && edge == previous && edges[n_edges - 1] == edge;
        n_edges = repeats ? append_own_bin(edges, n_edges, edge) : append(edges, n_edges, edge);
        previous = edge;
    }
    return n_edges - 1;
}

size_t kl_width_edges(double min, double max, size_t bins, double *edges)
{
    double distance = max - min, step = distance / (double)bins;
    size_t n = append(edges, 0, min);
    if (!(min < max))
        return append_own_bin(edges, n, min) - 1;
    for (size_t i = 1; i < bins; i++) {
        double part = (double)i / (double)bins;
        double edge = isinf(distance) ? min * (1 - part) + max * part
                      : step == 0     ? part * distance + min
                                      : (double)i * step + min;
        if (edge < max)
            n = append(edges, n, edge);
    }
    return append(edges, n, max) - 1;
}
