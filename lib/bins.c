#include "lib/drift.h"

#include <math.h>

void kl_bin_counts(const double *edges, size_t bins, enum kl_dtype dtype, const void *values,
                   size_t n, uint64_t *counts)
{
    for (size_t i = 0; i < n; i++) {
        double v = kl_load(dtype, values, i);
        size_t low = 0, high = bins + 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (v >= edges[middle])
                low = middle + 1;
            else
                high = middle;
        }
        low -= v == edges[bins];
        counts[isnan(v) ? bins + 2 : low]++;
    }
}
