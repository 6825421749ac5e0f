/* --healthcheck: the command of a container's HEALTHCHECK. */
#pragma once

#include "server/config/options.h"

/* Reads options as the server does: the environment, then the flags of process 1 if it is the
 * server, then argv. False, with a line on standard error, if one is invalid. */
bool srv_healthcheck_options(struct srv_options *options, int argc, char **argv);

/* Requests /readyz at --admin-listen or the first --listen, or at the port in --port-file if that has port 0. Returns 0
 * if the server is ready within 5 s, else 1 with a line on standard error. Under TLS the certificate
 * is not verified: it names the server as clients reach it, and this request stays on the host. */
int srv_healthcheck(const struct srv_options *options);
