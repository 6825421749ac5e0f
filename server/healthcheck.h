/* --healthcheck: what a container's HEALTHCHECK runs. */
#ifndef KLDIV_SERVER_HEALTHCHECK_H
#define KLDIV_SERVER_HEALTHCHECK_H

/* Asks the server that listens at `address` for /readyz; 0 if it is ready within 5 s, else 1
 * with a line on standard error. */
int srv_healthcheck(const char *address);

#endif
