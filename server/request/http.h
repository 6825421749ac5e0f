/* The service on libmicrohttpd: accepts connections, calls api_begin and api_handle, sends
 * responses. */
#pragma once

#include "api/api.h"
#include "server/config/options.h"

#include <stdatomic.h>
#include <sys/socket.h>

/* Opens the sockets of srv_http_test, which a process that is locked in may not make; false if none is left. */
bool srv_http_open(void);

/* Starts the network threads; `service` and `options` outlive them. False if one cannot be
 * started. */
bool srv_http_start(const struct api_service *service, const struct srv_options *options);

/* True if a request that is sent to the server over sockets of its own is answered by way of door.c. libmicrohttpd's version
 * does not tell: what it was linked to may call the network by other functions. Call it once, after srv_http_start and
 * before clients are served; slow requests are logged from then on. */
bool srv_http_test(void);

/* Takes ownership of an accepted connection, also if it fails. Over --max-connections the slowest
 * connection makes room. If none is slow, this one counts as reserved: health routes are answered,
 * all others get 503. Any thread may call it. */
void srv_http_take(int client, const struct sockaddr *address, socklen_t size);

/* As srv_http_take, for a connection of --admin-listen. */
void srv_http_take_admin(int client, const struct sockaddr *address, socklen_t size);

/* Number of connections beyond --max-connections that may be open. */
size_t srv_http_descriptors(void);

/* Adds "Connection: close" to all later responses. */
void srv_http_drain(void);
bool srv_http_is_draining(void);

/* Closes all connections and ends the threads. No job may be pending. */
void srv_http_stop(void);
