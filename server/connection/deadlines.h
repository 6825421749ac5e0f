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

/* Reason for which the connection must end at `now`, in ms, or NULL. */
const struct srv_error *srv_overdue(const struct srv_connection *connection,
                                    unsigned long long now);

/* Notes how far a body is behind the minimal rate. Bytes that came early are no credit: a client that
 * sends much at once and then nearly nothing is slow. Called by the watching thread at each look, with
 * the table locked. */
void srv_follow_body(struct srv_connection *connection, unsigned long long now);

/* Lag of a body behind the minimal rate, in ms. The connection is in SRV_BODY, and the table locked. */
unsigned long long srv_body_lag(const struct srv_connection *connection, unsigned long long now);

/* Lateness of a connection, in ms, compared with a client that does its part at once; 0 if it may
 * not be ended to make room for another. The table is locked. */
unsigned long long srv_lag(const struct srv_connection *connection, unsigned long long now);
