#include "api/monitors/model/top.h"

#include <math.h>
#include <string.h>

enum { TOP = 3, BITS = 16 };

/* The index of the bin at a rank, plus 1; 0 if fewer bins contribute. */
static size_t at_rank(int64_t top, size_t rank)
{
    return (size_t)(top >> (BITS * rank)) & ((1 << BITS) - 1);
}

int64_t api_top_of(const struct kl_drift_bin *of_bins, size_t n_bins)
{
    size_t ranks[TOP], n = 0;
    int64_t top = 0;
    for (size_t i = 0; i < n_bins; i++) {
        size_t at = n;
        if (!(of_bins[i].contribution > 0))
            continue;
        while (at > 0 && of_bins[ranks[at - 1]].contribution < of_bins[i].contribution)
            at--;
        if (at == TOP)
            continue;
        n += n < TOP;
        memmove(ranks + at + 1, ranks + at, (n - at - 1) * sizeof *ranks);
        ranks[at] = i;
    }
    for (size_t i = 0; i < n; i++)
        top |= (int64_t)(ranks[i] + 1) << (BITS * i);
    return top;
}

double api_top_share(int64_t top, const struct kl_drift_bin *of_bins)
{
    double share = 0;
    for (size_t i = 0; i < TOP && at_rank(top, i); i++)
        share += of_bins[at_rank(top, i) - 1].share;
    return share > 0 ? fmin(share, 1) : (double)NAN; /* rounded shares may sum to more */
}

bool api_top_fits(int64_t top, const struct api_bins *bins)
{
    bool fits = top >= 0 && top >> (BITS * TOP) == 0;
    for (size_t i = 0; i < TOP; i++)
        fits = fits && at_rank(top, i) <= bins->n_bins;
    return fits;
}

void api_top_write(int64_t top, const struct api_bins *bins, struct api_buffer *out)
{
    api_append(out, "[", 1);
    for (size_t i = 0; i < TOP && at_rank(top, i); i++) {
        if (i)
            api_append(out, ",", 1);
        api_bins_write_name(bins, at_rank(top, i) - 1, out);
    }
    api_append(out, "]", 1);
}
