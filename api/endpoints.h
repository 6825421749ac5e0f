/* The table of endpoints. Routing, 404, 405, Allow and the root page come from it; adding one is
 * a row, and a file of its own. */
#ifndef KLDIV_API_ENDPOINTS_H
#define KLDIV_API_ENDPOINTS_H

#include "api/api.h"

/* Work beyond this is handed to another thread, which costs 5,000 to 8,000 ns. */
enum { API_LIGHT_NS = 100000 };

enum {
    API_PROBE = 1,  /* polled by machines: answered when connections are full, not logged */
    API_HEAVY = 2,  /* never handled on a network thread */
    API_WRITES = 4, /* changes state: pages of other origins are refused */
};

struct api_endpoint {
    const char *method;  /* GET also answers HEAD */
    const char *path;    /* a part in [brackets] may be absent, a part in {braces} is captured */
    const char *summary; /* a noun phrase */
    unsigned flags;

    /* Refuses by what the header says. NULL has nothing to refuse, and takes no memory budget. */
    bool (*begin)(struct api_exchange *x);

    /* Does what can be done in some microseconds, with the body there, and sets x->cost_ns. NULL has
     * nothing to prepare. May be left out by the host. */
    bool (*prepare)(struct api_exchange *x);

    /* Fills the reply's body and content_type, and its status where that is not 200; or fails. */
    bool (*handle)(struct api_exchange *x);

    /* Frees x->state, if that was set, once the reply is made. */
    void (*end)(struct api_exchange *x);
};

/* Ends with a row whose path is NULL. */
extern const struct api_endpoint api_endpoints[];

/* How a part of the paths tells of problems. */
struct api_dialect {
    const char *prefix; /* of paths; the first that fits counts */
    const char *content_type;
    bool compresses; /* JSON answers, where the client accepts that */
    void (*write_problem)(const struct api_exchange *x, struct api_buffer *out);

    /* Says what there is instead of a path that is not served. */
    bool (*fail_not_found)(const char *path, struct api_problem *problem);
};
const struct api_dialect *api_dialect_of(const char *path);

/* Whether the endpoint serves a path as it was sent; fills *captures. */
bool api_endpoint_has_path(const struct api_endpoint *endpoint, const char *path,
                           struct api_captures *captures);

/* kl_div.c */
bool api_kl_div_begin(struct api_exchange *x);
bool api_infer_begin(struct api_exchange *x);
bool api_loss_prepare(struct api_exchange *x);
bool api_loss(struct api_exchange *x);
void api_kl_div_end(struct api_exchange *x);
void api_infer_end(struct api_exchange *x);

#endif
