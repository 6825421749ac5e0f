/* Sockets and time of the clients, which all connect to 127.0.0.1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Seconds of a clock that only goes forward. */
double seconds_now(void);
void sleep_seconds(double seconds);

/* Begins a connection, without waiting for it. The client takes in at most some `receive` bytes that
 * it has not read; 0 leaves that to the kernel. -1 if there is no descriptor. */
int wire_dial(int port, int receive);

/* Sends a request and reads its answer, for at most `limit` seconds. Returns the status, or 0 if no
 * whole answer came; the answer with its header is in `answer`, with a NUL, cut to `room` bytes.
 * *is_kept tells whether the connection may carry another request. */
int wire_exchange(int fd, const char *request, size_t size, char *answer, size_t room, double limit,
                  bool *is_kept);
