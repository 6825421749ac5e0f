#include "api/monitors/model/edges.h"

#include "api/text/decimal.h"
#include "api/text/number.h"
#include "lib/drift.h"

#include <math.h>
#include <stdio.h>

/* range: minimum and maximum of some numbers; empty if min is above max. */
struct range {
    double min, max;
};
static const struct range empty = {(double)INFINITY, -(double)INFINITY};

/* Range of the forms in which other files may hold a value: itself, its float32, and the shortest decimal of its
 * float32. */
static struct range variants(double value)
{
    char text[API_DECIMAL_MAX + API_PADDING] = "", *end;
    double narrow = (double)(float)value;
    if (!isfinite(narrow) || narrow == floor(narrow))
        return (struct range){fmin(value, isfinite(narrow) ? narrow : value),
                              fmax(value, isfinite(narrow) ? narrow : value)};
    text[api_decimal_write(text, KL_FLOAT32, narrow)] = '\0';
    double decimal = api_strtod(text, &end);
    return (struct range){fmin(value, fmin(narrow, decimal)), fmax(value, fmax(narrow, decimal))};
}

/* A short decimal above `low` and below `high`, near the middle; the middle if there is none. */
static double between(double low, double high)
{
    char text[40 + API_PADDING], *end;
    double middle = low / 2 + high / 2;
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, middle);
        double rounded = api_strtod(text, &end);
        if (rounded > low && rounded < high)
            return rounded;
    }
    return middle;
}

/* The edges move outwards by at most so much of a value. */
static const double outwards = 0x1p-20;

static void move_outer(double *edges, size_t bins, struct range all)
{
    struct range first = variants(all.min), last = variants(all.max);
    if (first.min < edges[0])
        edges[0] = between(first.min - fabs(first.min) * outwards, first.min);
    if (last.max > edges[bins])
        edges[bins] = between(last.max, last.max + fabs(last.max) * outwards);
}

/* Moves the edge between the values below and those above it, and between its neighbours. */
static void move_inner(double *edge, double below, double above)
{
    double low = variants(below).max, high = variants(above).min;
    if (low < *edge && *edge <= high)
        return;
    low = fmax(low, edge[-1]);
    high = fmin(high, edge[1]);
    double moved = between(low, high);
    if (low < moved && moved < high)
        *edge = moved;
}

/* The interval of a value within the edges, the last one closed. */
static size_t find(const double *edges, size_t bins, double value)
{
    size_t first = 0, end = bins;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        *(value < edges[middle] ? &end : &first) = middle;
    }
    return first;
}

void api_edges_move(double *edges, size_t bins, const double *values, size_t n)
{
    struct range of[KL_MAX_BINS + 1];
    double below = -(double)INFINITY, above[KL_MAX_BINS + 2] = {0};
    for (size_t i = 0; i <= KL_MAX_BINS; i++)
        of[i] = empty;
    for (size_t i = 0; i < n; i++) {
        struct range *range = &of[find(edges, bins, values[i])];
        range->min = values[i] < range->min ? values[i] : range->min;
        range->max = values[i] > range->max ? values[i] : range->max;
    }
    above[bins] = (double)INFINITY;
    for (size_t i = bins; i-- > 0;)
        above[i] = fmin(above[i + 1], of[i].min);
    for (size_t i = 1; i < bins; i++) {
        below = fmax(below, of[i - 1].max);
        if (isfinite(below) && isfinite(above[i]))
            move_inner(&edges[i], below, above[i]);
    }
    below = fmax(below, of[bins - 1].max);
    move_outer(edges, bins, (struct range){above[0], below});
}
