/* TLS of the server's connections: 1.2 and 1.3, with forward secrecy and authenticated encryption
 * alone. There is no session to resume: each connection makes a handshake of its own. */
#pragma once

#include "server/config/text_file.h"

#include <sys/uio.h>
#include <time.h>

/* Takes a certificate chain in PEM, the server's own first, and its private key. Handshakes under
 * way keep the pair they began with. False, with the old pair kept and the reason in *error, if
 * they cannot be read or do not belong together. One thread calls it. */
bool srv_tls_set(const char *cert_file, const char *key_file, struct srv_file_error *error);

/* End of the certificate's validity, for the thread that set it. */
time_t srv_tls_until(void);

/* True once a pair was taken. */
bool srv_tls_is_on(void);

/* srv_session: TLS of a connection. The connection's network thread alone uses it. */
struct srv_session;

/* Begins a session on a connection, whose descriptor does not block; NULL if there is no memory. */
struct srv_session *srv_tls_begin(int fd);

/* Receives as recv() does, after the handshake; also with EINTR, where it is to be called again soon: only EAGAIN says
 * that the socket is drained. Gives bytes of one record at most. */
ssize_t srv_tls_receive(struct srv_session *session, void *bytes, size_t size);

/* True if more bytes are here, of which epoll will not tell again. */
bool srv_tls_has_more(struct srv_session *session);

/* True if the beginning of a record has been received and its end has not come. */
bool srv_tls_is_amid_record(const struct srv_session *session);

/* Sends pieces as sendmsg() does: until all is sent, or the socket takes no more. What was not sent is to be sent next.
 * After many bytes it ends with EINTR: the same pieces, of which the first *ahead bytes are sent, are to be sent again. */
ssize_t srv_tls_send(struct srv_session *session, const struct iovec *pieces, size_t n,
                     size_t *ahead);

/* Tells the client that no more will be sent, if the handshake is over. */
void srv_tls_bye(struct srv_session *session);

/* As srv_tls_bye; then frees the session, before its descriptor is closed. */
void srv_tls_end(struct srv_session *session);

/* Frees the pair, after the last handshake. */
void srv_tls_stop(void);
