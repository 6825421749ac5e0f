/* srv_request: one request from its header to the end of its response. The connection's network
 * thread makes all calls; only the work on a large request runs on a job thread, while the
 * connection is suspended. */
#pragma once

#include "api/api.h"
#include "server/connection/connections.h"
#include "server/connection/header.h"
#include "server/request/jobs.h"
#include "server/telemetry/log.h"

#include <microhttpd.h>
#include <stdatomic.h>

/* SMALL_BODY, SMALL_REPLY: bytes up to which a body of a known length and the body of a response need
 * no allocation. */
enum { SMALL_BODY = 4 << 10, SMALL_REPLY = 1 << 10 };

enum srv_step {
    SRV_NEW,     /* its header was not in order, or not complete */
    SRV_READING, /* the body arrives */
    SRV_REFUSED, /* the response is complete; the rest of the body is dropped */
    SRV_WORKING, /* owned by a job thread */
    SRV_ANSWERED,
};

struct srv_request {
    struct srv_message message;
    struct srv_job job;
    struct srv_connection *entry; /* in the table of connections */
    unsigned refcount;            /* of the connection and of libmicrohttpd's response */
    enum srv_step step;
    enum srv_queue queue;
    bool chunked;
    bool is_pooled;    /* kept for another request when it is done */
    bool is_counted;   /* by its response */
    bool is_evictable; /* another thread may free the memory of its body */
    int unread; /* duplicated descriptor whose unread body is dropped after the response, or -1 */
    struct api_exchange exchange;
    struct api_buffer body;
    size_t received;         /* bytes of the body, dropped ones included */
    double start, marked;    /* marked: the end of the last span */
    double spans[SRV_SPANS]; /* ms */
    char id[129];
    char client[SRV_ADDRESS_TEXT]; /* as a trusted proxy names it; else "" */
    const char *authority;         /* of an absolute target, in place of Host; NULL for a path */

    /* Not zeroed at the begin: */
    struct srv_header header;
    char small_body[SMALL_BODY + API_PADDING],
        small_response[SMALL_REPLY]; /* used by `body` and the response */
    char text[]; /* the header, NUL, its path, percent-encoded, NUL, its authority */
};

/* Allocates the request of a connection, with a copy of its header; NULL if memory is exhausted. */
struct srv_request *srv_request_new(const struct api_service *service, struct srv_connection *entry,
                                    const char *header, size_t size);

/* Counts the time since the last mark into a span. */
void srv_request_mark(struct srv_request *request, enum srv_span span);

/* Sets the time in seconds from which on requests are logged as slow; 0: none is. */
void srv_request_log_slow(double seconds);

/* Copies the client's id if it matches [A-Za-z0-9._-]{1,128}; else makes one of 16 hexadecimal
 * digits, unique in this process. `size` is at least 129 bytes. */
void srv_request_identify(const char *given, char *id, size_t size);

/* Drops a reference to a request, which is the argument; the last one frees it. */
void srv_request_release(void *argument);

/* Counts the request once, by the response that it gets or would have got. */
void srv_request_count(struct srv_request *request);

/* Logs and counts the request and drops its reference, the last of which frees it. `sent` is true
 * if the whole response was sent. */
void srv_request_done(struct srv_request *request, bool sent);

/* The request of a connection, or NULL. */
static inline struct srv_request *srv_request_of(const struct srv_connection *entry)
{
    return (struct srv_request *)atomic_load(&entry->request);
}

/* ---- begin.c: the door's calls for a request that arrives, as srv_reader says */

void srv_begin_init(const struct api_service *for_requests);
bool srv_begin(struct srv_connection *entry, const char *text, size_t size, bool is_here);
bool srv_refuse_arriving(struct srv_connection *entry, const char *text, size_t size,
                         const struct srv_error *why);

/* ---- work.c */

/* Goes on with a request that is ready. True if its response is complete; else a job thread or the store has it, the
 * connection is suspended, and the next call is due when it is resumed. Called by the network thread. */
bool srv_work(struct srv_request *request, struct MHD_Connection *connection);

/* ---- response.c */

/* Makes the response to a request, which holds a reference to it; NULL if memory is exhausted. A response
 * that lacks a field would be another one: without its Content-Encoding, a body is taken for JSON. */
struct MHD_Response *srv_response_make(struct srv_request *request, bool is_draining);

/* ---- body.c: the body of a request as it arrives. Memory for it is reserved as its bytes come, never for a length that was
 * declared; nobody waits for memory. Where none is left, the slowest request that holds most ends, if it is behind
 * its minimal rate; if none is, the body that asks is refused. */

/* The error of a request for which no memory is left. */
extern const struct srv_error srv_no_memory;

/* True if there is memory for a body of the declared length now. */
bool srv_body_fits(const struct srv_request *request);

/* Take bytes of the body, or have them received where they stay, as srv_reader says. */
const struct srv_error *srv_body_receive(struct srv_message *message, const char *bytes, size_t n);
char *srv_body_space(struct srv_message *message, size_t *n, const struct srv_error **why);
void srv_body_filled(struct srv_message *message, size_t n);

/* Takes back the memory of the body, which others may have freed: false then. */
bool srv_body_reclaim(struct srv_request *request);
