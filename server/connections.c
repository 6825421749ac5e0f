#include "server/connections.h"

#include "server/clock.h"
#include "server/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

static const unsigned long long header_ms[SRV_ROOMS] = {[SRV_MAIN] = 10000, [SRV_LOBBY] = 1000};
static const unsigned long long body_grace_ms = 10000, body_bytes_per_second = 1024;
static const unsigned long long tick_ms = 250, first_request_ms = 1000;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t reaper;
    bool stopping;
    unsigned long long idle_ms;
    struct srv_connection *first;
    struct {
        size_t pending; /* admitted and not yet added */
        size_t open;
    } rooms[SRV_ROOMS];
    unsigned long admitted, admitted_before; /* in all; at the last tick but one */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* The phase is read first and written last: a connection caught in between is judged by its old
 * phase and new deadline, which only lets it live on. */
static bool overdue(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long due = atomic_load(&c->due);
    if (phase == SRV_REPLY || now <= due)
        return false;
    return phase == SRV_HEADER ||
           atomic_load(&c->received) < (now - due) * body_bytes_per_second / 1000;
}

static void end_overdue(unsigned long long now)
{
    for (const struct srv_connection *c = table.first; c; c = c->next) {
        if (!overdue(c, now))
            continue;
        srv_log(SRV_LOG_DEBUG, "ending a connection that took too long over its %s",
                atomic_load(&c->phase) == SRV_HEADER ? "header" : "body");
        shutdown(c->fd, SHUT_RDWR);
    }
}

/* Adding follows admission within milliseconds. What is pending though nothing was admitted for
 * a whole tick, libmicrohttpd has dropped: it does so without a word when memory is out. */
static void forget_dropped(void)
{
    if (table.admitted == table.admitted_before)
        for (size_t i = 0; i < SRV_ROOMS; i++)
            table.rooms[i].pending = 0;
    table.admitted_before = table.admitted;
}

static void *reap(void *unused)
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
        end_overdue(srv_now_ms());
        forget_dropped();
    }
    pthread_mutex_unlock(&table.lock);
    return NULL;
}

bool srv_connections_start(size_t idle_seconds)
{
    table.idle_ms = idle_seconds * 1000ull;
    table.stopping = false;
    return pthread_create(&table.reaper, NULL, reap, NULL) == 0;
}

void srv_connections_stop(void)
{
    pthread_mutex_lock(&table.lock);
    table.stopping = true;
    pthread_cond_signal(&table.wake);
    pthread_mutex_unlock(&table.lock);
    pthread_join(table.reaper, NULL);
}

bool srv_connections_admit(enum srv_room room, size_t limit)
{
    pthread_mutex_lock(&table.lock);
    bool admitted = table.rooms[room].pending + table.rooms[room].open < limit;
    table.rooms[room].pending += admitted;
    table.admitted += admitted;
    pthread_mutex_unlock(&table.lock);
    return admitted;
}

void srv_connections_withdraw(enum srv_room room)
{
    pthread_mutex_lock(&table.lock);
    table.rooms[room].pending -= table.rooms[room].pending > 0;
    pthread_mutex_unlock(&table.lock);
}

struct srv_connection *srv_connection_add(int fd, enum srv_room room)
{
    struct srv_connection *c = calloc(1, sizeof *c);
    if (c) {
        c->fd = fd;
        c->room = room;
        c->opened = srv_now_ms();
        atomic_store(&c->due, c->opened + header_ms[room]);
    }
    pthread_mutex_lock(&table.lock);
    table.rooms[room].pending -= table.rooms[room].pending > 0;
    table.rooms[room].open++;
    if (c) {
        c->next = table.first;
        if (c->next)
            c->next->previous = c;
        table.first = c;
    }
    pthread_mutex_unlock(&table.lock);
    return c;
}

void srv_connection_remove(struct srv_connection *c, enum srv_room room)
{
    pthread_mutex_lock(&table.lock);
    table.rooms[room].open--;
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
        phase == SRV_HEADER ? table.idle_ms + header_ms[c->room] : body_grace_ms;
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
    for (size_t i = 0; i < SRV_ROOMS; i++)
        n += table.rooms[i].pending + table.rooms[i].open;
    pthread_mutex_unlock(&table.lock);
    return n;
}

void srv_connections_close_idle(void)
{
    unsigned long long now = srv_now_ms();
    pthread_mutex_lock(&table.lock);
    for (struct srv_connection *c = table.first; c; c = c->next) {
        bool waited = atomic_load(&c->served) || now > c->opened + first_request_ms;
        if (atomic_load(&c->phase) != SRV_HEADER || !waited || atomic_load(&c->shut))
            continue;
        atomic_store(&c->shut, true);
        shutdown(c->fd, SHUT_RD);
    }
    pthread_mutex_unlock(&table.lock);
}
