/* Endpoints of the pages: the calculator at /, the dashboard, the documentation. */
#pragma once

#include "api/request/endpoint.h"

/* A page or another file, by the endpoint's path and what it captured: 200, 304, or 308 to the page's one address,
 * for which its relative links are right. The root: the calculator for clients that prefer HTML to text; for others
 * the list of endpoints, which needs a token if there are tokens. */
extern const struct api_steps api_web, api_web_root;

/* True if a request for a path that does not exist comes from a browser, which is to see a page. */
bool api_web_wants_not_found(const struct api_exchange *x);

/* Makes the response that page, whose links are right at any depth; its status is left as it is. False, and the
 * response has no content, if memory is exhausted. */
bool api_web_not_found(struct api_exchange *x);

/* Finds a built-in file by its path, "dashboard/index.html". NULL if there is none; in a build without pages
 * there are none at all. */
const struct api_file *api_file_find(const char *path);
