#include "server/connection/connections.h"

#include "server/net/clock.h"
#include "server/net/unix_socket.h"
#include "server/telemetry/metrics.h"

#include <stdlib.h>
#include <sys/ioctl.h>

/* Time, in ms, for the first request when idle connections are closed; with a TLS handshake. */
enum { FIRST_REQUEST_MS = 1000, FIRST_TLS_REQUEST_MS = 5000 };

static struct {
    pthread_mutex_t lock;
    struct srv_connection *first;
    _Atomic(struct srv_connection *) *by_descriptor; /* read by network threads without the lock */
    size_t descriptors;
    struct {
        size_t pending; /* admitted, not yet added */
        size_t min;     /* of `pending` since the last look: these were dropped */
        size_t open;
        size_t ending; /* of the open ones, those that made room */
    } quotas[SRV_QUOTAS];
    unsigned added;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool srv_connections_init(size_t descriptors)
{
    table.by_descriptor = calloc(descriptors, sizeof *table.by_descriptor);
    table.descriptors = table.by_descriptor ? descriptors : 0;
    return table.by_descriptor != NULL;
}

struct srv_connection *srv_connections_lock(void)
{
    pthread_mutex_lock(&table.lock);
    return table.first;
}

void srv_connections_unlock(void) { pthread_mutex_unlock(&table.lock); }

/* ---- Ends */

void srv_connection_shutdown_read(struct srv_connection *c)
{
    /* Either wakes the thread at each call; edge-triggered epoll may have lost the end of the client's
     * bytes. Bytes that have arrived can still be read. A client that still sends gets the response before
     * it has sent all: the kernel resets a connection that is shut in both directions, and opens the
     * window of one whose receiving side is shut no more. With TLS libmicrohttpd polls, and there is no
     * other way. */
    atomic_store(&c->read_shut, true);
    if (c->tls || !atomic_load(&c->arriving) || !srv_waker_wake(&c->waker))
        shutdown(c->fd, SHUT_RD);
}

void srv_connection_end(struct srv_connection *c, const struct srv_error *why)
{
    const struct srv_error *none = NULL;
    if (!atomic_compare_exchange_strong(&c->ending, &none, why))
        return;
    srv_metrics_connection_ended(why->code);
    if (atomic_load(&c->phase) == SRV_REPLY)
        shutdown(c->fd, SHUT_RDWR);
    else
        srv_connection_shutdown_read(c);
}

bool srv_connection_make_way(struct srv_connection *c)
{
    static const struct srv_error made_way = {
        "too_many_connections", "the slowest connection was closed for a new one; try again"};
    if (table.quotas[c->quota].ending == SRV_ENDING)
        return false;
    srv_connection_end(c, &made_way);
    c->makes_way = atomic_load(&c->ending) == &made_way;
    table.quotas[c->quota].ending += c->makes_way;
    return c->makes_way;
}

/* ---- Counts */

bool srv_connections_admit(enum srv_quota quota, size_t limit)
{
    pthread_mutex_lock(&table.lock);
    size_t taken = table.quotas[quota].pending + table.quotas[quota].open;
    bool admitted = taken - table.quotas[quota].ending < limit;
    table.quotas[quota].pending += admitted;
    pthread_mutex_unlock(&table.lock);
    return admitted;
}

/* With the table locked: one connection less is expected. */
static void expect_less(enum srv_quota quota)
{
    size_t *pending = &table.quotas[quota].pending, *min = &table.quotas[quota].min;
    *pending -= *pending > 0;
    *min = *min < *pending ? *min : *pending;
}

void srv_connections_cancel(enum srv_quota quota)
{
    pthread_mutex_lock(&table.lock);
    expect_less(quota);
    pthread_mutex_unlock(&table.lock);
}

void srv_connections_forget_dropped(void)
{
    enum { FORGET_MS = 500 };
    static unsigned long long next;
    unsigned long long now = srv_now_ms();
    pthread_mutex_lock(&table.lock);
    if (now >= next) {
        next = now + FORGET_MS;
        for (size_t i = 0; i < SRV_QUOTAS; i++) {
            table.quotas[i].pending -= table.quotas[i].min;
            table.quotas[i].min = table.quotas[i].pending;
        }
    }
    pthread_mutex_unlock(&table.lock);
}

size_t srv_connections_open(void)
{
    size_t n = 0;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < SRV_QUOTAS; i++)
        n += table.quotas[i].pending + table.quotas[i].open;
    pthread_mutex_unlock(&table.lock);
    return n;
}

