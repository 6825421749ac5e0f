/* Connections whose request was answered before all of it was read. Closing a socket with unread data
 * resets it, and a client that still sends would lose the answer; so a thread reads and drops the
 * rest. */
#ifndef KLDIV_SERVER_LINGER_H
#define KLDIV_SERVER_LINGER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the thread. False if it cannot be had. */
bool srv_linger_start(void);

/* Takes a descriptor of its own of a connection whose answer is sent: ends that direction, then drops
 * up to `most` bytes, for 60 s at most and for 5 s of silence, and closes it. With 64 connections
 * there already it closes at once. Any thread may call it. */
void srv_linger(int fd, size_t most);

/* Closes these connections when they are done with, or after `ms`, and ends the thread. */
void srv_linger_stop(unsigned long long ms);

#endif
