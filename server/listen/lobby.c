#include "server/listen/lobby.h"

#include "server/connection/framing.h"
#include "server/listen/listener.h"
#include "server/net/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* HOLD_MS: time, in ms, for a header. TICK_MS: time between looks at it. */
enum { HOLD_MS = 250, TICK_MS = 50, EVENTS = 64 };

struct waiting {
    int fd; /* -1 if it has left */
    unsigned long long until;
    struct sockaddr_storage address;
    socklen_t size;
};

/* The connections from number `first` up to, not including, number `end`, in the order of their arrival; that
 * of number n is in entry n % SRV_LOBBY. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int events; /* epoll, which only the thread removes from */
    bool stopping;
    size_t capacity;
    srv_admit *admit;
    uint64_t first, end;
    struct waiting entries[SRV_LOBBY];
} lobby = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .events = -1};

/* Takes a connection out; gives its descriptor. */
static int leave(struct waiting *w)
{
    int fd = w->fd;
    epoll_ctl(lobby.events, EPOLL_CTL_DEL, fd, NULL);
    w->fd = -1;
    return fd;
}

static void turn_away(struct waiting *w)
{
    int fd = leave(w);
    srv_turn_away(fd);
    close(fd);
}

/* Acts on the bytes that a client has sent. */
static void look_at(struct waiting *w)
{
    static char bytes[SRV_HEADER_SIZE];
    ssize_t n = recv(w->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        close(leave(w));
    else if (n == sizeof bytes || memmem(bytes, (size_t)n, "\r\n\r\n", 4))
        lobby.admit(leave(w), (const struct sockaddr *)&w->address, w->size,
                    memcmp(bytes, "GET ", 4) == 0 || memcmp(bytes, "HEAD", 4) == 0);
}

/* Has the oldest connection leave; its header may have come since the last look. */
static void clear_oldest(void)
{
    struct waiting *oldest = &lobby.entries[lobby.first % SRV_LOBBY];
    look_at(oldest);
    if (oldest->fd >= 0)
        turn_away(oldest);
}

/* Advances past connections that have left. */
static void skip_absent(void)
{
    while (lobby.first < lobby.end && lobby.entries[lobby.first % SRV_LOBBY].fd < 0)
        lobby.first++;
}

/* Acts on clients that have sent something, and on those whose time is over. */
static void look_at_all(const struct epoll_event *events, int n)
{
    unsigned long long now = srv_now_ms();
    for (int i = 0; i < n; i++) {
        struct waiting *w = &lobby.entries[events[i].data.u64 % SRV_LOBBY];
        if (events[i].data.u64 >= lobby.first && w->fd >= 0)
            look_at(w);
    }
    for (skip_absent(); lobby.first < lobby.end; skip_absent()) {
        if (now < lobby.entries[lobby.first % SRV_LOBBY].until)
            return;
        clear_oldest();
    }
}

static void *run_lobby(void *unused)
{
    (void)unused;
    struct epoll_event events[EVENTS];
    pthread_mutex_lock(&lobby.lock);
    for (;;) {
        while (lobby.first == lobby.end && !lobby.stopping)
            pthread_cond_wait(&lobby.changed, &lobby.lock);
        if (lobby.first == lobby.end)
            break;
        pthread_mutex_unlock(&lobby.lock);
        int n = epoll_wait(lobby.events, events, EVENTS, TICK_MS);
        pthread_mutex_lock(&lobby.lock);
        look_at_all(events, n);
    }
    pthread_mutex_unlock(&lobby.lock);
    return NULL;
}

bool srv_lobby_start(size_t capacity, srv_admit *admit)
{
    lobby.capacity = capacity == 0 ? 1 : capacity < SRV_LOBBY ? capacity : SRV_LOBBY;
    lobby.admit = admit;
    lobby.events = epoll_create1(EPOLL_CLOEXEC);
    return lobby.events >= 0 && pthread_create(&lobby.thread, NULL, run_lobby, NULL) == 0;
}

void srv_lobby_take(int client, const struct sockaddr *address, socklen_t size)
{
    pthread_mutex_lock(&lobby.lock);
    skip_absent();
    if (lobby.end - lobby.first == lobby.capacity)
        clear_oldest();
    skip_absent();
    struct waiting *w = &lobby.entries[lobby.end % SRV_LOBBY];
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = lobby.end};
    *w = (struct waiting){.fd = client, .until = srv_now_ms() + HOLD_MS, .size = size};
    memcpy(&w->address, address, size);
    lobby.end++;
    if (epoll_ctl(lobby.events, EPOLL_CTL_ADD, client, &event) != 0)
        turn_away(w);
    pthread_cond_signal(&lobby.changed);
    pthread_mutex_unlock(&lobby.lock);
}

void srv_lobby_stop(void)
{
    pthread_mutex_lock(&lobby.lock);
    lobby.stopping = true;
    pthread_cond_signal(&lobby.changed);
    pthread_mutex_unlock(&lobby.lock);
    pthread_join(lobby.thread, NULL);
    close(lobby.events);
}