/* ---- Entries */

struct srv_connection *srv_connection_at(int fd)
{
    return fd >= 0 && (size_t)fd < table.descriptors ? atomic_load(&table.by_descriptor[fd]) : NULL;
}

static void unlink_entry(struct srv_connection *c)
{
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        table.first = c->next;
    atomic_store(&table.by_descriptor[c->fd], NULL);
    table.quotas[c->quota].ending -= c->makes_way;
}

struct srv_connection *srv_connection_add(int fd, enum srv_quota quota, bool tls, bool local)
{
    struct srv_connection *c = (size_t)fd < table.descriptors ? malloc(sizeof *c) : NULL;
    unsigned long long now = srv_now_ms();
    struct ucred peer = {0};
    if (local)
        srv_unix_peer(fd, &peer);
    pthread_mutex_lock(&table.lock);
    expect_less(quota);
    table.quotas[quota].open++;
    if (c) {
        *c = (struct srv_connection){.next = table.first,
                                     .fd = fd,
                                     .number = table.added++,
                                     .quota = quota,
                                     .tls = tls,
                                     .local = local,
                                     .peer = peer,
                                     .opened = now,
                                     .since = now,
                                     .begun = now,
                                     .body_lock = PTHREAD_MUTEX_INITIALIZER};
        if (c->next)
            c->next->previous = c;
        table.first = c;
        atomic_store(&table.by_descriptor[fd], c);
    }
    pthread_mutex_unlock(&table.lock);
    return c;
}

void srv_connection_remove(struct srv_connection *c, enum srv_quota quota)
{
    pthread_mutex_lock(&table.lock);
    table.quotas[quota].open--;
    if (c)
        unlink_entry(c);
    pthread_mutex_unlock(&table.lock);
    if (!c)
        return;
    srv_waker_remove(&c->waker);
    srv_framing_free(&c->framing);
    free(c);
}

void srv_connection_enter(struct srv_connection *c, enum srv_phase phase)
{
    unsigned long long now = srv_now_ms();
    atomic_store(&c->since, now);
    if (phase == SRV_HEADER)
        atomic_store(&c->begun, now);
    atomic_store(&c->phase, phase);
}

/* ---- Suspension */

void srv_connection_suspend(struct srv_connection *c, struct MHD_Connection *library)
{
    srv_connection_enter(c, SRV_WORK);
    MHD_suspend_connection(library);
    atomic_store(&c->suspended, library);
}

void srv_connection_resume(struct srv_connection *c)
{
    srv_connections_lock(); /* a probe of the client must not mix with the response */
    void *library = atomic_exchange(&c->suspended, NULL);
    if (library)
        MHD_resume_connection(library);
    srv_connections_unlock();
}

/* ---- Memory of bodies */

bool srv_connection_take_body(struct srv_connection *c)
{
    if (pthread_mutex_trylock(&c->body_lock) != 0)
        return false;
    bool taken = c->body;
    if (taken)
        api_buffer_free(c->body);
    c->body = NULL;
    c->body_taken |= taken;
    pthread_mutex_unlock(&c->body_lock);
    return taken;
}

bool srv_connection_keep_body(struct srv_connection *c)
{
    pthread_mutex_lock(&c->body_lock);
    bool taken = c->body_taken;
    c->body = NULL;
    c->body_taken = false;
    atomic_store(&c->held, 0);
    pthread_mutex_unlock(&c->body_lock);
    return !taken;
}

/* ---- Shutdown */

/* True if a connection waits for a request of which nothing has arrived. */
static bool is_idle(const struct srv_connection *c, unsigned long long now)
{
    int unread = 0;
    enum srv_phase phase = atomic_load(&c->phase);
    bool silent =
        phase == SRV_HEADER && now > c->opened + (c->tls ? FIRST_TLS_REQUEST_MS : FIRST_REQUEST_MS);
    return (phase == SRV_IDLE || silent) && !atomic_load(&c->request) &&
           !atomic_load(&c->arriving) && ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0;
}

void srv_connections_close_idle(void)
{
    static const struct srv_error drained = {"draining", "the server is shutting down"};
    unsigned long long now = srv_now_ms();
    pthread_mutex_lock(&table.lock);
    for (struct srv_connection *c = table.first; c; c = c->next)
        if (!atomic_load(&c->ending) && is_idle(c, now))
            srv_connection_end(c, &drained);
    pthread_mutex_unlock(&table.lock);
}
