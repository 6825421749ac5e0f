/* The thread of a listening socket that accepts from it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

/* srv_listener: an accepting thread. Zeroed before its start, but `fd`, `tls`, `local` and `passed`. */
struct srv_listener {
    int fd, wake;
    int spare; /* a descriptor to give up when there is none for a client, who is told so */
    atomic_bool stopping;
    bool started, tls;
    bool local;  /* a unix socket */
    bool passed; /* by a service manager: its backlog is left to the next process */
    pthread_t thread;
    void (*take)(int client, const struct sockaddr *address, socklen_t size);
};

/* Accepts connections on a new thread and passes each to `take`, which owns the descriptor. */
bool srv_accept_start(struct srv_listener *listener,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size));

/* Tells the accepting thread to end, and does not wait for it. */
void srv_accept_end(struct srv_listener *listener);

/* Ends the accepting thread and closes the socket; does nothing if it was not started. Connections that
 * were made before are accepted. */
void srv_accept_stop(struct srv_listener *listener);

/* Answers 503 on a socket that the caller closes, without reading the request. */
void srv_turn_away(int client);
