/* Listening sockets, and the thread of each that accepts from it. */
#ifndef KLDIV_SERVER_LISTENER_H
#define KLDIV_SERVER_LISTENER_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

/* Splits "host:port" or "[host]:port"; false if it is neither. */
bool srv_split_address(const char *address, char *host, size_t host_size, const char **port);

/* Binds and listens. [::] is all addresses of IPv6 and IPv4, and of IPv4 alone without IPv6. Returns the
 * descriptor, or -1 with one line on `errors` that names `option`. */
int srv_listen(const char *option, const char *address, FILE *errors);

/* Formats the address of a bound socket, such as "127.0.0.1:8080"; returns the port. */
int srv_bound_address(int fd, char *to, size_t size);

/* srv_listener: an accepting thread. Zeroed before its start. */
struct srv_listener {
    int fd, wake;
    int spare; /* a descriptor to give up when there is none for a client, who is told so */
    atomic_bool stopping;
    bool started, tls;
    bool passed; /* by a service manager: its backlog is left to the next process */
    pthread_t thread;
    void (*take)(int client, const struct sockaddr *address, socklen_t size);
};

/* Accepts connections on a new thread and passes each to `take`, which owns the descriptor. */
bool srv_accept_start(struct srv_listener *listener, int fd,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size));

/* Ends the accepting thread and closes the socket; does nothing if it was not started. */
void srv_accept_stop(struct srv_listener *listener);

/* Answers 503 on a socket that the caller closes, without reading the request. */
void srv_turn_away(int client);

#endif
