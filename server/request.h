/* One request from its first line to the end of its reply. All calls for one request come from
 * its connection's network thread, but for the work on a large one, which a job thread does while
 * the connection is suspended. */
#ifndef KLDIV_SERVER_REQUEST_H
#define KLDIV_SERVER_REQUEST_H

#include "api/api.h"
#include "server/guard.h"
#include "server/jobs.h"

#include <microhttpd.h>
#include <stdatomic.h>

enum { MAX_ACCEPT = 512 };

enum srv_step {
    SRV_NEW,     /* the header is not there yet */
    SRV_READING, /* the body is coming in */
    SRV_REFUSED, /* the reply is made; the body is read and dropped */
    SRV_WORKING, /* a job thread has it */
    SRV_ANSWERED,
};

struct srv_request {
    struct srv_job job;
    struct MHD_Connection *connection;
    struct srv_connection *place; /* in the table of connections; may be NULL */
    const atomic_bool *draining;
    unsigned references; /* libmicrohttpd's request, and its response, which holds the reply */
    enum srv_step step;
    bool in_lobby, must_close;
    int unread; /* a descriptor of the connection whose rest is dropped after the reply, or -1 */
    struct srv_framing framing;
    struct api_exchange exchange;
    struct api_buffer body;
    char nothing[API_PADDING]; /* the body of those that have none */
    size_t received;           /* bytes of body, dropped ones included */
    double start, read_ms;
    char id[129];
    char accept[MAX_ACCEPT]; /* several Accept lines joined */
    char target[];           /* as it was sent, NUL, and its path, percent-encoded */
};

/* NULL if memory is out. */
struct srv_request *srv_request_new(const struct api_service *service, const char *target,
                                    bool in_lobby);

/* The header is there. */
enum MHD_Result srv_request_begin(struct srv_request *request, struct MHD_Connection *connection,
                                  const char *method, const char *version);

/* A piece of the body. */
enum MHD_Result srv_request_body(struct srv_request *request, const char *bytes, size_t size);

/* The body is complete, or a job is done. */
enum MHD_Result srv_request_complete(struct srv_request *request,
                                     struct MHD_Connection *connection);

/* Logs and counts it; `sent` if the reply went out whole. */
void srv_request_done(struct srv_request *request, bool sent);

#endif
