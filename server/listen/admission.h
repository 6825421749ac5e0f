/* Admission at the connection limit: a new connection waits here for a moment until the header of its request has come.
 * A client that sends no header takes no connection from health checks and calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* SRV_ADMISSIONS: maximal number of connections that wait for admission. */
enum { SRV_ADMISSIONS = 256 };

/* Takes a client's descriptor; `may_probe` if its method is one by which health is asked. */
typedef void srv_admit(int client, const struct sockaddr *address, socklen_t size, bool may_probe);

/* Makes room for `capacity` connections, SRV_ADMISSIONS if that is more. `admit` is called for those whose header
 * is complete. */
void srv_admission_init(size_t capacity, srv_admit *admit);

/* Lets a connection wait for up to 300 ms; then it is turned away. If there is no room, the oldest is admitted or turned
 * away at once. Any thread may call it. */
void srv_admission_take(int client, const struct sockaddr *address, socklen_t size);

/* Returns when nobody waits any more; nobody is taken meanwhile. */
void srv_admission_stop(void);
