/* Bytes that libmicrohttpd reads pass through here: this file defines the functions by which it
 * receives, in place of those of the C library, and reads the framing before it. Bytes that it sends
 * over unix sockets are counted here. */
#ifndef KLDIV_SERVER_TRANSPORT_H
#define KLDIV_SERVER_TRANSPORT_H

#include "server/connections.h"

/* Sets the function that refuses what is read of a request, with an answer; then the connection
 * closes. `line` holds the `size` bytes that began the request, if they are at hand. */
void srv_transport_start(void (*refuse)(struct srv_connection *connection,
                                        const struct srv_refusal *why, const char *line,
                                        size_t size));

/* Sends bytes on a connection past libmicrohttpd, in its network thread, without waiting; `more`
 * follow. False if not all could be sent. */
bool srv_transport_send(struct srv_connection *connection, const char *bytes, size_t size,
                        bool more);

#endif
