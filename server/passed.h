/* Listening sockets that a service manager passes, by the protocol of sd_listen_fds(3). */
#ifndef KLDIV_SERVER_PASSED_H
#define KLDIV_SERVER_PASSED_H

#include "server/options.h"

/* srv_passed: descriptors that take the place of --listen, if there is one, and of --admin-listen, or -1. The
 * manager keeps its own: what waits in their backlogs when this process ends is left to the next. */
struct srv_passed {
    size_t n;
    int listen[SRV_ADDRESSES];
    int admin;
};

/* Reads LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, and removes them from the environment. Descriptors start
 * at 3; that named "admin" is for health and metrics, others for all. Descriptors for another process are
 * left alone. False, with one line on `errors`, if one is no listening TCP or unix socket, or if there are
 * two for health or more than SRV_ADDRESSES for all. Called before other threads run. */
bool srv_passed_read(struct srv_passed *passed, FILE *errors);

#endif
