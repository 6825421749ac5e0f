/* The time that clients have for each part of a request. libmicrohttpd's own timer measures only
 * silence, and one byte a second would keep a connection for ever. */
#pragma once

#include "server/connection/connections.h"

/* SRV_BODY_RATE: the minimal rate of a body, in bytes per ms, after 10 s of grace, or --timeout: 64 KiB/s. */
enum { SRV_BODY_RATE = 64 };

/* Sets --timeout and --request-timeout, in seconds; 0 is no bound of the whole request. */
void srv_deadlines_set(size_t timeout, size_t request_timeout);

/* Seconds that a connection may wait for another request. */
size_t srv_idle_seconds(void);

/* The watcher looks at a connection, as srv_look says: it ends one that is late, and notices a client that leaves. */
void srv_connection_look(struct srv_watched *watched, unsigned events, unsigned long long now);

/* Begins a phase. Called by the connection's network thread. */
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* Notes that `n` bytes of a body have come. Called by the network thread. */
void srv_body_progress(struct srv_connection *connection, size_t n);

/* Lag of a body behind the minimal rate, in ms. The connection is in SRV_BODY. */
unsigned long long srv_body_lag(const struct srv_connection *connection, unsigned long long now);

/* Lateness of a connection, in ms, compared with a client that does its part at once; 0 if it may
 * not be ended to make room for another. The watcher is locked. */
unsigned long long srv_lag(const struct srv_connection *connection, unsigned long long now);
