#include "server/connections.h"

#include "server/clock.h"
#include "server/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const unsigned long long header_ms[SRV_QUOTAS] = {
    [SRV_REGULAR] = 10000, [SRV_RESERVED] = 1000};
static const unsigned long long body_grace_ms = 10000, body_bytes_per_second = 1024;
static const unsigned long long tick_ms = 250, first_request_ms = 1000;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t closer;
    bool stopping;
    unsigned long long idle_ms;
    struct srv_connection *first;
    struct {
        size_t pending; /* admitted, not yet added */
        size_t open;
    } quotas[SRV_QUOTAS];
    unsigned long admitted, admitted_before; /* in total; at the previous tick */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* True if a connection has exceeded its phase's deadline. Reads the phase first, which is
 * written last: a concurrent change pairs the old phase with the new deadline, which never ends
 * the connection early. */
static bool overdue(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long due = atomic_load(&c->due);
    if (phase == SRV_REPLY || now <= due)
        return false;
    return phase == SRV_HEADER ||
           atomic_load(&c->received) < (now - due) * body_bytes_per_second / 1000;
}

static void close_overdue(unsigned long long now)
{
    for (const struct srv_connection *c = table.first; c; c = c->next) {
        if (!overdue(c, now))
            continue;
        srv_log(SRV_LOG_DEBUG, "closing a connection: the %s took too long",
                atomic_load(&c->phase) == SRV_HEADER ? "header" : "body");
        shutdown(c->fd, SHUT_RDWR);
    }
}

/* Resets the counts of pending connections that libmicrohttpd has dropped without a notice, as
 * it does when memory is exhausted. A connection is added within ms of its admission, so a tick
 * without admissions proves the drop. */
static void reset_dropped(void)
{
    if (table.admitted == table.admitted_before)
        for (size_t i = 0; i < SRV_QUOTAS; i++)
            table.quotas[i].pending = 0;
    table.admitted_before = table.admitted;
}

static void *close_late(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&table.lock);
    while (!table.stopping) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)tick_ms * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&table.wake, &table.lock, &until);
        close_overdue(srv_now_ms());
        reset_dropped();
    }
    pthread_mutex_unlock(&table.lock);
    return NULL;
}

bool srv_connections_start(size_t idle_seconds)
{
    table.idle_ms = idle_seconds * 1000ull;
    table.stopping = false;
    return pthread_create(&table.closer, NULL, close_late, NULL) == 0;
}

void srv_connections_stop(void)
{
    pthread_mutex_lock(&table.lock);
    table.stopping = true;
    pthread_cond_signal(&table.wake);
    pthread_mutex_unlock(&table.lock);
    pthread_join(table.closer, NULL);
}

bool srv_connections_admit(enum srv_quota quota, size_t limit)
{
    pthread_mutex_lock(&table.lock);
    bool admitted = table.quotas[quota].pending + table.quotas[quota].open < limit;
    table.quotas[quota].pending += admitted;
    table.admitted += admitted;
    pthread_mutex_unlock(&table.lock);
    return admitted;
}

void srv_connections_cancel(enum srv_quota quota)
{
    pthread_mutex_lock(&table.lock);
    table.quotas[quota].pending -= table.quotas[quota].pending > 0;
    pthread_mutex_unlock(&table.lock);
}

struct srv_connection *srv_connection_add(int fd, enum srv_quota quota)
{
    struct srv_connection *c = calloc(1, sizeof *c);
    if (c) {
        c->fd = fd;
        c->quota = quota;
        c->opened = srv_now_ms();
        atomic_store(&c->due, c->opened + header_ms[quota]);
    }
    pthread_mutex_lock(&table.lock);
    table.quotas[quota].pending -= table.quotas[quota].pending > 0;
    table.quotas[quota].open++;
    if (c) {
        c->next = table.first;
        if (c->next)
            c->next->previous = c;
        table.first = c;
    }
    pthread_mutex_unlock(&table.lock);
    return c;
}

void srv_connection_remove(struct srv_connection *c, enum srv_quota quota)
{
    pthread_mutex_lock(&table.lock);
    table.quotas[quota].open--;
    if (c && c->next)
        c->next->previous = c->previous;
    if (c && c->previous)
        c->previous->next = c->next;
    else if (c)
        table.first = c->next;
    pthread_mutex_unlock(&table.lock);
    free(c);
}

void srv_connection_enter(struct srv_connection *c, enum srv_phase phase)
{
    unsigned long long grace =
        phase == SRV_HEADER ? table.idle_ms + header_ms[c->quota] : body_grace_ms;
    atomic_store(&c->due, srv_now_ms() + grace);
    atomic_store(&c->received, 0);
    if (phase == SRV_HEADER)
        atomic_store(&c->served, true);
    atomic_store(&c->phase, phase);
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

/* True if a connection waits for a request of which nothing has arrived. */
static bool is_idle(const struct srv_connection *c, unsigned long long now)
{
    int unread = 0;
    bool waited = atomic_load(&c->served) || now > c->opened + first_request_ms;
    return waited && atomic_load(&c->phase) == SRV_HEADER && !atomic_load(&c->request) &&
           ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0;
}

void srv_connections_close_idle(void)
{
    unsigned long long now = srv_now_ms();
    pthread_mutex_lock(&table.lock);
    for (struct srv_connection *c = table.first; c; c = c->next) {
        if (atomic_load(&c->shut) || !is_idle(c, now))
            continue;
        atomic_store(&c->shut, true);
        shutdown(c->fd, SHUT_RD);
    }
    pthread_mutex_unlock(&table.lock);
}
