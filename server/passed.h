/* Listening sockets that a service manager passes, by the protocol of sd_listen_fds(3). */
#ifndef KLDIV_SERVER_PASSED_H
#define KLDIV_SERVER_PASSED_H

#include <stdbool.h>
#include <stdio.h>

/* srv_passed: descriptors that take the place of --listen and of --admin-listen, or -1. The manager keeps
 * its own: what waits in their backlogs when this process ends is left to the next. */
struct srv_passed {
    int http, admin;
};

/* Reads LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, and removes them from the environment. Descriptors start
 * at 3; that named "admin" is for health and metrics, another for all. Descriptors for another process are
 * left alone. False, with one line on `errors`, if one is no listening TCP socket, or if there are two of a
 * kind. Called before other threads run. */
bool srv_passed_read(struct srv_passed *passed, FILE *errors);

#endif
