/* The connections that are open, how long each may take over what it does, and the thread that
 * ends those that take longer. libmicrohttpd's own timer only measures silence, so a byte a
 * second would keep a connection for ever. */
#ifndef KLDIV_SERVER_CONNECTIONS_H
#define KLDIV_SERVER_CONNECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Where a connection was let in: when the main room is full, health checks find the lobby. */
enum srv_room { SRV_MAIN, SRV_LOBBY };
#define SRV_ROOMS 2

/* What a connection is waiting for. */
enum srv_phase {
    SRV_HEADER, /* the header of a request: 10 s in all, 1 s in the lobby; --timeout more between
                 * requests */
    SRV_BODY,   /* its body: 1 KiB/s at least, after 10 s of grace */
    SRV_REPLY,  /* us, or a reader, whose silence libmicrohttpd measures */
};

struct srv_connection {
    struct srv_connection *next, *previous;
    int fd;
    enum srv_room room;
    _Atomic enum srv_phase phase;
    atomic_ullong due; /* when the phase's grace ends, in ms */
    atomic_size_t received;
    unsigned long long opened; /* in ms */
    atomic_bool served;        /* a request was answered on it */
    atomic_bool shut;          /* by srv_connections_close_idle */
};

/* Starts the reaper. `idle_seconds` is what a connection may wait between requests. */
bool srv_connections_start(size_t idle_seconds);
void srv_connections_stop(void);

/* Counts a connection in that is about to be handed to libmicrohttpd; false if the room holds
 * `limit` already. */
bool srv_connections_admit(enum srv_room room, size_t limit);

/* libmicrohttpd did not take it. (Where it takes one and then fails without a word, the reaper
 * notices.) */
void srv_connections_withdraw(enum srv_room room);

/* One that was admitted is there. NULL if memory is out; then it has no deadlines. The
 * descriptor stays the caller's, who removes the connection before closing it. */
struct srv_connection *srv_connection_add(int fd, enum srv_room room);
void srv_connection_remove(struct srv_connection *connection, enum srv_room room);
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* How many were admitted and are not yet removed. */
size_t srv_connections_open(void);

/* Ends those that were served and wait for another request, and those that have sent none for a
 * second. A request that is on its way already is still read. */
void srv_connections_close_idle(void);

#endif
