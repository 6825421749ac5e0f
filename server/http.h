/* The service on libmicrohttpd: connections in, api_begin and api_handle, replies out. */
#ifndef KLDIV_SERVER_HTTP_H
#define KLDIV_SERVER_HTTP_H

#include "api/api.h"
#include "server/options.h"

#include <stdatomic.h>
#include <sys/socket.h>

/* Starts the network threads; `service` and `options` outlive them. False, with a line
 * logged, if one cannot be had. */
bool srv_http_start(const struct api_service *service, const struct srv_options *options);

/* Takes an accepted connection, whatever comes of it. Over --max-connections it goes to the
 * lobby, where health routes are answered and all else is told 503. Called by one thread. */
void srv_http_take(int client, const struct sockaddr *address, socklen_t size);

/* From now on replies ask the client to close the connection. */
void srv_http_drain(void);

/* Ends all connections and threads. No job may be pending. */
void srv_http_stop(void);

#endif
