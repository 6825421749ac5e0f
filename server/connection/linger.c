#include "server/connection/linger.h"

#include "server/net/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE_MS = 5000, DEADLINE_MS = 60000, SHORT_MS = 1000, TICK_MS = 250 };

/* Bytes that one connection drops in a turn. */
enum { PER_RECV = 1 << 18, PER_TURN = 1 << 20 };

struct lingering {
    int fd;
    unsigned long long silent_at, end_at; /* deadlines in ms */
    uint64_t left;                        /* bytes of the body that are still to come */
};

/* Entries 0 to n-1 are in use. Any thread appends; only the table's own thread removes. */
static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    int wake;
    bool stopping;
    size_t n, capacity;
    struct lingering entries[SRV_LINGERING];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = -1};

/* Drops received bytes; false if the connection is finished. MSG_TRUNC drops without a copy, but those
 * of a unix socket: of these no more than the array takes at once. */
static bool drop_received(struct lingering *l, unsigned long long now)
{
    static char dropped_bytes[64 << 10];
    for (size_t dropped = 0; dropped < PER_TURN; dropped += PER_RECV) {
        ssize_t n = recv(l->fd, NULL, PER_RECV, MSG_TRUNC | MSG_DONTWAIT);
        if (n < 0 && errno == EFAULT)
            n = recv(l->fd, dropped_bytes, sizeof dropped_bytes, MSG_DONTWAIT);
        if (n == 0)
            return false;
        if (n < 0)
            break;
        l->silent_at = now + SILENCE_MS;
        l->left -= (uint64_t)n < l->left ? (uint64_t)n : l->left;
    }
    if (l->left == 0 && l->end_at > now + SHORT_MS)
        l->end_at = now + SHORT_MS;
    return now < l->silent_at && now < l->end_at;
}

static void drop_all(void)
{
    unsigned long long now = srv_now_ms();
    for (size_t i = 0; i < table.n;) {
        if (drop_received(&table.entries[i], now)) {
            i++;
            continue;
        }
        close(table.entries[i].fd);
        table.entries[i] = table.entries[--table.n];
    }
}

static void *drop_bodies(void *unused)
{
    (void)unused;
    struct pollfd fds[SRV_LINGERING + 1];
    pthread_mutex_lock(&table.lock);
    while (!table.stopping || table.n > 0) {
        eventfd_t ignored;
        size_t n = table.n;
        for (size_t i = 0; i < n; i++)
            fds[i] = (struct pollfd){.fd = table.entries[i].fd, .events = POLLIN};
        fds[n] = (struct pollfd){.fd = table.wake, .events = POLLIN};
        pthread_mutex_unlock(&table.lock);
        poll(fds, n + 1, n > 0 ? TICK_MS : -1);
        eventfd_read(table.wake, &ignored);
        pthread_mutex_lock(&table.lock);
        drop_all();
    }
    pthread_mutex_unlock(&table.lock);
    return NULL;
}

bool srv_linger_start(size_t capacity)
{
    enum { MIN = 64 };
    table.capacity = capacity < MIN ? MIN : capacity < SRV_LINGERING ? capacity : SRV_LINGERING;
    table.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return table.wake >= 0 && pthread_create(&table.thread, NULL, drop_bodies, NULL) == 0;
}

/* The entry that a new connection takes: a free one, or that of the connection which ends first: it has
 * sent its body, or is there for longest. */
static struct lingering *free_entry(void)
{
    struct lingering *oldest = table.entries;
    if (table.n < table.capacity)
        return &table.entries[table.n++];
    for (size_t i = 1; i < table.n; i++)
        if (table.entries[i].end_at < oldest->end_at)
            oldest = &table.entries[i];
    close(oldest->fd);
    return oldest;
}

void srv_linger(int fd, bool patient, uint64_t left)
{
    unsigned long long now = srv_now_ms();
    shutdown(fd, SHUT_WR);
    pthread_mutex_lock(&table.lock);
    bool stopping = table.stopping;
    if (!stopping)
        *free_entry() = (struct lingering){fd, now + SILENCE_MS,
                                           now + (patient ? DEADLINE_MS : SHORT_MS), left};
    pthread_mutex_unlock(&table.lock);
    if (stopping)
        close(fd);
    else
        eventfd_write(table.wake, 1);
}

void srv_linger_stop(unsigned long long ms)
{
    unsigned long long end = srv_now_ms() + ms;
    pthread_mutex_lock(&table.lock);
    table.stopping = true;
    for (size_t i = 0; i < table.n; i++)
        if (table.entries[i].end_at > end)
            table.entries[i].end_at = end;
    pthread_mutex_unlock(&table.lock);
    eventfd_write(table.wake, 1);
    pthread_join(table.thread, NULL);
    close(table.wake);
}
