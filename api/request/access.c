#include "api/request/access.h"

#include "api/request/response.h"
#include "api/text/hosts.h"

#include <string.h>
#include <strings.h>

static bool is_open(const struct api_exchange *x)
{
    return x->response.endpoint && x->response.endpoint->flags & API_OPEN;
}

bool api_host_is_allowed(struct api_exchange *x)
{
    const char *list = x->service->allowed_hosts;
    if (is_open(x))
        return true;
    const char *host = api_request_header(&x->request, "Host");
    return (host && api_hosts_have(list, host, x->service->tls ? 443 : 80)) ||
           api_fail(&x->problem, "host_not_allowed",
                    "this server does not serve the host '%.100s'; --allowed-hosts lists those it "
                    "serves",
                    host ? host : "");
}

#define CHALLENGE "Bearer realm=\"kldiv\""

bool api_require_token(struct api_exchange *x)
{
    static const struct {
        const char *challenge, *detail;
    } refusals[] = {
        [API_BEARER_ABSENT] = {CHALLENGE,
                               "this server requires a token: Authorization: Bearer TOKEN"},
        [API_BEARER_WRONG] = {CHALLENGE ", error=\"invalid_token\"",
                              "the token is not valid for this server"},
    };
    if (!x->service->tokens)
        return true;
    enum api_bearer bearer = api_tokens_check(
        x->service->tokens, api_request_header(&x->request, "Authorization"), &x->token);
    if (bearer == API_BEARER_KNOWN)
        return true;
    api_response_header(&x->response, "WWW-Authenticate", refusals[bearer].challenge);
    return api_fail(&x->problem, "unauthorized", "%s", refusals[bearer].detail);
}

bool api_has_token(struct api_exchange *x)
{
    const char *authorization = api_request_header(&x->request, "Authorization");
    return !x->service->tokens ||
           api_tokens_check(x->service->tokens, authorization, &x->token) == API_BEARER_KNOWN;
}

#define INSUFFICIENT CHALLENGE ", error=\"insufficient_scope\", scope="

/* need: what a request needs of its token: one of `scopes`. */
static const struct need {
    unsigned scopes;
    const char *name, *challenge;
} to_read = {API_SCOPE_READ, "read", INSUFFICIENT "\"read\""},
  to_observe = {API_SCOPE_OBSERVE | API_SCOPE_WRITE, "observe", INSUFFICIENT "\"observe\""},
  to_write = {API_SCOPE_WRITE, "write", INSUFFICIENT "\"write\""};

static bool require_scope(struct api_exchange *x, const struct need *need)
{
    if (!x->service->tokens || x->token.scopes & need->scopes)
        return true;
    api_response_header(&x->response, "WWW-Authenticate", need->challenge);
    return api_fail(&x->problem, "scope_missing", "the token '%s' has no scope %s", x->token.name,
                    need->name);
}

/* Fails for a token that is bound to groups, where what would be changed is everyone's. */
static bool check_common(struct api_exchange *x)
{
    return !api_token_is_bound(&x->token) ||
           api_fail(&x->problem, "group_forbidden",
                    "the token '%s' is bound to groups, and this is of no group", x->token.name);
}

bool api_check_group(struct api_exchange *x, const char *group)
{
    return !api_token_is_bound(&x->token) || api_token_has_group(&x->token, group) ||
           api_fail(&x->problem, "group_forbidden", "the token '%s' is not for the group '%.128s'",
                    x->token.name, group);
}

bool api_require_scope(struct api_exchange *x)
{
    const struct api_endpoint *endpoint = x->response.endpoint;
    bool writes = endpoint->flags & API_WRITES;
    return require_scope(x, endpoint->flags & API_OBSERVES ? &to_observe
                            : writes                       ? &to_write
                                                           : &to_read) &&
           (!writes || strstr(endpoint->path, "{group}") || check_common(x));
}

bool api_origin_is_valid(const char *origin)
{
    static const char scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-";
    static const char authority[] = "abcdefghijklmnopqrstuvwxyz0123456789_.:[]-";
    if (strcmp(origin, "*") == 0 || strcmp(origin, "null") == 0)
        return true;
    size_t size = strspn(origin, scheme);
    if (size == 0 || strncmp(origin + size, "://", 3) != 0)
        return false;
    const char *host = origin + size + 3;
    return *host && host[strspn(host, authority)] == '\0';
}

/* True if a page of this server's own origin sends the request, or no page. Browsers name the origin's
 * relation in Sec-Fetch-Site, but not on plain HTTP: there the host of Origin tells. */
static bool is_of_this_origin(const struct api_exchange *x, const char *origin)
{
    const char *site = api_request_header(&x->request, "Sec-Fetch-Site");
    const char *host = api_request_header(&x->request, "Host");
    const char *authority = origin ? strstr(origin, "://") : NULL;
    if (site)
        return strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    return !origin || (authority && host && strcasecmp(authority + 3, host) == 0);
}

/* True unless a page may have been loaded from elsewhere, by a name that now leads here (DNS rebinding).
 * Such a page knows no token, has no certificate for its name, and cannot choose an address for a name. */
static bool is_at_home(const struct api_exchange *x, const char *origin)
{
    const struct api_service *service = x->service;
    const char *host = api_request_header(&x->request, "Host");
    bool is_page = origin || api_request_header(&x->request, "Sec-Fetch-Site");
    return !is_page || service->tokens || service->allowed_hosts || service->tls ||
           (host && api_host_is_fixed(host));
}

bool api_origin_may_write(struct api_exchange *x)
{
    const char *allowed = x->service->cors_origin;
    const char *origin = api_request_header(&x->request, "Origin");
    if (allowed && origin && (strcmp(allowed, "*") == 0 || strcmp(allowed, origin) == 0))
        return true;
    if (!is_of_this_origin(x, origin))
        return api_fail(&x->problem, "origin_forbidden",
                        "a page of another origin may not write here; --cors-origin allows one");
    if (is_at_home(x, origin))
        return true;
    const char *host = api_request_header(&x->request, "Host");
    return api_fail(&x->problem, "host_not_allowed",
                    "a page at '%.100s' may not write here, since anyone may point that name to "
                    "this server; list it in --allowed-hosts to allow it",
                    host ? host : "");
}

bool api_check_writer(struct api_exchange *x)
{
    x->writes = true;
    return require_scope(x, &to_write) && check_common(x) && api_origin_may_write(x);
}
