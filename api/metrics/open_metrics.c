#include "api/metrics/open_metrics.h"

#include "api/text/accept.h"

#include <stdbool.h>
#include <string.h>

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
