/* Endpoints, and the one that a path and a method lead to. */
#pragma once

#include "api/request/exchange.h"

enum {
    API_PROBE = 1,  /* polled by machines: answered when connections are full, not logged */
    API_HEAVY = 2,  /* never handled on a network thread */
    API_WRITES = 4, /* changes state: wants the scope write; pages of other origins are refused */
    API_OPEN = 8, /* answered at any host name, without a token, and with no memory of the budget */
    API_PUBLIC =
        16, /* answered without a token: files that a browser asks for before it knows one */
    API_TAGGED =
        32, /* a response has an ETag of its body: polled by pages that mostly have it already */
    API_OBSERVES = 64, /* beside API_WRITES: the scope observe suffices */
    API_HEALTH = API_PROBE | API_OPEN,
};

struct api_endpoint {
    const char *method;  /* GET also answers HEAD */
    const char *path;    /* a part in [brackets] may be absent, a part in {braces} is captured */
    const char *summary; /* a short phrase */
    unsigned flags;

    /* Checks the header and may refuse. NULL refuses nothing. */
    bool (*begin)(struct api_exchange *x);

    /* Sets x->cost_ns, to know which it may do work of up to `max_ns` on the complete body. Called
     * again, with more, if the cost is higher. NULL for endpoints without work. */
    bool (*prepare)(struct api_exchange *x, double max_ns);

    /* Fills the response's body and content_type, and its status unless that is 200; or fails. */
    bool (*handle)(struct api_exchange *x);

    /* Frees x->state, if set, after the response is made. */
    void (*end)(struct api_exchange *x);
};

/* True if machines poll the endpoint: its successes are not logged. */
static inline bool api_endpoint_is_probe(const struct api_endpoint *endpoint)
{
    return endpoint->flags & API_PROBE;
}

/* Finds the service's endpoint for the path, which is percent-encoded, and for the method; else one for the
 * path; else NULL. Fills x->captures. */
const struct api_endpoint *api_route_find(struct api_exchange *x, bool *method_allowed);

/* The endpoint of the path with one more name before its last segment, such as /monitors/{group}/{name}/evaluate for
 * /monitors/g/evaluate, which is taken for a monitor of the name evaluate; NULL if there is none. */
const struct api_endpoint *api_route_with_name(const struct api_exchange *x);

/* True if the request is to change something, as its endpoint and its method say. */
bool api_route_writes(const struct api_exchange *x);

/* Formats the methods that the path supports: "GET, HEAD". */
void api_route_methods(const struct api_exchange *x, char *to, size_t size);
