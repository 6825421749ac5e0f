/* The service manager that started the process, as systemd: sockets that it passes (sd_listen_fds(3)), what it is
 * told (sd_notify(3)), and its watchdog.
 *
 * libsystemd is not used: its call makes a new socket each time, which the sandbox refuses, and it would
 * bring five more libraries into the image. The protocol is stable, and its manual allows other
 * implementations. */
#pragma once

#include "server/config/options.h"

/* srv_passed: descriptors that replace --listen, if there is one, and of --admin-listen, or -1. The
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

/* Connects to NOTIFY_SOCKET, a path or, with '@' first, an abstract name; reads WATCHDOG_USEC and WATCHDOG_PID;
 * removes all three from the environment. Called before other threads run, and before the sandbox, which refuses
 * connections; one that exists stays. */
void srv_manager_open(void);

/* Logs a warning if NOTIFY_SOCKET names what cannot be connected to. */
void srv_manager_log(void);

/* Sends variables, one a line, such as "READY=1\nSTATUS=serving", of at most 500 bytes; does nothing without
 * NOTIFY_SOCKET. Waits for at most 1 s while the manager's queue is full. MAINPID is not sent: the manager
 * knows the process that it started, by a number that may be another in a container. */
__attribute__((format(printf, 1, 2))) void srv_manager_tell(const char *format, ...);

/* Sends WATCHDOG=1 if half of the manager's time is over since the last one. Returns the time until the next call,
 * in ms, at most 1000. Called by the main thread at each turn of its loop, which takes the lock of the connections:
 * where either is stuck, the manager hears nothing and starts the server anew. */
unsigned long long srv_manager_beat(void);
