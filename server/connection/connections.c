#include "server/connection/connections.h"

#include "api/text/clock.h"
#include "server/connection/tls.h"
#include "server/net/unix_socket.h"
#include "server/telemetry/metrics.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Time, in ms, for the first request when idle connections are closed; with a TLS handshake. */
enum { FIRST_REQUEST_MS = 1000, FIRST_TLS_REQUEST_MS = 5000 };

/* SOON_MS: time after which the end of a connection is looked at, in ms. */
enum { SOON_MS = 10 };

static srv_look *connection_look; /* the watcher's entries of connections have it */

void srv_connections_init(srv_look *look) { connection_look = look; }

/* ---- Ends */

void srv_connection_shutdown_read(struct srv_connection *c)
{
    /* Both wake the thread at each call: edge-triggered epoll may have missed the end of the
     * client's bytes. Bytes that have arrived can still be read. A client that still sends gets the
     * response before it has sent all: the kernel resets a connection that is shut in both
     * directions, and opens the window of a connection whose receiving side is no longer shut. */
    atomic_store(&c->read_shut, true);
    if (atomic_load(&c->phase) == SRV_IDLE || !srv_wakeup_signal(&c->wakeup))
        shutdown(c->watched.fd, SHUT_RD);
}

void srv_connection_end(struct srv_connection *c, const struct srv_error *why)
{
    const struct srv_error *none = NULL;
    if (!atomic_compare_exchange_strong(&c->ending, &none, why))
        return;
    srv_metrics_connection_ended(why->code);
    if (atomic_load(&c->phase) == SRV_REPLY)
        shutdown(c->watched.fd, SHUT_RDWR);
    else
        srv_connection_shutdown_read(c);
    srv_watch_by(&c->watched, api_now_ms() + SOON_MS);
}

/* ---- Entries */

struct srv_connection *srv_connection_at(int fd)
{
    struct srv_watched *w = srv_watched_at(fd);
    return w && w->look == connection_look ? (struct srv_connection *)w : NULL;
}

struct srv_connection *srv_connection_next(size_t *i)
{
    struct srv_watched *w = srv_watched_next(i);
    while (w && w->look != connection_look)
        w = srv_watched_next(i);
    return (struct srv_connection *)w;
}

static void free_connection(struct srv_connection *c)
{
    if (c->session)
        srv_tls_end(c->session);
    srv_framing_free(&c->framing);
    free(c->ahead.bytes);
    free(c);
}

/* Makes the structure of a connection; NULL if memory is exhausted. */
static struct srv_connection *make(int fd, enum srv_quota quota, bool tls,
                                   const struct sockaddr *address)
{
    struct srv_connection *c = calloc(1, sizeof *c);
    unsigned long long now = api_now_ms();
    if (!c)
        return NULL;
    *c = (struct srv_connection){.watched = {.fd = fd, .due = now, .look = connection_look},
                                 .quota = quota,
                                 .session = tls ? srv_tls_begin(fd) : NULL,
                                 .peer = {.is_local = address->sa_family == AF_UNIX},
                                 .since = now,
                                 .begun = now};
    c->peer.is_proxy = srv_peer_read(address, c->peer.address);
    if (c->peer.is_local)
        srv_unix_peer(fd, &c->peer.process);
    if (!tls || c->session)
        return c;
    free_connection(c);
    return NULL;
}

bool srv_connection_add(int fd, enum srv_quota quota, bool tls, const struct sockaddr *address)
{
    struct srv_connection *c = make(fd, quota, tls, address);
    srv_watcher_lock();
    bool is_added = c && srv_watch_add(&c->watched);
    bool good = is_added && srv_watch_events(&c->watched, EPOLLRDHUP | EPOLLET);
    if (is_added && !good)
        srv_watch_remove(&c->watched);
    if (!good)
        srv_quota_leave(quota, false);
    srv_watcher_unlock();
    if (c && !good)
        free_connection(c);
    return good;
}

void srv_connection_remove(struct srv_connection *c)
{
    srv_watcher_lock();
    srv_watch_remove(&c->watched);
    srv_quota_leave(c->quota, c->makes_room);
    srv_watcher_unlock();
    srv_wakeup_remove(&c->wakeup);
    free_connection(c);
}

/* ---- Suspension */

void srv_connection_suspend(struct srv_connection *c, struct MHD_Connection *library)
{
    MHD_suspend_connection(library);
    atomic_store(&c->suspended, library);
}

void srv_connection_resume(struct srv_connection *c)
{
    srv_watcher_lock(); /* a byte that is sent ahead must not mix with the response */
    void *library = atomic_exchange(&c->suspended, NULL);
    if (library)
        MHD_resume_connection(library);
    srv_watcher_unlock();
}

/* ---- Memory of bodies */

bool srv_connection_take_body(struct srv_connection *c)
{
    struct api_buffer *body = atomic_exchange(&c->evictable, NULL);
    if (body)
        api_buffer_free(body);
    return body;
}

bool srv_connection_reclaim_body(struct srv_connection *c)
{
    if (atomic_exchange(&c->evictable, NULL))
        return true;
    srv_watcher_lock(); /* until it is freed */
    srv_watcher_unlock();
    return false;
}

/* ---- Shutdown */

/* True if a connection waits for a request of which nothing has arrived. */
static bool is_idle(const struct srv_connection *c, unsigned long long now)
{
    int unread = 0;
    enum srv_phase phase = atomic_load(&c->phase);
    bool silent =
        phase == SRV_HEADER &&
        now > atomic_load(&c->since) + (c->session ? FIRST_TLS_REQUEST_MS : FIRST_REQUEST_MS);
    return (phase == SRV_IDLE || silent) && !atomic_load(&c->request) &&
           atomic_load(&c->ahead.size) == 0 && ioctl(c->watched.fd, FIONREAD, &unread) == 0 &&
           unread == 0;
}

void srv_connections_close_idle(void)
{
    static const struct srv_error drained = {"draining", "the server is shutting down"};
    unsigned long long now = api_now_ms();
    srv_watcher_lock();
    size_t i = 0;
    for (struct srv_connection *c; (c = srv_connection_next(&i));)
        if (!atomic_load(&c->ending) && is_idle(c, now))
            srv_connection_end(c, &drained);
    srv_watcher_unlock();
}
