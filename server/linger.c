#include "server/linger.h"

#include "server/clock.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64, SILENCE_MS = 5000, DEADLINE_MS = 60000, TICK_MS = 250, AT_ONCE = 1 << 20 };

struct lingering {
    int fd;
    size_t left;                          /* bytes that are still accepted */
    unsigned long long silent_at, end_at; /* deadlines in ms */
};

/* Entries 0 to n-1 are in use. Any thread appends; only the table's own thread removes. */
static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    int wake;
    bool stopping;
    size_t n;
    struct lingering entries[MOST];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = -1};

/* Drops received bytes; false if the connection is finished. MSG_TRUNC drops without a copy. */
static bool drop(struct lingering *l, unsigned long long now)
{
    while (l->left > 0) {
        ssize_t n =
            recv(l->fd, NULL, l->left < AT_ONCE ? l->left : AT_ONCE, MSG_TRUNC | MSG_DONTWAIT);
        if (n == 0)
            return false;
        if (n < 0)
            break;
        l->left -= (size_t)n;
        l->silent_at = now + SILENCE_MS;
    }
    return l->left > 0 && now < l->silent_at && now < l->end_at;
}

static void drop_all(void)
{
    unsigned long long now = srv_now_ms();
    for (size_t i = 0; i < table.n;) {
        if (drop(&table.entries[i], now)) {
            i++;
            continue;
        }
        close(table.entries[i].fd);
        table.entries[i] = table.entries[--table.n];
    }
}

static void *run(void *unused)
{
    (void)unused;
    struct pollfd fds[MOST + 1];
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

bool srv_linger_start(void)
{
    table.stopping = false;
    table.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return table.wake >= 0 && pthread_create(&table.thread, NULL, run, NULL) == 0;
}

void srv_linger(int fd, size_t most)
{
    unsigned long long now = srv_now_ms();
    shutdown(fd, SHUT_WR);
    pthread_mutex_lock(&table.lock);
    bool has_entry = table.n < MOST && !table.stopping;
    if (has_entry)
        table.entries[table.n++] =
            (struct lingering){fd, most, now + SILENCE_MS, now + DEADLINE_MS};
    pthread_mutex_unlock(&table.lock);
    if (has_entry)
        eventfd_write(table.wake, 1);
    else
        close(fd);
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
