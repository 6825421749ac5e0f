#include "api/store/location.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void api_store_name(const char *location, char *to, size_t size)
{
    const char *scheme = strstr(location, "://"), *user = scheme ? scheme + 3 : location;
    const char *at = scheme ? strrchr(user, '@') : NULL; /* a password may hold any character */
    const char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
    const char *rest = colon ? at : user, *query = rest + strcspn(rest, "?");
    bool has_password = scheme && strstr(query, "password");
    snprintf(to, size, "%.*s%s%.*s%s", (int)((colon ? colon : user) - location), location,
             colon ? ":***" : "", (int)(has_password ? (size_t)(query - rest) : strlen(rest)), rest,
             has_password ? "?***" : "");
}
