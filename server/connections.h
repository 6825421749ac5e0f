/* The table of open connections, the deadline of each phase, and the thread that closes late
 * connections. libmicrohttpd's timer measures only silence, and one byte per second would keep a
 * connection for ever. */
#ifndef KLDIV_SERVER_CONNECTIONS_H
#define KLDIV_SERVER_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* srv_quota: the limit that a connection counts toward. Reserved connections are for health
 * checks when --max-connections are open. */
enum srv_quota { SRV_REGULAR, SRV_RESERVED };
#define SRV_QUOTAS 2

/* srv_phase: the event that a connection waits for. */
enum srv_phase {
    SRV_HEADER, /* a request's header: 10 s in all, 1 s if reserved; plus --timeout if idle */
    SRV_BODY,   /* its body: at least 1 KiB/s, after 10 s of grace */
    SRV_REPLY,  /* the server, or the client's reads, whose silence libmicrohttpd measures */
};

struct srv_connection {
    struct srv_connection *next, *previous;
    int fd;
    enum srv_quota quota;
    _Atomic enum srv_phase phase;
    atomic_ullong due; /* end of the phase's grace, in ms */
    atomic_size_t received;
    unsigned long long opened; /* in ms */
    atomic_bool served;        /* has answered a request */
    atomic_bool shut;          /* set by srv_connections_close_idle */
    _Atomic(void *) request;   /* from its first line to its end; the network thread writes it */
};

/* Starts the thread that closes late connections. `idle_seconds` is the limit between requests. */
bool srv_connections_start(size_t idle_seconds);
void srv_connections_stop(void);

/* Counts a connection before libmicrohttpd takes it; false if `limit` connections of the quota
 * exist already. */
bool srv_connections_admit(enum srv_quota quota, size_t limit);

/* Undoes srv_connections_admit after libmicrohttpd refused the connection. The thread corrects
 * the count of connections that libmicrohttpd drops without a notice. */
void srv_connections_cancel(enum srv_quota quota);

/* Adds an admitted connection to the table. NULL if memory is exhausted: the connection then has
 * no deadlines. The caller keeps the descriptor and removes the connection before closing it. */
struct srv_connection *srv_connection_add(int fd, enum srv_quota quota);
void srv_connection_remove(struct srv_connection *connection, enum srv_quota quota);
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* Number of connections that are admitted and not removed. */
size_t srv_connections_open(void);

/* Closes connections that wait for another request, and those that have sent none for 1 s. A
 * request in transit is still read. */
void srv_connections_close_idle(void);

#endif
