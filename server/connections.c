#include "server/connections.h"

#include "server/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static const unsigned long long header_ms = 10000, body_grace_ms = 10000;
static const unsigned long long body_bytes_per_second = 1024;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t reaper;
    bool stopping;
    struct srv_connection *first;
    size_t open;
    unsigned long long idle_ms;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static unsigned long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

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

static void *reap(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&table.lock);
    while (!table.stopping) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 250000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&table.wake, &table.lock, &until);
        unsigned long long now = now_ms();
        for (const struct srv_connection *c = table.first; c; c = c->next)
            if (overdue(c, now)) {
                srv_log(SRV_LOG_DEBUG, "ending a connection that took too long over its %s",
                        atomic_load(&c->phase) == SRV_HEADER ? "header" : "body");
                shutdown(c->fd, SHUT_RDWR);
            }
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

struct srv_connection *srv_connection_add(int fd)
{
    struct srv_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    atomic_store(&c->due, now_ms() + header_ms);
    pthread_mutex_lock(&table.lock);
    c->next = table.first;
    if (c->next)
        c->next->previous = c;
    table.first = c;
    table.open++;
    pthread_mutex_unlock(&table.lock);
    return c;
}

void srv_connection_remove(struct srv_connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&table.lock);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        table.first = c->next;
    table.open--;
    pthread_mutex_unlock(&table.lock);
    free(c);
}

void srv_connection_enter(struct srv_connection *c, enum srv_phase phase)
{
    unsigned long long grace = phase == SRV_HEADER ? table.idle_ms + header_ms : body_grace_ms;
    atomic_store(&c->due, now_ms() + grace);
    atomic_store(&c->received, 0);
    atomic_store(&c->phase, phase);
}

size_t srv_connections_open(void)
{
    pthread_mutex_lock(&table.lock);
    size_t open = table.open;
    pthread_mutex_unlock(&table.lock);
    return open;
}

void srv_connections_close_idle(void)
{
    pthread_mutex_lock(&table.lock);
    for (const struct srv_connection *c = table.first; c; c = c->next)
        if (atomic_load(&c->phase) == SRV_HEADER)
            shutdown(c->fd, SHUT_RD);
    pthread_mutex_unlock(&table.lock);
}
