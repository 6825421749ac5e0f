#include "api/monitors/model/segment.h"

#include <stdio.h>
#include <string.h>

size_t api_segment_parent(const char *group)
{
    size_t size = strlen(group);
    const char *bracket = strchr(group, '['), *equals = bracket ? strchr(bracket, '=') : NULL;
    bool is_segment = equals && bracket > group && equals > bracket + 1 && group[size - 1] == ']';
    return is_segment ? (size_t)(bracket - group) : 0;
}

bool api_segment_name(const char *group, const char *by, const char *value, char *name, size_t size)
{
    int written = snprintf(name, size, "%s[%s=%s]", group, by, value);
    return written > 0 && (size_t)written < size;
}

size_t api_segment_prefix(const char *group, const char *by, char *prefix, size_t size)
{
    size_t n = 0;
    snprintf(prefix, size, "%s[%s%s", group, by ? by : "", by ? "=" : "");
    for (const char *p = prefix; *p; p++)
        n += (*p & 0xc0) != 0x80;
    return n;
}
