/* Multiple quickselect (Hoare's FIND, 1961; Chambers, "Partial sorting", 1971): partitions, and goes on only
 * in the parts where a wanted rank lies. Edges want some ranks of many values: n log n_ranks comparisons then, where
 * sorting takes n log n. The pivot is the ninther, the median of three medians of three (Tukey). Three-way partitions
 * keep repeated values from being visited again. Parts that partition badly fall back on heapsort, as in
 * introselect (Musser, 1997), which bounds the time by n log n. */
#include "lib/drift/quickselect.h"

#include <stdbool.h>

/* FEW: parts of up to so many values are sorted. */
enum { FEW = 24 };

static void swap(double *v, size_t i, size_t j)
{
    double kept = v[i];
    v[i] = v[j];
    v[j] = kept;
}

static void sift(double *v, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && v[child + 1] > v[child])
            child++;
        if (!(v[child] > v[i]))
            return;
        swap(v, i, child);
    }
}

static void heap_sort(double *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(v, i, n);
    for (; n > 1; n--) {
        swap(v, 0, n - 1);
        sift(v, 0, n - 1);
    }
}

static double median_of_3(double a, double b, double c)
{
    double low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The median of three medians of three, evenly spaced. */
static double pivot_of(const double *v, size_t n)
{
    double medians[3];
    size_t step = (n - 1) / 8;
    for (size_t i = 0; i < 3; i++)
        medians[i] = median_of_3(v[3 * i * step], v[(3 * i + 1) * step], v[(3 * i + 2) * step]);
    return median_of_3(medians[0], medians[1], medians[2]);
}

/* Moves values below the pivot (or not above it, if `equal`) to the front, without a branch on values;
 * returns how many there are. */
static size_t partition(double *v, size_t n, double pivot, bool equal)
{
    size_t front = 0;
    for (size_t i = 0; i < n; i++) {
        double value = v[i];
        v[i] = v[front];
        v[front] = value;
        front += equal ? value <= pivot : value < pivot;
    }
    return front;
}

/* Moves the value of each of the ascending ranks to its index, with values not above it before and not below it
 * after. Ranks count from `first`, the rank of v[0]. `depth` bounds partitions that divide badly. */
static void select_ranks(double *v, size_t n, size_t first, const size_t *ranks, size_t n_ranks,
                         int depth)
{
    while (n_ranks > 0) {
        if (n <= FEW || depth-- == 0) {
            heap_sort(v, n);
            return;
        }
        double pivot = pivot_of(v, n);
        size_t below = partition(v, n, pivot, false), left = 0, done;
        size_t equal = partition(v + below, n - below, pivot, true);
        while (left < n_ranks && ranks[left] < first + below)
            left++;
        for (done = left; done < n_ranks && ranks[done] < first + below + equal;)
            done++;
        select_ranks(v, below, first, ranks, left, depth);
        v += below + equal, n -= below + equal, first += below + equal;
        ranks += done, n_ranks -= done;
    }
}

void kl_select(double *values, size_t n, const size_t *ranks, size_t n_ranks)
{
    int depth = 8;
    for (size_t left = n; left > 0; left /= 2)
        depth += 2;
    select_ranks(values, n, 0, ranks, n_ranks, depth);
}
