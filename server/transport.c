#include "server/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

static void (*refuse_request)(struct srv_connection *connection, const struct srv_refusal *why,
                              const char *line, size_t size);

void srv_transport_start(void (*refuse)(struct srv_connection *connection,
                                        const struct srv_refusal *why, const char *line,
                                        size_t size))
{
    refuse_request = refuse;
}

/* True while a complete request waits for the server, or a body for memory: libmicrohttpd reads on,
 * and the end of the client's bytes, or a refusal of what follows, must not cut that request off. */
static bool must_not_end(const struct srv_connection *c)
{
    enum srv_phase phase = atomic_load(&c->phase);
    return phase == SRV_WORK || phase == SRV_PAUSED;
}

/* Reads the framing of bytes that have arrived. Gives the bytes that libmicrohttpd may have; 0 after
 * a refusal, and -1 if there is one that has to wait. */
static ssize_t check(struct srv_connection *c, const char *bytes, ssize_t size)
{
    bool is_first = srv_framing_is_between_requests(&c->framing);
    if (atomic_load(&c->phase) == SRV_IDLE)
        srv_connection_enter(c, SRV_HEADER);
    size_t good = srv_framing_read(&c->framing, bytes, (size_t)size);
    atomic_store(&c->arriving, !srv_framing_is_between_requests(&c->framing));
    if (good == (size_t)size)
        return size;
    if (good > 0 || must_not_end(c)) { /* requests before the refused one are answered first */
        atomic_store(&c->refused, true);
        if (!must_not_end(c))
            srv_connection_kick(c);
        return good > 0 ? (ssize_t)good : -1;
    }
    refuse_request(c, &c->framing.refusal, is_first ? bytes : NULL, (size_t)size);
    return 0;
}

/* Refuses what the server has decided to end, before more is read. False if there is nothing to
 * refuse: a connection that is between requests just ends with its bytes. */
static bool end(struct srv_connection *c)
{
    const struct srv_refusal *why = atomic_load(&c->ending);
    if (c->framing.refusal.code)
        why = &c->framing.refusal;
    else if (!why || srv_framing_is_between_requests(&c->framing))
        return false;
    refuse_request(c, why, NULL, 0);
    return true;
}

static ssize_t (*next)(int fd, void *buf, size_t n, int flags);
static ssize_t (*next_send)(int fd, const void *buf, size_t n, int flags);
static ssize_t (*next_message)(int fd, const struct msghdr *message, int flags);
static int (*next_control)(int loop, int action, int fd, struct epoll_event *event);
static int (*next_option)(int fd, int level, int name, const void *value, socklen_t size);
static ssize_t (*next_record)(gnutls_session_t session, void *data, size_t data_size);

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next = dlsym(RTLD_NEXT, "recv");
    *(void **)&next_send = dlsym(RTLD_NEXT, "send");
    *(void **)&next_message = dlsym(RTLD_NEXT, "sendmsg");
    *(void **)&next_control = dlsym(RTLD_NEXT, "epoll_ctl");
    *(void **)&next_option = dlsym(RTLD_NEXT, "setsockopt");
    *(void **)&next_record = dlsym(RTLD_NEXT, "gnutls_record_recv");
}

/* Takes the place of the C library's function, for libmicrohttpd too (a program's own functions
 * come first when its libraries are loaded). */
__attribute__((visibility("default"))) ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    struct srv_connection *c = flags == 0 ? srv_connection_at(fd) : NULL;
    if (!c || c->tls)
        return next(fd, buf, n, flags);
    bool waits = must_not_end(c);
    if (!waits && end(c))
        return 0;
    ssize_t size = -1;
    if (!waits || !c->framing.refusal.code)
        size = c->upload.room > 0 || c->upload.ahead > 0
                   ? srv_upload_receive(&c->upload, fd, buf, n, c->framing.left, next)
                   : next(fd, buf, n, flags);
    if (size > 0)
        size = check(c, buf, size);
    if (size < 0 && !waits && errno == EAGAIN && atomic_load(&c->kicked))
        return 0; /* as after a shutdown */
    if (waits && (size == 0 || c->framing.refusal.code)) {
        errno = EAGAIN;
        return size > 0 ? size : -1;
    }
    return size;
}

/* Takes the place of the function of GnuTLS, for connections with TLS. */
__attribute__((visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t session,
                                                                  void *data, size_t data_size)
{
    struct srv_connection *c = srv_connection_at(gnutls_transport_get_int(session));
    if (!c || !c->tls)
        return next_record(session, data, data_size);
    c->session = session;
    bool waits = must_not_end(c);
    if (!waits && end(c))
        return 0;
    ssize_t size = waits && c->framing.refusal.code ? -1 : next_record(session, data, data_size);
    if (size > 0)
        size = check(c, data, size);
    if (waits && (size == 0 || c->framing.refusal.code))
        return size > 0 ? size : GNUTLS_E_AGAIN;
    return size;
}

/* ---- Local clients */

static struct srv_connection *local_at(int fd)
{
    struct srv_connection *c = srv_connection_at(fd);
    return c && c->local ? c : NULL;
}

/* Counts what is sent to a local client, of which the kernel does not tell how much arrived. */
static ssize_t count(int fd, ssize_t size)
{
    struct srv_connection *c = size > 0 ? local_at(fd) : NULL;
    if (c)
        atomic_fetch_add(&c->sent, (unsigned long long)size);
    return size;
}

/* Take the places of the C library's functions, for libmicrohttpd and GnuTLS. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    return count(fd, next_send(fd, buf, n, flags));
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    return count(fd, next_message(fd, message, flags));
}

/* Tells libmicrohttpd that options of TCP are set: a unix socket delays no bytes. It would take the
 * kernel's error for a failure to send, log it, and try again at each answer. */
__attribute__((visibility("default"))) int setsockopt(int fd, int level, int optname,
                                                      const void *optval, socklen_t optlen)
{
    return level == IPPROTO_TCP && local_at(fd) ? 0
                                                : next_option(fd, level, optname, optval, optlen);
}

/* Tells the waker of a connection whether libmicrohttpd waits for its bytes. */
__attribute__((visibility("default"))) int epoll_ctl(int epfd, int op, int fd,
                                                     struct epoll_event *event)
{
    struct srv_connection *c = srv_connection_at(fd);
    if (c && op == EPOLL_CTL_DEL)
        srv_waker_remove(&c->waker);
    int result = next_control(epfd, op, fd, event);
    if (c && result == 0 && op == EPOLL_CTL_ADD && event->events & EPOLLIN)
        srv_waker_add(&c->waker, epfd, event->data);
    return result;
}

/* ---- Past the library */

bool srv_transport_send(struct srv_connection *c, const char *bytes, size_t size, bool more)
{
    ssize_t n;
    if (c->tls)
        n = c->session ? gnutls_record_send(c->session, bytes, size) : -1;
    else
        n = send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    return n == (ssize_t)size;
}
