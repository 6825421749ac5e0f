#include "server/connection/transport.h"

#include "server/connection/deadlines.h"
#include "server/net/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* True while a complete request waits for the server: libmicrohttpd reads on, and the end of the client's
 * bytes, or a refusal of what follows, must not cut that request off. */
static bool must_not_end(const struct srv_connection *c)
{
    return atomic_load(&c->phase) == SRV_WORK;
}

/* Error for which a connection must end before more is read; NULL if there is none, or if the connection is
 * between requests and just ends. */
static const struct srv_error *error_of(const struct srv_connection *c)
{
    const struct srv_error *why = atomic_load(&c->ending);
    if (c->framing.error.code)
        return &c->framing.error;
    return why && !srv_framing_is_between_requests(&c->framing) ? why : NULL;
}

/* ---- Receiving */

/* Tells libmicrohttpd that the client has ended. libmicrohttpd then closes the connection, before which the
 * error is sent. */
static ssize_t end_reading(struct srv_connection *c)
{
    c->error = error_of(c);
    return 0;
}

/* Copies the target of a request line that `bytes` begin with, as far as it fits and is printable; "" if there
 * is none. */
static void copy_target(const char *bytes, size_t size, char *target, size_t room)
{
    const char *space = memchr(bytes, ' ', size), *end = bytes + size;
    size_t n = 0;
    for (const char *p = space ? space + 1 : end; p<end && * p> ' ' && *p < 0x7f; p++)
        if (n + 1 < room)
            target[n++] = *p;
    target[n] = '\0';
}

/* Reads the framing of bytes that have arrived. Gives the number of bytes that libmicrohttpd may have. The
 * requests before a refused one are answered first. */
static ssize_t check(struct srv_connection *c, char *bytes, size_t size)
{
    bool is_first = srv_framing_is_between_requests(&c->framing);
    if (atomic_load(&c->phase) == SRV_IDLE)
        srv_connection_enter(c, SRV_HEADER);
    size_t good = srv_framing_read(&c->framing, bytes, size);
    atomic_store(&c->arriving, !srv_framing_is_between_requests(&c->framing));
    if (good < size) {
        atomic_store(&c->refused, true);
        srv_watch_soon(&c->watched, srv_now_ms());
        if (is_first && good == 0)
            copy_target(bytes, size, c->refused_target, sizeof c->refused_target);
        if (good > 0 && !must_not_end(c))
            srv_connection_shutdown_read(c);
    }
    return (ssize_t)good;
}

static ssize_t receive_plain(struct srv_connection *c, void *buffer, size_t size)
{
    if (c->upload.room == 0 && c->upload.ahead == 0)
        return recv(c->watched.fd, buffer, size, 0);
    pthread_mutex_lock(&c->lent.lock);
    ssize_t n = c->lent.is_taken ? 0
                                 : srv_upload_receive(&c->upload, c->watched.fd, buffer, size,
                                                      c->framing.left, recv);
    pthread_mutex_unlock(&c->lent.lock);
    return n;
}

/* Receives bytes that libmicrohttpd may have; 0 at their end or where an error ends them, and `again` if there
 * are none now. */
static ssize_t receive(struct srv_connection *c, void *buffer, size_t size, ssize_t again)
{
    bool waits = must_not_end(c);
    if (!waits && error_of(c))
        return end_reading(c);
    ssize_t n = again;
    errno = EAGAIN;
    if (!c->framing.error.code)
        n = c->tls ? gnutls_record_recv(c->session, buffer, size) : receive_plain(c, buffer, size);
    if (n > 0)
        n = check(c, buffer, (size_t)n);
    bool is_shut = n < 0 && !c->tls && errno == EAGAIN && atomic_load(&c->read_shut);
    if (!waits && (n == 0 || is_shut)) /* as after a shutdown */
        return end_reading(c);
    if (n != 0)
        return n;
    errno = EAGAIN;
    return again;
}

ssize_t srv_mhd_recv(int fd, void *buffer, size_t size, int flags)
{
    struct srv_connection *c = flags == 0 ? srv_connection_at(fd) : NULL;
    return c ? receive(c, buffer, size, -1) : recv(fd, buffer, size, flags);
}

ssize_t srv_mhd_gnutls_record_recv(gnutls_session_t session, void *buffer, size_t size)
{
    struct srv_connection *c = srv_connection_at(gnutls_transport_get_int(session));
    if (!c)
        return gnutls_record_recv(session, buffer, size);
    c->session = session;
    return receive(c, buffer, size, GNUTLS_E_AGAIN);
}

