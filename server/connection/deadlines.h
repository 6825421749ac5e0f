/* The time that clients have for each part of a request. libmicrohttpd's own timer measures only
 * silence, and one byte a second would keep a connection for ever. */
#pragma once

#include "server/connection/connections.h"

/* SRV_BODY_RATE: the minimal rate of a body, in bytes per ms, after 10 s of grace, or --timeout: 64 KiB/s. */
enum { SRV_BODY_RATE = 64 };

/* SRV_PROBE_MS: time of work, in ms, after which a client that has closed its sending side is asked if it still reads.
 * SRV_FIRST_LOOK_MS: time of a response until the first look at what the client takes. */
enum { SRV_PROBE_MS = 100, SRV_FIRST_LOOK_MS = 1000 };

/* Sets --timeout and --request-timeout, in seconds; 0 is no bound of the whole request. */
void srv_deadlines_set(size_t timeout, size_t request_timeout);

/* Seconds that a connection may wait for another request. */
size_t srv_idle_seconds(void);

/* Reason for which the connection must end at `now`, in ms, or NULL. */
const struct srv_error *srv_overdue(const struct srv_connection *connection,
                                    unsigned long long now);

/* Time of the next look at a connection, later than `now`. The watcher is locked, or it is the network thread that
 * asks. */
unsigned long long srv_next_look(const struct srv_connection *connection, unsigned long long now);

/* Begins a phase. Called by the connection's network thread. */
void srv_connection_enter(struct srv_connection *connection, enum srv_phase phase);

/* Notes that `n` bytes of a body have come. Called by the network thread. */
void srv_body_progress(struct srv_connection *connection, size_t n);

/* Lag of a body behind the minimal rate, in ms. The connection is in SRV_BODY. */
unsigned long long srv_body_lag(const struct srv_connection *connection, unsigned long long now);

/* Lateness of a connection, in ms, compared with a client that does its part at once; 0 if it may
 * not be ended to make room for another. The watcher is locked. */
unsigned long long srv_lag(const struct srv_connection *connection, unsigned long long now);
