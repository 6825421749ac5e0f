#include "api/request/route.h"

#include "api/text/nearest.h"
#include "api/text/percent.h"

#include <string.h>

/* Decodes the character at *path and advances; a % without two digits is literal. */
static int next_character(const char **path)
{
    int decoded = **path == '%' ? api_percent_decode(*path) : -1;
    if (decoded < 0)
        return (unsigned char)*(*path)++;
    *path += 3;
    return decoded;
}

/* Captures the rest of a segment; false if it is empty or too long. */
static bool capture(const char **path, struct api_captures *captures)
{
    if (captures->n == API_CAPTURES || **path == '/' || **path == '\0')
        return false;
    captures->value[captures->n++] = captures->text + captures->used;
    while (**path && **path != '/') {
        int c = next_character(path);
        if (c == 0)
            return false;
        if (captures->used < API_MAX_CAPTURED)
            captures->text[captures->used++] = (char)c;
    }
    captures->text[captures->used++] = '\0';
    return true;
}

/* True at a slash that ends a path after a segment. */
static bool is_last_slash(const char *path)
{
    return path[0] == '/' && path[1] == '\0' && path[-1] != '/';
}

/* Matches a path, which with `slash` may end with one more than the pattern. Only a literal slash
 * separates segments, not an encoded one. */
static bool matches(const char *pattern, const char *path, bool slash,
                    struct api_captures *captures)
{
    for (; *pattern; pattern++) {
        if (*pattern == '[') {
            size_t n = captures->n, used = captures->used;
            if (matches(strchr(pattern, ']') + 1, path, slash, captures))
                return true;
            captures->n = n;
            captures->used = used;
        } else if (*pattern == '{') {
            if (!capture(&path, captures))
                return false;
            pattern = strchr(pattern, '}');
        } else if (*pattern != ']') {
            if (*path == '\0' || (*pattern == '/' && *path != '/') ||
                next_character(&path) != (unsigned char)*pattern)
                return false;
        }
    }
    return *path == '\0' || (slash && is_last_slash(path));
}

/* Accepts one slash more at the end of a path: a redirection would lose the body of a POST. Not for requests that write:
 * DELETE of "/monitors/g/$NAME" with an empty NAME must not delete the group. Paths of probes are taken as they stand, with
 * neither a slash nor an encoded character more: proxies keep outsiders from /metrics by its exact path. */
static bool has_path(const struct api_endpoint *endpoint, const char *path,
                     struct api_captures *captures)
{
    captures->n = captures->used = 0;
    bool is_probe = endpoint->flags & API_PROBE, writes = endpoint->flags & API_WRITES;
    return (!is_probe || !strchr(path, '%')) &&
           matches(endpoint->path, path, !is_probe && !writes, captures);
}

static bool has_method(const struct api_endpoint *endpoint, const char *method)
{
    return strcmp(endpoint->method, method) == 0 ||
           (strcmp(endpoint->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

bool api_route_writes(const struct api_exchange *x)
{
    const struct api_endpoint *endpoint = x->response.endpoint;
    return x->writes || (endpoint && endpoint->flags & API_WRITES && x->request.method &&
                         has_method(endpoint, x->request.method));
}

const struct api_endpoint *api_route_find(struct api_exchange *x, bool *method_allowed)
{
    const struct api_endpoint *of_path = NULL;
    *method_allowed = false;
    for (const struct api_endpoint *e = x->service->endpoints; e->path && !*method_allowed; e++)
        if ((has_method(e, x->request.method) || !of_path) &&
            has_path(e, x->request.path, &x->captures)) {
            of_path = e;
            *method_allowed = has_method(e, x->request.method);
            if (e->flags & API_RESERVES)
                break;
        }
    return of_path;
}

void api_route_methods(const struct api_exchange *x, char *to, size_t size)
{
    struct api_captures ignored = {.n = 0};
    *to = '\0';
    for (const struct api_endpoint *e = x->service->endpoints; e->path; e++)
        if (has_path(e, x->request.path, &ignored)) {
            api_append_word(to, size, strcmp(e->method, "GET") == 0 ? "GET, HEAD" : e->method);
            if (e->flags & API_RESERVES)
                return;
        }
}

const struct api_endpoint *api_route_with_name(const struct api_exchange *x)
{
    const char *last = strrchr(x->request.path, '/'), *path = x->response.endpoint->path;
    size_t size = strlen(path);
    for (const struct api_endpoint *e = x->service->endpoints; last && last[1] && e->path; e++)
        if (strncmp(e->path, path, size) == 0 && strcmp(e->path + size, last) == 0)
            return e;
    return NULL;
}

/* ---- The query */

/* Decodes `size` characters of a query into `to`, with room for API_PARAMETER and a NUL; to "" if it
 * fails. */
static bool decode(const char *from, size_t size, char *to, struct api_problem *problem)
{
    const char *wrong = NULL;
    size_t n = 0;
    for (size_t i = 0; i < size && !wrong; i++) {
        int byte = from[i] == '+' ? ' ' : from[i];
        if (n == API_PARAMETER)
            wrong = "a query parameter is too long";
        if (from[i] == '%') {
            byte = i + 2 < size ? api_percent_decode(from + i) : -1;
            i += 2;
            if (byte <= 0)
                wrong = "the query has a % without two hexadecimal digits, or %00";
        }
        to[n] = (char)byte;
        n += !wrong;
    }
    to[wrong ? 0 : n] = '\0';
    return !wrong || api_fail(problem, "query_malformed", "%s", wrong);
}

bool api_query_next(const char **query, struct api_parameter *parameter,
                    struct api_problem *problem)
{
    const char *p = *query + strspn(*query, "&");
    size_t size = strcspn(p, "&");
    const char *equals = memchr(p, '=', size);
    size_t name_size = equals ? (size_t)(equals - p) : size;
    size_t skip = equals ? name_size + 1 : size;
    *query = p + size;
    return size > 0 && decode(p, name_size, parameter->name, problem) &&
           decode(p + skip, size - skip, parameter->value, problem);
}
