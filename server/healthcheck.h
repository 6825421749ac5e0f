/* --healthcheck: what a container's HEALTHCHECK runs. */
#ifndef KLDIV_SERVER_HEALTHCHECK_H
#define KLDIV_SERVER_HEALTHCHECK_H

#include "server/options.h"

/* Reads options again, as the server itself did where that is process 1 of this container: its flags,
 * then argv's, over the environment. False, with a line on standard error, if one is bad. */
bool srv_healthcheck_options(struct srv_options *options, int argc, char **argv);

/* Asks the server that listens at --listen for /readyz, or at the port in --port-file where that of
 * --listen is 0. Gives 0 if it is ready within 5 s, else 1 with a line on standard error. */
int srv_healthcheck(const struct srv_options *options);

#endif
