/* The table of endpoints. Routing, 404, 405, Allow and the root page are derived from it; a new
 * endpoint is a row and a file. */
#pragma once

#include "api/request/route.h"

/* API_MAX_ENDPOINTS: maximum number of rows of api_endpoints, with the one at the end. Metrics have
 * arrays of that size. */
enum { API_MAX_ENDPOINTS = 72 };

/* Ends with a row whose path is NULL. */
extern const struct api_endpoint api_endpoints[];

/* The OpenAPI document, NUL-terminated. */
extern const char api_openapi[];
