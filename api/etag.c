#include "api/etag.h"

#include <string.h>

bool api_etag_is_listed(const char *list, const char *etag, bool weakly)
{
    static const char between[] = " \t,";
    const char *p = list + strspn(list, " \t"), *end;
    if (*p == '*')
        return p[1 + strspn(p + 1, " \t")] == '\0';
    for (;; p = end) {
        p += strspn(p, between);
        bool weak = strncmp(p, "W/", 2) == 0;
        p += weak ? 2 : 0;
        end = *p == '"' ? strchr(p + 1, '"') : NULL;
        if (!end || !strchr(between, *++end))
            return false;
        size_t size = (size_t)(end - p);
        if ((!weak || weakly) && size == strlen(etag) && memcmp(p, etag, size) == 0)
            return true;
    }
}
