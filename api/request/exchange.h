/* api_exchange: one request and its response, as bytes, and the configuration that all requests share. */
#pragma once

#include "api/json/problem.h"
#include "api/memory/buffer.h"
#include "api/request/job.h"
#include "api/request/tokens.h"
#include "api/text/number.h"
#include "api/text/trace.h"
#include "lib/kldiv.h"

#include <stdatomic.h>
#include <stdint.h>

enum api_log_level { API_LOG_ERROR, API_LOG_WARNING, API_LOG_INFO, API_LOG_DEBUG };

/* api_service: the configuration that all requests share. The host fills it before the first
 * request and leaves it unchanged until after the last; all threads read it. */
struct api_service {
    const struct api_endpoint *endpoints; /* api_endpoints, or others; up to a row without a path */
    struct kl_pool *pool;                 /* may be NULL */
    struct api_budget *budget;            /* for bodies, tensors and responses; may be NULL */
    size_t max_body;                      /* bytes, after inflation */
    struct api_statistics *statistics;    /* of inference requests; may be NULL */
    const char *cors_origin;   /* origin whose pages may read responses and write, "*", or NULL */
    struct api_tokens *tokens; /* NULL: everyone may ask */
    struct api_monitors *monitors; /* NULL: there are none */
    struct api_regions *regions;   /* of shared memory; NULL: none can be registered */
    bool ready_needs_store;        /* true if /readyz fails while the store does */
    const char *allowed_hosts;     /* a list for api_hosts_have; NULL: any host */
    bool tls;                      /* true if all clients come by TLS */
    enum api_log_level log_level;  /* of the host, as /v2/logging tells it */
    void *host;                    /* passed to ready and metrics, which any thread may call */
    bool (*ready)(void *host);     /* false while draining */
    void (*metrics)(void *host, struct api_buffer *out); /* appends Prometheus text */
};

/* api_request: one request. The host owns everything that it points to, until api_end. */
struct api_request {
    const char *method;
    const char *path;  /* as sent, percent-encoded, before any "?" */
    const char *query; /* raw, after the "?"; NULL or "" for none */

    /* Value of a header field, found by name in any case; NULL if it is absent. Several lines of
     * Accept are joined by commas; Host is that of the target, if it names one. */
    const char *(*header)(const void *headers, const char *name);
    const void *headers;
    uint64_t content_length; /* as declared, 0 if absent */
    char *body; /* set before api_handle, which may change it; API_PADDING zero bytes follow */
    size_t body_size;
};

static inline const char *api_request_header(const struct api_request *request, const char *name)
{
    return request->header ? request->header(request->headers, name) : NULL;
}

/* api_header: a header field. Both strings are static, or live as long as the response. */
struct api_header {
    const char *name, *value;
};

/* API_RESPONSE_TENSORS: maximum number of tensors that a response sends without a copy. */
#define API_RESPONSE_TENSORS 3

/* api_response: the response to a request. Its content is `file`; or `shared`, then `body`, then `tensors`. */
struct api_response {
    int status;               /* 0 until the response is made */
    const char *content_type; /* NULL if there is no content */
    struct api_header headers[16];
    size_t n_headers;
    bool lost_header;          /* true if there was no room for one */
    char header_text[400];     /* storage for one value that is not static */
    char etag[24];             /* storage for that of the body */
    bool compress;             /* at any size, if the client accepts a coding */
    struct api_shared *shared; /* NULL if there is none */
    struct api_buffer body;
    struct api_buffer tensors[API_RESPONSE_TENSORS];
    size_t n_tensors;
    const void *file;          /* static bytes; NULL if there are none */
    size_t file_size;          /* bytes */
    const char *cache_control; /* NULL: no-store */
    const char *policy;        /* Content-Security-Policy; NULL: nothing may be loaded */

