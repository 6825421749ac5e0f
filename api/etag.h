/* Entity tags in If-Match and If-None-Match (RFC 9110, 8.8.3). */
#pragma once

#include <stdbool.h>

/* True if a list of entity tags, or "*", names `etag`, which is quoted and has no W/. Weak ones of
 * the list are like strong ones if `weakly`, else they name nothing. */
bool api_etag_is_listed(const char *list, const char *etag, bool weakly);
