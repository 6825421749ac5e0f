/* The whole service without a socket: requests and replies as bytes. The host (a server, a test,
 * a fuzzer) owns connections and threads; this owns what requests mean.
 *
 *     struct api_exchange x = {.service = &service, .request = {...}};
 *     if (api_begin(&x)) {              the header was enough to go on
 *         ... read the body into x.request.body
 *         api_handle(&x, true);
 *     }
 *     ... send x.reply
 *     api_end(&x);
 */
#ifndef KLDIV_API_API_H
#define KLDIV_API_API_H

#include "api/memory/buffer.h"
#include "api/problem.h"
#include "api/text/number.h"
#include "lib/kldiv.h"

#include <stdint.h>

/* What requests are served from. Made by the host before the first request, unchanged until
 * after the last; shared by all threads. */
struct api_service {
    const struct api_endpoint *endpoints; /* ended by a row without a path; NULL: api_endpoints */
    struct kl_pool *pool;                 /* may be NULL */
    struct api_budget *budget;            /* for bodies, tensors and replies; may be NULL */
    size_t max_body;                      /* bytes, inflated ones */
    struct api_statistics *statistics;    /* of inference requests; may be NULL */
    const char *cors_origin;   /* the origin whose pages may read answers and write, "*", or NULL */
    void *host;                /* for the two functions below, which any thread may call */
    bool (*ready)(void *host); /* gives false while draining */
    void (*metrics)(void *host, struct api_buffer *out); /* appends Prometheus text */
};

/* One request. All of it is borrowed. */
struct api_request {
    const char *method;
    const char *path;  /* as it was sent, percent-encoded, before any "?" */
    const char *query; /* raw, after it; NULL or "" for none */

    /* The value of a header field by its name, in any case; NULL if it is absent. Several lines of
     * Accept are joined by commas. `headers` is passed on. */
    const char *(*header)(const void *headers, const char *name);
    const void *headers;
    uint64_t content_length; /* as declared, 0 if not */
    char *body; /* once it is there, and free to change; API_PADDING zero bytes follow */
    size_t body_size;
};

const char *api_request_header(const struct api_request *request, const char *name);

/* Both static, or as long-lived as the reply. */
struct api_header {
    const char *name, *value;
};

/* The tensors of an answer that may go out without a copy. */
#define API_REPLY_TENSORS 3

/* The reply to a request. The content is `body` and, after it, `tensors`. */
struct api_reply {
    int status;               /* 0 until the reply is made */
    const char *content_type; /* NULL with nothing to describe */
    struct api_header headers[10];
    size_t n_headers;
    char header_text[400]; /* room for one value that is not static */
    bool compress;         /* if the client accepts a coding, however small the content */
    struct api_buffer body;
    struct api_buffer tensors[API_REPLY_TENSORS];
    size_t n_tensors;

    /* For logs and metrics: */
    const struct api_endpoint *endpoint; /* NULL if the path was unknown */
    const char *code;                    /* of the problem, if that is what it tells */
    unsigned warnings;                   /* as bits: enum kl_warning, then enum kl_finding */
    enum kl_reduction reduction;         /* the one that applied */
    size_t elements;                     /* compared */
    double decode_ms, compute_ms, encode_ms;
};

/* Parts of a path that stand for {names} in its endpoint's, percent-decoded, in their order. */
enum { API_CAPTURES = 4, API_CAPTURED = 512 };
struct api_captures {
    const char *value[API_CAPTURES];
    size_t n, used;
    char text[API_CAPTURED];
};

/* One request on its way. Zeroed but for `service` and `request`. One thread has it at a time. */
struct api_exchange {
    const struct api_service *service;
    struct api_request request;
    struct api_reply reply;
    double cost_ns; /* of what api_handle left to be done, an estimate */

    /* The service's own: */
    struct api_problem problem;
    struct api_captures captures;
    const struct api_codec *decoder, *encoder; /* chosen from the header */
    void *state;                               /* of the endpoint, which frees it in `end` */
};

/* Looks at everything but the body: path, method, media types, declared length. False if that
 * was enough to refuse; the reply is made then, and the body need not be read. Never blocks. */
bool api_begin(struct api_exchange *x);

/* Makes the reply, after api_begin gave true and the body is there. With `patient` false it gives
 * false before work that would take longer than others should wait for the thread, some 100 us, with
 * an estimate in x->cost_ns: call it again, patient, from another thread. */
bool api_handle(struct api_exchange *x, bool patient);

/* Makes the reply to a request that the host itself refuses: any code of api/problem.c. Takes the
 * place of a reply that is there. */
void api_refuse(struct api_exchange *x, const char *code, const char *detail);

/* Frees what the exchange holds, its reply included. */
void api_end(struct api_exchange *x);

/* The bytes of the reply's content. */
size_t api_reply_size(const struct api_reply *reply);

/* An endpoint's path, a label of few values; and whether machines poll it, which is not worth a log
 * line. */
const char *api_endpoint_path(const struct api_endpoint *endpoint);
bool api_endpoint_is_probe(const struct api_endpoint *endpoint);

/* The OpenAPI document, NUL-terminated. */
extern const char api_openapi[];

#endif
