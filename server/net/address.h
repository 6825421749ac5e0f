/* Addresses to listen on: "HOST:PORT", "unix:PATH", "unix:@NAME". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Splits "host:port" or "[host]:port"; false if it is neither. */
bool srv_split_address(const char *address, char *host, size_t host_size, const char **port);

/* Binds and listens. [::] is all addresses of IPv6 and IPv4, and of IPv4 alone without IPv6. The file of
 * unix:PATH has the rights `mode` from its first moment; see unix_socket.h. Returns the descriptor, which
 * does not block, or -1 with one line on `errors` that names `option`. Called before other threads run. */
int srv_listen(const char *option, const char *address, mode_t mode, FILE *errors);

/* Formats the address of a bound socket, such as "127.0.0.1:8080" or "unix:/run/kldiv.sock"; returns the
 * port, 0 for a unix socket, -1 if it has none. */
int srv_bound_address(int fd, char *to, size_t size);
