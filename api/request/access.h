/* Checks of the client, from the header alone, in this order: the host, the token, its scope. Each fails with a
 * problem of x->problem. Endpoints with API_OPEN pass all of them, those with API_PUBLIC the last two. */
#pragma once

#include "api/request/route.h"

/* 421, unless service->allowed_hosts is NULL or has the request's host. */
bool api_host_is_allowed(struct api_exchange *x);
static inline bool api_check_host(struct api_exchange *x)
{
    return !x->service->allowed_hosts || api_host_is_allowed(x);
}

/* Require the token and the scope at any endpoint, with API_PUBLIC or without. */
bool api_require_token(struct api_exchange *x);
bool api_require_scope(struct api_exchange *x);

/* True if service->tokens is NULL or has the request's token. Never fails with a problem: an open endpoint uses it to
 * show some details only to clients that may read the other endpoints. */
bool api_has_token(struct api_exchange *x);

static inline bool api_needs_no_token(const struct api_exchange *x)
{
    return x->response.endpoint && x->response.endpoint->flags & (API_OPEN | API_PUBLIC);
}

/* 401 with WWW-Authenticate, unless service->tokens is NULL or has the request's token. Sets
 * x->token. */
static inline bool api_check_token(struct api_exchange *x)
{
    return !x->service->tokens || api_needs_no_token(x) || api_require_token(x);
}

/* 403 with WWW-Authenticate, unless the token's scopes include that of the endpoint, which is
 * write for those with API_WRITES, observe or write for those with API_OBSERVES, too, and read for others. 403 for tokens
 * that are bound to groups at endpoints that write, and not below a {group}. */
static inline bool api_check_scope(struct api_exchange *x)
{
    return !x->service->tokens || api_needs_no_token(x) || api_require_scope(x);
}

/* For endpoints with API_WRITES. 403 for a page of another origin that --cors-origin does not name. 421 for a page of
 * this server under a host name that anyone may own, which is any but an IP address and localhost, if the server has
 * no tokens, no list of hosts and no certificate. */
bool api_origin_may_write(struct api_exchange *x);
static inline bool api_check_origin(struct api_exchange *x)
{
    return !(x->response.endpoint->flags & API_WRITES) || api_origin_may_write(x);
}

/* 403, if the request's token is for other groups; whether the group is there or not, which it does not tell. */
bool api_check_group(struct api_exchange *x, const char *group);

/* True if a browser can send this origin: scheme://host[:port] in lower case, without a path, or null; or
 * if it is *, which stands for any. */
bool api_origin_is_valid(const char *origin);

/* The checks of scope and origin for a request that writes at an endpoint that otherwise only reads. */
bool api_check_writer(struct api_exchange *x);
