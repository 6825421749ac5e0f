#include "api/metrics/metrics.h"

#include "api/text/accept.h"

#include <string.h>

/* ---- Families */

void api_metrics_head(struct api_buffer *out, const char *name, const char *type, const char *help)
{
    api_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void api_metrics_value(struct api_buffer *out, const char *name, const char *help, double value)
{
    static const char ending[] = "_total";
    size_t size = strlen(name), n = sizeof ending - 1;
    bool is_counter = size > n && strcmp(name + size - n, ending) == 0;
    api_metrics_head(out, name, is_counter ? "counter" : "gauge", help);
    api_append_format(out, "%s %.15g\n", name, value);
}

/* ---- Histograms */

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

/* ---- OpenMetrics */

const char *const api_metrics_content_types[API_METRICS_FORMATS] = {
    "text/plain; version=0.0.4; charset=utf-8",
    "application/openmetrics-text; version=1.0.0; charset=utf-8"};

enum api_metrics_format api_metrics_choose(const char *accept)
{
    return accept && api_accept_quality(accept, "application/openmetrics-text") >
                         api_accept_quality(accept, "text/plain")
               ? API_METRICS_OPEN
               : API_METRICS_TEXT;
}

/* True if a line is the help or the type of a family. */
static bool is_head(const char *line, size_t size)
{
    return size > 7 && (memcmp(line, "# HELP ", 7) == 0 || memcmp(line, "# TYPE ", 7) == 0);
}

void api_metrics_open(struct api_buffer *text)
{
    static const char total[] = "_total ";
    enum { SIZE = sizeof total - 2 }; /* without the blank */
    if (!text->data)
        return;
    char *end = text->data + text->size, *to = text->data, *from = to;
    for (char *line = from; line && line < end;) {
        char *blank = is_head(line, (size_t)(end - line))
                          ? memchr(line + 7, ' ', (size_t)(end - line - 7))
                          : NULL;
        if (blank && blank - line > SIZE && memcmp(blank - SIZE, total, SIZE + 1) == 0) {
            size_t kept = (size_t)(blank - SIZE - from);
            memmove(to, from, kept);
            to += kept;
            from = blank;
        }
        const char *before = memmem(line, (size_t)(end - line), "\n# ", 3);
        line = before ? line + (before - line) + 1 : NULL;
    }
    memmove(to, from, (size_t)(end - from));
    text->size = (size_t)(to - text->data) + (size_t)(end - from);
}
