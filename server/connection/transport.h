/* The adapter between libmicrohttpd and the network: the functions that libmicrohttpd calls in place of those
 * of the C library and of GnuTLS. The Makefile renames its calls in a copy of its archive, so that nothing else
 * in the process is touched. What is received passes the framing before libmicrohttpd reads it; what is sent
 * is counted where the kernel does not tell how much has arrived. */
#pragma once

#include "server/connection/connections.h"

#include <gnutls/gnutls.h>
#include <sys/epoll.h>

/* Sets the functions that send a connection's last response, before libmicrohttpd ends its TLS, and that end its
 * request, before libmicrohttpd closes it. */
void srv_transport_start(void (*send_error)(struct srv_connection *connection),
                         void (*end)(struct srv_connection *connection));

ssize_t srv_mhd_recv(int fd, void *buffer, size_t size, int flags);
ssize_t srv_mhd_gnutls_record_recv(gnutls_session_t session, void *buffer, size_t size);
ssize_t srv_mhd_send(int fd, const void *bytes, size_t size, int flags);
ssize_t srv_mhd_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t srv_mhd_gnutls_record_send(gnutls_session_t session, const void *bytes, size_t size);
int srv_mhd_gnutls_bye(gnutls_session_t session, gnutls_close_request_t how);
int srv_mhd_close(int fd);
int srv_mhd_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int srv_mhd_epoll_wait(int loop, struct epoll_event *events, int max, int timeout);
int srv_mhd_epoll_ctl(int loop, int action, int fd, struct epoll_event *event);

/* Sends the first byte of the response, which is the same for all, to a client whose response is not ready, once:
 * the kernel of a client that has left answers with a reset. The response then leaves it out. Not with TLS. The
 * connection is suspended. */
void srv_transport_probe(struct srv_connection *connection);

/* Sends bytes on a connection past libmicrohttpd, in its network thread, without waiting; `more`
 * follow. False if not all could be sent. */
bool srv_transport_send(struct srv_connection *connection, const char *bytes, size_t size,
                        bool more);
