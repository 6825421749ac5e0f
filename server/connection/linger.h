/* Connections whose request was answered before all of it was read. Closing a socket with unread
 * data resets it, and a client that still sends would lose the response; the watcher therefore reads
 * and drops the rest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SRV_LINGERING: the maximal number of these connections. */
enum { SRV_LINGERING = 256 };

/* Makes room for `capacity` connections, but for 64 at least and no more than SRV_LINGERING. */
void srv_linger_init(size_t capacity);

/* Takes over a duplicated descriptor of a connection whose response is sent. Ends the sending direction, then drops
 * received bytes, for 60 s at most and for 5 s of silence (not `patient`: for 1 s), and closes it. After `left` bytes
 * the client has 1 s to close. If there is no room, the connection replaces the one that ends first. Any thread may
 * call it. */
void srv_linger(int fd, bool patient, uint64_t left);

/* Sends a last response that the socket takes at once, and reads some of what the client has sent: an end with unread bytes
 * would be a reset. The caller closes the descriptor. */
void srv_send_last(int fd, const char *response, size_t size);

/* Closes the connections when each is finished, or after `ms`; those that come later at once. */
void srv_linger_stop(unsigned long long ms);
