/* The connections that are open, how long each may take over what it does, and the thread that
 * ends those that take longer. libmicrohttpd's own timer only measures silence, so a byte a
 * second would keep a connection for ever. */
#ifndef KLDIV_SERVER_CONNECTIONS_H
#define KLDIV_SERVER_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What a connection is waiting for. */
enum srv_phase {
    SRV_HEADER, /* the header of a request: 10 s in all; --timeout more between requests */
    SRV_BODY,   /* its body: 1 KiB/s at least, after 10 s of grace */
    SRV_REPLY,  /* us, or a reader, whose silence libmicrohttpd measures */
};

struct srv_connection {
    struct srv_connection *next, *previous;
    int fd;
    _Atomic enum srv_phase phase;
    atomic_ullong due; /* when the phase's grace ends, in milliseconds of the monotonic clock */
    atomic_size_t received;
};

/* Starts the reaper. `idle_seconds` is what a connection may wait between requests. */
bool srv_connections_start(size_t idle_seconds);
void srv_connections_stop(void);

/* NULL if memory is out. The descriptor stays the caller's, who removes the connection before
 * closing it. */
struct srv_connection *srv_connection_add(int fd);
void srv_connection_remove(struct srv_connection *connection);
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* How many are open. */
size_t srv_connections_open(void);

/* Ends those that wait for a request, letting one that is on its way already be read. */
void srv_connections_close_idle(void);

#endif
