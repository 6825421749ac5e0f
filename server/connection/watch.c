#include "server/connection/connections.h"

#include "server/connection/deadlines.h"
#include "server/connection/transport.h"
#include "server/net/clock.h"
#include "server/telemetry/log.h"

#include <limits.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* TICK_MS, SOON_MS: times between looks at the table, in ms: at most; while a connection waits for one, and at
 * least. PROBE_MS: time of work, in ms, after which a client that has closed its sending side is asked if it
 * still reads. */
enum { TICK_MS = 100, SOON_MS = 5, PROBE_MS = 100, EVENTS = 64 };

static struct {
    pthread_t thread;
    int events; /* epoll */
    atomic_bool stopping;
} watch = {.events = -1};

/* Tells a connection from others that have its descriptor after it. */
static uint64_t key_of(const struct srv_connection *c)
{
    return (uint64_t)c->number << 32 | (unsigned)c->fd;
}

bool srv_watch(const struct srv_connection *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.u64 = key_of(c)};
    return epoll_ctl(watch.events, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

/* ---- Clients that leave */

/* Marks what the kernel says of a client. */
static void mark_client(uint64_t key, unsigned events)
{
    struct srv_connection *c = srv_connection_at((int)(key & INT_MAX));
    if (!c || key_of(c) != key)
        return;
    if (events & (EPOLLERR | EPOLLHUP))
        c->client = SRV_GONE;
    else if (c->client == SRV_OPEN && events & EPOLLRDHUP && !atomic_load(&c->read_shut))
        c->client = SRV_HALF_CLOSED;
}

static void collect_events(int timeout)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(watch.events, events, EVENTS, timeout);
    if (n <= 0)
        return;
    srv_connections_lock();
    for (int i = 0; i < n; i++)
        mark_client(events[i].data.u64, events[i].events);
    srv_connections_unlock();
}

/* Acts on a client's end, and on refusals that wait to be read; true if another look is needed soon. */
static bool follow_client(struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    if (c->client == SRV_OPEN && !atomic_load(&c->ending) && !atomic_load(&c->refused))
        return false;
    if (c->client == SRV_HALF_CLOSED && phase == SRV_WORK && atomic_load(&c->suspended) &&
        now >= atomic_load(&c->since) + PROBE_MS && !c->local) /* which tells its end at once */
        srv_transport_probe(c);
    if (c->client == SRV_GONE)
        atomic_store(&c->stop, true);
    if (phase == SRV_HEADER || phase == SRV_IDLE || phase == SRV_BODY)
        srv_connection_shutdown_read(c);
    return true;
}

/* ---- Deadlines */

/* Bytes that a client has taken: those that its kernel has acknowledged. Of a local client the kernel counts what
 * is unread in the memory that it takes, which is more than the bytes, and frees it in pieces of at most
 * 48 KiB. False if the number is unknown. */
static bool bytes_taken(const struct srv_connection *c, unsigned long long *bytes)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    unsigned long long sent = atomic_load(&c->sent);
    bool good = c->local ? ioctl(c->fd, SIOCOUTQ, &unread) == 0
                         : getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (good && c->local)
        *bytes = sent > (unsigned)unread ? sent - (unsigned)unread : 0;
    else if (good)
        *bytes = info.tcpi_bytes_acked;
    return good;
}

static void look_at_response(struct srv_connection *c, unsigned long long now)
{
    unsigned long long since = atomic_load(&c->since), taken;
    if (now < since + 1000 || !bytes_taken(c, &taken))
        return;
    bool first = c->acked_at < since;
    if (first)
        c->first_acked = taken;
    if (first || taken != c->acked)
        c->acked_at = now;
    c->acked = taken;
}

static void end_late(struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    const struct srv_error *why = srv_overdue(c, now);
    if (!why)
        return;
    srv_log(SRV_LOG_DEBUG, "closing a connection: %s", why->detail);
    srv_connection_end(c, why);
    if (phase == SRV_WORK)
        atomic_store(&c->stop, true);
}

/* ---- Thread */

/* Looks at all connections; gives the time until the next look, in ms. */
static int look(void)
{
    unsigned long long now = srv_now_ms();
    struct srv_connection *first = srv_connections_lock();
    bool soon = false;
    for (struct srv_connection *c = first; c; c = c->next) {
        if (atomic_load(&c->phase) == SRV_REPLY)
            look_at_response(c, now);
        srv_follow_body(c, now);
        end_late(c, now);
        soon |= follow_client(c, now);
    }
    srv_connections_unlock();
    return soon ? SOON_MS : TICK_MS;
}

static void *run_watch(void *unused)
{
    (void)unused;
    int wait = TICK_MS;
    unsigned long long looked = 0;
    while (!atomic_load(&watch.stopping)) {
        collect_events(wait);
        unsigned long long now = srv_now_ms();
        if (now < looked + SOON_MS) { /* each client that comes or leaves is an event */
            wait = SOON_MS;
            continue;
        }
        wait = look();
        looked = now;
    }
    return NULL;
}

bool srv_watch_start(void)
{
    watch.events = epoll_create1(EPOLL_CLOEXEC);
    return watch.events >= 0 && pthread_create(&watch.thread, NULL, run_watch, NULL) == 0;
}

void srv_watch_stop(void)
{
    atomic_store(&watch.stopping, true);
    pthread_join(watch.thread, NULL);
    close(watch.events);
}
