/* The table of endpoints. Routing, 404, 405, Allow and the root page are derived from it; a new
 * endpoint is a row and a file. */
#ifndef KLDIV_API_ENDPOINTS_H
#define KLDIV_API_ENDPOINTS_H

#include "api/api.h"

enum {
    API_PROBE = 1,  /* polled by machines: answered when connections are full, not logged */
    API_HEAVY = 2,  /* never handled on a network thread */
    API_WRITES = 4, /* changes state: wants the scope write; pages of other origins are refused */
    API_OPEN = 8, /* answered at any host name, without a token, and with no memory of the budget */
    API_PUBLIC =
        16, /* answered without a token: files that a browser asks for before it knows one */
    API_HEALTH = API_PROBE | API_OPEN,
};

struct api_endpoint {
    const char *method;  /* GET also answers HEAD */
    const char *path;    /* a part in [brackets] may be absent, a part in {braces} is captured */
    const char *summary; /* a short phrase */
    unsigned flags;

    /* Checks the header and may refuse. NULL refuses nothing. */
    bool (*begin)(struct api_exchange *x);

    /* Sets x->cost_ns, to know which it may do work of up to `most_ns` on the complete body. Called
     * again, with more, if the cost is higher. NULL for endpoints without work. */
    bool (*prepare)(struct api_exchange *x, double most_ns);

    /* Fills the response's body and content_type, and its status unless that is 200; or fails. */
    bool (*handle)(struct api_exchange *x);

    /* Frees x->state, if set, after the response is made. */
    void (*end)(struct api_exchange *x);
};

/* API_MAX_ENDPOINTS: maximum number of rows of api_endpoints, with the one at the end. Metrics have
 * arrays of that size. */
enum { API_MAX_ENDPOINTS = 64 };

/* Ends with a row whose path is NULL. */
extern const struct api_endpoint api_endpoints[];

/* The table that serves an exchange: the service's own, or api_endpoints. */
const struct api_endpoint *api_endpoints_of(const struct api_exchange *x);

/* api_dialect: the form of problems below a path prefix. */
struct api_dialect {
    const char *prefix; /* of paths; the first match applies */
    const char *content_type;
    bool compresses;      /* true if JSON answers are compressed for clients that accept it */
    bool takes_any_query; /* true if unknown query parameters are passed over */
    void (*write_problem)(const struct api_exchange *x, struct api_buffer *out);

    /* Fails for a path that is not served; the detail names what is, a model or a list. */
    bool (*fail_not_found)(const char *path, struct api_problem *problem);
};
const struct api_dialect *api_dialect_of(const char *path);

/* True if the endpoint serves `path`, which is percent-encoded; fills *captures. */
bool api_endpoint_has_path(const struct api_endpoint *endpoint, const char *path,
                           struct api_captures *captures);

/* metrics.c */
bool api_metrics_prepare(struct api_exchange *x, double most_ns);
bool api_metrics(struct api_exchange *x);

/* Fails if /readyz does not answer 200: the host drains, or the store fails that it needs. */
bool api_check_ready(const struct api_service *service, struct api_problem *problem);

/* kl_div.c */
bool api_kl_div_begin(struct api_exchange *x);
bool api_infer_begin(struct api_exchange *x);
bool api_loss_prepare(struct api_exchange *x, double most_ns);
bool api_loss(struct api_exchange *x);
void api_kl_div_end(struct api_exchange *x);
void api_infer_end(struct api_exchange *x);

#endif
