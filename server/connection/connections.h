/* The table of open connections: how many there may be, and what each waits for. */
#pragma once

#include "api/memory/buffer.h"
#include "server/connection/framing.h"
#include "server/connection/watcher.h"
#include "server/net/client_address.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* srv_quota: the limit that a connection counts toward. */
enum srv_quota {
    SRV_REGULAR,  /* --max-connections */
    SRV_RESERVED, /* for health checks when --max-connections are open */
    SRV_ADMIN,    /* of --admin-listen */
    SRV_QUOTAS,
};

/* SRV_ENDING: the maximal number of connections of a quota that make room for others and are not closed yet. */
enum { SRV_ENDING = 64 };

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

/* srv_wakeup: wakes the network thread of a connection that epoll watches, without a word to its client: by an event of
 * another descriptor, which carries the mark of the connection. shutdown(), which wakes it, too, lets a client that still
 * sends fail or wait, and it may not read the response. Any thread may call its functions. */
struct srv_wakeup {
    bool watched, wanted;
    int loop;     /* epoll, while `watched` */
    int event_fd; /* 0 for none */
    epoll_data_t mark;
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
    _Atomic(struct api_buffer *) lent;

    /* Written with the watcher locked: */
    _Atomic enum srv_client client;
    unsigned probed; /* bytes of the response that probes have sent; the network thread clears it */
    struct srv_taken taken;
};

/* Sets the function by which the watcher looks at connections, before the first one. */
void srv_connections_init(srv_look *look);

/* Counts a connection; false if the quota has `limit` connections, not counting those that are about to end to make
 * room. */
bool srv_connections_admit(enum srv_quota quota, size_t limit);

/* Ends a connection to make room for another of its quota; false if enough are about to end. The watcher is locked. */
bool srv_connection_evict(struct srv_connection *connection);

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
bool srv_connection_keep_body(struct srv_connection *connection);

/* Lets the connection's thread read again, and see the end that the client or the server has set. */
void srv_connection_shutdown_read(struct srv_connection *connection);

/* Number of connections that are admitted, and not removed. */
size_t srv_connections_open(void);

/* Closes connections that wait for another request, and those that have sent none for 1 s. A
 * request in transit is still read. */
void srv_connections_close_idle(void);

/* Gives the next connection from the watcher's entry *i on, and advances *i; NULL at the end. The watcher is locked. */
struct srv_connection *srv_connection_next(size_t *i);

/* Notes that the connection's descriptor was added to epoll, or removed. It is also removed at the connection's end,
 * which frees what the wakeup holds. */
void srv_wakeup_add(struct srv_wakeup *wakeup, int loop, epoll_data_t mark);
void srv_wakeup_remove(struct srv_wakeup *wakeup);

/* Wakes the thread, now or as soon as epoll watches the connection; at each call. False if no descriptor is
 * left for that. */
bool srv_wakeup_signal(struct srv_wakeup *wakeup);

/* ---- eviction.c: chooses the connection that ends so that others can be served, when connections or memory run out.
 * Nobody waits for memory: a request that gets none is refused. */

/* Counts a connection before libmicrohttpd takes it. If `limit` connections of the quota exist already, the
 * slowest one is ended to make room, unless this one has `to_wait`; false if none is slow. */
bool srv_evict_for_connection(enum srv_quota quota, size_t limit, bool to_wait);

/* Ends the slowest request that holds the most memory, if it is behind its minimum rate, and if all such requests
 * together hold the `missing` bytes. True if its memory is free at once: that of a body is; that of a response
 * once its network thread has noticed. Called by the network thread of `asking`. */
bool srv_evict_for_memory(const struct srv_connection *asking, size_t missing);