    /* For logs and metrics: */
    const struct api_endpoint *endpoint; /* NULL if the path was unknown */
    const char *code;                    /* of the problem; NULL if there is none */
    unsigned warnings;                   /* as bits: enum kl_warning, then enum kl_finding */
    enum kl_reduction reduction;         /* as applied */
    size_t elements;                     /* number of compared elements */
    double decode_ms, compute_ms, encode_ms;
};

/* api_captures: the path segments that match {names} of the endpoint's path, percent-decoded, in
 * order of the names. They have room for API_MAX_CAPTURED bytes together. The rest is cut off: a name that is so long is valid
 * nowhere. */
enum { API_CAPTURES = 4, API_CAPTURED = 512, API_MAX_CAPTURED = API_CAPTURED - API_CAPTURES };
struct api_captures {
    const char *value[API_CAPTURES];
    size_t n, used;
    char text[API_CAPTURED];
};

/* api_place: where the work of a request is done. */
enum api_place {
    API_HERE,
    API_STORE_READS,  /* by the store's thread, beside other servers */
    API_STORE_ADDS,   /* likewise; counts are added to open windows */
    API_STORE_WRITES, /* by the store's thread, in a transaction of its own */
    API_NOTIFIER,     /* by the sender of notifications */
};

/* api_outcome: of parse and of run. */
enum api_outcome {
    API_FAILED, /* x->problem says why; from run without one: the store or memory failed, and the transaction ends */
    API_DONE,
    API_REFRESH, /* parse, unless x->is_refreshed: have the store read x->known, then parse again */
    API_PARSE_AGAIN, /* run: the monitors are not those of x->known any more */
};

/* api_phase: the next step. */
enum api_phase { API_BEGIN, API_ESTIMATE, API_PARSE, API_RUN, API_WRITE };

/* API_LIGHT_NS: maximum work, in ns, of a network thread at a time. Handing work to another thread
 * costs 5,000 to 8,000 ns. */
#define API_LIGHT_NS 100e3

/* api_exchange: one request from its header to its response. The host sets `service` and `request`
 * and zeroes the rest; only one thread uses it at a time. */
struct api_exchange {
    const struct api_service *service;
    struct api_request request;
    struct api_response response;
    struct api_token token;  /* the one that came with the request; no name if none was wanted */
    struct api_trace trace;  /* the caller's, from its header; empty without one */
    bool writes;             /* it changes something, at an endpoint that else only reads */
    double cost_ns;          /* estimate of the work that api_handle left undone */
    const atomic_bool *stop; /* set by any thread when nobody waits for the response; may be NULL */

    size_t max_body; /* bytes of the body, as they arrive; set by api_begin */

    /* Called once, by another thread, when the work given to api_wait is done. NULL: api_wait
     * blocks. */
    void (*resume)(struct api_exchange *x);
    struct api_store_job
        *work;      /* &job, if it has to be done before the response can be made; or NULL */
    bool is_stored; /* the store has done so, and the client is told, even if it has left */

    /* Private to the service: */
    struct api_problem problem;
    struct api_captures captures;
    const struct api_codec *decoder, *encoder; /* chosen from the header */
    bool is_untyped;    /* the Content-Type leaves the format of the body open */
    const char *coding; /* Content-Encoding of the body; NULL for none */
    enum api_phase phase;
    enum api_place place;
    enum api_outcome outcome; /* of the last parse or run */
    int status;     /* of the response that `handle` makes; 0: 200, or 204 without a body */
    bool is_parsed; /* x->state is what parse made of it */
    struct api_segments *segments; /* of the group, which the request is about, too; or NULL */
    struct api_known_set *known; /* monitors of the path, by which parse reads the body; or NULL */
    bool is_refreshed;           /* they were read for this request */
    unsigned replaced;           /* how often monitors were replaced while it waited */
    struct api_store_job job;
    struct api_buffer inflated; /* the body, if it was coded */
    void *state;                /* of the endpoint: see api_steps */
};
