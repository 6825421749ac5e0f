/* The sockets that the server listens on: for all, and for health and metrics. */
#pragma once

#include "server/config/options.h"

#include <stdbool.h>
#include <stdio.h>

/* SRV_MAX_SOCKETS: those of --listen, and that of --admin-listen. */
enum { SRV_MAX_SOCKETS = SRV_ADDRESSES + 1 };

/* Listens on the addresses of the options, or takes sockets that the service manager passes. False, with
 * one line on `errors`, if one fails, or if there is no port for --port-file; files that were made are
 * removed then. Called once, before other threads run. `options` outlive the sockets. */
bool srv_sockets_open(const struct srv_options *options, FILE *errors);

/* Port of the first TCP address for all, or 0 without one. */
int srv_sockets_port(void);

/* Number of descriptors that the sockets and their threads take. */
size_t srv_sockets_descriptors(void);

/* True if other machines may connect to one that is not for health alone: it is bound to no loopback address. */
bool srv_sockets_are_public(void);

/* True if files of unix sockets are removed at the end. */
bool srv_sockets_has_files(void);

/* Logs the addresses, the first of --listen first; then starts a thread for each socket, after srv_http_start. False if
 * one cannot be started. */
bool srv_sockets_accept(bool tls);

/* Removes the files that the server has made, if they are still its own. The sockets stay: nobody else
 * can connect to them. A second call does nothing. */
void srv_sockets_remove(void);

/* Does that, accepts the connections that were made before, and closes the sockets. */
void srv_sockets_stop(void);
