/* The table of open connections: how many there may be, and what each waits for. */
#pragma once

#include "api/memory/buffer.h"
#include "server/connection/framing.h"
#include "server/connection/upload.h"
#include "server/connection/waker.h"
#include "server/net/client_address.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
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

struct srv_connection {
    struct srv_connection *next, *previous;
    int fd;
    unsigned number; /* unlike those of other connections that had the descriptor */
    enum srv_quota quota;
    bool tls;
    bool local;                     /* of a unix socket */
    struct ucred peer;              /* of a local client: its process when it connected */
    char address[SRV_ADDRESS_TEXT]; /* of its client */
    bool is_proxy;                  /* a trusted one */
    struct srv_waker waker;
    unsigned long long opened; /* in ms */

    /* Written by the network thread: */
    void *session; /* of GnuTLS, once a record was received */
    struct srv_framing framing;
    const struct srv_error *error; /* for which its reading has ended; its client is to be told */
    size_t headers;                /* handed on by libmicrohttpd */
    char refused_target[256];      /* of a request that the framing refused by its first bytes */
    struct srv_upload upload;
    atomic_bool arriving; /* a part of a request has come */
    atomic_bool refused;  /* the framing has refused what came after a good request */
    _Atomic enum srv_phase phase;
    atomic_ullong since;       /* start of the phase, in ms */
    atomic_ullong begun;       /* start of the request, in ms */
    atomic_size_t received;    /* bytes of the body so far */
    atomic_size_t held;        /* bytes of memory of the body, or of the response */
    _Atomic(void *) request;   /* from its first line to its end */
    _Atomic(void *) suspended; /* libmicrohttpd's connection in SRV_WORK; its job resumes it */

    /* Memory of a body while it arrives. The network thread locks it for each use; the thread that evicts tries
     * to, and frees it: a slow body is not in use. */
    pthread_mutex_t body_lock;
    struct api_buffer *body; /* NULL unless it may be taken */
    bool body_taken;

    /* Written by any thread: */
    atomic_ullong sent;                       /* bytes sent to a local client */
    _Atomic(const struct srv_error *) ending; /* why the server ends it; a static structure */
    atomic_bool read_shut; /* its thread was told to read what has arrived, and to end */
    atomic_bool stop;      /* nobody waits for the response any more */

    /* Written with the table locked: */
    bool makes_way;  /* for another of its quota */
    unsigned probed; /* bytes of the response that probes have sent; the network thread clears it */

    /* Written by the watching thread alone, with the table locked: */
    enum srv_client client;
    unsigned long long acked, acked_at;   /* bytes that the client has taken; when, in ms */
    unsigned long long first_acked;       /* at the first look at this response */
    unsigned long long body_lag, seen_at; /* how far the body is behind its rate; when; in ms */
    size_t seen;                          /* `received` at that time */
};

/* Makes room for descriptors below `descriptors`. False if memory is exhausted. */
bool srv_connections_init(size_t descriptors);

/* Counts a connection before libmicrohttpd takes it; false if `limit` connections of the quota exist, without
 * those that make way. */
bool srv_connections_admit(enum srv_quota quota, size_t limit);

/* Ends a connection, with the table locked, to make way for another of its quota; false if enough do. */
bool srv_connection_make_way(struct srv_connection *connection);

/* Undoes srv_connections_admit after libmicrohttpd refused the connection. */
void srv_connections_cancel(enum srv_quota quota);

/* Forgets admitted connections that libmicrohttpd has dropped without a notice, as it does when
 * memory is exhausted. A connection is added within ms of its admission: twice a second at most, it corrects the
 * count by the smallest number that was pending all the time. One thread calls it. */
void srv_connections_forget_dropped(void);

/* Adds an admitted connection to the table, `local` if it is of a unix socket. NULL if memory is exhausted.
 * The caller keeps the descriptor and removes the connection before closing it. */
struct srv_connection *srv_connection_add(int fd, enum srv_quota quota, bool tls, bool local);
void srv_connection_remove(struct srv_connection *connection, enum srv_quota quota);

/* The connection of a descriptor, or NULL. Called by the connection's network thread, or with the
 * table locked; by any thread of a descriptor that is no connection's. */
struct srv_connection *srv_connection_at(int fd);

/* Begins a phase. Called by the connection's network thread. */
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* Ends a connection, for a reason that its client is told while its request is still read. Any
 * thread may call it while the connection is in the table; the first reason counts. */
void srv_connection_end(struct srv_connection *connection, const struct srv_error *why);

/* Suspends the connection in its network thread, for SRV_WORK; its job resumes it once. */
void srv_connection_suspend(struct srv_connection *connection, struct MHD_Connection *library);
void srv_connection_resume(struct srv_connection *connection);

/* Frees the memory of a body that arrives, with the table locked, for another thread's; false if it is in use. */
bool srv_connection_take_body(struct srv_connection *connection);

/* Ends the time in which the body's memory may be taken; false if it was. Called by the network thread. */
bool srv_connection_keep_body(struct srv_connection *connection);

/* Lets the connection's thread read again, and see the end that the client or the server has set. */
void srv_connection_shutdown_read(struct srv_connection *connection);

/* Number of connections that are admitted and not removed. */
size_t srv_connections_open(void);

/* Closes connections that wait for another request, and those that have sent none for 1 s. A
 * request in transit is still read. */
void srv_connections_close_idle(void);

/* Locks the table, and gives its first entry; nothing is added or removed until it is unlocked. */
struct srv_connection *srv_connections_lock(void);
void srv_connections_unlock(void);

/* ---- eviction.c: the connection that ends so that others can be served, where there are no more connections or no
 * memory. Nobody waits for memory: who cannot be served is refused. */

/* Counts a connection before libmicrohttpd takes it. If `limit` connections of the quota exist already, the
 * slowest one is ended to make room, unless this one has `to_wait`; false if none is slow. */
bool srv_evict_for_connection(enum srv_quota quota, size_t limit, bool to_wait);

/* Ends the slowest request that holds the most memory, if it is behind its minimum rate, and if all such requests
 * together hold the `missing` bytes. True if its memory is free at once: that of a body is; that of a response
 * once its network thread has noticed. Called by the network thread of `asking`. */
bool srv_evict_for_memory(const struct srv_connection *asking, size_t missing);

/* ---- watch.c: the thread that watches connections: it ends the late ones, and notices clients that leave. */

/* Starts the thread; false if it cannot be started. */
bool srv_watch_start(void);
void srv_watch_stop(void);

/* Watches a connection of the table for its client's end. False if the system refuses: its end is
 * then seen when a deadline passes. */
bool srv_watch(const struct srv_connection *connection);
