/* api_endpoint: a row of the table of endpoints; api_steps: what a request of it is, from its body to its response. */
#pragma once

#include "api/request/exchange.h"

enum {
    API_PROBE = 1,  /* polled by machines: answered when connections are full, not logged */
    API_HEAVY = 2,  /* the response is never written on a network thread */
    API_WRITES = 4, /* changes state: wants the scope write; pages of other origins are refused */
    API_OPEN = 8, /* answered at any host name, without a token, and with no memory of the budget */
    API_PUBLIC =
        16, /* answered without a token: files that a browser asks for before it knows one */
    API_TAGGED =
        32, /* a response has an ETag of its body: polled by pages that mostly have it already */
    API_OBSERVES = 64, /* beside API_WRITES: the scope observe suffices */
    API_RESERVES =
        128, /* no later row is tried for its path, not even one with a parameter as last segment */
    API_HEALTH = API_PROBE | API_OPEN,
};

/* API_SMALL_BODY: bytes that a body has at most unless its endpoint says more. */
#define API_SMALL_BODY ((size_t)16 << 10)
#define API_WHOLE_BODY SIZE_MAX /* as much as the service takes */

/* api_steps: the steps of a request, in order, each of which may be NULL. Steps that return bool fail with
 * x->problem. `handle` is for small requests at the store: it takes the place of run, read_back and write.
 *
 * Steps run on the thread of the connection, or on another thread if their work is more than that thread may do. If
 * `place` is in the store, the store's thread calls run and read_back, or handle: they may use x->problem and x->state,
 * which no other thread touches until the request is resumed. After their transaction failed it calls them
 * again, with the same state: so they first free or reset what they made before. */
struct api_steps {
    enum api_place place; /* of run; parse may lower x->place; to API_HERE, and run is left out */
    size_t max_body;      /* bytes, as they arrive; 0: API_SMALL_BODY */
    /* The name of a body of at most max_body, in errors: "a note". NULL: no body is read. */
    const char *small;
    size_t state;              /* bytes of x->state, zeroed before parse */
    struct api_freelist *kept; /* states for reuse, which parse initializes; or NULL */

    /* The header is complete. */
    bool (*check)(struct api_exchange *x);

    /* The body is complete, its coding undone: sets x->cost_ns, of parse. */
    bool (*estimate)(struct api_exchange *x);

    /* Reads body and query into x->state; sets x->cost_ns, of run and write. */
    enum api_outcome (*parse)(struct api_exchange *x);

    /* The work; `monitors` is NULL for API_HERE. */
    enum api_outcome (*run)(struct api_exchange *x, struct api_monitors *monitors);

    /* In the transaction of run, when the other jobs in it have run, too; sets x->cost_ns, of write. */
    bool (*read_back)(struct api_exchange *x, struct api_monitors *monitors);

    /* Reads body and query, does the work, and writes the response's body, which is empty before, and is JSON. May set
     * x->status; and x->outcome, API_DONE before, to API_PARSE_AGAIN. */
    bool (*handle)(struct api_exchange *x, struct api_monitors *monitors);

    /* Fills the response's body and content_type, and its status unless that is 200. */
    bool (*write)(struct api_exchange *x);

    /* The response is complete, with its status. */
    void (*count)(const struct api_exchange *x);

    /* Frees what x->state points to, once parse was called: before it is again, and at the end. */
    void (*drop)(struct api_exchange *x);
};

struct api_endpoint {
    const char *method;  /* GET also answers HEAD */
    const char *path;    /* a part in [brackets] may be absent, a part in {braces} is captured */
    const char *summary; /* a short phrase */
    unsigned flags;
    const struct api_steps *steps;
};

static inline enum api_outcome api_outcome_of(bool good) { return good ? API_DONE : API_FAILED; }

/* True if machines poll the endpoint: its successes are not logged. */
static inline bool api_endpoint_is_probe(const struct api_endpoint *endpoint)
{
    return endpoint->flags & API_PROBE;
}
