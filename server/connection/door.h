/* The door: libmicrohttpd runs the loops of network threads and sends responses, but sees no byte of a client. Its
 * calls to the network come here; the Makefile renames them in a copy of its archive, so that nothing else in the
 * process is touched. The door reads a whole request, plain or by TLS. Then it gives libmicrohttpd a constant
 * request, the same each time, for which libmicrohttpd asks for the response. */
#pragma once

#include "server/connection/connections.h"

#include <sys/epoll.h>

/* srv_reader: what a request is read by. The connection's network thread calls it. */
struct srv_reader {
    /* Begins the request of a complete header, which it copies. `is_here`: all of its body has arrived. False if no memory
     * is left. */
    bool (*begin)(struct srv_connection *connection, const char *header, size_t size, bool is_here);

    /* Takes bytes of the body. Gives the error for which they cannot be taken, or NULL. */
    const struct srv_error *(*body)(struct srv_message *message, const char *bytes, size_t n);

    /* Gives the space for the body's next bytes, which may be fewer than *n; NULL if they are to be given to `body`, or,
     * with *why set, if they cannot be taken. Then takes the bytes that have been received there, if any. */
    char *(*space)(struct srv_message *message, size_t *n, const struct srv_error **why);
    void (*filled)(struct srv_message *message, size_t n);

    /* Refuses a request that arrives. If it has not begun, it begins with what there is of its header. False if no memory
     * is left. */
    bool (*refuse)(struct srv_connection *connection, const char *header, size_t size,
                   const struct srv_error *why);

    /* Ends a request whose connection ends. */
    void (*done)(struct srv_message *message);
};

/* Sets the reader, before the first connection. */
void srv_door_init(const struct srv_reader *reader);

/* Calls of libmicrohttpd to the system, which its archive names so (see the Makefile). */
ssize_t srv_mhd_recv(int fd, void *buffer, size_t size, int flags);
ssize_t srv_mhd_send(int fd, const void *bytes, size_t size, int flags);
ssize_t srv_mhd_sendmsg(int fd, const struct msghdr *message, int flags);
int srv_mhd_close(int fd);
int srv_mhd_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int srv_mhd_epoll_wait(int loop, struct epoll_event *events, int max, int timeout);
int srv_mhd_epoll_ctl(int loop, int action, int fd, struct epoll_event *event);
