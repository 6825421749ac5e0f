#include "api/metrics/histogram.h"

#include <string.h>

unsigned long api_histogram_count(const struct api_histogram *histogram, size_t n)
{
    unsigned long total = 0;
    for (size_t i = 0; i <= n; i++)
        total += atomic_load(&histogram->buckets[i]);
    return total;
}

void api_histogram_write(struct api_buffer *out, const char *name, const char *labels,
                         const struct api_histogram *histogram, const double *bounds, size_t n,
                         double scale)
{
    unsigned long total = 0;
    for (size_t i = 0; i < n; i++) {
        total += atomic_load(&histogram->buckets[i]);
        api_append_format(out, "%s_bucket{%sle=\"%g\"} %lu\n", name, labels, bounds[i], total);
    }
    total += atomic_load(&histogram->buckets[n]);
    api_append_format(out, "%s_bucket{%sle=\"+Inf\"} %lu\n", name, labels, total);
    int length = *labels ? (int)strlen(labels) - 1 : 0; /* without the comma */
    const char *open = length ? "{" : "", *close = length ? "}" : "";
    api_append_format(out, "%s_sum%s%.*s%s %.15g\n", name, open, length, labels, close,
                      (double)atomic_load(&histogram->sum) / scale);
    api_append_format(out, "%s_count%s%.*s%s %lu\n", name, open, length, labels, close, total);
}
