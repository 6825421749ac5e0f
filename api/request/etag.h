/* Entity tags in If-Match and If-None-Match (RFC 9110, 8.8.3). */
#pragma once

#include "api/request/exchange.h"

#include <stdbool.h>

/* True if a list of entity tags, or "*", names `etag`, which is quoted and has no W/. Weak ones of
 * the list are like strong ones if `weakly`, else they name nothing. */
bool api_etag_is_listed(const char *list, const char *etag, bool weakly);

/* Adds the entity tag of a complete response: a hash of its body, weak because codings share it. The response
 * becomes 304 without a body if the client has one with that tag. */
void api_etag_compare(struct api_exchange *x);
