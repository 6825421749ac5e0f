#include "server/connection/watch.h"

#include "server/connection/deadlines.h"
#include "server/connection/door.h"
#include "server/telemetry/log.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* ---- Clients that leave */

/* Marks what the kernel says of a client. */
static void mark_client(struct srv_connection *c, unsigned events)
{
    if (events & (EPOLLERR | EPOLLHUP)) {
        atomic_store(&c->client, SRV_GONE);
        atomic_store(&c->stop, true);
        return;
    }
    if (atomic_load(&c->client) == SRV_OPEN && !atomic_load(&c->read_shut))
        atomic_store(&c->client, SRV_HALF_CLOSED);
}

/* Acts on a client's end. */
static void follow_client(struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    enum srv_client client = atomic_load(&c->client);
    if (client == SRV_OPEN && !atomic_load(&c->ending))
        return;
    if (client == SRV_HALF_CLOSED && phase == SRV_WORK && atomic_load(&c->suspended) &&
        now >= atomic_load(&c->since) + SRV_PROBE_MS && !c->peer.is_local)
        srv_door_probe(c);
    if (phase == SRV_HEADER || phase == SRV_IDLE || phase == SRV_BODY)
        srv_connection_shutdown_read(c);
}

/* ---- Deadlines */

/* Bytes that a client has taken: those that its kernel has acknowledged. Of a local client the kernel counts what
 * is unread in the memory that it takes, which is more than the bytes, and frees it in pieces of at most
 * 48 KiB. False if the number is unknown. */
static bool bytes_taken(const struct srv_connection *c, unsigned long long *bytes)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0, fd = c->watched.fd;
    unsigned long long sent = atomic_load(&c->sent);
    bool good = c->peer.is_local ? ioctl(fd, SIOCOUTQ, &unread) == 0
                                 : getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (good && c->peer.is_local)
        *bytes = sent > (unsigned)unread ? sent - (unsigned)unread : 0;
    else if (good)
        *bytes = info.tcpi_bytes_acked;
    return good;
}

static void look_at_response(struct srv_connection *c, unsigned long long now)
{
    unsigned long long since = atomic_load(&c->since), bytes;
    if (now < since + SRV_FIRST_LOOK_MS || !bytes_taken(c, &bytes))
        return;
    bool first = c->taken.at < since;
    if (first)
        c->taken.first = bytes;
    if (!first && bytes <= c->taken.last)
        return;
    c->taken.last = bytes;
    c->taken.at = now;
}

static void end_late(struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    const struct srv_error *why = atomic_load(&c->ending) ? NULL : srv_overdue(c, now);
    if (!why)
        return;
    srv_log(SRV_LOG_DEBUG, "closing a connection: %s", why->detail);
    srv_connection_end(c, why);
    if (phase == SRV_WORK)
        atomic_store(&c->stop, true);
}

void srv_connection_look(struct srv_watched *watched, unsigned events, unsigned long long now)
{
    struct srv_connection *c = (struct srv_connection *)watched;
    if (events)
        mark_client(c, events);
    if (atomic_load(&c->phase) == SRV_REPLY)
        look_at_response(c, now);
    end_late(c, now);
    if (!events) /* the network thread may see the client's end by itself */
        follow_client(c, now);
    srv_watch_at(watched, srv_next_look(c, now));
}
