/* Tells a service manager what the server does, by the protocol of sd_notify(3).
 *
 * libsystemd is not used: its call makes a new socket each time, which the sandbox refuses, and it would
 * bring five more libraries into the image. The protocol is stable, and its manual allows other
 * implementations. */
#ifndef KLDIV_SERVER_NOTIFY_H
#define KLDIV_SERVER_NOTIFY_H

/* Connects to NOTIFY_SOCKET, a path or, with '@' first, an abstract name, and removes it from the
 * environment. Called before the sandbox, which refuses connections; one that exists stays. */
void srv_notify_open(void);

/* Logs a warning if NOTIFY_SOCKET names what cannot be connected to. */
void srv_notify_log(void);

/* Sends variables, one a line, such as "READY=1\nSTATUS=serving", of at most 500 bytes; does nothing without
 * NOTIFY_SOCKET. Waits for at most 1 s while the manager's queue is full. MAINPID is not sent: the manager
 * knows the process that it started, by a number that may be another in a container. */
__attribute__((format(printf, 1, 2))) void srv_notify(const char *format, ...);

#endif
