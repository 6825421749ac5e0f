#include "server/connection/linger.h"

#include "api/text/clock.h"
#include "server/connection/watcher.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE_MS = 5000, DEADLINE_MS = 60000, SHORT_MS = 1000 };

/* Bytes that one connection drops in a turn. */
enum { PER_RECV = 1 << 18, PER_TURN = 1 << 20 };

struct lingering {
    struct srv_watched watched;
    bool is_used;
    bool is_busy;                         /* the watcher reads from it, and is not locked */
    unsigned long long silent_at, end_at; /* deadlines in ms */
    uint64_t left;                        /* bytes of the body that are still to come */
};

/* The watcher's lock is the table's. */
static struct {
    bool stopping;
    size_t n, capacity;
    struct lingering entries[SRV_LINGERING];
} table;

void srv_linger_init(size_t capacity)
{
    enum { MIN = 64 };
    table.capacity = capacity < MIN ? MIN : capacity < SRV_LINGERING ? capacity : SRV_LINGERING;
}

/* Drops received bytes; false if the connection is finished. MSG_TRUNC drops without a copy, but those
 * of a unix socket: of these no more than the array takes at once. */
static bool drop_received(struct lingering *l, unsigned long long now)
{
    static char dropped_bytes[64 << 10];
    int fd = l->watched.fd;
    for (size_t dropped = 0; dropped < PER_TURN; dropped += PER_RECV) {
        ssize_t n = recv(fd, NULL, PER_RECV, MSG_TRUNC | MSG_DONTWAIT);
        if (n < 0 && errno == EFAULT)
            n = recv(fd, dropped_bytes, sizeof dropped_bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n < 0)
            break;
        l->silent_at = now + SILENCE_MS;
        l->left -= (uint64_t)n < l->left ? (uint64_t)n : l->left;
    }
    return true;
}

/* Takes a connection out of the table; gives its descriptor. */
static int leave(struct lingering *l)
{
    srv_watch_remove(&l->watched);
    l->is_used = false;
    table.n--;
    return l->watched.fd;
}

static unsigned long long due_of(const struct lingering *l)
{
    return l->silent_at < l->end_at ? l->silent_at : l->end_at;
}

static void look(struct srv_watched *watched, unsigned events, unsigned long long now)
{
    struct lingering *l = (struct lingering *)watched;
    (void)events;
    l->is_busy = true;
    srv_watcher_unlock();
    bool stays = drop_received(l, now);
    srv_watcher_lock();
    l->is_busy = false;
    if (l->left == 0 && l->end_at > now + SHORT_MS)
        l->end_at = now + SHORT_MS;
    if (stays && now < due_of(l)) {
        srv_watch_at(watched, due_of(l));
        return;
    }
    int fd = leave(l);
    srv_watcher_unlock();
    close(fd);
    srv_watcher_lock();
}

/* An entry for a new connection: a free one, or the entry of the connection that ends first, because it has sent its
 * body or is there for longest. *replaced becomes that connection's descriptor. NULL if there is none. */
static struct lingering *free_entry(int *replaced)
{
    struct lingering *oldest = NULL;
    for (struct lingering *l = table.entries; l < table.entries + table.capacity; l++) {
        if (!l->is_used)
            return l;
        if (!l->is_busy && (!oldest || l->end_at < oldest->end_at))
            oldest = l;
    }
    if (oldest)
        *replaced = leave(oldest);
    return oldest;
}

/* Adds a connection; false if that cannot be. */
static bool add(int fd, bool patient, uint64_t left, int *replaced)
{
    unsigned long long now = api_now_ms();
    struct lingering *l = table.stopping ? NULL : free_entry(replaced);
    if (!l)
        return false;
    *l = (struct lingering){.watched = {.fd = fd, .due = now, .look = look},
                            .silent_at = now + SILENCE_MS,
                            .end_at = now + (patient ? DEADLINE_MS : SHORT_MS),
                            .left = left};
    if (!srv_watch_add(&l->watched))
        return false;
    l->is_used = srv_watch_events(&l->watched, EPOLLIN);
    if (!l->is_used)
        srv_watch_remove(&l->watched);
    table.n += l->is_used;
    return l->is_used;
}

void srv_linger(int fd, bool patient, uint64_t left)
{
    int replaced = -1;
    shutdown(fd, SHUT_WR);
    srv_watcher_lock();
    bool is_added = add(fd, patient, left, &replaced);
    srv_watcher_unlock();
    if (replaced >= 0)
        close(replaced);
    if (!is_added)
        close(fd);
}

void srv_send_last(int fd, const char *response, size_t size)
{
    enum { PIECES = 16 }; /* of what has come; more may come for ever */
    char ignored[4096];
    if (send(fd, response, size, MSG_NOSIGNAL | MSG_DONTWAIT) <= 0)
        return;
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < PIECES && recv(fd, ignored, sizeof ignored, MSG_DONTWAIT) > 0; i++)
        ;
}

void srv_linger_stop(unsigned long long ms)
{
    unsigned long long end = api_now_ms() + ms;
    srv_watcher_lock();
    table.stopping = true;
    for (struct lingering *l = table.entries; l < table.entries + table.capacity; l++)
        if (l->is_used && l->end_at > end) {
            l->end_at = end;
            srv_watch_by(&l->watched, end);
        }
    srv_watcher_unlock();
    srv_watcher_wait(&table.n);
}
