#include "api/metrics/family.h"

#include <string.h>

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
