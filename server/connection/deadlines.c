#include "server/connection/deadlines.h"

#include "api/text/clock.h"
#include "server/telemetry/log.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Bounds, in ms. HEADER_MS: a header in all, from its first byte or from the beginning of the connection.
 * ADMITTED_MS: for so long no other connection may replace a new one. REPLY_RATE: the minimal rate of a response, in
 * bytes per ms, after its grace: 4 KiB/s. */
enum {
    HEADER_MS = 10000,
    RESERVED_HEADER_MS = 1000,
    BODY_GRACE_MS = 10000,
    REPLY_MS = 30000,
    ADMITTED_MS = 500,
    REPLY_RATE = 4,
};

/* Times between two looks, in ms. SOON_MS: at a connection that is about to end. REPLY_LOOK_MS: at a response. */
enum { SOON_MS = 10, REPLY_LOOK_MS = 200 };

/* TEST_CLIENT_MS: time of work, in ms, after which a client that has closed its sending side is asked if it still reads.
 * FIRST_LOOK_MS: time of a response until the first look at what the client takes. */
enum { TEST_CLIENT_MS = 100, FIRST_LOOK_MS = 1000 };

static unsigned long long idle_ms = 75000, request_ms;
static unsigned long long header_ms = HEADER_MS, grace_ms = BODY_GRACE_MS, response_ms = REPLY_MS;

static const struct srv_error
    late_header = {"request_timeout", "the header took longer than 10 s, or than --timeout"},
    late_reserved = {"request_timeout",
                     "the header took longer than 1 s: it has no more on --admin-listen, nor on a "
                     "connection beyond --max-connections"},
    idle = {"idle", "no request arrived"},
    late_body = {"request_timeout",
                 "the body arrived at less than 64 KiB/s after 10 s, or after --timeout"},
    late_request = {"request_timeout", "the request took longer than --request-timeout"},
    late_work = {"compute_timeout", "the response took longer than --request-timeout"},
    late_reader = {"reply_timeout", "the client did not read its response in time"};

static unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

void srv_deadlines_set(size_t timeout, size_t request_timeout)
{
    idle_ms = timeout * 1000ull;
    header_ms = min(idle_ms, HEADER_MS);
    grace_ms = min(idle_ms, BODY_GRACE_MS);
    response_ms = min(idle_ms, REPLY_MS);
    request_ms = request_timeout * 1000ull;
}

size_t srv_idle_seconds(void) { return idle_ms / 1000; }

/* Time that a response has made no progress, or less than the minimal rate allows, in ms. */
static unsigned long long response_lag(const struct srv_connection *c, unsigned long long now)
{
    unsigned long long since = atomic_load(&c->since), taken = 0, stalled = 0;
    if (c->taken.at >= since) { /* it is of this response */
        taken = (c->taken.last - c->taken.first) / REPLY_RATE;
        stalled = now > c->taken.at ? now - c->taken.at : 0;
    }
    return now > since + taken && now - since - taken > stalled ? now - since - taken : stalled;
}

/* When a phase must have ended, in ms, by its beginning and the bytes that have come. */
static unsigned long long end_of_phase(const struct srv_connection *c, enum srv_phase phase)
{
    unsigned long long since = atomic_load(&c->since);
    switch (phase) {
    case SRV_IDLE:
        return since + idle_ms;
    case SRV_HEADER:
        return since + (c->quota == SRV_REGULAR ? header_ms : RESERVED_HEADER_MS);
    case SRV_BODY:
        return since + grace_ms + atomic_load(&c->progress.received) / SRV_BODY_RATE;
    default:
        return SRV_NEVER;
    }
}

/* When the whole request must have ended. */
static unsigned long long end_of_request(const struct srv_connection *c, enum srv_phase phase)
{
    return request_ms && phase != SRV_IDLE ? atomic_load(&c->begun) + request_ms : SRV_NEVER;
}

/* Reason for which the connection must end at `now`, in ms, or NULL. */
static const struct srv_error *overdue(const struct srv_connection *c, unsigned long long now)
{
    static const struct srv_error *const reasons[] = {[SRV_HEADER] = &late_header,
                                                      [SRV_IDLE] = &idle,
                                                      [SRV_BODY] = &late_body,
                                                      [SRV_WORK] = &late_work,
                                                      [SRV_REPLY] = &late_reader};
    /* The phase is written after its start: a change meanwhile pairs the old phase with the later
     * time, which ends no connection early. */
    enum srv_phase phase = atomic_load(&c->phase);
    if (now > end_of_phase(c, phase))
        return phase == SRV_HEADER && c->quota != SRV_REGULAR ? &late_reserved : reasons[phase];
    if (now > end_of_request(c, phase))
        return phase == SRV_HEADER || phase == SRV_BODY ? &late_request : reasons[phase];
    return phase == SRV_REPLY && response_lag(c, now) > response_ms ? &late_reader : NULL;
}

