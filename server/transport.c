#include "server/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
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
static ssize_t (*next_record)(gnutls_session_t session, void *data, size_t data_size);

__attribute__((constructor)) static void find_next(void)
{
    *(void **)&next = dlsym(RTLD_NEXT, "recv");
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

bool srv_transport_send(struct srv_connection *c, const char *bytes, size_t size, bool more)
{
    ssize_t n;
    if (c->tls)
        n = c->session ? gnutls_record_send(c->session, bytes, size) : -1;
    else
        n = send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    return n == (ssize_t)size;
}