/* ---- Sending */

/* Counts what is sent to a local client, of which the kernel does not tell how much arrived. */
static ssize_t count(struct srv_connection *c, ssize_t size)
{
    if (c && c->peer.is_local && size > 0)
        atomic_fetch_add(&c->sent, (unsigned long long)size);
    return size;
}

/* Bytes of the response that probes have sent. */
static size_t bytes_ahead(const struct srv_connection *c) { return c ? c->probed : 0; }

static ssize_t end_send(struct srv_connection *c, size_t ahead, ssize_t size)
{
    if (size < 0)
        return size;
    if (ahead > 0)
        c->probed = 0;
    return count(c, size + (ssize_t)ahead);
}

ssize_t srv_mhd_send(int fd, const void *bytes, size_t size, int flags)
{
    struct srv_connection *c = srv_connection_at(fd);
    size_t ahead = bytes_ahead(c);
    return end_send(c, ahead, send(fd, (const char *)bytes + ahead, size - ahead, flags));
}

ssize_t srv_mhd_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct srv_connection *c = srv_connection_at(fd);
    size_t ahead = bytes_ahead(c);
    struct iovec *first = message->msg_iov;
    first->iov_base = (char *)first->iov_base + ahead;
    first->iov_len -= ahead;
    ssize_t size = sendmsg(fd, message, flags);
    first->iov_base = (char *)first->iov_base - ahead;
    first->iov_len += ahead;
    return end_send(c, ahead, size);
}

ssize_t srv_mhd_gnutls_record_send(gnutls_session_t session, const void *bytes, size_t size)
{
    return count(srv_connection_at(gnutls_transport_get_int(session)),
                 gnutls_record_send(session, bytes, size));
}

/* Tells libmicrohttpd that options of TCP are set: a unix socket delays no bytes. It would try again, and log the
 * failure, twice for each response. */
int srv_mhd_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    struct srv_connection *c = level == IPPROTO_TCP ? srv_connection_at(fd) : NULL;
    return c && c->peer.is_local ? 0 : setsockopt(fd, level, name, value, size);
}

void srv_transport_probe(struct srv_connection *c)
{
    if (!c->tls && c->probed == 0)
        c->probed = send(c->watched.fd, "H", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool srv_transport_send(struct srv_connection *c, const char *bytes, size_t size, bool more)
{
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0);
    if (c->tls && !c->session)
        return false;
    return (c->tls ? srv_mhd_gnutls_record_send(c->session, bytes, size)
                   : srv_mhd_send(c->watched.fd, bytes, size, flags)) == (ssize_t)size;
}

/* ---- Ending */

static void (*send_last)(struct srv_connection *connection);
static void (*end_last)(struct srv_connection *connection);

void srv_transport_start(void (*send_error)(struct srv_connection *connection),
                         void (*end)(struct srv_connection *connection))
{
    send_last = send_error;
    end_last = end;
}

int srv_mhd_gnutls_bye(gnutls_session_t session, gnutls_close_request_t how)
{
    struct srv_connection *c = srv_connection_at(gnutls_transport_get_int(session));
    if (c)
        send_last(c);
    return gnutls_bye(session, how);
}

/* Each connection ends here, also one that libmicrohttpd did not take, or drops without a notice. */
int srv_mhd_close(int fd)
{
    struct srv_connection *c = srv_connection_at(fd);
    if (c) {
        c->session = NULL; /* libmicrohttpd has freed it */
        end_last(c);
        srv_connection_remove(c);
    }
    return close(fd);
}

/* ---- Waiting */

/* Tells the waker of a connection whether libmicrohttpd waits for its bytes. */
int srv_mhd_epoll_ctl(int loop, int action, int fd, struct epoll_event *event)
{
    struct srv_connection *c = srv_connection_at(fd);
    if (c && action == EPOLL_CTL_DEL)
        srv_waker_remove(&c->waker);
    int result = epoll_ctl(loop, action, fd, event);
    if (c && result == 0 && action == EPOLL_CTL_ADD && event->events & EPOLLIN)
        srv_waker_add(&c->waker, loop, event->data);
    return result;
}

/* libmicrohttpd 0.9.75 waits again, without end, where it gets as many events as it has room for, before it acts on any
 * of them: it gets one less. */
int srv_mhd_epoll_wait(int loop, struct epoll_event *events, int max, int timeout)
{
    return epoll_wait(loop, events, max - 1, timeout);
}