/* ---- Looks */

/* When a phase needs a look for another reason than its end. */
static unsigned long long look_in_phase(const struct srv_connection *c, enum srv_phase phase,
                                        unsigned long long now)
{
    enum srv_client client = atomic_load(&c->client);
    unsigned long long since = atomic_load(&c->since);
    if (phase == SRV_REPLY)
        return now < since + FIRST_LOOK_MS ? since + FIRST_LOOK_MS : now + REPLY_LOOK_MS;
    /* A client of a unix socket tells its end at once; by TLS no byte can be sent ahead. */
    if (phase == SRV_WORK)
        return client == SRV_HALF_CLOSED && !c->sent_ahead && !c->peer.is_local && !c->session
                   ? since + TEST_CLIENT_MS
                   : SRV_NEVER;
    return client != SRV_OPEN || atomic_load(&c->ending) ? now : SRV_NEVER;
}

/* Time of the next look at a connection, later than `now`. The watcher is locked, or it is the network thread that
 * asks. */
static unsigned long long next_look(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long next = look_in_phase(c, phase, now);
    if (!atomic_load(&c->ending))
        next = min(next, min(end_of_phase(c, phase), end_of_request(c, phase)));
    if (next < now + SOON_MS)
        return now + SOON_MS;
    return next == SRV_NEVER ? SRV_NEVER : next + 1;
}

void srv_connection_enter(struct srv_connection *c, enum srv_phase phase)
{
    unsigned long long now = api_now_ms();
    atomic_store(&c->since, now);
    if (phase == SRV_HEADER)
        atomic_store(&c->begun, now);
    if (phase == SRV_BODY)
        atomic_store(&c->progress.on_time, now * SRV_BODY_RATE);
    atomic_store(&c->phase, phase);
    srv_watch_soon(&c->watched, next_look(c, now));
}

/* ---- Lateness */

void srv_body_progress(struct srv_connection *c, size_t n)
{
    unsigned long long now = api_now_ms() * SRV_BODY_RATE;
    unsigned long long on_time = atomic_load_explicit(&c->progress.on_time, memory_order_relaxed);
    atomic_store_explicit(&c->progress.on_time, min(on_time + n, now), memory_order_relaxed);
    size_t received = atomic_load_explicit(&c->progress.received, memory_order_relaxed);
    atomic_store_explicit(&c->progress.received, received + n, memory_order_relaxed);
}

unsigned long long srv_body_lag(const struct srv_connection *c, unsigned long long now)
{
    unsigned long long on_time = atomic_load(&c->progress.on_time) / SRV_BODY_RATE;
    return now > on_time ? now - on_time : 0;
}

unsigned long long srv_lag(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long since = atomic_load(&c->since), late = now > since ? now - since : 0;
    if (phase == SRV_WORK)
        return 0;
    if (phase == SRV_BODY)
        late = srv_body_lag(c, now);
    if (phase == SRV_REPLY)
        late = response_lag(c, now);
    if (late < (c->quota == SRV_REGULAR ? ADMITTED_MS : ADMITTED_MS / 10))
        return 0;
    return phase == SRV_IDLE ? late / 8 : late; /* a client that keeps a connection is not slow */
}

/* ---- Clients that leave */

/* Marks in the connection what the kernel says of its client. */
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

/* Asks whether the client of a suspended connection is still there: sends the first byte of the response, which is
 * the same for all responses, once. The kernel of a client that has left answers with a reset; otherwise the response
 * is sent from its second byte on. Not with TLS. */
static void test_client(struct srv_connection *c)
{
    if (!c->session && c->sent_ahead == 0 && c->go_on_left == 0)
        c->sent_ahead = send(c->watched.fd, "H", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* Acts on a client's end. */
static void follow_client(struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    enum srv_client client = atomic_load(&c->client);
    if (client == SRV_OPEN && !atomic_load(&c->ending))
        return;
    if (client == SRV_HALF_CLOSED && phase == SRV_WORK && atomic_load(&c->suspended) &&
        now >= atomic_load(&c->since) + TEST_CLIENT_MS && !c->peer.is_local)
        test_client(c);
    if (phase == SRV_HEADER || phase == SRV_IDLE || phase == SRV_BODY)
        srv_connection_shutdown_read(c);
}

/* ---- Looks of the watcher */

/* Bytes that a client has taken: those that its kernel has acknowledged. For a local client the kernel counts the
 * memory of unread bytes, which is more than the bytes, and frees it in pieces of at most 48 KiB. False if the number
 * is unknown. */
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
    if (now < since + FIRST_LOOK_MS || !bytes_taken(c, &bytes))
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
    const struct srv_error *why = atomic_load(&c->ending) ? NULL : overdue(c, now);
    if (!why)
        return;
    srv_log(SRV_LOG_DEBUG, "closing a connection reason=%s", why->detail);
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
    srv_watch_at(watched, next_look(c, now));
}
