/* Connections whose request was answered before all of it was read. Closing a socket with unread
 * data resets it, and a client that still sends would lose the answer; a thread therefore reads
 * and drops the rest. */
#ifndef KLDIV_SERVER_LINGER_H
#define KLDIV_SERVER_LINGER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the thread; false if it cannot be started. */
bool srv_linger_start(void);

/* Takes ownership of a duplicated descriptor of a connection whose answer is sent. Shuts down
 * its sending side, drops up to `most` bytes, for at most 60 s and 5 s of silence, then closes
 * it. Closes it at once if 64 connections are in the table. Any thread may call it. */
void srv_linger(int fd, size_t most);

/* Closes the connections when each is finished, or after `ms`, and ends the thread. */
void srv_linger_stop(unsigned long long ms);

#endif
