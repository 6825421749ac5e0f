/* The whole service without a socket: requests and replies as bytes. The host (a server, a test,
 * a fuzzer) owns connections and threads; this owns what requests mean. */
#ifndef KLDIV_API_API_H
#define KLDIV_API_API_H

#include "api/memory/buffer.h"
#include "api/text/number.h"
#include "lib/kldiv.h"

#include <stdint.h>

/* What requests are served from. Made by the host before the first request, unchanged until
 * after the last; shared by all threads. */
struct api_service {
    struct kl_pool *pool;              /* may be NULL */
    struct api_budget *budget;         /* for bodies, tensors and replies; may be NULL */
    size_t max_body;                   /* bytes, inflated ones */
    struct api_statistics *statistics; /* of inference requests; may be NULL */
    const char *cors_origin;           /* whose pages may read answers: an origin, "*", or NULL */
    void *host;                        /* for the two functions below, which any thread may call */
    bool (*ready)(void *host);         /* whether /readyz says yes */
    void (*metrics)(void *host, struct api_buffer *out); /* appends Prometheus text */
};

/* One request. All of it is borrowed. Header values are NULL where the header is absent. */
struct api_request {
    const char *method;
    const char *path;  /* percent-decoded, before any "?" */
    const char *query; /* raw, after it; NULL or "" for none */
    const char *content_type, *content_encoding, *accept, *accept_encoding;
    const char *inference_header_length;
    uint64_t content_length; /* as declared, 0 if not */
    char *body; /* once it is there, and free to change; API_PADDING zero bytes follow */
    size_t body_size;
};

/* Both static, or as long-lived as the reply. */
struct api_header {
    const char *name, *value;
};

/* The tensors of an answer that may go out without a copy. */
#define API_REPLY_TENSORS 3

/* What became of a request. The content is `body` and, after it, `tensors`; the host frees them
 * (api_reply_free). */
struct api_reply {
    int status;               /* 0 until the reply is made */
    const char *content_type; /* NULL with nothing to describe */
    struct api_header headers[8];
    size_t n_headers;
    char header_text[400]; /* room for one value that is not static */
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

/* Looks at everything but the body: path, method, media types, declared length. False if that
 * was enough to refuse; the reply is made then, and the body need not be read. Never blocks. */
bool api_begin(const struct api_service *service, const struct api_request *request,
               struct api_reply *reply);

/* Whether api_handle may take longer than others should wait for the thread that calls it. Asked
 * when the body is there. */
bool api_is_heavy(const struct api_request *request);

/* Makes the reply, after api_begin gave true for the same request and reply. Computes for as
 * long as the tensors are large. */
void api_handle(const struct api_service *service, const struct api_request *request,
                struct api_reply *reply);

/* Makes the reply to a request that the host itself refuses: any code of api/problem.c. */
void api_refuse(const struct api_service *service, const struct api_request *request,
                struct api_reply *reply, const char *code, const char *detail);

/* The bytes of its content. */
size_t api_reply_size(const struct api_reply *reply);

/* Leaves it without content. */
void api_reply_free(struct api_reply *reply);

/* Of an endpoint: its path, a label of few values; and whether it is polled by machines and not
 * worth a log line. */
const char *api_endpoint_path(const struct api_endpoint *endpoint);
bool api_endpoint_is_probe(const struct api_endpoint *endpoint);

/* The OpenAPI document, NUL-terminated. */
extern const char api_openapi[];

#endif
