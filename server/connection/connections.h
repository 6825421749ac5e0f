/* The table of open connections: how many there may be, and what each waits for. */
#pragma once

#include "api/memory/buffer.h"
#include "server/connection/framing.h"
#include "server/connection/quotas.h"
#include "server/connection/wakeup.h"
#include "server/connection/watcher.h"
#include "server/net/client_address.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* srv_phase: the event that a connection waits for. deadlines.c has their bounds. */
enum srv_phase {
    SRV_HEADER, /* the rest of a request's header, or the first request */
    SRV_IDLE,   /* another request */
    SRV_BODY,   /* the rest of a body */
    SRV_WORK,   /* the server */
    SRV_REPLY,  /* the client, which reads the response */
};

/* srv_client: what the client has done with its side of the connection. */
enum srv_client { SRV_OPEN, SRV_HALF_CLOSED, SRV_GONE };

/* srv_peer: who a connection's client is. */
struct srv_peer {
    bool is_local;                  /* of a unix socket */
    bool is_proxy;                  /* a trusted one */
    struct ucred process;           /* of a local client, when it connected */
    char address[SRV_ADDRESS_TEXT]; /* of others */
};

/* srv_progress: a body that arrives; written by the network thread. on_time: the time by which a client at the minimal
 * rate would have sent as much, in units of a byte; never later than now, as bytes that come early are no credit. */
struct srv_progress {
    atomic_size_t received; /* bytes so far */
    atomic_ullong on_time;
};

/* srv_taken: bytes of the response that the client has taken, at the first look and at the last one that saw more,
 * and the time of that, in ms. */
struct srv_taken {
    unsigned long long first, last, at;
};

/* srv_ahead: bytes of a connection that have come and are not used yet: the beginning of a header, or what follows a
 * request that is being answered. They begin at bytes[used]. The framing has read the first `checked` of them. */
struct srv_ahead {
    char *bytes;
    size_t used;
    atomic_size_t size;
    size_t checked;
};

/* srv_message: a request, as far as its connection knows it; the first member of its structure. is_ready: it may be
 * answered, as it is complete or refused. must_close: the connection ends with its response. is_head: that has no body. */
struct srv_message {
    bool is_ready, must_close, is_head;
};

struct srv_connection {
    struct srv_watched watched;
    enum srv_quota quota;
    struct srv_session *session; /* of TLS; NULL on a plain connection */
    struct srv_peer peer;
    struct srv_wakeup wakeup;

    /* Written by the network thread: */
    struct srv_framing framing;
    struct srv_ahead ahead;
    _Atomic(struct srv_message *) request; /* from its header to the end of its response */
    _Atomic enum srv_phase phase;
    atomic_ullong since; /* start of the phase, in ms */
    atomic_ullong begun; /* start of the request, in ms */
    struct srv_progress progress;
    size_t go_on_left;  /* bytes of 100 Continue that are to be sent before anything else */
    size_t encrypted;   /* bytes of the response that libmicrohttpd does not know to be sent */
    atomic_size_t held; /* bytes of memory of the body, or of the response */
    _Atomic(void *) suspended; /* libmicrohttpd's connection in SRV_WORK; its job resumes it */

    /* Written by any thread: */
    atomic_ullong sent;                       /* bytes sent to a local client */
    _Atomic(const struct srv_error *) ending; /* why the server ends it; a static structure */
    atomic_bool read_shut; /* its thread was told to read what has arrived, and to end */
    atomic_bool stop;      /* nobody waits for the response any more */
    /* A body that arrives. Another thread may take it and free its memory. */
    _Atomic(struct api_buffer *) evictable;

    /* Written with the watcher locked: */
    bool makes_room; /* it ends for another of its quota */
    _Atomic enum srv_client client;
    unsigned
        sent_ahead; /* bytes of the response that were sent as a test of the client: 0 or 1; the network thread clears it */
    struct srv_taken taken;
};

/* Sets the function by which the watcher looks at connections, before the first one. */
void srv_connections_init(srv_look *look);

/* Adds an admitted connection, before libmicrohttpd takes its descriptor. False, and it does not count any more, if
 * memory or the system's resources are exhausted. */
bool srv_connection_add(int fd, enum srv_quota quota, bool tls, const struct sockaddr *address);

/* Removes and frees a connection, before its descriptor is closed. */
void srv_connection_remove(struct srv_connection *connection);

/* The connection of a descriptor, or NULL. Called by the connection's network thread, or with the
 * watcher locked; by any thread of a descriptor that is no connection's. */
struct srv_connection *srv_connection_at(int fd);

/* Ends a connection. Its client is told the reason while its request is still being read. The watcher is locked; the
 * first reason counts. */
void srv_connection_end(struct srv_connection *connection, const struct srv_error *why);

/* Suspends the connection in its network thread, once it is in SRV_WORK; its job resumes it once. */
void srv_connection_suspend(struct srv_connection *connection, struct MHD_Connection *library);
void srv_connection_resume(struct srv_connection *connection);

/* Frees the memory of a body that a thread has put up to be freed. False if there is none, or if the network thread uses
 * it at this moment. The watcher is locked. */
bool srv_connection_take_body(struct srv_connection *connection);

/* Takes back a body that was put up to be freed; false if its memory was freed. Called by the network thread. */
bool srv_connection_reclaim_body(struct srv_connection *connection);

/* Lets the connection's thread read again, and see the end that the client or the server has set. */
void srv_connection_shutdown_read(struct srv_connection *connection);

/* Closes connections that wait for another request, and those that have sent none for 1 s. A
 * request in transit is still read. */
void srv_connections_close_idle(void);

/* Gives the next connection from the watcher's entry *i on, and advances *i; NULL at the end. The watcher is locked. */
struct srv_connection *srv_connection_next(size_t *i);
