/* The table of endpoints. Routing, 404, 405, Allow and the root page come from it; adding one is
 * a row, and a function of its own. */
#ifndef KLDIV_API_ENDPOINTS_H
#define KLDIV_API_ENDPOINTS_H

#include "api/api.h"
#include "api/problem.h"

/* One request on its way through an endpoint. */
struct api_exchange {
    const struct api_service *service;
    const struct api_request *request;
    struct api_reply *reply; /* its body is empty and on the budget */
    struct api_problem problem;
};

struct api_endpoint {
    const char *method; /* GET also answers HEAD */
    const char *path;   /* a part in brackets may be absent */
    const char *summary;
    bool probe; /* polled by machines: not worth a log line */

    /* Refuses by what the header says. NULL has nothing to refuse. */
    bool (*begin)(struct api_exchange *exchange);

    /* Fills the reply's body and content_type, or fails. */
    bool (*handle)(struct api_exchange *exchange);
};

/* Ends with a row whose path is NULL. */
extern const struct api_endpoint api_endpoints[];

/* Whether the endpoint serves this path. */
bool api_endpoint_has_path(const struct api_endpoint *endpoint, const char *path);

/* kl_div.c */
bool api_kl_div_begin(struct api_exchange *exchange);
bool api_kl_div(struct api_exchange *exchange);
bool api_infer_begin(struct api_exchange *exchange);
bool api_infer(struct api_exchange *exchange);

#endif
